//! JSON values that a server states in several ways: as a number or as text, as null or not at all.

use serde::de::Error;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// Deserializes a value that may be null, which counts as missing.
pub(crate) fn null_as_default<'de, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: Default + Deserialize<'de>,
    D: Deserializer<'de>,
{
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// Deserializes a count or a year. A number that cannot be one, such as a negative one, counts as missing.
pub(crate) fn natural_number<'de, T, D>(deserializer: D) -> Result<Option<T>, D::Error>
where
    T: TryFrom<i64>,
    D: Deserializer<'de>,
{
    let value = Option::<Value>::deserialize(deserializer)?;
    Ok(value.and_then(|value| value.as_i64()).and_then(|number| T::try_from(number).ok()))
}

/// Text or number of a response; empty if it is null.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct LooseText(String);

impl LooseText {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the text, unless it is empty.
    pub(crate) fn non_empty(&self) -> Option<&str> {
        Some(self.as_str()).filter(|text| !text.is_empty())
    }

    pub(crate) fn number(&self) -> Option<f64> {
        self.0.trim().parse().ok().filter(|number: &f64| number.is_finite())
    }

    pub(crate) fn integer<T: std::str::FromStr>(&self) -> Option<T> {
        self.0.trim().parse().ok()
    }
}

impl<'de> Deserialize<'de> for LooseText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::Null => Ok(Self::default()),
            Value::String(text) => Ok(Self(text)),
            Value::Number(number) => Ok(Self(number.to_string())),
            Value::Bool(flag) => Ok(Self(u8::from(flag).to_string())),
            Value::Array(_) | Value::Object(_) => Err(D::Error::custom("expected text or a number")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_texts_with_the_same_digits_are_equal() {
        let parse = |json: &str| serde_json::from_str::<LooseText>(json).unwrap();
        assert_eq!(parse("4348"), parse("\"4348\""));
        assert_eq!(parse("null").non_empty(), None);
        assert_eq!(parse("0.25").number(), Some(0.25));
        assert_eq!(parse("true").integer::<u8>(), Some(1));
        assert!(serde_json::from_str::<LooseText>("{}").is_err());
    }
}
