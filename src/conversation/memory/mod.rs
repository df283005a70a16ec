//! Memory of earlier conversations: the metadata of stored answers, and their recall.

pub mod answer_metadata;
pub mod metadata_reply;
pub mod recall;
