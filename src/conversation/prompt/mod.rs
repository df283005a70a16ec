//! From a transcript to the request that a model reads. Every size cap of a prompt lives here.

mod material;
mod request_builder;
#[cfg(test)]
mod tests;

pub use material::{PastTurn, PromptContext, PromptMaterial};
pub use request_builder::{build_metadata_request, build_request, build_triage_request};
