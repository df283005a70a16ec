//! Household requests and the events of Sonarr and Radarr: titles, waiting additions, follows and arr events.

pub mod arr_events;
pub mod follows;
pub mod quotas;
pub mod request_groups;
pub mod title_requests;
