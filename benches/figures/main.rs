//! Figures of the program as a process of its own.
fn main() {}
