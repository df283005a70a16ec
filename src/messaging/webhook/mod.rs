//! Twilio's requests as typed values. The signature covers names and values written one after the other, not the
//! boundaries between them: the same signature is valid for every other split of the same characters. So each name and
//! value is checked against Twilio's documentation before anything is read.

mod fields;
mod report;
mod text;

#[cfg(test)]
mod tests;

pub(super) use fields::is_sid;
pub use fields::{DecodedForm, FormFault};
pub use report::{CallbackQuery, parse_report};
pub use text::parse_text;
