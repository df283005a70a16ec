//! Routing of a received message: its origin, its transport, its verification, and the order in which it is
//! interpreted.

pub mod inbound_message;
pub mod message_origin;
pub mod route;
pub mod transport;
pub mod verification;
