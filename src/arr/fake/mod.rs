//! A Sonarr and a Radarr that hold a world in memory and speak the real wire format.
//! Start at `radarr.rs` or `sonarr.rs` for what a request is answered, at `world.rs` for what a test or the demo can say
//! about the world, at `gate.rs` for the ways in which a server can misbehave.

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
