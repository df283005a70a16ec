//! In-memory fakes of Sonarr and Radarr that use the real wire format. `radarr.rs` and `sonarr.rs` answer requests,
//! `fake_server.rs` provides the state and its setters, and `request_guard.rs` injects faults.

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
pub mod posters;
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
mod well_known_titles;
