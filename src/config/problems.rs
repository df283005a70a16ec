//! Problems of the configuration, with examples of valid values.

use std::fmt;

use super::notes::ConfigNotes;
use super::{ValueSource, variables};

/// Invalid or missing value. The problem never contains the value, which may be a misplaced secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigProblem {
    /// Name of the variable, or `.env` for the file as a whole.
    pub variable: &'static str,
    pub source: ValueSource,
    /// Description that completes "NAME: …".
    pub reason: String,
    pub example: &'static str,
}

/// All problems of the configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq, thiserror::Error)]
#[error("read the configuration{}{notes}", list.iter().map(|problem| format!("\n  {problem}")).collect::<String>())]
pub struct ConfigProblems {
    pub list: Vec<ConfigProblem>,
    /// Values without effect, which may explain missing ones.
    pub notes: ConfigNotes,
}

impl ConfigProblem {
    /// Returns the variable with its line of `.env` or its kind of source, such as `PORT, line 3 of .env`.
    pub fn location(&self) -> String {
        match self.source {
            ValueSource::EnvFile(line) if self.variable == ".env" => format!(".env, line {line}"),
            source @ (ValueSource::EnvFile(_) | ValueSource::Stored) => {
                format!("{}, {source}", self.variable)
            }
            ValueSource::Environment | ValueSource::Default => self.variable.to_owned(),
        }
    }

    /// Returns a valid line for the environment or `.env`, or the command that changes a stored setting.
    pub fn repair(&self) -> String {
        match self.source {
            ValueSource::Stored => {
                let is_secret =
                    variables::find_variable(self.variable).is_some_and(|variable| variable.is_secret());
                let setting = if is_secret { self.variable } else { self.example };
                format!("dialarr config set {setting}")
            }
            ValueSource::Environment | ValueSource::EnvFile(_) | ValueSource::Default => {
                self.example.to_owned()
            }
        }
    }
}

impl fmt::Display for ConfigProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}, e.g. {}", self.location(), self.reason, self.repair())
    }
}
