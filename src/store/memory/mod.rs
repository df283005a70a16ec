//! Database side of the memory: facts about users, and stored answers that only their owners can find.

pub mod facts;
pub mod groups;
pub mod indexing_queue;
pub mod responses;
pub mod search;
pub mod shared_answers;
pub mod stats;
#[cfg(test)]
mod tests;
