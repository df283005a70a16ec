//! Messages about titles that could go, and about kept titles.

use super::inbound_message::InboundEvent;
use crate::conversation::making_room::keep_command::{self, ChosenTitles, KeepCommand};

/// Returns whether a message in a private chat is about titles that could go. Words that could mean something else need a
/// question about such a title.
pub(super) fn is_about_kept_titles(asked: &[String], event: &InboundEvent) -> bool {
    if event.room.is_some() {
        return false;
    }
    match keep_command::parse_keep_command(&event.body) {
        Some(KeepCommand::ListKept | KeepCommand::Unkeep(_)) => true,
        Some(KeepCommand::Keep(chosen) | KeepCommand::Free(chosen)) => match chosen {
            ChosenTitles::All | ChosenTitles::Numbers(_) => !asked.is_empty(),
            ChosenTitles::Named(words) => keep_command::find_named(&words, asked).is_some(),
        },
        None => false,
    }
}
