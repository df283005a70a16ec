//! Forms of stored settings, on the settings page and in the setup assistant: their fields, and the change that a
//! submitted form asks for.

use std::collections::BTreeMap;

use secrecy::SecretString;

use super::setting_field::{self, FieldInput, SettingField, list_field};
use super::test_report::TestReport;
use crate::config::{
    AllowedValues, ConfigProblem, ConfigSources, SettingGroup, VARIABLES, ValueSource, Variable,
};
use crate::settings::change::{NeededSecret, SettingsChange};
use crate::settings::secrets_file::SecretsFileError;
use crate::settings::setup_step::SetupStep;
use crate::settings::texting_way::TextingWay;

/// Groups that the settings page tests.
const TESTED_GROUPS: [SettingGroup; 7] = [
    SettingGroup::People,
    SettingGroup::Library,
    SettingGroup::MediaServers,
    SettingGroup::Discovery,
    SettingGroup::Model,
    SettingGroup::Texting,
    SettingGroup::Notifications,
];

/// Settings that are edited together: a group on the settings page, or a step of the assistant.
#[derive(Clone)]
pub(super) struct FormScope {
    pub(super) id: &'static str,
    pub(super) label: &'static str,
    pub(super) variables: Vec<Variable>,
    /// Group that the form can test.
    pub(super) tested: Option<SettingGroup>,
}

/// Form of a scope.
pub(super) struct SettingSection {
    pub(super) id: &'static str,
    pub(super) label: &'static str,
    /// Reason why the form was not saved.
    pub(super) problem: Option<String>,
    pub(super) fields: Vec<SettingField>,
    pub(super) is_editable: bool,
    pub(super) is_testable: bool,
    /// Result of the test that the form has started.
    pub(super) test: Option<TestReport>,
}

/// Reason why a form was not saved.
pub(super) enum Refusal {
    Conflict,
    Invalid(Vec<ConfigProblem>),
    SecretNeeded(Vec<NeededSecret>),
    SecretsFile(SecretsFileError),
}

/// Submitted form. There is no debug output, because the fields contain secrets.
pub(super) struct SettingsForm {
    pub(super) scope: FormScope,
    version: i64,
    fields: BTreeMap<String, String>,
}

/// Outcome of a submitted form, which its section shows.
pub(super) enum FormOutcome {
    Refused(Refusal),
    Tested(TestReport),
}

impl FormScope {
    /// Returns the scopes of the settings page.
    pub(super) fn groups() -> Vec<Self> {
        let groups = VARIABLES.chunk_by(|one, other| one.group == other.group);
        let scope = |variables: &[Variable]| {
            let group = variables.first()?.group;
            let tested = TESTED_GROUPS.contains(&group).then_some(group);
            Some(Self { id: group.id(), label: group.label(), variables: variables.to_vec(), tested })
        };
        groups.filter_map(scope).collect()
    }

    /// Returns the scope of a step. `way` decides on the settings of the step about texting.
    pub(super) fn from_step(step: SetupStep, way: TextingWay) -> Self {
        let variables = if step == SetupStep::Texting { way.variables() } else { step.variables() };
        Self {
            id: step.id(),
            label: step.label(),
            variables: variables.to_vec(),
            tested: step.tested_group(),
        }
    }

    /// Builds the form, with the outcome of its submission.
    pub(super) fn into_section(
        self,
        sources: &ConfigSources,
        outcome: Option<(&SettingsForm, FormOutcome)>,
    ) -> SettingSection {
        let (refused, test) = match outcome {
            Some((form, FormOutcome::Refused(refusal))) => (Some((form, refusal)), None),
            Some((_, FormOutcome::Tested(test))) => (None, Some(test)),
            None => (None, None),
        };
        let refused = refused.as_ref().map(|(form, refusal)| (*form, refusal));
        let variables = self.variables.iter();
        let fields: Vec<_> =
            variables.map(|variable| SettingField::describe(sources, *variable, refused)).collect();
        SettingSection {
            id: self.id,
            label: self.label,
            problem: refused.map(|(_, refusal)| refusal.describe(&self.variables)),
            is_editable: fields.iter().any(|field| field.input != FieldInput::Fixed),
            fields,
            is_testable: self.tested.is_some(),
            test,
        }
    }
}

impl SettingsForm {
    /// Parses the fields of a form. Returns `None` if they do not contain the version that the form shows.
    pub(super) fn parse(scope: FormScope, fields: BTreeMap<String, String>) -> Option<Self> {
        let version = fields.get("version")?.parse().ok()?;
        Some(Self { scope, version, fields })
    }

    /// Returns whether the button to save and test was pressed.
    pub(super) fn requests_test(&self) -> bool {
        self.fields.contains_key("test")
    }

    /// Returns the change from the current settings to those of the form. An empty field of a secret keeps it; another
    /// empty field removes the stored value.
    pub(super) fn change(&self, current: &ConfigSources) -> SettingsChange {
        let mut change = SettingsChange { expected_version: Some(self.version), ..SettingsChange::default() };
        let variables = self.scope.variables.iter();
        for variable in
            variables.filter(|variable| FieldInput::of_setting(current, **variable) != FieldInput::Fixed)
        {
            let typed = self.typed_text(*variable);
            let is_kept = match &typed {
                None => !variable.is_secret() || !self.removes(*variable),
                Some(text) if variable.is_secret() => text.is_empty() && !self.removes(*variable),
                Some(text) => *text == setting_field::current_text(current, *variable),
            };
            match typed.unwrap_or_default().as_str() {
                _ if is_kept => {}
                "" => change.unset.push(variable.name.to_owned()),
                text => change.set.push((*variable, SecretString::from(text))),
            }
        }
        change
    }

    /// Returns the entered value; `None` if the form does not have the field. The checked words of a list have the order of
    /// the table.
    pub(super) fn typed_text(&self, variable: Variable) -> Option<String> {
        let text = self.fields.get(variable.name)?.trim();
        let AllowedValues::AnyOf(words) = variable.values else { return Some(text.to_owned()) };
        let checked = words.iter().filter(|(word, _)| self.fields.contains_key(&list_field(variable, word)));
        Some(checked.map(|(word, _)| *word).collect::<Vec<_>>().join(","))
    }

    fn removes(&self, secret: Variable) -> bool {
        self.fields.contains_key(&removal_field(secret))
    }
}

/// Returns the name of the checkbox that removes a secret.
pub(super) fn removal_field(secret: Variable) -> String {
    format!("remove-{}", secret.name)
}

impl Refusal {
    /// Describes the refusal of a form with these settings, and the problems of others.
    fn describe(&self, shown: &[Variable]) -> String {
        let elsewhere: String = VARIABLES
            .iter()
            .filter(|variable| !shown.contains(variable))
            .filter_map(|variable| {
                Some(format!(
                    " {} ({}): {}",
                    variable.label,
                    variable.group.label(),
                    self.describe_field(*variable)?
                ))
            })
            .collect();
        match self {
            Self::Conflict => {
                "Not saved: a setting of this form was changed meanwhile. The fields show what you \
                               entered; save again to replace the newer values."
                    .to_owned()
            }
            Self::Invalid(_) | Self::SecretNeeded(_) => {
                format!("Not saved: correct the marked fields, and enter new secrets again.{elsewhere}")
            }
            Self::SecretsFile(error) => format!("Not saved: failed to {error}."),
        }
    }

    pub(super) fn describe_field(&self, variable: Variable) -> Option<String> {
        match self {
            Self::Conflict | Self::SecretsFile(_) => None,
            Self::Invalid(problems) => {
                let problem = problems.iter().find(|problem| problem.variable == variable.name)?;
                let example = problem.example.split_once('=').map_or(problem.example, |(_, value)| value);
                let example = example.trim_matches('\'');
                Some(match problem.reason.contains(example) {
                    true => format!("Problem: {}.", problem.reason),
                    false => format!("Problem: {}, e.g. {example}.", problem.reason),
                })
            }
            Self::SecretNeeded(needed) => {
                let needed = needed.iter().find(|needed| needed.variable == variable.name)?;
                let origin = needed.origin.as_deref().unwrap_or("no server");
                let repair = match needed.source {
                    ValueSource::Stored | ValueSource::Default => {
                        "Enter it again for the new server.".to_owned()
                    }
                    source @ (ValueSource::Environment | ValueSource::EnvFile(_)) => {
                        format!("Change the URL in the same place as the secret ({source}).")
                    }
                };
                Some(format!("It belongs to {origin}, and is not sent to another server. {repair}"))
            }
        }
    }
}
