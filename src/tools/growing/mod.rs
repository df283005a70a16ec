//! What grows or changes of that which the library has: more seasons and episodes, another look for what is missing,
//! and what is looked for at all.

pub mod change;
mod films;
pub mod more;
mod picking;
mod wanting;
