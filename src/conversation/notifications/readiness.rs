//! Decision about the time at which people are told that an imported title is ready: once it can be played.

use jiff::{SignedDuration, Timestamp};

use super::arr_events::{ArrTitle, NotificationText, format_arr_title, format_episodes};
use crate::conversation::transcript::UserRole;

/// Interval at which the media servers are asked about a title.
const CHECK_INTERVAL: SignedDuration = SignedDuration::from_secs(60);
/// Time after the import at which people are told that the title cannot be played yet.
const DELAY_NOTICE_AFTER: SignedDuration = SignedDuration::from_mins(20);
/// Time after the import at which admins are told, and the media servers are asked less often.
const OVERDUE_AFTER: SignedDuration = SignedDuration::from_hours(2);
const OVERDUE_CHECK_INTERVAL: SignedDuration = SignedDuration::from_mins(5);
/// Time after the import at which the program stops asking the media servers.
pub const GIVE_UP_AFTER: SignedDuration = SignedDuration::from_hours(24);

/// Availability of a title on the media servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Playability {
    /// A server has it.
    Playable,
    /// Every server answered, and none has all of it.
    NotYet,
    /// No server has it, and at least one did not answer.
    Unknown,
}

/// Decision about the notification of an imported title.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readiness {
    /// People are told that it is ready.
    Ready,
    /// The servers are asked again at this time.
    Wait { until: Timestamp, notice: DelayNotice },
    /// No server has shown the title for a day.
    GivenUp,
}

/// Recipients of the notice that an imported title cannot be played yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DelayNotice {
    Nobody,
    /// The people who wait for it, outside their quiet hours.
    WaitingUsers,
    /// These people, and the admins with the likely cause.
    WaitingUsersAndAdmins,
}

/// Decides about a title that was imported at `imported_at`.
pub fn decide_readiness(playability: Playability, imported_at: Timestamp, now: Timestamp) -> Readiness {
    let age = now.duration_since(imported_at);
    match playability {
        Playability::Playable => return Readiness::Ready,
        Playability::NotYet if age >= GIVE_UP_AFTER => return Readiness::GivenUp,
        // As without a media server.
        Playability::Unknown if age >= GIVE_UP_AFTER => return Readiness::Ready,
        Playability::NotYet | Playability::Unknown => {}
    }
    let (interval, notice) = if age >= OVERDUE_AFTER {
        (OVERDUE_CHECK_INTERVAL, DelayNotice::WaitingUsersAndAdmins)
    } else if age >= DELAY_NOTICE_AFTER {
        (CHECK_INTERVAL, DelayNotice::WaitingUsers)
    } else {
        (CHECK_INTERVAL, DelayNotice::Nobody)
    };
    Readiness::Wait { until: now + interval, notice }
}

/// Likely cause why a media server does not show an imported title.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MissingCause {
    /// No library of the server has its folder.
    FolderNotInLibrary,
    /// The server shows a title of this name, but as another one.
    WrongMatch,
    /// The server has the folder, and has not found the file.
    NotScanned,
    /// The server did not answer.
    NoAnswer,
}

impl MissingCause {
    /// Formats the cause for a person, with what an admin can do about it; `None` if it is not known.
    pub fn format_for(self, role: UserRole) -> Option<&'static str> {
        match (self, role) {
            (Self::FolderNotInLibrary, UserRole::Admin) => Some("No library there has its folder."),
            (Self::FolderNotInLibrary, UserRole::Member) => {
                Some("No library there has its folder. An admin can help.")
            }
            (Self::WrongMatch, UserRole::Admin) => {
                Some("It may be there under a wrong match: identify it again.")
            }
            (Self::WrongMatch, UserRole::Member) => {
                Some("It may be there under a wrong match. An admin can help.")
            }
            (Self::NotScanned, UserRole::Admin) => Some("Check that its library is scanned."),
            (Self::NotScanned, UserRole::Member) => Some("Its library may not be scanned yet."),
            (Self::NoAnswer, _) => None,
        }
    }
}

/// Content of an import, as people are told about it.
#[derive(Debug, Clone, Copy)]
pub struct ImportedContent<'a> {
    pub title: &'a ArrTitle,
    /// Episodes by season and number; empty for a movie.
    pub episodes: &'a [(u32, u32)],
}

impl ImportedContent<'_> {
    /// Returns the content as `Dune (2021)`, `The Bear S02E03` or `The Bear season 2`.
    fn phrase(self) -> String {
        match self.episodes {
            [] => format_arr_title(self.title),
            episodes => format_episodes(&self.title.title, episodes),
        }
    }
}

/// Formats whether content on disk plays. `content` is a phrase such as `Dune (2021)`, `server` a name such as `Jellyfin`.
pub fn format_playability(content: &str, server: &str, playability: Playability) -> String {
    match playability {
        Playability::Playable => format!("{content} is ready on {server}."),
        Playability::NotYet => format!("{content} is downloaded, but not on {server} yet."),
        Playability::Unknown => {
            format!("{content} is downloaded, but I can't reach {server} to see whether it plays.")
        }
    }
}

/// Formats the notice that an imported title cannot be played yet. `server` is a name such as `Jellyfin`.
pub fn format_delay_notice(
    content: ImportedContent<'_>,
    server: &str,
    playability: Playability,
) -> NotificationText {
    let phrase = content.phrase();
    let mut sentence = format_playability(&phrase, server, playability);
    if playability == Playability::NotYet {
        sentence.push_str(" I'll text you when it plays.");
    }
    NotificationText { sentence, phrase }
}

/// Formats the message to admins about a title that no media server shows.
pub fn format_missing_title(
    content: ImportedContent<'_>,
    server: &str,
    cause: MissingCause,
) -> NotificationText {
    let phrase = content.phrase();
    let problem = match cause.format_for(UserRole::Admin) {
        Some(cause) => format!("does not show it. {cause}"),
        None => "is not responding.".to_owned(),
    };
    let sentence = format!("{phrase} was imported more than 2 hours ago, but {server} {problem}");
    NotificationText { sentence, phrase }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IMPORTED: Timestamp = Timestamp::UNIX_EPOCH;

    fn decide_after(minutes: i64, playability: Playability) -> Readiness {
        decide_readiness(playability, IMPORTED, IMPORTED + SignedDuration::from_mins(minutes))
    }

    #[test]
    fn playable_title_is_ready_however_late() {
        for minutes in [0, 30, 500] {
            assert_eq!(decide_after(minutes, Playability::Playable), Readiness::Ready);
        }
    }

    #[test]
    fn title_that_does_not_play_concerns_more_people_with_time() {
        let wait = |until: i64, notice| {
            let until = IMPORTED + SignedDuration::from_mins(until);
            Readiness::Wait { until, notice }
        };
        for playability in [Playability::NotYet, Playability::Unknown] {
            assert_eq!(decide_after(0, playability), wait(1, DelayNotice::Nobody));
            assert_eq!(decide_after(19, playability), wait(20, DelayNotice::Nobody));
            assert_eq!(decide_after(20, playability), wait(21, DelayNotice::WaitingUsers));
            assert_eq!(decide_after(119, playability), wait(120, DelayNotice::WaitingUsers));
            assert_eq!(decide_after(120, playability), wait(125, DelayNotice::WaitingUsersAndAdmins));
        }
        assert_eq!(decide_after(1_440, Playability::NotYet), Readiness::GivenUp);
        assert_eq!(decide_after(1_440, Playability::Unknown), Readiness::Ready);
    }

    #[test]
    fn texts_name_the_content_and_the_server() {
        let title = ArrTitle { id: 1, catalog_id: 9, title: "The Bear".into(), year: 2022 };
        let movie = ImportedContent { title: &title, episodes: &[] };
        let episode = ImportedContent { title: &title, episodes: &[(2, 3)] };
        let notice = |content, playability| format_delay_notice(content, "Jellyfin", playability).sentence;
        assert_eq!(
            notice(movie, Playability::NotYet),
            "The Bear (2022) is downloaded, but not on Jellyfin yet. I'll text you when it plays."
        );
        assert_eq!(
            notice(episode, Playability::Unknown),
            "The Bear S02E03 is downloaded, but I can't reach Jellyfin to see whether it plays."
        );
        assert_eq!(
            format_missing_title(episode, "Jellyfin", MissingCause::FolderNotInLibrary).sentence,
            "The Bear S02E03 was imported more than 2 hours ago, but Jellyfin does not show it. No library there has \
             its folder."
        );
    }
}
