//! Growth and changes of the library: more seasons and episodes, repeated searches for missing items, and the selection
//! of monitored items.

pub mod change;
mod films;
pub mod more;
mod picking;
mod wanting;
