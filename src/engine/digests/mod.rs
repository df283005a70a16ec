//! Digests: one message a week to each person and room that asked for one.

mod digest_queue;
mod library_news;
pub mod sender;
pub(super) mod waiting_items;
