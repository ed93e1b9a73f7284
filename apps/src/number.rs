//! Numbers in results, for `#[serde(with = "crate::number")]`.
//!
//! JSON has finite numbers only, and `null` in the place of another one hides what came out. Here it is a string, which
//! `float` of Python and `Number` of JavaScript read: `"NaN"`, `"Infinity"` or `"-Infinity"`.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A number in a list of a result; it may not be finite.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Number(#[serde(with = "crate::number")] pub(crate) f64);

/// A number as it stands in a result.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Written {
    Finite(f64),
    Other(Other),
}

#[derive(Serialize, Deserialize)]
enum Other {
    NaN,
    Infinity,
    #[serde(rename = "-Infinity")]
    MinusInfinity,
}

pub(crate) fn serialize<S: Serializer>(number: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    let written = match *number {
        finite if finite.is_finite() => Written::Finite(finite),
        nan if nan.is_nan() => Written::Other(Other::NaN),
        large if large > 0.0 => Written::Other(Other::Infinity),
        _ => Written::Other(Other::MinusInfinity),
    };
    written.serialize(serializer)
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(match Written::deserialize(deserializer)? {
        Written::Finite(number) => number,
        Written::Other(Other::NaN) => f64::NAN,
        Written::Other(Other::Infinity) => f64::INFINITY,
        Written::Other(Other::MinusInfinity) => f64::NEG_INFINITY,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Serialize, Deserialize)]
    struct Result {
        #[serde(with = "crate::number")]
        number: f64,
    }

    #[test]
    fn every_number_comes_back() {
        for (number, expected) in [
            (0.1, "0.1"),
            (-3.0, "-3.0"),
            (f64::NAN, "\"NaN\""),
            (f64::INFINITY, "\"Infinity\""),
            (f64::NEG_INFINITY, "\"-Infinity\""),
        ] {
            let text = serde_json::to_string(&Result { number }).unwrap();
            assert_eq!(text, format!("{{\"number\":{expected}}}"));
            let read: Result = serde_json::from_str(&text).unwrap();
            assert!(read.number == number || read.number.is_nan() && number.is_nan(), "{text}");
        }
        assert!(serde_json::from_str::<Result>("{\"number\":null}").is_err());
        assert!(serde_json::from_str::<Result>("{\"number\":\"1\"}").is_err());
    }
}
