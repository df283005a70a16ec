//! Parsers of received messages with fixed grammars: keywords, confirmation replies, reactions, title references and
//! triage hints.

pub mod confirmation_reply;
pub mod keyword_grammar;
pub mod reaction;
pub mod title_reference;
pub mod triage;
