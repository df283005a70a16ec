//! Memory of earlier answers: their indexing in the background, and their recall for a turn.

pub mod indexer;
mod metadata_extractor;
mod metadata_failure;
mod metadata_pause;
pub mod recall;
pub(super) mod text_embedder;
