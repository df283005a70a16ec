//! Text functions: normal forms of received text, cleaned titles, names of conversations, and the format of messages.

pub mod message_format;
pub mod normalization;
pub mod title;
