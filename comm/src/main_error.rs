//! What `main` returns.

use std::error::Error;
use std::fmt;

/// Why `main` failed: any error, in words.
///
/// Rust prints the `Debug` form of an error that `main` returns. That of this one is the error's text and, a line each, those
/// of its causes, as far as the text before does not have them in it.
///
/// ```
/// use ft_comm::{MainError, World};
///
/// fn main() -> Result<(), MainError> {
///     let mut world = World::init()?;
///     let steps: u32 = "100".parse()?;
///     assert_eq!(steps, 100);
///     Ok(world.finalize(Vec::new())?)
/// }
/// ```
pub struct MainError(Box<dyn Error>);

// Not an `Error` itself, or every error could not become one.
impl<E: Into<Box<dyn Error>>> From<E> for MainError {
    fn from(error: E) -> Self {
        Self(error.into())
    }
}

impl fmt::Debug for MainError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut said = self.0.to_string();
        f.write_str(&said)?;
        let mut cause = self.0.source();
        while let Some(error) = cause {
            let text = error.to_string();
            if !said.contains(&text) {
                write!(f, "\n  caused by: {text}")?;
                said = text;
            }
            cause = error.source();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CommError;

    #[derive(Debug)]
    struct Outer(&'static str, CommError);

    impl fmt::Display for Outer {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }
    }

    impl Error for Outer {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            Some(&self.1)
        }
    }

    fn shown(error: impl Into<MainError>) -> String {
        format!("{:?}", error.into())
    }

    #[test]
    fn reads_as_a_sentence() {
        let join = || CommError::Join("no launcher".into());
        assert_eq!(shown(join()), "cannot join the job: no launcher");
        assert_eq!(shown("no rows"), "no rows");
        assert_eq!(shown(Box::<dyn Error>::from(join())), "cannot join the job: no launcher");
        assert_eq!(
            shown(Outer("the grid is empty", join())),
            "the grid is empty\n  caused by: cannot join the job: no launcher"
        );
        // What is said already is not said again.
        assert_eq!(
            shown(Outer("grid: cannot join the job: no launcher", join())),
            "grid: cannot join the job: no launcher"
        );
    }
}
