//! What is kept of a person, and how it goes: words by themselves after their time, all of them at once when the person
//! or the operator says so. Rows stay, so that keys and counts remain whole;
//! but those of who asked for which title, and who hears of it, go.

mod erase;
pub mod export;
pub mod forget;
mod rows;
pub mod sweep;
mod words;

pub use erase::{erase_answer, erase_talk};
pub use words::purge;

#[cfg(test)]
mod tests;
