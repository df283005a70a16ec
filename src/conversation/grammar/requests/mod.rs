//! Grammar of the requests that people text in everyday English. [`parser::parse_line`] reads a line by tables of
//! patterns.

mod compound;
mod form;
mod known_titles;
pub mod labels;
mod moods;
mod numbers;
pub mod parser;
mod pattern;
mod pattern_tables;
mod patterns;
pub mod period;
mod quiet_phrase;
pub mod request;
pub mod seasons;
mod single_request;
mod spelling;
#[cfg(test)]
mod tests;
pub mod title_phrase;
mod token;
pub mod watched_titles;
mod watching_request;
mod watching_slots;
