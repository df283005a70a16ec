//! Memory of earlier conversations: stored metadata of answers, and recall.

pub mod answer_metadata;
pub mod recall;
