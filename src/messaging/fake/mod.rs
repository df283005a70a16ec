//! Simulated Twilio for the demo, the evaluation and tests: it accepts our messages and sends us signed ones. Its
//! behavior follows Twilio's documentation and captured traffic; nothing was compared with a live account.

mod carrier;
mod inbound_webhook;
mod phone_numbers;
mod rest;

pub use carrier::{FakeAccount, FakeDelivery, FakeTwilio, SentText};
pub use inbound_webhook::InboundForm;
