//! Sources of the configuration: the environment, `.env` and the stored settings. A source that is listed earlier
//! overrides the later ones. An empty value in the environment overrides `.env`, but neither overrides a stored setting.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use secrecy::{ExposeSecret, SecretString};

use super::env_values::EnvFile;
use super::misspelling;
use super::notes::{ConfigNotes, IneffectiveReason, IneffectiveSetting};
use super::reader::parse_url;
use super::variables::{self, Variable};

/// Source of a setting's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueSource {
    Environment,
    /// Line of `.env`, from 1.
    EnvFile(usize),
    Stored,
    /// No source sets a value.
    Default,
}

impl fmt::Display for ValueSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Environment => f.write_str("environment"),
            Self::EnvFile(line) => write!(f, "line {line} of .env"),
            Self::Stored => f.write_str("stored setting"),
            Self::Default => f.write_str("default"),
        }
    }
}

/// Value of a stored setting.
#[derive(Debug, Clone)]
pub enum StoredValue {
    Text(String),
    Secret(BoundSecret),
    /// Secret that is missing, with the reason.
    Unusable(String),
}

/// Stored secret with the server that it was stored for.
#[derive(Debug, Clone)]
pub struct BoundSecret {
    pub value: SecretString,
    /// Scheme, host and port such as `https://api.twilio.com`; `None` for a secret that is sent nowhere.
    pub origin: Option<String>,
}

/// Value of a variable before it is parsed.
pub(super) enum RawValue<'a> {
    Unset,
    Text(&'a str),
    /// Stored secret that cannot be used.
    Unusable(String),
}

/// Values of all sources. There is no debug output, because the values contain secrets.
#[derive(Clone, Default)]
pub struct ConfigSources {
    environment: HashMap<String, String>,
    pub(super) file: EnvFile,
    stored: BTreeMap<String, StoredValue>,
}

impl ConfigSources {
    /// Creates the sources from the environment and the text of `.env`.
    pub(super) fn new(environment: HashMap<String, String>, file: EnvFile) -> Self {
        Self { environment, file, stored: BTreeMap::new() }
    }

    /// Creates the sources from the environment only.
    pub fn from_environment(values: impl IntoIterator<Item = (String, String)>) -> Self {
        Self::new(values.into_iter().collect(), EnvFile::default())
    }

    /// Replaces the stored settings.
    #[must_use]
    pub fn with_stored(mut self, stored: BTreeMap<String, StoredValue>) -> Self {
        self.stored = stored;
        self
    }

    pub fn stored(&self) -> &BTreeMap<String, StoredValue> {
        &self.stored
    }

    /// Removes the values of the environment and of `.env` that override these stored settings.
    #[must_use]
    pub fn without_overrides<'a>(mut self, names: impl IntoIterator<Item = &'a str>) -> Self {
        for name in names {
            self.environment.remove(name);
            self.file.values.remove(name);
        }
        self
    }

    /// Returns the source of a variable's value.
    pub fn value_source(&self, name: &str) -> ValueSource {
        match self.find_override(name) {
            Some((source, _)) => source,
            None if self.find_stored(name).is_some() => ValueSource::Stored,
            None => ValueSource::Default,
        }
    }

    /// Returns the text of a variable that is not a secret, from any source.
    pub fn plain_text(&self, variable: Variable) -> Option<&str> {
        match self.lookup(variable) {
            RawValue::Text(text) if !variable.is_secret() => Some(text),
            RawValue::Text(_) | RawValue::Unset | RawValue::Unusable(_) => None,
        }
    }

    /// Returns the names of the settings that take effect only at a start, and whose values differ from those of the
    /// sources of the last start.
    pub fn changes_for_restart(&self, start: &Self) -> Vec<&'static str> {
        let variables = variables::VARIABLES.iter().filter(|variable| variable.needs_restart());
        let changed =
            variables.filter(|variable| self.plain_text(**variable) != start.plain_text(**variable));
        changed.map(|variable| variable.name).collect()
    }

    /// Returns whether any source has a value that is not empty, even an unusable secret.
    pub fn has_value(&self, variable: Variable) -> bool {
        match self.lookup(variable) {
            RawValue::Text(text) => !text.trim().is_empty(),
            RawValue::Unusable(_) => true,
            RawValue::Unset => false,
        }
    }

    /// Returns the scheme, host and port of the server to which a secret is sent.
    pub fn server_origin(&self, secret: Variable) -> Option<String> {
        let server = secret.secret_server()?;
        let configured = server.url_variables.iter().find_map(|name| {
            // The URL may itself be a secret.
            let RawValue::Text(text) = self.lookup(variables::find_variable(name)?) else { return None };
            (!text.trim().is_empty()).then_some(text.trim())
        });
        let url = parse_url(configured.or(server.default_url)?).ok()?;
        Some(url.origin().ascii_serialization())
    }

    pub(super) fn lookup(&self, variable: Variable) -> RawValue<'_> {
        if let Some((_, text)) = self.find_override(variable.name) {
            return RawValue::Text(text);
        }
        match self.find_stored(variable.name) {
            None => RawValue::Unset,
            Some(StoredValue::Text(text)) => RawValue::Text(text),
            Some(StoredValue::Unusable(reason)) => RawValue::Unusable(reason.clone()),
            Some(StoredValue::Secret(secret)) => match self.find_origin_fault(variable, secret) {
                None => RawValue::Text(secret.value.expose_secret()),
                Some(reason) => RawValue::Unusable(reason),
            },
        }
    }

    /// Returns what the operator should know about values that have no effect.
    pub(super) fn notes(&self) -> ConfigNotes {
        ConfigNotes {
            misspelled_names: misspelling::find_misspelled(
                self.environment.keys().chain(self.file.values.keys()),
            ),
            expanded_values: self.file.expanded_values.clone(),
            ineffective_settings: self.stored.keys().filter_map(|name| self.find_ineffective(name)).collect(),
        }
    }

    /// Finds the value of the environment or of `.env` that overrides a stored one. An empty value of a variable that may
    /// be stored does not: a copied example configuration names every variable.
    fn find_override(&self, name: &str) -> Option<(ValueSource, &str)> {
        let (source, text) = match (self.environment.get(name), self.file.values.get(name)) {
            (Some(text), _) => (ValueSource::Environment, text),
            (None, Some((line, text))) => (ValueSource::EnvFile(*line), text),
            (None, None) => return None,
        };
        let may_be_stored = variables::find_variable(name).is_some_and(|variable| variable.is_storable());
        let is_override = !may_be_stored || !text.trim().is_empty();
        is_override.then_some((source, text.as_str()))
    }

    /// Finds a stored value. A row of a variable that may not be stored is ignored.
    fn find_stored(&self, name: &str) -> Option<&StoredValue> {
        variables::find_variable(name).filter(Variable::is_storable)?;
        self.stored.get(name)
    }

    /// Returns why a stored secret must not be sent to the configured server.
    fn find_origin_fault(&self, variable: Variable, secret: &BoundSecret) -> Option<String> {
        let server = self.server_origin(variable);
        if server == secret.origin {
            return None;
        }
        let describe = |origin: Option<&str>| origin.unwrap_or("no server").to_owned();
        Some(format!(
            "it was stored for {}, and the configured server is {}",
            describe(secret.origin.as_deref()),
            describe(server.as_deref())
        ))
    }

    /// Returns why a stored setting has no effect, if it has none.
    pub fn find_ineffective(&self, name: &str) -> Option<IneffectiveSetting> {
        self.stored.get(name)?;
        let reason = match variables::find_variable(name) {
            None => IneffectiveReason::Unknown,
            Some(variable) if !variable.is_storable() => IneffectiveReason::EnvironmentOnly,
            Some(variable) => match (self.value_source(name), self.lookup(variable)) {
                (ValueSource::Stored, RawValue::Unusable(reason)) => IneffectiveReason::Unusable(reason),
                (ValueSource::Stored | ValueSource::Default, _) => return None,
                (source @ (ValueSource::Environment | ValueSource::EnvFile(_)), _) => {
                    IneffectiveReason::Overridden(source)
                }
            },
        };
        Some(IneffectiveSetting { name: name.to_owned(), reason })
    }
}
