//! Export and erasure of the data of a user. Text is erased automatically after its retention period, or all at once
//! when the user or the operator requests it. The rows of title requests, follows and notifications are deleted; all
//! other rows remain without their text, so that keys and counts stay consistent.

mod erase;
pub mod export;
mod export_rows;
pub mod forget;
pub mod retention;

pub use erase::{erase_answer, erase_user_content};

#[cfg(test)]
mod tests;
