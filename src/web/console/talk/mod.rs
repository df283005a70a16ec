//! Conversations: the list and the search, one conversation with live events, and the operator's actions in it.

pub(in crate::web) mod acts;
pub(in crate::web) mod list;
pub(in crate::web) mod live;
mod pieces;
pub(in crate::web) mod show;
mod turns;
mod wording;
