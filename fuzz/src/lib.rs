//! What the targets share: the program behind its webhooks, and peers that answer what they are told to.

pub mod peer;
pub mod program;
