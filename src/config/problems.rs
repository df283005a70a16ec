//! Problems of the configuration, in words that an operator can act on.

use std::fmt;

use super::{CutValue, MisspelledName};

/// One wrong or missing value. The problem never repeats the value, which may be a secret put in the wrong place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigProblem {
    /// Name of the variable, or `.env` for the file as a whole.
    pub variable: &'static str,
    /// Line of `.env` that sets the variable, from 1; `None` where the line is not known or the environment sets the
    /// variable.
    pub line: Option<usize>,
    /// Description of the problem that fits after the variable and a colon.
    pub wrong: String,
    pub example: &'static str,
}

/// All problems, so that the operator can fix them in one pass.
#[derive(Debug, Clone, Default, PartialEq, Eq, thiserror::Error)]
pub struct ConfigProblems {
    pub list: Vec<ConfigProblem>,
    /// Misspelled names, wrong or not: a missing value may be set under another name.
    pub misspelt: Vec<MisspelledName>,
    pub cut: Vec<CutValue>,
}

impl fmt::Display for ConfigProblems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "read the configuration")?;
        for problem in &self.list {
            write!(f, "\n  {problem}")?;
        }
        for misspelling in &self.misspelt {
            write!(f, "\n  {misspelling}")?;
        }
        for cut in &self.cut {
            write!(f, "\n  {cut}")?;
        }
        Ok(())
    }
}

impl ConfigProblem {
    /// Returns the variable, and the line of `.env` where the line is known: `PORT, line 3 of .env`.
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
        write!(f, "{}: {}, e.g. {}", self.location(), self.wrong, self.example)
    }
}
