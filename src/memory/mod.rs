//! In-memory data for fast search of stored answers: vectors of texts, and scans over these vectors.

pub mod index;
pub mod vector;
