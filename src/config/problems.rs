//! What is wrong with the configuration, in words that an operator can act on.

use std::fmt;

use super::{CutValue, MisspelledName};

/// One wrong or missing value. It never repeats the value, which may be a secret put in the wrong place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigProblem {
    /// The variable, or `.env` for the file as a whole.
    pub variable: &'static str,
    /// The line of `.env` that sets it, from 1; `None` where that is not known or the environment sets it.
    pub line: Option<usize>,
    /// Fits after the variable and a colon.
    pub wrong: String,
    pub example: &'static str,
}

/// Everything that is wrong, so that one look is enough to put it right.
#[derive(Debug, Clone, Default, PartialEq, Eq, thiserror::Error)]
pub struct ConfigProblems {
    pub list: Vec<ConfigProblem>,
    /// Wrong or not: what is missing may stand there under another name.
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
    /// The variable, and the line of `.env` where it is known: `PORT, line 3 of .env`.
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
