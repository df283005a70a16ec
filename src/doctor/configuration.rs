//! Whether what is set can be read, and whether a name is misspelt: the variables, and nothing of what they lead to.

use super::Finding;
use crate::config::{Config, Misspelling, Problem, Problems};

pub(crate) fn check(config: &Result<Config, Problems>) -> Vec<Finding> {
    let (mut findings, misspelt) = match config {
        Ok(config) => (vec![Finding::ok("configuration: what is set can be read")], &config.misspelt),
        Err(Problems { list, misspelt }) => (list.iter().map(wrong).collect(), misspelt),
    };
    findings.extend(misspelt.iter().map(no_setting));
    findings
}

fn wrong(problem: &Problem) -> Finding {
    let what = format!("configuration: {}: {}", problem.variable, problem.wrong);
    Finding::failure(what, format!("for example {}", problem.example))
}

fn no_setting(misspelling: &Misspelling) -> Finding {
    let what = format!("configuration: {}: not a setting", misspelling.name);
    Finding::warning(what, format!("if {} is meant, rename it", misspelling.meant))
}
