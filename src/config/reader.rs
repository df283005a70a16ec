//! Reader of variables that parses their values and collects the problems.

use std::ops::RangeInclusive;

use secrecy::SecretString;
use url::Url;

use super::sources::RawValue;
use super::variables::Variable;
use super::{ConfigProblem, ConfigProblems, ConfigSources};
use crate::conversation::transcript::PhoneNumber;

pub(super) struct VariableReader<'a> {
    sources: &'a ConfigSources,
    problems: Vec<ConfigProblem>,
}

/// Value of a variable. An invalid value is already reported, so it must not be reported as missing too.
pub(super) enum VariableValue<T> {
    Missing,
    Invalid,
    /// Stored secret that cannot be used. The connection that needs it is off, and the configuration is valid.
    Unusable,
    Valid(T),
}

impl<T> VariableValue<T> {
    pub(super) fn is_missing(&self) -> bool {
        matches!(self, Self::Missing)
    }

    pub(super) fn is_unusable(&self) -> bool {
        matches!(self, Self::Unusable)
    }

    pub(super) fn into_option(self) -> Option<T> {
        match self {
            Self::Valid(value) => Some(value),
            Self::Missing | Self::Invalid | Self::Unusable => None,
        }
    }

    pub(super) fn as_valid(&self) -> Option<&T> {
        match self {
            Self::Valid(value) => Some(value),
            Self::Missing | Self::Invalid | Self::Unusable => None,
        }
    }

    /// Returns the value or the default. An invalid value also gives the default, since the configuration is rejected anyway.
    pub(super) fn unwrap_or(self, default: T) -> T {
        self.into_option().unwrap_or(default)
    }
}

impl VariableValue<Url> {
    /// Returns the URL or the default. Returns `None` for an invalid value, which has been reported.
    pub(super) fn or_default(self, default: &str) -> Option<Url> {
        match self {
            // The tests verify that the defaults parse.
            Self::Missing => Url::parse(default).ok(),
            Self::Invalid | Self::Unusable => None,
            Self::Valid(url) => Some(url),
        }
    }
}

impl<'a> VariableReader<'a> {
    pub(super) fn new(sources: &'a ConfigSources) -> Self {
        Self { sources, problems: Vec::new() }
    }

    pub(super) fn finish_with<T>(self, value: T) -> Result<T, ConfigProblems> {
        let list = [&self.sources.file.problems[..], &self.problems].concat();
        if list.is_empty() { Ok(value) } else { Err(ConfigProblems { list, notes: self.sources.notes() }) }
    }

    pub(super) fn report_problem(&mut self, variable: Variable, reason: impl Into<String>) {
        let Variable { name, example, .. } = variable;
        let source = self.sources.value_source(name);
        self.problems.push(ConfigProblem { variable: name, source, reason: reason.into(), example });
    }

    /// Returns whether the variable is set to an empty value, which a few variables distinguish from a missing one.
    pub(super) fn is_set_to_empty(&self, variable: Variable) -> bool {
        matches!(self.sources.lookup(variable), RawValue::Text(text) if text.trim().is_empty())
    }

    /// Returns whether the variable has a value, valid or not.
    pub(super) fn is_set(&self, variable: Variable) -> bool {
        self.sources.has_value(variable)
    }

    /// Returns whether `shared` would replace `secret` at the same server but cannot be used.
    pub(super) fn lacks_shared_secret(&self, secret: Variable, shared: Variable) -> bool {
        matches!(self.sources.lookup(shared), RawValue::Unusable(_))
            && self.sources.server_origin(secret) == self.sources.server_origin(shared)
    }

    /// Parses a value with `parse`, whose error completes "NAME: …".
    pub(super) fn read_with<T>(
        &mut self,
        variable: Variable,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> VariableValue<T> {
        let text = match self.sources.lookup(variable) {
            RawValue::Unset => "",
            RawValue::Text(text) => text.trim(),
            RawValue::Unusable(_) => return VariableValue::Unusable,
        };
        if text.is_empty() {
            return VariableValue::Missing;
        }
        match parse(text) {
            Ok(value) => VariableValue::Valid(value),
            Err(reason) => {
                self.report_problem(variable, reason);
                VariableValue::Invalid
            }
        }
    }

    /// Reports a missing value. `condition` completes "needed …".
    pub(super) fn require_value<T>(
        &mut self,
        variable: Variable,
        value: VariableValue<T>,
        condition: &str,
    ) -> Option<T> {
        if value.is_missing() {
            self.report_problem(variable, format!("needed {condition}"));
        }
        value.into_option()
    }

    /// Returns two values that are required together.
    pub(super) fn require_both<A, B>(
        &mut self,
        (first, a): (Variable, VariableValue<A>),
        (second, b): (Variable, VariableValue<B>),
    ) -> Option<(A, B)> {
        if a.is_missing() && b.is_missing() {
            return None;
        }
        let a = self.require_value(first, a, &format!("with {}", second.name));
        let b = self.require_value(second, b, &format!("with {}", first.name));
        a.zip(b)
    }

    pub(super) fn read_text(&mut self, variable: Variable) -> VariableValue<String> {
        self.read_with(variable, |text| Ok(text.to_owned()))
    }

    pub(super) fn read_url(&mut self, variable: Variable) -> VariableValue<Url> {
        self.read_with(variable, |text| parse_url(text).map_err(str::to_owned))
    }

    pub(super) fn read_secret(&mut self, variable: Variable) -> VariableValue<SecretString> {
        self.read_with(variable, parse_secret)
    }

    pub(super) fn read_phone(&mut self, variable: Variable) -> VariableValue<PhoneNumber> {
        self.read_with(variable, |text| PhoneNumber::parse(text).map_err(|error| error.to_string()))
    }

    /// Reads a comma-separated list. Whitespace around entries and empty entries are ignored.
    pub(super) fn read_list<T>(
        &mut self,
        variable: Variable,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> VariableValue<Vec<T>> {
        self.read_with(variable, |text| {
            let entries = text.split(',').map(str::trim).filter(|entry| !entry.is_empty());
            let parsed: Result<Vec<T>, String> = entries
                .enumerate()
                .map(|(index, entry)| {
                    parse(entry).map_err(|reason| format!("entry {} is {reason}", index + 1))
                })
                .collect();
            match parsed {
                Ok(values) if values.is_empty() => Err("a list without entries".to_owned()),
                parsed => parsed,
            }
        })
    }

    pub(super) fn read_number(
        &mut self,
        variable: Variable,
        range: RangeInclusive<u64>,
    ) -> VariableValue<u64> {
        self.read_with(variable, |text| match text.parse() {
            Ok(number) if range.contains(&number) => Ok(number),
            _ => Err(format!("not a whole number from {} to {}", range.start(), range.end())),
        })
    }

    /// Reads one of several keywords, ignoring case.
    pub(super) fn read_choice<T: Clone>(
        &mut self,
        variable: Variable,
        choices: &[(&str, T)],
    ) -> VariableValue<T> {
        self.read_with(variable, |text| {
            let chosen = choices.iter().find(|(keyword, _)| keyword.eq_ignore_ascii_case(text));
            chosen.map(|(_, value)| value.clone()).ok_or_else(|| {
                let keywords: Vec<&str> = choices.iter().map(|(keyword, _)| *keyword).collect();
                format!("not one of {}", keywords.join(", "))
            })
        })
    }

    /// Reads a Twilio SID, whose prefix distinguishes accounts, keys and services.
    pub(super) fn read_sid(&mut self, variable: Variable, prefix: &str) -> VariableValue<String> {
        self.read_with(variable, |text| {
            let well_formed = text.starts_with(prefix)
                && text.len() > prefix.len()
                && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
            if well_formed {
                Ok(text.to_owned())
            } else {
                Err(format!("not an id of letters and digits that starts with {prefix}"))
            }
        })
    }
}

/// Parses a secret that is valid in a request header.
pub(super) fn parse_secret(text: &str) -> Result<SecretString, String> {
    if text.bytes().all(|byte| byte.is_ascii_graphic()) {
        Ok(text.into())
    } else {
        Err("not a secret: it has a space or a character outside ASCII".to_owned())
    }
}

pub(super) fn parse_url(text: &str) -> Result<Url, &'static str> {
    let Ok(mut url) = Url::parse(text) else {
        return Err("not a URL");
    };
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err("not a URL that starts with http:// or https://");
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("a URL with a user name or password, which logs would show");
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err("a URL with ? or #, which a base URL must not have");
    }
    let path = url.path().trim_end_matches('/').to_owned();
    url.set_path(&path);
    Ok(url)
}
