//! Check of the variables and stored settings: invalid values, values without effect, misspelled names, and values that
//! earlier versions shortened.

use super::{Finding, FindingGrade};
use crate::config::{
    Config, ConfigProblem, ConfigProblems, ExpandedValue, IneffectiveReason, IneffectiveSetting,
    MisspelledName,
};

pub(crate) fn check_configuration(config: &Result<Config, ConfigProblems>) -> Vec<Finding> {
    let (mut findings, notes) = match config {
        Ok(config) => (vec![Finding::ok("configuration: all values are valid")], &config.notes),
        Err(ConfigProblems { list, notes }) => (list.iter().map(problem_finding).collect(), notes),
    };
    findings.extend(notes.misspelled_names.iter().map(misspelled_name_finding));
    findings.extend(notes.expanded_values.iter().map(expanded_value_finding));
    findings.extend(notes.ineffective_settings.iter().map(ineffective_setting_finding));
    findings
}

/// Returns the failures of a valid configuration: secrets that cannot be used.
pub(super) fn unusable_secret_findings(config: &Config) -> impl Iterator<Item = Finding> {
    let findings = config.notes.ineffective_settings.iter().map(ineffective_setting_finding);
    findings.filter(|finding| finding.grade == FindingGrade::Failure)
}

fn problem_finding(problem: &ConfigProblem) -> Finding {
    let summary = format!("configuration: {}: {}", problem.location(), problem.reason);
    Finding::failure(summary, format!("for example {}", problem.repair()))
}

fn misspelled_name_finding(misspelling: &MisspelledName) -> Finding {
    let summary = format!("configuration: {}: unknown setting", misspelling.name);
    Finding::warning(summary, format!("if {} is meant, rename it", misspelling.suggestion))
}

fn ineffective_setting_finding(setting: &IneffectiveSetting) -> Finding {
    let IneffectiveSetting { name, reason } = setting;
    let summary = format!("configuration: {setting}");
    match reason {
        IneffectiveReason::Overridden(_) => {
            let hint = format!("remove it there to use the stored value, or run dialarr config unset {name}");
            Finding { hint: Some(hint), ..Finding::ok(summary) }
        }
        IneffectiveReason::EnvironmentOnly | IneffectiveReason::Unknown => {
            Finding::warning(summary, format!("run dialarr config unset {name}"))
        }
        IneffectiveReason::Unusable(_) => {
            Finding::failure(summary, format!("run dialarr config set {name}, and enter the value again"))
        }
    }
}

fn expanded_value_finding(value: &ExpandedValue) -> Finding {
    let summary =
        format!("configuration: {}, line {} of .env: {}", value.variable, value.line, ExpandedValue::PROBLEM);
    Finding::warning(summary, ExpandedValue::FIX)
}
