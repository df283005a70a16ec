//! Patterns of the requests.

pub mod about_discovery;
pub mod about_program;
pub mod about_titles;
pub mod about_tonight;
pub mod about_watching;
