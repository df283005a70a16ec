//! Notes on values that have no effect, for the log and `dialarr doctor`. They contain no values.

use std::fmt;

use super::{ExpandedValue, MisspelledName, ValueSource};

/// Values without the effect that the operator may expect.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConfigNotes {
    /// Names that have no effect but are similar to a variable.
    pub misspelled_names: Vec<MisspelledName>,
    pub expanded_values: Vec<ExpandedValue>,
    pub ineffective_settings: Vec<IneffectiveSetting>,
}

/// Stored setting without effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IneffectiveSetting {
    pub name: String,
    pub reason: IneffectiveReason,
}

/// Reason why a stored setting has no effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IneffectiveReason {
    /// The environment or `.env` sets the variable.
    Overridden(ValueSource),
    /// The setting comes only from the environment or `.env`.
    EnvironmentOnly,
    /// Setting of another version of the program.
    Unknown,
    /// Secret that is missing or belongs to another server. The connection that needs it is off.
    Unusable(String),
}

impl ConfigNotes {
    /// Returns a sentence for each note that the log of a start contains. An overridden setting is no fault.
    pub fn warnings(&self) -> Vec<String> {
        let settings = self.ineffective_settings.iter();
        let settings = settings.filter(|setting| !matches!(setting.reason, IneffectiveReason::Overridden(_)));
        let misspelled = self.misspelled_names.iter().map(ToString::to_string);
        let expanded = self.expanded_values.iter().map(ToString::to_string);
        misspelled.chain(expanded).chain(settings.map(ToString::to_string)).collect()
    }
}

impl fmt::Display for IneffectiveReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Overridden(source) => write!(f, "overridden ({source})"),
            Self::EnvironmentOnly => f.write_str("ignored: it is set only in the environment or .env"),
            Self::Unknown => f.write_str("ignored: this version has no such setting"),
            Self::Unusable(reason) => write!(f, "not used, and what needs it is off: {reason}"),
        }
    }
}

impl fmt::Display for ConfigNotes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.warnings().iter().try_for_each(|note| write!(f, "\n  {note}"))
    }
}

impl fmt::Display for IneffectiveSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, stored setting: {}", self.name, self.reason)
    }
}
