//! Whether what is set can be read: the variables, and nothing of what they lead to.

use super::Finding;
use crate::config::{Config, Problems};

pub(crate) fn check(config: &Result<Config, Problems>) -> Vec<Finding> {
    match config {
        Ok(_) => vec![Finding::ok("configuration: what is set can be read")],
        Err(Problems(problems)) => problems
            .iter()
            .map(|problem| {
                let what = format!("configuration: {}: {}", problem.variable, problem.wrong);
                Finding::failure(what, format!("for example {}", problem.example))
            })
            .collect(),
    }
}
