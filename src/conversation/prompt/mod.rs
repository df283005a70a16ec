//! From a transcript to the request that a model reads. Every size cap of a prompt lives here.

mod build;
mod material;
#[cfg(test)]
mod tests;

pub use build::{build, extraction, triage};
pub use material::{Context, Material, PastTurn};
