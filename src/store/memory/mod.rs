//! Memory in the database: facts about users, and answers, each visible only to the users who may find it.

pub mod everyone;
pub mod facts;
pub mod groups;
pub mod learning;
pub mod responses;
pub mod search;
pub mod stats;
#[cfg(test)]
mod tests;
