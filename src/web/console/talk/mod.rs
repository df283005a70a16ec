//! Conversations: the list and the search, one of them as it happens, and what the operator does in it.

pub(in crate::web) mod acts;
pub(in crate::web) mod list;
pub(in crate::web) mod live;
mod pieces;
pub(in crate::web) mod show;
mod turns;
mod wording;
