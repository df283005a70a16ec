//! Text processing: normalized forms for comparisons, cleaned titles, and the format of messages.

pub mod message_format;
pub mod normalization;
pub mod segments;
pub mod title;
pub mod title_key;
