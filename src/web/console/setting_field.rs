//! Field of a setting in a form, and the control with which it is entered.

use super::settings_form::{Refusal, SettingsForm};
use crate::config::{
    AllowedValues, AllowedWord, ConfigSources, IneffectiveReason, ValueSource, Variable, suggest_values,
};

pub(super) struct SettingField {
    pub(super) name: &'static str,
    pub(super) label: &'static str,
    pub(super) help: &'static str,
    pub(super) input: FieldInput,
    /// Options of a list or of checkboxes.
    pub(super) options: Vec<FieldOption>,
    /// Values to choose from, besides any other.
    pub(super) suggestions: Vec<String>,
    /// Value of a setting that is not a secret.
    pub(super) value: String,
    /// Text of an empty field.
    pub(super) state: &'static str,
    /// Sentence about the source of the value, and about a stored value that is not used.
    pub(super) source: Option<String>,
    /// True for a secret with a stored value, which can be removed.
    pub(super) is_stored: bool,
    pub(super) problem: Option<String>,
}

/// Control with which a setting is entered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FieldInput {
    /// Field that shows a value from elsewhere.
    Fixed,
    Text,
    /// Field that shows nothing, and replaces the secret if it is filled in.
    Secret,
    /// List of which one option is selected.
    Select,
    /// Checkboxes, of which any number is checked.
    Checkboxes,
}

/// Option of a list, or checkbox.
pub(super) struct FieldOption {
    pub(super) value: String,
    pub(super) label: String,
    pub(super) is_chosen: bool,
    /// Name of the checkbox.
    pub(super) field: String,
}

impl FieldInput {
    pub(super) fn of_setting(sources: &ConfigSources, variable: Variable) -> Self {
        match (sources.value_source(variable.name), variable.values) {
            (ValueSource::Environment | ValueSource::EnvFile(_), _) => Self::Fixed,
            _ if !variable.is_storable() => Self::Fixed,
            _ if variable.is_secret() => Self::Secret,
            (_, AllowedValues::Any) => Self::Text,
            (_, AllowedValues::OneOf(_)) => Self::Select,
            (_, AllowedValues::AnyOf(_)) => Self::Checkboxes,
        }
    }

    /// Returns whether the field keeps what was entered when the form is shown again.
    fn keeps_entry(self) -> bool {
        !matches!(self, Self::Fixed | Self::Secret)
    }
}

impl SettingField {
    /// Describes the field, with what was entered if the form was refused.
    pub(super) fn describe(
        sources: &ConfigSources,
        variable: Variable,
        refused: Option<(&SettingsForm, &Refusal)>,
    ) -> Self {
        let input = FieldInput::of_setting(sources, variable);
        let typed = refused.filter(|_| input.keeps_entry()).and_then(|(form, _)| form.typed_text(variable));
        let value = typed.unwrap_or_else(|| current_text(sources, variable));
        Self {
            name: variable.name,
            label: variable.label,
            help: variable.help,
            input,
            options: list_options(variable, &value),
            suggestions: suggest_values(sources, variable),
            value,
            state: if sources.has_value(variable) { "set" } else { "not set" },
            source: describe_source(sources, variable),
            is_stored: sources.stored().contains_key(variable.name),
            problem: refused.and_then(|(_, refusal)| refusal.describe_field(variable)),
        }
    }
}

/// Returns the name of the checkbox of a word in a list.
pub(super) fn list_field(variable: Variable, word: &str) -> String {
    format!("{}-{word}", variable.name)
}

fn list_options(variable: Variable, value: &str) -> Vec<FieldOption> {
    let option = |(word, meaning): &AllowedWord, is_chosen| FieldOption {
        value: (*word).to_owned(),
        label: (*meaning).to_owned(),
        is_chosen,
        field: list_field(variable, word),
    };
    match variable.values {
        AllowedValues::Any => Vec::new(),
        AllowedValues::OneOf(words) => {
            let mut options: Vec<_> = words.iter().map(|word| option(word, word.0 == value)).collect();
            if let Some(default) = options.first_mut() {
                default.label.push_str(" (default)");
                // The default is chosen by removing the stored value, unless that is the default itself.
                if default.value != value {
                    (default.value, default.is_chosen) = (String::new(), value.is_empty());
                }
            }
            options
        }
        AllowedValues::AnyOf(words) => {
            words.iter().map(|word| option(word, value.split(',').any(|chosen| chosen == word.0))).collect()
        }
    }
}

/// Returns the text of a setting that is not a secret. Words have the spelling and order of the table.
pub(super) fn current_text(sources: &ConfigSources, variable: Variable) -> String {
    let text = sources.plain_text(variable).map_or("", str::trim);
    let is_word = |text: &str, word: &str| text.trim().eq_ignore_ascii_case(word);
    match variable.values {
        AllowedValues::Any => text.to_owned(),
        AllowedValues::OneOf(words) => {
            let word = words.iter().find(|(word, _)| is_word(text, word));
            word.map_or(text, |(word, _)| word).to_owned()
        }
        AllowedValues::AnyOf(words) => {
            let chosen = words.iter().filter(|(word, _)| text.split(',').any(|entry| is_word(entry, word)));
            chosen.map(|(word, _)| *word).collect::<Vec<_>>().join(",")
        }
    }
}

fn describe_source(sources: &ConfigSources, variable: Variable) -> Option<String> {
    let reason = sources.find_ineffective(variable.name).map(|setting| setting.reason);
    match (sources.value_source(variable.name), reason) {
        (_, Some(IneffectiveReason::Unusable(reason))) => Some(format!("Not used: {reason}.")),
        (ValueSource::Environment, _) => Some("Set by the environment.".to_owned()),
        (ValueSource::EnvFile(line), _) => Some(format!("Set by line {line} of .env.")),
        (ValueSource::Default, _) if !variable.is_storable() => {
            Some("Set only in the environment or .env.".to_owned())
        }
        (ValueSource::Stored | ValueSource::Default, _) => {
            variable.needs_restart().then(|| "Takes effect after a restart.".to_owned())
        }
    }
}
