//! Notifications about events from Sonarr and Radarr, and the quiet hours that delay them.

pub mod arr_events;
pub mod quiet_hours;
pub mod readiness;
