//! Dialarr: users text a phone number, and it acts on their Sonarr and Radarr.

pub mod access_rules;
pub mod app;
pub mod arr;
mod background_tasks;
pub mod cli;
pub mod clock;
mod clock_watch;
pub mod config;
pub mod conversation;
pub mod doctor;
pub mod engine;
pub mod failpoint;
mod heartbeat;
pub mod http;
pub mod live;
pub mod llm;
pub mod maintenance;
pub mod memory;
pub mod messaging;
pub mod metrics;
mod missed_message_poller;
mod outbound_clients;
mod reconfiguration;
pub mod recovery_delays;
pub mod response_budget;
pub mod settings;
mod setup;
pub mod simulation;
pub mod store;
#[cfg(test)]
mod stub_server;
pub mod telemetry;
pub mod tools;
pub mod web;
mod wiring;
