//! Values of `.env` that versions before this one did not take as they are written.

use std::fmt;

/// A variable whose line has a `$` outside single quotes. An installation may have come to rely on what was left of the
/// value: the console's password, for one, was the rest. The value is not kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CutValue {
    pub variable: &'static str,
    /// From 1.
    pub line: usize,
}

impl CutValue {
    pub const FACT: &str = "the value has a $, and earlier versions left out the $ and the word behind it";
    pub const ADVICE: &str = "use the whole value as it is written, also where you typed what was left of it, and put it in single quotes";
}

impl fmt::Display for CutValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, line {} of .env: {}; {}", self.variable, self.line, Self::FACT, Self::ADVICE)
    }
}
