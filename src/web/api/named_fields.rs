//! Query parameters and body fields as named values. An invalid one is described by its name, in a sentence of the API
//! instead of the parser's text.

use std::fmt;

use serde::de::value::{MapAccessDeserializer, StringDeserializer};
use serde::de::{DeserializeOwned, DeserializeSeed, Deserializer, IntoDeserializer, MapAccess, Visitor};
use serde::forward_to_deserialize_any;
use serde_json::{Map, Value};
use url::form_urlencoded;

/// Maximum number of characters of an unknown name in an error.
const MAX_NAME_CHARS: usize = 40;

/// Kind of the named values, for error messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FieldKind {
    Parameter,
    Field,
}

/// Reason why named values do not fit their type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum FieldError {
    Unknown(String),
    Missing(&'static str),
    Repeated(&'static str),
    Invalid(String),
    /// The value of the current name is invalid.
    InvalidValue,
}

impl FieldError {
    fn into_sentence(self, kind: FieldKind) -> String {
        let kind = match kind {
            FieldKind::Parameter => "query parameter",
            FieldKind::Field => "body field",
        };
        match self {
            Self::Unknown(name) => format!("there is no {kind} {}", shorten_name(&name)),
            Self::Missing(name) => format!("the {kind} {name} is missing"),
            Self::Repeated(name) => format!("the {kind} {name} appears more than once"),
            Self::Invalid(name) => format!("the {kind} {} has an invalid value", shorten_name(&name)),
            Self::InvalidValue => format!("a {kind} has an invalid value"),
        }
    }
}

fn shorten_name(name: &str) -> String {
    name.chars().filter(|character| !character.is_control()).take(MAX_NAME_CHARS).collect()
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.clone().into_sentence(FieldKind::Field))
    }
}

impl std::error::Error for FieldError {}

impl serde::de::Error for FieldError {
    fn custom<T: fmt::Display>(_message: T) -> Self {
        Self::InvalidValue
    }

    fn unknown_field(field: &str, _expected: &'static [&'static str]) -> Self {
        Self::Unknown(field.to_owned())
    }

    fn missing_field(field: &'static str) -> Self {
        Self::Missing(field)
    }

    fn duplicate_field(field: &'static str) -> Self {
        Self::Repeated(field)
    }
}

/// Parses the query of a URL. The error is a sentence about the first parameter that does not fit.
pub(super) fn parse_query<T: DeserializeOwned>(query: &str) -> Result<T, String> {
    let pairs = form_urlencoded::parse(query.as_bytes());
    let values = pairs.map(|(name, value)| (name.into_owned(), QueryValue(value.into_owned())));
    parse_fields(values).map_err(|error| error.into_sentence(FieldKind::Parameter))
}

/// Parses the fields of a JSON object. The error is a sentence about the first field that does not fit.
pub(super) fn parse_object<T: DeserializeOwned>(object: Map<String, Value>) -> Result<T, String> {
    parse_fields(object.into_iter()).map_err(|error| error.into_sentence(FieldKind::Field))
}

fn parse_fields<'de, T: DeserializeOwned, V: Deserializer<'de>>(
    values: impl Iterator<Item = (String, V)>,
) -> Result<T, FieldError> {
    T::deserialize(MapAccessDeserializer::new(NamedFields { values, current: None }))
}

/// Named values that are read one after the other.
struct NamedFields<I, V> {
    values: I,
    current: Option<(String, V)>,
}

impl<'de, V: Deserializer<'de>, I: Iterator<Item = (String, V)>> MapAccess<'de> for NamedFields<I, V> {
    type Error = FieldError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, FieldError> {
        let Some((name, value)) = self.values.next() else { return Ok(None) };
        let key: StringDeserializer<FieldError> = name.clone().into_deserializer();
        self.current = Some((name, value));
        seed.deserialize(key).map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, FieldError> {
        let (name, value) = self.current.take().ok_or(FieldError::InvalidValue)?;
        seed.deserialize(value).map_err(|_| FieldError::Invalid(name))
    }
}

/// Value of a query parameter, which is text until its type is known.
struct QueryValue(String);

/// Implements the methods for types that are parsed from text.
macro_rules! parse_text {
    ($($method:ident => $visit:ident),+ $(,)?) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
            visitor.$visit(self.0.parse().map_err(|_| FieldError::InvalidValue)?)
        }
    )+};
}

impl<'de> Deserializer<'de> for QueryValue {
    type Error = FieldError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        visitor.visit_string(self.0)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        visitor.visit_some(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, FieldError> {
        visitor.visit_enum(self.0.into_deserializer())
    }

    parse_text! {
        deserialize_bool => visit_bool, deserialize_i64 => visit_i64, deserialize_u64 => visit_u64,
        deserialize_u32 => visit_u32,
    }

    forward_to_deserialize_any! {
        i8 i16 i32 i128 u8 u16 u128 f32 f64 char str string bytes byte_buf unit unit_struct newtype_struct seq tuple
        tuple_struct map struct identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Debug, PartialEq, Eq, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Color {
        Red,
    }

    #[derive(Debug, PartialEq, Eq, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Params {
        user: String,
        before: Option<i64>,
        limit: Option<usize>,
        open: Option<bool>,
        color: Option<Color>,
    }

    fn query_error(query: &str) -> String {
        parse_query::<Params>(query).unwrap_err()
    }

    #[test]
    fn query_parameters_have_the_types_of_their_fields() {
        let parsed = parse_query("user=%2B1+2&before=-3&limit=4&open=true&color=red");
        let expected = Params {
            user: "+1 2".to_owned(),
            before: Some(-3),
            limit: Some(4),
            open: Some(true),
            color: Some(Color::Red),
        };
        assert_eq!(parsed, Ok(expected));
    }

    #[test]
    fn invalid_query_is_described_by_the_name_of_its_parameter() {
        assert_eq!(query_error("user=1&limit=-4"), "the query parameter limit has an invalid value");
        assert_eq!(query_error("user=1&color=blue"), "the query parameter color has an invalid value");
        assert_eq!(query_error("user=1&colour=red"), "there is no query parameter colour");
        assert_eq!(query_error("user=1&user=2"), "the query parameter user appears more than once");
        assert_eq!(query_error("limit=3"), "the query parameter user is missing");
    }

    #[test]
    fn invalid_body_is_described_by_the_name_of_its_field() {
        let object_error = |value: Value| parse_object::<Params>(value.as_object().unwrap().clone());
        let wrong_type = object_error(json!({ "user": "1", "limit": "4" }));
        assert_eq!(wrong_type, Err("the body field limit has an invalid value".to_owned()));
        let long = object_error(json!({ "user": "1", "a".repeat(99): 1 }));
        assert_eq!(long, Err(format!("there is no body field {}", "a".repeat(40))));
    }
}
