//! Decides everything and does nothing: what a text is, what may run, what comes next, what the model sees.
//! No clock, no network, no database; `now` is an argument.

pub mod action;
pub mod consent;
pub mod deletion;
pub mod extraction;
pub mod facts;
pub mod first_request;
pub mod frozen;
pub mod inbound_message;
pub mod lifecycle;
pub mod naming;
pub mod notices;
pub mod onboarding;
pub mod orders;
pub mod origin;
pub mod prompt;
pub mod quiet;
pub mod rate;
pub mod reaction;
pub mod recall;
pub mod reference;
pub mod requests;
pub mod route;
pub mod schema;
pub mod spending;
pub mod stream;
pub mod text;
pub mod text_normalization;
pub mod title;
pub mod transcript;
pub mod triage;
pub mod trouble;
pub mod turn;
pub mod verification;
pub mod way;
pub mod words;
