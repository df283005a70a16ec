//! Data stored about a user, and its erasure: text is erased automatically after its retention period, or all at once
//! when the user or the operator requests it. Rows stay, so that keys and counts remain whole; but the rows of title
//! requests, follows and notifications are deleted.

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
