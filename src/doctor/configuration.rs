//! Check of the configuration: unreadable values, misspelled names and values that were cut. Covers the variables, not
//! the services that they point to.

use super::Finding;
use crate::config::{Config, ConfigProblem, ConfigProblems, CutValue, MisspelledName};

pub(crate) fn check_configuration(config: &Result<Config, ConfigProblems>) -> Vec<Finding> {
    let (mut findings, misspelt, cut) = match config {
        Ok(config) => {
            let ok = Finding::ok("configuration: what is set can be read");
            (vec![ok], &config.misspelt, &config.cut)
        }
        Err(ConfigProblems { list, misspelt, cut }) => {
            (list.iter().map(problem_finding).collect(), misspelt, cut)
        }
    };
    findings.extend(misspelt.iter().map(no_setting));
    findings.extend(cut.iter().map(formerly_cut));
    findings
}

fn problem_finding(problem: &ConfigProblem) -> Finding {
    let what = format!("configuration: {}: {}", problem.location(), problem.wrong);
    Finding::failure(what, format!("for example {}", problem.example))
}

fn no_setting(misspelling: &MisspelledName) -> Finding {
    let what = format!("configuration: {}: not a setting", misspelling.name);
    Finding::warning(what, format!("if {} is meant, rename it", misspelling.meant))
}

fn formerly_cut(cut: &CutValue) -> Finding {
    let what = format!("configuration: {}, line {} of .env: {}", cut.variable, cut.line, CutValue::FACT);
    Finding::warning(what, CutValue::ADVICE)
}
