//! Documented fields of Twilio's requests, with the shape of each value.

use std::collections::BTreeMap;

use http::Uri;

/// Decoded form: names and values in the order of arrival.
pub type DecodedForm = [(String, String)];

/// Reason for which a signed form is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FormFault {
    #[error("a name that is not made of letters and digits")]
    OddName,
    #[error("a name that appears twice")]
    DoubledName,
    #[error("another account than ours")]
    WrongAccount,
    #[error("a field that is missing")]
    MissingField,
    #[error("a value without the shape of its field")]
    WrongShape,
    #[error("message ids that differ from each other")]
    DifferentIds,
    #[error("another number of media than announced")]
    WrongMedia,
    #[error("a request for another address of ours")]
    WrongRoute,
    #[error("an error code inside another field")]
    HiddenField,
}

impl FormFault {
    /// Label of the fault in metrics.
    pub fn label(self) -> &'static str {
        match self {
            Self::OddName => "odd_name",
            Self::DoubledName => "doubled_name",
            Self::WrongAccount => "wrong_account",
            Self::MissingField => "missing_field",
            Self::WrongShape => "wrong_shape",
            Self::DifferentIds => "different_ids",
            Self::WrongMedia => "wrong_media",
            Self::WrongRoute => "wrong_route",
            Self::HiddenField => "hidden_field",
        }
    }
}

/// Shape of a value. An empty value has every shape except that of a fixed list of words: Twilio sends unknown fields
/// as empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FieldShape {
    /// Two capital letters and 32 hexadecimal digits.
    Sid,
    /// Number or name of a sender, perhaps after a channel: `whatsapp:+15550100123`.
    Address,
    /// Whole number of at most four digits, without a leading zero.
    Count,
    /// Digits only: an error code, a time of a carrier.
    Digits,
    /// Date, as the versions of the API are named.
    Version,
    Url,
    /// Letters and underscores.
    Word,
    OneOf(&'static [&'static str]),
    /// Any text.
    Text,
}

/// Presence of a field: in every request of its kind, or optional.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FieldPresence {
    Always,
    Sometimes,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct DocumentedField {
    pub(super) name: &'static str,
    pub(super) shape: FieldShape,
    pub(super) presence: FieldPresence,
}

pub(super) const fn required_field(name: &'static str, shape: FieldShape) -> DocumentedField {
    DocumentedField { name, shape, presence: FieldPresence::Always }
}

pub(super) const fn optional_field(name: &'static str, shape: FieldShape) -> DocumentedField {
    DocumentedField { name, shape, presence: FieldPresence::Sometimes }
}

/// Fields of a form by name, each checked against the table of its kind of request.
#[derive(Debug)]
pub(super) struct CheckedFields<'a> {
    values: BTreeMap<&'a str, &'a str>,
}

impl<'a> CheckedFields<'a> {
    /// Checks names, shapes and the account. Names that the table does not have are allowed: Twilio adds new ones
    /// without notice.
    pub(super) fn from_form(
        form: &'a DecodedForm,
        table: &[DocumentedField],
        account_sid: &str,
    ) -> Result<Self, FormFault> {
        let mut values = BTreeMap::new();
        for (name, value) in form {
            if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
                return Err(FormFault::OddName);
            }
            if values.insert(name.as_str(), value.as_str()).is_some() {
                return Err(FormFault::DoubledName);
            }
        }
        for field in table {
            if values.get(field.name).is_some_and(|value| !field.shape.allows_value(value)) {
                return Err(FormFault::WrongShape);
            }
        }
        let fields = Self { values };
        if fields.required("AccountSid")? != account_sid {
            return Err(FormFault::WrongAccount);
        }
        Ok(fields)
    }

    /// Returns the value of a field; `None` for a field that is absent or empty.
    pub(super) fn get(&self, name: &str) -> Option<&'a str> {
        self.values.get(name).copied().filter(|value| !value.is_empty())
    }

    pub(super) fn required(&self, name: &str) -> Result<&'a str, FormFault> {
        self.get(name).ok_or(FormFault::MissingField)
    }

    /// True if the field is present, also with an empty value.
    pub(super) fn has(&self, name: &str) -> bool {
        self.values.contains_key(name)
    }

    /// Returns names and values in the order of the signature.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.values.iter().map(|(name, value)| (*name, *value))
    }

    /// Refuses a form in which a field differs from `value`, if the form has the field at all.
    pub(super) fn check_equal(&self, name: &str, value: &str) -> Result<(), FormFault> {
        match self.get(name) {
            Some(other) if other != value => Err(FormFault::DifferentIds),
            Some(_) | None => Ok(()),
        }
    }
}

impl FieldShape {
    pub(super) fn allows_value(self, value: &str) -> bool {
        let may_be_empty = !matches!(self, Self::OneOf(_));
        (value.is_empty() && may_be_empty) || self.matches_value(value)
    }

    pub(super) fn matches_value(self, value: &str) -> bool {
        match self {
            Self::Sid => is_sid(value),
            Self::Address => is_address(value),
            Self::Count => is_count(value),
            Self::Digits => value.len() <= 16 && value.bytes().all(|byte| byte.is_ascii_digit()),
            Self::Version => value.parse::<jiff::civil::Date>().is_ok() && value.len() == "2010-04-01".len(),
            Self::Url => is_url(value),
            Self::Word => value.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'_'),
            Self::OneOf(words) => words.contains(&value),
            Self::Text => true,
        }
    }
}

pub(crate) fn is_sid(value: &str) -> bool {
    let bytes = value.as_bytes();
    bytes.len() == 34
        && bytes[..2].iter().all(u8::is_ascii_uppercase)
        && bytes[2..].iter().all(u8::is_ascii_hexdigit)
}

fn is_address(value: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"+:._@-".contains(&byte);
    value.len() <= 128 && value.bytes().all(fits)
}

fn is_count(value: &str) -> bool {
    let digits = (1..=4).contains(&value.len()) && value.bytes().all(|byte| byte.is_ascii_digit());
    digits && (value == "0" || !value.starts_with('0'))
}

fn is_url(value: &str) -> bool {
    let scheme = value.starts_with("https://") || value.starts_with("http://");
    scheme && value.parse::<Uri>().is_ok_and(|url| url.host().is_some())
}
