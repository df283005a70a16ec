//! The program as a process of its own, killed at named places and at random moments, among peers that outlive it.

// Says to the lints what cargo knows: an unwrap in here is a failing test.
#![cfg(test)]

mod crash_points;
mod invariants;
mod ledger;
mod model;
mod people;
mod random;
mod stage;
