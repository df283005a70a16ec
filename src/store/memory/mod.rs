//! What is remembered, as rows: facts about people, and answers, which are found by who may find them and by nobody else.

pub mod everyone;
pub mod facts;
pub mod groups;
pub mod learning;
pub mod responses;
pub mod search;
pub mod stats;
#[cfg(test)]
mod tests;
