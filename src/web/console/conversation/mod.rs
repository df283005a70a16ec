//! Conversations: the list and the search, one conversation with live events, and the operator's actions in it.

pub(in crate::web) mod actions;
mod fragments;
mod labels;
pub(in crate::web) mod list;
pub(in crate::web) mod live;
pub(in crate::web) mod page;
mod posters;
mod turns;
