//! Simulated Twilio for the demo, the evaluation and tests: it accepts our messages and sends us signed ones. Its
//! behavior follows Twilio's documentation and captured traffic; nothing was compared with a live account.

mod carrier;
mod numbers;
mod person;
mod rest;

pub use carrier::{Delivery, FakeAccount, FakeTwilio, SentText};
pub use person::InboundForm;

#[cfg(test)]
mod tests;
