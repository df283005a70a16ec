//! Values of `.env` from which earlier versions removed `$NAME` references.

use std::fmt;

/// Variable whose line in `.env` has a `$` outside single quotes. Earlier versions replaced the `$` and the name after it
/// by nothing, and an installation may rely on the shortened value, for example as its console password. The value
/// itself is not stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpandedValue {
    pub variable: &'static str,
    /// Line number, from 1.
    pub line: usize,
}

impl ExpandedValue {
    pub const PROBLEM: &str = "the value has a $; earlier versions removed the $ and the name after it";
    pub const FIX: &str =
        "put the value in single quotes, and use the full value wherever you entered the shortened one";
}

impl fmt::Display for ExpandedValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, line {} of .env: {}; {}", self.variable, self.line, Self::PROBLEM, Self::FIX)
    }
}
