//! What is remembered of people: what they said should hold.

pub mod facts;
