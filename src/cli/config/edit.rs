//! Changes of stored settings, and reports of their outcome to the operator.

use anyhow::{Context, bail};
use secrecy::SecretString;

use super::super::hidden_input::read_secret;
use crate::clock::Clock;
use crate::config::{ConfigSources, ValueSource, Variable, find_setting};
use crate::settings::change::{
    NeededSecret, SettingsChange, SettingsContext, SettingsOutcome, apply_changes, remove_unused_secrets,
};
use crate::settings::loading::add_stored_settings;
use crate::settings::prepared_change::PreparedChange;
use crate::store::audit::Actor;
use crate::store::database::shell_access::{self, ServiceState};

pub(super) fn set_settings(settings: &[String]) -> anyhow::Result<()> {
    // Every name is checked before the first secret is asked for.
    let parsed = settings.iter().map(|setting| parse_setting(setting)).collect::<anyhow::Result<Vec<_>>>()?;
    let values = parsed.into_iter().map(|(variable, value)| match value {
        Some(value) => Ok((variable, value)),
        None => Ok((variable, read_secret(variable.name)?)),
    });
    let set = values.collect::<anyhow::Result<_>>()?;
    apply_at_shell(SettingsChange { set, ..SettingsChange::default() })
}

pub(super) fn unset_settings(names: &[String]) -> anyhow::Result<()> {
    apply_at_shell(SettingsChange { unset: names.to_vec(), ..SettingsChange::default() })
}

/// Parses `NAME=VALUE`, or the `NAME` of a secret, whose value must not be an argument: other accounts see those.
fn parse_setting(text: &str) -> anyhow::Result<(Variable, Option<SecretString>)> {
    let (name, value) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value.trim())));
    let variable = find_setting(name).map_err(|error| anyhow::anyhow!("set {error}"))?;
    match value {
        Some(_) if variable.is_secret() => {
            bail!("set {name}: it is a secret; hint: dialarr config set {name}, and type or pipe its value")
        }
        Some("") => bail!("set {name}: the value is empty; hint: dialarr config unset {name}"),
        None if !variable.is_secret() => bail!("set {name}: a value is missing, e.g. {}", variable.example),
        value => Ok((variable, value.map(SecretString::from))),
    }
}

/// Applies a change, and prints its outcome to standard error.
pub(super) fn apply_at_shell(change: SettingsChange) -> anyhow::Result<()> {
    let context = SettingsContext::from_sources(ConfigSources::read());
    let (database, _) = context.sources.file_paths();
    let database = database.to_str().context("use a database path that is not UTF-8")?;
    let now = Clock::System.now();
    let (late, soon): (Vec<_>, Vec<_>) = change.variables().partition(Variable::needs_restart);
    let current = add_stored_settings(context.sources.clone())?;
    let prepared = PreparedChange::new(change, &current);
    let change = prepared.map_err(|error| anyhow::anyhow!("hash the console's password: {error}"))?;
    let (outcome, service) = shell_access::visit_with_service_state(database, |conn| {
        apply_changes(conn, &context, &change, Actor::Shell, now)
    })?;
    let overridden = match outcome {
        SettingsOutcome::Changed { overridden, .. } => overridden,
        SettingsOutcome::Unchanged => {
            eprintln!("No changes");
            return Ok(());
        }
        refused => return Err(refusal(refused)),
    };
    eprintln!("Stored in {database}");
    if let Err(error) = shell_access::visit_database(database, |conn| remove_unused_secrets(conn, &context))?
    {
        eprintln!("warning: old secrets were not removed: failed to {error}");
    }
    for (name, source) in overridden {
        eprintln!("{name} has no effect yet, because it is overridden ({source}); hint: remove it there");
    }
    if service == ServiceState::Running {
        describe_effect(&late, &soon);
    }
    Ok(())
}

/// Prints when the running service uses a change.
fn describe_effect(late: &[Variable], soon: &[Variable]) {
    if !soon.is_empty() {
        eprintln!("The running service uses the change within a minute.");
    }
    if !late.is_empty() {
        let names = late.iter().map(|variable| variable.name).collect::<Vec<_>>().join(", ");
        eprintln!("hint: restart the service to use {names}");
    }
}

fn refusal(outcome: SettingsOutcome) -> anyhow::Error {
    match outcome {
        SettingsOutcome::Changed { .. } | SettingsOutcome::Unchanged | SettingsOutcome::Conflict => {
            anyhow::anyhow!("change the settings: they were changed at the same time; hint: try again")
        }
        SettingsOutcome::Invalid(problems) => {
            let lines = problems.iter().map(|problem| {
                format!("\n  {}: {}, e.g. {}", problem.variable, problem.reason, problem.example)
            });
            anyhow::anyhow!("change the settings:{}", lines.collect::<String>())
        }
        SettingsOutcome::SecretNeeded(needed) => {
            anyhow::anyhow!(
                "change the settings:{}",
                needed.iter().map(describe_needed_secret).collect::<String>()
            )
        }
        SettingsOutcome::SecretsFileFailed(error) => error.into(),
    }
}

fn describe_needed_secret(secret: &NeededSecret) -> String {
    let NeededSecret { variable, source, origin } = secret;
    let origin = origin.as_deref().unwrap_or("no server");
    match source {
        ValueSource::Stored | ValueSource::Default => format!(
            "\n  {variable} belongs to {origin}, and is not sent to another server; \
             hint: add {variable} to the command, and enter the value for the new server"
        ),
        ValueSource::Environment | ValueSource::EnvFile(_) => format!(
            "\n  {variable} belongs to {origin}, and is not sent to another server; \
             hint: change the URL in the same place as the secret ({source})"
        ),
    }
}
