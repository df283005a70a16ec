//! Names of settings that can be stored.

use super::misspelling::closest_variable;
use super::variables::{self, Variable};

/// Error for a name of which no value can be stored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SettingNameError {
    #[error("{0}: there is no such setting{hint}", hint = closest_variable(.0).map(|name| format!("; did you mean {name}?")).unwrap_or_default())]
    Unknown(String),
    #[error(
        "{0}: it is set only in the environment or .env, because it is needed before the stored settings are read"
    )]
    EnvironmentOnly(&'static str),
}

/// Finds the setting with this name.
pub fn find_setting(name: &str) -> Result<Variable, SettingNameError> {
    match variables::find_variable(name) {
        None => Err(SettingNameError::Unknown(name.to_owned())),
        Some(variable) if !variable.is_storable() => Err(SettingNameError::EnvironmentOnly(variable.name)),
        Some(variable) => Ok(variable),
    }
}
