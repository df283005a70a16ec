//! Text of all settings for people, and of the stored ones in the format of `.env`.

use secrecy::ExposeSecret;

use crate::config::{ConfigSources, IneffectiveReason, StoredValue, VARIABLES, Variable, format_env_line};

/// Formats each setting with its value and source, group by group. The value of a secret is left out.
pub(super) fn format_settings(sources: &ConfigSources) -> String {
    let width = VARIABLES.iter().map(|variable| variable.name.len()).max().unwrap_or_default();
    let mut text = String::new();
    for group in VARIABLES.chunk_by(|one, next| one.group == next.group) {
        text += &format!("{}\n", group[0].group.label());
        for variable in group {
            let (value, source) = (describe_value(sources, *variable), describe_source(sources, *variable));
            text += &format!("  {:<width$}  {value}  ({source})\n", variable.name);
        }
    }
    text
}

fn describe_value(sources: &ConfigSources, variable: Variable) -> String {
    if variable.is_secret() {
        let state = if sources.has_value(variable) { "set" } else { "not set" };
        return state.to_owned();
    }
    match sources.plain_text(variable).map(str::trim) {
        None | Some("") => "not set".to_owned(),
        Some(text) => text.to_owned(),
    }
}

fn describe_source(sources: &ConfigSources, variable: Variable) -> String {
    let source = sources.value_source(variable.name);
    match sources.find_ineffective(variable.name).map(|setting| setting.reason) {
        Some(IneffectiveReason::Unusable(reason)) => format!("{source}, not used: {reason}"),
        Some(_) => format!("{source}, overrides a stored setting"),
        None => source.to_string(),
    }
}

/// Formats the stored settings in the format of `.env`.
pub(super) fn format_export(sources: &ConfigSources, with_secrets: bool) -> String {
    let lines = sources.stored().iter().map(|(name, value)| match value {
        StoredValue::Text(text) => format_env_line(name, text),
        StoredValue::Secret(secret) if with_secrets => format_env_line(name, secret.value.expose_secret()),
        StoredValue::Secret(_) => format!("# {name} is a secret, which --with-secrets includes."),
        StoredValue::Unusable(reason) => format!("# {name} cannot be used: {reason}."),
    });
    lines.map(|line| line + "\n").collect()
}
