//! Digests: one message a week that lists what came, what comes, what leaves and what waits for its reader.

pub mod content;
pub mod digest_command;
pub mod digest_messages;
pub mod schedule;
