//! Problems of the configuration, with examples of valid values.

use std::fmt;

use super::{ExpandedValue, MisspelledName};

/// Invalid or missing value. The problem never contains the value, which may be a misplaced secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigProblem {
    /// Name of the variable, or `.env` for the file as a whole.
    pub variable: &'static str,
    /// Line of `.env` that sets the variable, from 1. `None` if unknown or if the environment sets the variable.
    pub line: Option<usize>,
    /// Description that completes "NAME: …".
    pub reason: String,
    pub example: &'static str,
}

/// All problems of the configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq, thiserror::Error)]
pub struct ConfigProblems {
    pub list: Vec<ConfigProblem>,
    /// Misspelled names, which may explain missing values.
    pub misspelled_names: Vec<MisspelledName>,
    pub expanded_values: Vec<ExpandedValue>,
}

impl fmt::Display for ConfigProblems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "read the configuration")?;
        for problem in &self.list {
            write!(f, "\n  {problem}")?;
        }
        for misspelling in &self.misspelled_names {
            write!(f, "\n  {misspelling}")?;
        }
        for value in &self.expanded_values {
            write!(f, "\n  {value}")?;
        }
        Ok(())
    }
}

impl ConfigProblem {
    /// Returns the variable and its line of `.env` if known, such as `PORT, line 3 of .env`.
    pub fn location(&self) -> String {
        match self.line {
            Some(line) if self.variable == ".env" => format!(".env, line {line}"),
            Some(line) => format!("{}, line {line} of .env", self.variable),
            None => self.variable.to_owned(),
        }
    }
}

impl fmt::Display for ConfigProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}, e.g. {}", self.location(), self.reason, self.example)
    }
}
