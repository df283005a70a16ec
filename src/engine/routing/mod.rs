//! Start of work on a message: its route, and the replies that code gives without a model.

mod admin_commands;
mod code_guesses;
mod code_replies;
mod fact_replies;
mod newcomers;
pub(super) mod turn_start;
