//! Routing of received messages: their origin and verification, and the choice of their route.

pub mod button_press;
pub mod inbound_message;
mod kept_titles;
pub mod message_origin;
pub mod no_reply_reason;
pub mod number_answers;
pub mod open_prompt;
pub mod prompt_notes;
pub mod request_reader;
pub mod room_routes;
pub mod rooms;
pub mod route;
mod route_authority;
pub mod routes;
pub mod senders;
pub mod staleness;
pub mod urgency;
pub mod verification;
