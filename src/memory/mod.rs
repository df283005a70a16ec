//! In-memory data for fast search of stored answers: vectors of texts, and the scan over them.

pub mod index;
pub mod vector;
