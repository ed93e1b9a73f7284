//! What a rank says of itself when it has waited long: in which call, for whom.

use std::fmt::{Display, Formatter, Result};

use serde::{Deserialize, Serialize};

use crate::error::list;
use crate::rank::Rank;

/// Context of the communicator of the ranks that compute; its collectives use the next number.
pub const CONTEXT_COMPUTE: u32 = 2;
/// First context of communicators that come and go; those below live as long as the job.
pub const CONTEXT_DYNAMIC: u32 = 1 << 16;
/// Characters of a call's name that are shown.
const NAME_CHARS_MAX: usize = 32;
/// Awaited ranks that are shown.
const RANKS_SHOWN_MAX: usize = 16;

/// Whose doing a waiting call needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Awaited {
    /// Any one rank can end the wait.
    Anybody,
    /// Each of these ranks of the world has to act before the call returns.
    Ranks(Vec<Rank>),
    /// All other ranks have to come to the same call.
    Others,
}

/// How far the program of a rank is, where all ranks take the same steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// Protected runs of the job that have ended before.
    pub run: u32,
    /// The step, counted from the start of the job: the one that the rank is in, or goes on with.
    pub step: u64,
}

/// A call in which a rank has waited for some time, while nothing came that it could use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wait {
    /// Name of the call, such as `recv`.
    pub call: String,
    /// Context of its messages; 0 if it has none.
    pub context: u32,
    /// Tag of the message that it waits for, if there is one tag.
    pub tag: Option<u32>,
    /// For whom.
    pub awaited: Awaited,
    /// How long it has waited so far, in milliseconds.
    pub millis: u64,
    /// How far its program is, if all ranks take the same steps.
    pub place: Option<Place>,
}

impl Wait {
    /// The ranks without which the call cannot return, as far as they can be named.
    pub fn certain(&self) -> &[Rank] {
        match &self.awaited {
            Awaited::Ranks(ranks) => ranks,
            Awaited::Anybody | Awaited::Others => &[],
        }
    }
}

/// `recv for rank 5, tag 7`: the call without its duration. Short whatever the rank has sent, on one line, and without
/// control characters.
impl Display for Wait {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let plain = |c: char| if c.is_control() { '?' } else { c };
        f.write_str(&self.call.chars().take(NAME_CHARS_MAX).map(plain).collect::<String>())?;
        match &self.awaited {
            Awaited::Anybody => f.write_str(" for any rank")?,
            Awaited::Others => f.write_str(" for the other ranks")?,
            Awaited::Ranks(ranks) if ranks.len() > RANKS_SHOWN_MAX => {
                write!(f, " for {} ranks, rank {} among them", ranks.len(), ranks[0])?;
            }
            Awaited::Ranks(ranks) => write!(f, " for {}", list("rank", ranks))?,
        }
        if let Some(tag) = self.tag {
            write!(f, ", tag {tag}")?;
        }
        // The program's own communicator goes without saying, and so does that of its collectives.
        match self.context {
            0 | CONTEXT_COMPUTE => Ok(()),
            context if context == CONTEXT_COMPUTE + 1 => Ok(()),
            context => write!(f, ", communicator {}", context & !1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recv(awaited: Awaited) -> Wait {
        Wait {
            call: "recv".into(),
            context: CONTEXT_COMPUTE,
            tag: Some(7),
            awaited,
            millis: 12_000,
            place: None,
        }
    }

    #[test]
    fn reads_as_a_sentence() {
        for (wait, text) in [
            (recv(Awaited::Ranks(vec![5])), "recv for rank 5, tag 7"),
            (Wait { tag: None, ..recv(Awaited::Anybody) }, "recv for any rank"),
            (
                Wait { context: 17, ..recv(Awaited::Ranks(vec![1, 2])) },
                "recv for ranks 1 and 2, tag 7, communicator 16",
            ),
            (Wait { tag: None, context: 0, ..recv(Awaited::Others) }, "recv for the other ranks"),
        ] {
            assert_eq!(wait.to_string(), text);
        }
    }

    #[test]
    fn what_a_rank_sends_cannot_flood_the_terminal() {
        let call = format!("a\nb\u{1b}[2J{}", "x".repeat(100_000));
        let text = Wait { call, ..recv(Awaited::Ranks((0..100_000).collect())) }.to_string();
        assert!(text.starts_with("a?b?[2Jxx") && text.len() < 100, "{text}");
        assert!(!text.contains(char::is_control), "{text}");
    }
}
