//! Construction of the model requests, with all size limits of a prompt.

mod clean_text;
mod context_block;
mod material;
mod request_builder;
mod shared_turn;
#[cfg(test)]
mod tests;
mod turn_messages;
mod window;

pub use context_block::build_context_block;
pub use material::{FrozenContext, PastTurn, PromptContext, PromptMaterial};
pub use request_builder::{build_metadata_request, build_past_messages, build_request, build_triage_request};
pub use shared_turn::SharedTurn;
pub use turn_messages::format_author;
pub use window::{MAX_TURNS, trim_to_window};
