//! Values of `.env` that earlier versions cut at a `$`.

use std::fmt;

/// Variable whose line in `.env` has a `$` outside single quotes. Earlier versions cut such a value, and an
/// installation may rely on the cut value, for example as its console password. The value itself is not stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CutValue {
    pub variable: &'static str,
    /// Line number, from 1.
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
