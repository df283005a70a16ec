//! Memory of earlier answers: background indexing, and recall for a turn.

pub mod indexer;
mod metadata_extractor;
mod metadata_failure;
mod metadata_pause;
pub mod recall;
