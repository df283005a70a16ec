//! What was said before, as rows: written with each answer, worked on later, found by who may find it and by nobody else.

pub mod everyone;
pub mod groups;
pub mod learning;
pub mod responses;
pub mod search;
pub mod stats;
#[cfg(test)]
mod tests;
