//! Fake Sonarr and Radarr that hold their state in memory and use the real wire format. Start with `radarr.rs` or
//! `sonarr.rs` for the responses to requests, `fake_server.rs` for the state that a test or the demo can set, and
//! `request_guard.rs` for the faults that a server can have.

pub mod activity;
mod activity_api;
mod connect_api;
pub mod demo_library;
mod demo_movies;
mod demo_series;
mod episode_api;
pub mod fake_server;
mod library_api;
pub mod media_fixtures;
mod movie_api;
mod movie_json;
pub mod radarr;
mod release_search;
mod request_guard;
mod responses;
mod search;
mod series_api;
mod series_json;
mod server_api;
pub mod sonarr;
mod webhook_events;
