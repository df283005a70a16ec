//! Data stored about a user, and its erasure: text is erased automatically after its retention period, or all at once
//! when the user or the operator requests it. Rows remain, so that keys and counts remain consistent, except the rows
//! of title requests, follows and notifications, which are deleted.

mod erase;
pub mod export;
mod export_rows;
pub mod forget;
pub mod retention;
mod text_index;

pub use erase::{erase_answer, erase_conversations};
pub use text_index::rebuild_due_index;

#[cfg(test)]
mod tests;
