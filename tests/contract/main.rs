//! Our clients against what is not ours to keep here: answers recorded from real servers, descriptions that their makers
//! publish, and servers that others wrote. Environment variables say where these are; without them there is nothing to check.

mod aimock;
mod arr;
mod arr_errors;
mod arr_events;
mod arr_radarr;
mod arr_requests;
mod arr_sonarr;
mod embeddings;
mod model_conversation;
mod prism;
mod stubllm;
