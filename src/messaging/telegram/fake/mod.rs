//! Simulated Bot API with chats, for the demo, the simulation and tests. Its behavior follows the documentation and the
//! source of the Bot API server, and was not compared with a live bot.

mod api;
mod chat_methods;
mod chats;
mod entities;
mod faults;
mod groups;
mod observations;
mod parameters;
mod people;
mod polls;
mod reactions;
mod sending;
mod server;
#[cfg(test)]
mod tests;
mod updates;
mod webhook;

pub use sending::{FakeButton, FakePoll, FakeSentMessage};
pub use server::{FakeBot, FakeTelegram};
