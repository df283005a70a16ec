//! Twilio as a channel: sending, webhooks, the message list, and the settings of our number.

pub mod account;
pub mod client;
pub mod error_codes;
pub mod fake;
pub mod message_log;
pub mod receiving;
pub mod signature;
pub mod webhook;

pub use client::{STATUS_PATH, Twilio, TwilioAccount, TwilioCredentials, TwilioSender, WEBHOOK_PATH};
pub use receiving::TwilioReceiving;
