//! Parsers of received messages: keywords, requests in everyday words, confirmation replies, reactions, title references
//! and triage hints.

pub mod confirmation_reply;
pub mod keyword_grammar;
pub mod labeled_reply;
pub mod make_room_step;
pub mod reaction;
pub mod requests;
pub mod title_reference;
pub mod triage;
