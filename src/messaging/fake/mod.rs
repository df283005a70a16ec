//! A simulated Twilio for the demo, the evaluation and tests: it takes our texts and brings us signed ones.
//! What it does follows Twilio's documentation and captured traffic; nothing was compared with a live account.

mod carrier;
mod numbers;
mod person;
mod rest;

pub use carrier::{Delivery, FakeAccount, FakeTwilio, SentText};
pub use person::InboundForm;

#[cfg(test)]
mod tests;
