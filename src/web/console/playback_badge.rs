//! Badge of a title on disk that tells whether it can be played on a media server.

use crate::conversation::notifications::readiness::Playability;
use crate::tools::library_cache::overview::TitleId;
use crate::tools::playback::PlayableTitles;

/// Badge, and the reason if the answer is unknown.
pub(super) struct PlaybackBadge {
    pub(super) class: &'static str,
    pub(super) label: String,
    pub(super) detail: String,
    playability: Playability,
}

impl PlaybackBadge {
    /// Returns the badge of a title; `None` if it is not on disk, or there is no media server.
    pub(super) fn find(playable: Option<&PlayableTitles>, title: &TitleId) -> Option<Self> {
        let playable = playable?;
        let playability = playable.find(title)?;
        let (servers, no_detail) = (&playable.servers, String::new());
        let (class, label, detail) = match playability {
            Playability::Playable => ("good", "Playable".to_owned(), no_detail),
            Playability::NotYet => ("warn", format!("Not on {servers} yet"), no_detail),
            Playability::Unknown => ("", "Unknown".to_owned(), format!("{servers} does not respond")),
        };
        Some(Self { class, label, detail, playability })
    }

    pub(super) fn is_playable(&self) -> bool {
        self.playability == Playability::Playable
    }
}
