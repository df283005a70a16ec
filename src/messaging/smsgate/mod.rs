//! SMS Gateway for Android as a channel: a phone with a SIM sends and receives the messages.

pub mod client;
pub mod device;
pub mod fake;
mod inbox;
mod inbox_mark;
mod sender_number;
mod states;
mod webhook;
mod wire;

pub use client::{GatewayCredentials, SmsGate, SmsGateAccount};
pub use webhook::{SIGNATURE_HEADER, TIMESTAMP_HEADER, sign_webhook};
