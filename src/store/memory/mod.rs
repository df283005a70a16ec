//! Memory in the database: facts about users, and answers, each visible only to the users who may find it.

pub mod facts;
pub mod groups;
pub mod indexing_queue;
pub mod responses;
pub mod search;
pub mod shared_answers;
pub mod stats;
#[cfg(test)]
mod tests;
