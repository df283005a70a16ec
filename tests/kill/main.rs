//! Program as a separate process, killed at failpoints and at random moments, among peers that outlive it.

// Informs the lints of what cargo knows: an unwrap in this crate is a failing test.
#![cfg(test)]

mod crash_points;
mod house_bot;
mod invariants;
mod ledger;
mod model;
mod own_phone;
mod people;
mod random;
mod settings;
mod stage;
