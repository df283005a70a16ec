//! Grammar of the requests that people text in everyday English. [`parser::parse_line`] reads a line by tables of
//! patterns.

mod artists;
mod compound;
pub mod description;
mod discovery_request;
mod discovery_slots;
#[cfg(test)]
mod discovery_tests;
mod form;
mod known_titles;
pub mod labels;
mod limits;
mod moods;
mod numbers;
pub mod parser;
mod pattern;
mod pattern_tables;
mod patterns;
pub mod period;
mod providers;
mod quiet_phrase;
pub mod recommendation;
pub mod request;
pub mod seasons;
mod single_request;
pub mod spelling;
#[cfg(test)]
mod tests;
pub mod title_phrase;
mod token;
pub mod watched_titles;
mod watching_request;
mod watching_slots;
mod years;
