//! Home page, and its live updates.

pub(in crate::web) mod actions;
mod attention;
mod connections;
pub(in crate::web) mod live;
pub(in crate::web) mod page;
mod sections;
