//! Simulated phone with the gateway, for the demo, the simulation and tests.

mod api;
mod phone;
mod radio;
mod webhook_events;

pub use phone::{FakePhone, FakePhoneAccount, RadioedText};
