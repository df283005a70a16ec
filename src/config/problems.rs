//! What is wrong with the configuration, in words that an operator can act on.

use std::fmt;

use super::Misspelling;

/// One wrong or missing value. It never repeats the value, which may be a secret put in the wrong place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The variable, or `.env` for the file as a whole.
    pub variable: &'static str,
    /// Fits after the variable and a colon.
    pub wrong: String,
    pub example: &'static str,
}

/// Everything that is wrong, so that one look is enough to put it right.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Problems {
    pub list: Vec<Problem>,
    /// Wrong or not: what is missing may stand there under another name.
    pub misspelt: Vec<Misspelling>,
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "read the configuration")?;
        for problem in &self.list {
            write!(f, "\n  {problem}")?;
        }
        for misspelling in &self.misspelt {
            write!(f, "\n  {misspelling}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}, e.g. {}", self.variable, self.wrong, self.example)
    }
}
