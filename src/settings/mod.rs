//! Stored settings: values that are changed with the program. Their rows are in the database, and their secrets in a
//! file of their own.

pub mod change;
mod live;
pub mod loading;
pub mod prepared_change;
pub mod secrets_file;
pub mod setup_step;
#[cfg(test)]
mod tests;
pub mod texting_way;

pub use live::{ChangeError, LiveSettings, SettingsUse, UseStatus};
