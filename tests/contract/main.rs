//! Clients against third parties: recorded responses, published descriptions, and servers. Environment variables name
//! them; without the variables nothing is checked.

mod agents;
mod aimock;
mod arr;
mod arr_errors;
mod arr_events;
mod arr_radarr;
mod arr_requests;
mod arr_sonarr;
mod embeddings;
mod media_servers;
mod model_conversation;
mod prism;
mod seerr;
mod smsgate;
mod stubllm;
mod tautulli;
mod telegram;
