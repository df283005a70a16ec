//! Validation of the fields in Twilio's requests against their documented formats.

use std::collections::BTreeMap;

use http::Uri;

/// Decoded form: names and values in the order of arrival.
pub type DecodedForm = [(String, String)];

/// Reason why a signed form is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FormFault {
    #[error("a name with characters other than letters and digits")]
    InvalidName,
    #[error("a duplicate name")]
    DuplicateName,
    #[error("the SID of another account")]
    WrongAccount,
    #[error("a missing field")]
    MissingField,
    #[error("a value that is invalid for its field")]
    InvalidValue,
    #[error("different message ids or statuses")]
    MismatchedFields,
    #[error("media fields that do not match their count")]
    WrongMedia,
    #[error("a request for another webhook")]
    WrongRoute,
    #[error("an error code inside another field")]
    HiddenField,
}

impl FormFault {
    /// Label of the fault in metrics.
    pub fn label(self) -> &'static str {
        match self {
            Self::InvalidName => "odd_name",
            Self::DuplicateName => "doubled_name",
            Self::WrongAccount => "wrong_account",
            Self::MissingField => "missing_field",
            Self::InvalidValue => "wrong_shape",
            Self::MismatchedFields => "different_ids",
            Self::WrongMedia => "wrong_media",
            Self::WrongRoute => "wrong_route",
            Self::HiddenField => "hidden_field",
        }
    }
}

/// Format of a value. Empty values are allowed except for [`Self::OneOf`], because Twilio sends unknown values as empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FieldFormat {
    /// Two capital letters and 32 hexadecimal digits.
    Sid,
    /// Phone number or sender name, with an optional channel prefix: `whatsapp:+15550100123`.
    Address,
    /// Integer of at most four digits, without leading zeros.
    Count,
    /// At most 16 digits: an error code or a carrier's timestamp.
    Digits,
    /// Version of the API: a date.
    Version,
    Url,
    /// Letters and underscores.
    Word,
    OneOf(&'static [&'static str]),
    /// Any text.
    Text,
}

/// Presence of a field in the requests of its kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FieldPresence {
    Always,
    Sometimes,
}

/// Field as documented by Twilio.
#[derive(Debug, Clone, Copy)]
pub(super) struct DocumentedField {
    pub(super) name: &'static str,
    pub(super) format: FieldFormat,
    pub(super) presence: FieldPresence,
}

pub(super) const fn required_field(name: &'static str, format: FieldFormat) -> DocumentedField {
    DocumentedField { name, format, presence: FieldPresence::Always }
}

pub(super) const fn optional_field(name: &'static str, format: FieldFormat) -> DocumentedField {
    DocumentedField { name, format, presence: FieldPresence::Sometimes }
}

/// Fields of a form by name, validated against the documented fields.
#[derive(Debug)]
pub(super) struct CheckedFields<'a> {
    values: BTreeMap<&'a str, &'a str>,
}

impl<'a> CheckedFields<'a> {
    /// Validates the names, the values and the account. Unknown names are allowed, because Twilio adds fields without
    /// notice.
    pub(super) fn from_form(
        form: &'a DecodedForm,
        documented: &[DocumentedField],
        account_sid: &str,
    ) -> Result<Self, FormFault> {
        let mut values = BTreeMap::new();
        for (name, value) in form {
            if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
                return Err(FormFault::InvalidName);
            }
            if values.insert(name.as_str(), value.as_str()).is_some() {
                return Err(FormFault::DuplicateName);
            }
        }
        for field in documented {
            if values.get(field.name).is_some_and(|value| !field.format.allows_value(value)) {
                return Err(FormFault::InvalidValue);
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

    /// Returns whether the field is present, even with an empty value.
    pub(super) fn has(&self, name: &str) -> bool {
        self.values.contains_key(name)
    }

    /// Returns the names and values in the order in which they are signed.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.values.iter().map(|(name, value)| (*name, *value))
    }

    /// Checks that a field has this value, if it is present and not empty.
    pub(super) fn check_equal(&self, name: &str, value: &str) -> Result<(), FormFault> {
        match self.get(name) {
            Some(other) if other != value => Err(FormFault::MismatchedFields),
            Some(_) | None => Ok(()),
        }
    }
}

impl FieldFormat {
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
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"+:._@-".contains(&byte);
    value.len() <= 128 && value.bytes().all(is_allowed)
}

fn is_count(value: &str) -> bool {
    let is_short_number = (1..=4).contains(&value.len()) && value.bytes().all(|byte| byte.is_ascii_digit());
    is_short_number && (value == "0" || !value.starts_with('0'))
}

fn is_url(value: &str) -> bool {
    let has_http_scheme = value.starts_with("https://") || value.starts_with("http://");
    has_http_scheme && value.parse::<Uri>().is_ok_and(|url| url.host().is_some())
}
