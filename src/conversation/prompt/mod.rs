//! Construction of the model requests, with all size limits of a prompt.

mod material;
mod request_builder;
#[cfg(test)]
mod tests;

pub use material::{PastTurn, PromptContext, PromptMaterial};
pub use request_builder::{build_metadata_request, build_request, build_triage_request};
