//! In-memory search of stored answers by vectors: the vectors of texts, and an index that scans them.

pub mod index;
pub mod vector;
