//! Check of the variables: invalid values, misspelled names, and values that earlier versions shortened.

use super::Finding;
use crate::config::{Config, ConfigProblem, ConfigProblems, ExpandedValue, MisspelledName};

pub(crate) fn check_configuration(config: &Result<Config, ConfigProblems>) -> Vec<Finding> {
    let (mut findings, misspelled_names, expanded_values) = match config {
        Ok(config) => {
            let ok = Finding::ok("configuration: all values are valid");
            (vec![ok], &config.misspelled_names, &config.expanded_values)
        }
        Err(ConfigProblems { list, misspelled_names, expanded_values }) => {
            (list.iter().map(problem_finding).collect(), misspelled_names, expanded_values)
        }
    };
    findings.extend(misspelled_names.iter().map(misspelled_name_finding));
    findings.extend(expanded_values.iter().map(expanded_value_finding));
    findings
}

fn problem_finding(problem: &ConfigProblem) -> Finding {
    let summary = format!("configuration: {}: {}", problem.location(), problem.reason);
    Finding::failure(summary, format!("for example {}", problem.example))
}

fn misspelled_name_finding(misspelling: &MisspelledName) -> Finding {
    let summary = format!("configuration: {}: unknown setting", misspelling.name);
    Finding::warning(summary, format!("if {} is meant, rename it", misspelling.suggestion))
}

fn expanded_value_finding(value: &ExpandedValue) -> Finding {
    let summary =
        format!("configuration: {}, line {} of .env: {}", value.variable, value.line, ExpandedValue::PROBLEM);
    Finding::warning(summary, ExpandedValue::FIX)
}
