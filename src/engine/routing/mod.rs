//! Routing of inbound messages, and replies from code without a model.

mod admin_commands;
mod agent_calls;
mod code_guesses;
mod code_replies;
mod digests;
mod fact_replies;
mod invitations;
mod keep_replies;
mod linking;
mod newcomers;
mod rooms;
mod turn_notes;
pub(super) mod turn_start;
mod user_context;
mod votes;
