//! Change of stored settings: the one way in which the command line, the console and the API change them.

use std::collections::BTreeMap;

use jiff::Timestamp;
use secrecy::{ExposeSecret, SecretString};

use super::loading::resolve_rows;
use super::prepared_change::PreparedChange;
use super::secrets_file::{SecretsFile, SecretsFileError, StoredSecrets};
use crate::config::{
    BoundSecret, Config, ConfigProblem, ConfigSources, StoredValue, VARIABLES, ValueSource, Variable,
    find_setting,
};
use crate::failpoint;
use crate::store::audit::Actor;
use crate::store::settings::{SettingContent, SettingRow, load_settings, store_settings};
use crate::store::{Conn, QueryResult};

/// Change of several settings together.
#[derive(Debug, Clone, Default)]
pub struct SettingsChange {
    /// New values, secrets among them.
    pub set: Vec<(Variable, SecretString)>,
    /// Names of settings to remove, also of those that this version does not know.
    pub unset: Vec<String>,
    /// Number of the last change that the author has seen. `None` if the change replaces any value.
    pub expected_version: Option<i64>,
}

/// Outcome of a change. Only `Changed` has changed anything.
#[derive(Debug)]
pub enum SettingsOutcome {
    Changed {
        /// Number of the change.
        version: i64,
        /// Settings without effect, because the environment or `.env` sets them too.
        overridden: Vec<(&'static str, ValueSource)>,
    },
    /// The settings already have these values.
    Unchanged,
    /// A setting was changed after the version that the author has seen.
    Conflict,
    /// Problems that the configuration would have.
    Invalid(Vec<ConfigProblem>),
    /// The server of a secret would change, and the change does not contain the secret.
    SecretNeeded(Vec<NeededSecret>),
    SecretsFileFailed(SecretsFileError),
}

/// Secret that belongs to another server than the one configured after the change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NeededSecret {
    pub variable: &'static str,
    /// Source of the secret. One from the environment or `.env` can only be changed there.
    pub source: ValueSource,
    /// Server to which the secret belongs.
    pub origin: Option<String>,
}

/// Sources with which stored settings are combined, and the file of their secrets.
#[derive(Clone)]
pub struct SettingsContext {
    /// The environment and `.env`.
    pub sources: ConfigSources,
    pub secrets_file: SecretsFile,
}

impl SettingsContext {
    pub fn from_sources(sources: ConfigSources) -> Self {
        let (_, secrets_file) = sources.file_paths();
        Self { sources, secrets_file: SecretsFile::new(secrets_file) }
    }

    /// Combines the sources with stored settings.
    pub(super) fn with_rows(
        &self,
        rows: &[SettingRow],
        secrets: &Result<StoredSecrets, SecretsFileError>,
    ) -> ConfigSources {
        self.sources.clone().with_stored(resolve_rows(rows, secrets))
    }
}

/// Validates and stores a change, in a write transaction that no other change of this process shares. Secrets are in
/// the secrets file before their rows are committed, so that after a crash the old values are in force.
/// [`remove_unused_secrets`] follows in a later transaction.
pub fn apply_changes(
    conn: &mut Conn,
    context: &SettingsContext,
    change: &PreparedChange,
    actor: Actor,
    now: Timestamp,
) -> QueryResult<SettingsOutcome> {
    let change = change.change();
    let rows = load_settings(conn)?;
    if rows.iter().any(|row| change.is_based_on_older(row)) {
        return Ok(SettingsOutcome::Conflict);
    }
    let secrets = context.secrets_file.load();
    let before = context.with_rows(&rows, &secrets);
    let after = change.apply_to(&before);
    let problems = find_new_problems(&before, &after, change);
    if !problems.is_empty() {
        return Ok(SettingsOutcome::Invalid(problems));
    }
    let needed = find_needed_secrets(&before, &after, change);
    if !needed.is_empty() {
        return Ok(SettingsOutcome::SecretNeeded(needed));
    }
    let contents = match write_secrets(context, &rows, secrets, change, (&before, &after)) {
        Ok(contents) if contents.is_empty() => return Ok(SettingsOutcome::Unchanged),
        Ok(contents) => contents,
        Err(error) => return Ok(SettingsOutcome::SecretsFileFailed(error)),
    };
    failpoint::reached("settings.secrets_written");
    let version = store_settings(conn, &contents, actor, now)?;
    Ok(SettingsOutcome::Changed { version, overridden: change.find_overridden(&context.sources) })
}

/// Removes the versions of secrets that no committed row names.
pub fn remove_unused_secrets(
    conn: &mut Conn,
    context: &SettingsContext,
) -> QueryResult<Result<(), SecretsFileError>> {
    let rows = load_settings(conn)?;
    let is_named = |name: &str, version: i64| {
        rows.iter().any(|row| row.name == name && row.secret_version == Some(version))
    };
    Ok(context.secrets_file.load().and_then(|mut secrets| {
        if secrets.remove_unnamed(is_named) { context.secrets_file.save(&secrets) } else { Ok(()) }
    }))
}

impl SettingsChange {
    /// Returns the changed settings that this version knows.
    pub fn variables(&self) -> impl Iterator<Item = Variable> {
        let unset = self.unset.iter().filter_map(|name| find_setting(name).ok());
        self.set.iter().map(|(variable, _)| *variable).chain(unset)
    }

    fn sets(&self, name: &str) -> bool {
        self.set.iter().any(|(variable, _)| variable.name == name)
    }

    fn contains(&self, name: &str) -> bool {
        self.sets(name) || self.unset.iter().any(|unset| unset == name)
    }

    fn is_based_on_older(&self, row: &SettingRow) -> bool {
        self.contains(&row.name) && self.expected_version.is_some_and(|expected| row.version > expected)
    }

    /// Returns the sources after the change. The new values are in force there even if the environment overrides them,
    /// so that they are validated.
    fn apply_to(&self, before: &ConfigSources) -> ConfigSources {
        let mut stored = before.stored().clone();
        stored.retain(|name, _| !self.unset.contains(name));
        stored.extend(self.set.iter().map(|(variable, value)| {
            let text = value.expose_secret().trim();
            let value = if variable.is_secret() {
                StoredValue::Secret(BoundSecret { value: text.into(), origin: None })
            } else {
                StoredValue::Text(text.to_owned())
            };
            (variable.name.to_owned(), value)
        }));
        let names = self.set.iter().map(|(variable, _)| variable.name);
        let after = before.clone().without_overrides(names).with_stored(stored.clone());
        // The URL of a secret's server may be a secret of the same change.
        for (variable, _) in &self.set {
            if let Some(StoredValue::Secret(secret)) = stored.get_mut(variable.name) {
                secret.origin = after.server_origin(*variable);
            }
        }
        after.with_stored(stored)
    }

    fn find_overridden(&self, sources: &ConfigSources) -> Vec<(&'static str, ValueSource)> {
        let sourced =
            self.set.iter().map(|(variable, _)| (variable.name, sources.value_source(variable.name)));
        sourced.filter(|(_, source)| *source != ValueSource::Default).collect()
    }
}

/// Finds the problems that the change causes. Others stay until they are repaired one by one.
fn find_new_problems(
    before: &ConfigSources,
    after: &ConfigSources,
    change: &SettingsChange,
) -> Vec<ConfigProblem> {
    let load = |sources| Config::from_sources(sources).map_or_else(|problems| problems.list, |_| Vec::new());
    let known = load(before);
    let is_known = |problem: &ConfigProblem| {
        known.iter().any(|known| (known.variable, &known.reason) == (problem.variable, &problem.reason))
    };
    let mut problems = load(after);
    problems.retain(|problem| change.sets(problem.variable) || !is_known(problem));
    let unstorable = change.set.iter().filter(|(variable, _)| !variable.is_storable());
    problems.extend(unstorable.map(|(variable, _)| ConfigProblem {
        variable: variable.name,
        source: ValueSource::Stored,
        reason: "set only in the environment or .env".to_owned(),
        example: variable.example,
    }));
    problems
}

/// Finds the secrets that would be sent to another server than the one they belong to.
fn find_needed_secrets(
    before: &ConfigSources,
    after: &ConfigSources,
    change: &SettingsChange,
) -> Vec<NeededSecret> {
    let kept = VARIABLES.iter().filter(|variable| variable.is_secret() && !change.contains(variable.name));
    kept.filter_map(|variable| {
        let (old, new) = (before.server_origin(*variable), after.server_origin(*variable));
        let source = before.value_source(variable.name);
        let origin = match (source, before.stored().get(variable.name)) {
            (ValueSource::Stored, Some(StoredValue::Secret(secret))) => secret.origin.clone(),
            (ValueSource::Environment | ValueSource::EnvFile(_), _) if before.has_value(*variable) => {
                Some(old.clone()?)
            }
            _ => return None,
        };
        let is_moved = old != new && origin != new;
        is_moved.then_some(NeededSecret { variable: variable.name, source, origin })
    })
    .collect()
}

/// Adds the new secrets to the file, and returns the contents of all rows that change.
fn write_secrets(
    context: &SettingsContext,
    rows: &[SettingRow],
    secrets: Result<StoredSecrets, SecretsFileError>,
    change: &SettingsChange,
    (before, after): (&ConfigSources, &ConfigSources),
) -> Result<Vec<(String, SettingContent)>, SecretsFileError> {
    let present = rows.iter().filter(|row| !row.is_removed() && change.unset.contains(&row.name));
    let mut contents: BTreeMap<String, SettingContent> =
        present.map(|row| (row.name.clone(), SettingContent::Removed)).collect();
    let mut new_secrets = Vec::new();
    for (variable, _) in &change.set {
        let name = variable.name;
        match (before.stored().get(name), after.stored().get(name)) {
            (Some(StoredValue::Text(old)), Some(StoredValue::Text(new))) if old == new => {}
            (Some(StoredValue::Secret(old)), Some(StoredValue::Secret(new))) if is_same_secret(old, new) => {}
            (_, Some(StoredValue::Text(text))) => {
                contents.insert(name.to_owned(), SettingContent::Text(text.clone()));
            }
            (_, Some(StoredValue::Secret(secret))) => new_secrets.push((name, secret)),
            (_, Some(StoredValue::Unusable(_)) | None) => {}
        }
    }
    if !new_secrets.is_empty() {
        let mut stored = secrets?;
        for (name, secret) in new_secrets {
            let last = rows.iter().find(|row| row.name == name).and_then(|row| row.secret_version);
            let version = stored.add(name, secret, last);
            contents.insert(name.to_owned(), SettingContent::Secret(version));
        }
        context.secrets_file.save(&stored)?;
    }
    Ok(contents.into_iter().collect())
}

fn is_same_secret(old: &BoundSecret, new: &BoundSecret) -> bool {
    old.origin == new.origin && old.value.expose_secret() == new.value.expose_secret()
}
