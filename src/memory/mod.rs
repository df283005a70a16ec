//! What is kept in memory so that answers are found again quickly: vectors of texts, and the scan over them.

pub mod index;
pub mod vector;
