//! Shared parts of the targets: the program behind its webhooks, and scripted peers.

pub mod agents;
pub mod arr_reads;
pub mod peer;
pub mod program;
