//! Simulated Twilio for the demo, the evaluation and tests: it accepts our messages and sends signed webhooks. Its
//! behavior follows Twilio's documentation and captured traffic, and was not compared with a live account.

mod carrier;
mod inbound_webhook;
mod message_log;
mod number_settings;
mod rest;

pub use carrier::{FakeAccount, FakeDelivery, FakeTwilio, SentMessage};
pub use inbound_webhook::InboundForm;
