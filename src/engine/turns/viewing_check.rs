//! Check whether somebody is watching a title that is to be deleted: when the confirmation prompt is written, and again
//! right before the deletion.

use futures_util::future::join_all;

use super::tool_runner::ToolRunner;
use crate::conversation::deletion::target::{
    DeletionScope, DeletionTarget, SeasonEpisodes, ViewingKnowledge,
};
use crate::media_servers::playability::{AskedTitle, TitlePart, WatchingNow};

/// Result of the check of one title.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ViewingCheck {
    /// Nobody is watching it, or no media server is configured.
    Unwatched,
    Watched,
    /// A media server did not answer.
    Unknown,
}

/// Items of a planned deletion.
#[derive(Debug, Default)]
pub(super) struct CheckedItems {
    /// Items that are not being watched, or of which that is unknown.
    pub(super) deletable: Vec<DeletionTarget>,
    pub(super) watched: Vec<DeletionTarget>,
}

impl ToolRunner {
    /// Checks whether somebody is watching what a deletion removes.
    pub(super) async fn check_viewing(&self, item: &DeletionTarget) -> ViewingCheck {
        let parts = self.newest_parts();
        let servers = &parts.library.media_servers;
        if servers.is_empty() || !item.deletes_playable_files() {
            return ViewingCheck::Unwatched;
        }
        let asked =
            AskedTitle { kind: item.kind, ids: item.fingerprint.ids, part: deleted_part(&item.scope) };
        match servers.check_watching(&asked, self.now()).await {
            WatchingNow::Nobody => ViewingCheck::Unwatched,
            WatchingNow::By(_) => ViewingCheck::Watched,
            WatchingNow::Unknown => ViewingCheck::Unknown,
        }
    }

    /// Checks the items of a confirmation prompt, and records what is known about each.
    pub(super) async fn check_items(&self, items: Vec<DeletionTarget>) -> CheckedItems {
        let checks = join_all(items.iter().map(|item| self.check_viewing(item))).await;
        let mut checked = CheckedItems::default();
        for (mut item, check) in items.into_iter().zip(checks) {
            item.fingerprint.viewing = match check {
                ViewingCheck::Unknown => ViewingKnowledge::Unknown,
                ViewingCheck::Unwatched | ViewingCheck::Watched => ViewingKnowledge::Known,
            };
            match check {
                ViewingCheck::Watched => checked.watched.push(item),
                ViewingCheck::Unwatched | ViewingCheck::Unknown => checked.deletable.push(item),
            }
        }
        checked
    }
}

fn deleted_part(scope: &DeletionScope) -> TitlePart {
    match scope {
        DeletionScope::Season { number, .. } => TitlePart::Seasons(vec![*number]),
        DeletionScope::Copy { episodes: Some(SeasonEpisodes { season, numbers }), .. } => {
            match numbers.as_slice() {
                [] => TitlePart::Seasons(vec![*season]),
                numbers => TitlePart::Episodes(numbers.iter().map(|number| (*season, *number)).collect()),
            }
        }
        DeletionScope::Whole | DeletionScope::Copy { episodes: None, .. } | DeletionScope::Download(_) => {
            TitlePart::Whole
        }
    }
}
