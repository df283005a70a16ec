//! Fake Sonarr and Radarr that hold their state in memory and use the real wire format. Start with `radarr.rs` or
//! `sonarr.rs` for the responses to requests, `world.rs` for the state that a test or the demo can set, and `gate.rs`
//! for the faults that a server can have.

pub mod activity;
mod activity_api;
mod answers;
#[cfg(test)]
mod changing;
#[cfg(test)]
mod clients;
mod connections;
pub mod demo_library;
mod demo_movies;
mod demo_series;
mod episodes;
mod films;
mod finds;
#[cfg(test)]
mod flaws;
#[cfg(test)]
mod garbled;
mod gate;
pub mod item;
mod movie_json;
pub mod radarr;
mod reports;
mod search;
mod series_json;
mod settings;
mod shows;
pub mod sonarr;
#[cfg(test)]
mod tests;
pub mod world;
