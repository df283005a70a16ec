//! Construction of the request that a model reads from a transcript. Every size limit of a prompt is in this module.

mod material;
mod request_builder;
#[cfg(test)]
mod tests;

pub use material::{PastTurn, PromptContext, PromptMaterial};
pub use request_builder::{build_metadata_request, build_request, build_triage_request};
