//! Parsing of Twilio's webhook requests. The signature covers the concatenated names and values of a form, but not the
//! boundaries between them, so it is also valid for every other split of the same characters. Therefore each name and
//! value is checked against Twilio's documentation before the form is used.

mod fields;
mod inbound_message;
mod status_callback;

#[cfg(test)]
mod tests;

pub(super) use fields::is_sid;
pub use fields::{DecodedForm, FormFault};
pub use inbound_message::parse_inbound_message;
pub use status_callback::{CallbackQuery, parse_status_callback};
