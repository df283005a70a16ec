//! Live events of conversations, followed by [`reader`]s. The [`recorder`] publishes the output of a model while it
//! arrives; all other events are published by the database writer.

mod command_changes;
pub mod hub;
pub mod reader;
pub(super) mod recorder;
