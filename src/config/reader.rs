//! Reads one value at a time and collects what is wrong with it.

use std::ops::RangeInclusive;

use secrecy::SecretString;
use url::Url;

use super::variables::Variable;
use super::{Problem, Problems};
use crate::conversation::transcript::PhoneNumber;

pub(super) struct Reader<'a> {
    lookup: &'a dyn Fn(&str) -> Option<String>,
    problems: Vec<Problem>,
}

/// A value that is wrong has been reported, and must not be reported as missing too.
pub(super) enum Reading<T> {
    Absent,
    Wrong,
    Given(T),
}

impl<T> Reading<T> {
    pub(super) fn is_absent(&self) -> bool {
        matches!(self, Self::Absent)
    }

    pub(super) fn given(self) -> Option<T> {
        match self {
            Self::Given(value) => Some(value),
            Self::Absent | Self::Wrong => None,
        }
    }

    pub(super) fn as_given(&self) -> Option<&T> {
        match self {
            Self::Given(value) => Some(value),
            Self::Absent | Self::Wrong => None,
        }
    }

    /// The default also stands in for a wrong value: the configuration is refused anyway.
    pub(super) fn or(self, default: T) -> T {
        self.given().unwrap_or(default)
    }
}

impl<'a> Reader<'a> {
    pub(super) fn new(lookup: &'a dyn Fn(&str) -> Option<String>) -> Self {
        Self { lookup, problems: Vec::new() }
    }

    pub(super) fn finish<T>(self, value: T) -> Result<T, Problems> {
        if self.problems.is_empty() {
            Ok(value)
        } else {
            Err(Problems { list: self.problems, ..Problems::default() })
        }
    }

    pub(super) fn report(&mut self, variable: Variable, wrong: impl Into<String>) {
        let Variable { name, example } = variable;
        self.problems.push(Problem { variable: name, line: None, wrong: wrong.into(), example });
    }

    /// Whether it is there without a value, which for a few says something.
    pub(super) fn is_emptied(&self, variable: Variable) -> bool {
        (self.lookup)(variable.name).is_some_and(|text| text.trim().is_empty())
    }

    /// Whether it has a value, right or wrong.
    pub(super) fn is_set(&self, variable: Variable) -> bool {
        (self.lookup)(variable.name).is_some_and(|text| !text.trim().is_empty())
    }

    /// `parse` says what is wrong as a fragment that fits after the name and a colon.
    pub(super) fn read<T>(
        &mut self,
        variable: Variable,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Reading<T> {
        let text = (self.lookup)(variable.name).unwrap_or_default();
        let text = text.trim();
        if text.is_empty() {
            return Reading::Absent;
        }
        match parse(text) {
            Ok(value) => Reading::Given(value),
            Err(wrong) => {
                self.report(variable, wrong);
                Reading::Wrong
            }
        }
    }

    /// `needed` completes "needed …".
    pub(super) fn require<T>(&mut self, variable: Variable, value: Reading<T>, needed: &str) -> Option<T> {
        if value.is_absent() {
            self.report(variable, format!("needed {needed}"));
        }
        value.given()
    }

    pub(super) fn text(&mut self, variable: Variable) -> Reading<String> {
        self.read(variable, |text| Ok(text.to_owned()))
    }

    pub(super) fn url(&mut self, variable: Variable) -> Reading<Url> {
        self.read(variable, |text| parse_url(text).map_err(str::to_owned))
    }

    pub(super) fn secret(&mut self, variable: Variable) -> Reading<SecretString> {
        self.read(variable, parse_secret)
    }

    pub(super) fn phone(&mut self, variable: Variable) -> Reading<PhoneNumber> {
        self.read(variable, |text| PhoneNumber::parse(text).map_err(|error| error.to_string()))
    }

    /// A comma list; blanks around entries and empty entries do not matter.
    pub(super) fn list<T>(
        &mut self,
        variable: Variable,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Reading<Vec<T>> {
        self.read(variable, |text| {
            let entries = text.split(',').map(str::trim).filter(|entry| !entry.is_empty());
            let parsed: Result<Vec<T>, String> = entries
                .enumerate()
                .map(|(index, entry)| parse(entry).map_err(|wrong| format!("entry {} is {wrong}", index + 1)))
                .collect();
            match parsed {
                Ok(values) if values.is_empty() => Err("a list without entries".to_owned()),
                parsed => parsed,
            }
        })
    }

    pub(super) fn number(&mut self, variable: Variable, range: RangeInclusive<u64>) -> Reading<u64> {
        self.read(variable, |text| match text.parse() {
            Ok(number) if range.contains(&number) => Ok(number),
            _ => Err(format!("not a whole number from {} to {}", range.start(), range.end())),
        })
    }

    /// One of a few words, in any case.
    pub(super) fn choice<T: Clone>(&mut self, variable: Variable, choices: &[(&str, T)]) -> Reading<T> {
        self.read(variable, |text| {
            let chosen = choices.iter().find(|(word, _)| word.eq_ignore_ascii_case(text));
            chosen.map(|(_, value)| value.clone()).ok_or_else(|| {
                let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
                format!("not one of {}", words.join(", "))
            })
        })
    }

    /// A Twilio id: its prefix tells an account from a key or a service, which are easily mixed up.
    pub(super) fn sid(&mut self, variable: Variable, prefix: &str) -> Reading<String> {
        self.read(variable, |text| {
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

/// Fit to stand in a request header.
pub(super) fn parse_secret(text: &str) -> Result<SecretString, String> {
    if text.bytes().all(|byte| byte.is_ascii_graphic()) {
        Ok(text.into())
    } else {
        Err("not a secret: it has a space or a character outside ASCII".to_owned())
    }
}

fn parse_url(text: &str) -> Result<Url, &'static str> {
    let Ok(mut url) = Url::parse(text) else {
        return Err("not a URL");
    };
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err("not a URL that starts with http:// or https://");
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("a URL with a name or password in it, which logs would show");
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err("a URL with ? or # where a plain base is wanted");
    }
    let path = url.path().trim_end_matches('/').to_owned();
    url.set_path(&path);
    Ok(url)
}
