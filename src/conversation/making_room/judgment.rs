//! Judgment of whether a title could go, by its age and by what people have watched of it.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use crate::conversation::transcript::UserId;

/// Minimum age of a title, and minimum time since it was requested or watched.
const QUIET_PERIOD: SignedDuration = SignedDuration::from_hours(30 * 24);
/// Minimum age of a title that nobody has finished.
const UNUSED_PERIOD: SignedDuration = SignedDuration::from_hours(180 * 24);

/// Progress of one user of a media server in a title.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatchProgress {
    /// All of what is there. The time is that of the last play, if it is known.
    Finished {
        at: Option<Timestamp>,
    },
    Started,
    Never,
    /// The server does not show the title, or does not say.
    Unknown,
}

impl WatchProgress {
    /// Returns the time of the last play of a finished title, if it is known.
    pub fn finished_at(self) -> Option<Timestamp> {
        match self {
            Self::Finished { at } => at,
            Self::Started | Self::Never | Self::Unknown => None,
        }
    }
}

/// Progress of one user of a media server, who may be linked to a user of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ViewerProgress {
    pub user: Option<UserId>,
    pub progress: WatchProgress,
}

/// Evidence of who has watched a title.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ViewingEvidence {
    /// No media server is configured.
    NoServer,
    Known(Vec<ViewerProgress>),
    /// A media server did not answer.
    NotAnswered,
}

/// Playback of a title at the moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlayingNow {
    Nobody,
    Somebody,
    Unknown,
}

/// Evidence by which a title is judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TitleUse {
    pub size_bytes: u64,
    /// Day on which the title was added to its library, if that is known.
    pub added: Option<Date>,
    pub last_requested_at: Option<Timestamp>,
    pub is_kept: bool,
    /// Somebody waits for news about the title.
    pub is_followed: bool,
    pub viewing: ViewingEvidence,
    pub playing: PlayingNow,
}

/// Reason why a title could go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GoReason {
    /// Somebody has finished it, and nobody has watched it since.
    Finished,
    /// Nobody has watched it in half a year.
    NeverWatched,
    /// It was added more than half a year ago, and no media server says whether it was watched.
    Old,
}

/// Reason why a title stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum StayReason {
    NotOnDisk,
    Kept,
    Followed,
    BeingWatched,
    HalfWatched,
    /// Added or requested less than a month ago.
    New,
    WatchedLately,
    /// Nobody has finished it, and it was added less than half a year ago.
    Unwatched,
    /// It is not known whether somebody watches it.
    Unknown,
}

/// Outcome of judging a title.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Judgment {
    CouldGo(GoReason),
    Stays(StayReason),
}

/// Judges whether a title could go. What is not known speaks for the title.
pub fn judge_title(title: &TitleUse, now: Timestamp, zone: &TimeZone) -> Judgment {
    if title.size_bytes == 0 {
        return Judgment::Stays(StayReason::NotOnDisk);
    }
    if title.is_kept {
        return Judgment::Stays(StayReason::Kept);
    }
    if title.is_followed {
        return Judgment::Stays(StayReason::Followed);
    }
    match title.playing {
        PlayingNow::Nobody => {}
        PlayingNow::Somebody => return Judgment::Stays(StayReason::BeingWatched),
        PlayingNow::Unknown => return Judgment::Stays(StayReason::Unknown),
    }
    let added = title.added.and_then(|added| added.to_zoned(zone.clone()).ok()).map(|at| at.timestamp());
    let is_old = |period| added.is_some_and(|added| now.duration_since(added) >= period);
    let is_new_request = title.last_requested_at.is_some_and(|at| now.duration_since(at) < QUIET_PERIOD);
    let viewers = match &title.viewing {
        ViewingEvidence::NotAnswered => return Judgment::Stays(StayReason::Unknown),
        ViewingEvidence::NoServer => None,
        ViewingEvidence::Known(viewers) => Some(viewers),
    };
    let has = |progress: fn(WatchProgress) -> bool| {
        viewers.is_some_and(|viewers| viewers.iter().any(|viewer| progress(viewer.progress)))
    };
    if has(|progress| progress == WatchProgress::Started) {
        return Judgment::Stays(StayReason::HalfWatched);
    }
    if !is_old(QUIET_PERIOD) || is_new_request {
        return Judgment::Stays(StayReason::New);
    }
    if has(|progress| progress == WatchProgress::Unknown) {
        return Judgment::Stays(StayReason::Unknown);
    }
    let finished = viewers.into_iter().flatten().filter_map(|viewer| match viewer.progress {
        WatchProgress::Finished { at } => Some(at),
        WatchProgress::Started | WatchProgress::Never | WatchProgress::Unknown => None,
    });
    judge_finished(&finished.collect::<Vec<_>>(), is_old(UNUSED_PERIOD), viewers.is_some(), now)
}

/// Judges a title by the times of its last plays, of which each is `None` if it is unknown.
fn judge_finished(
    plays: &[Option<Timestamp>],
    is_unused: bool,
    has_server: bool,
    now: Timestamp,
) -> Judgment {
    let is_recent = |at: &Option<Timestamp>| at.is_some_and(|at| now.duration_since(at) < QUIET_PERIOD);
    if plays.iter().any(is_recent) {
        return Judgment::Stays(StayReason::WatchedLately);
    }
    let has_unknown_time = plays.iter().any(Option::is_none);
    match (plays.is_empty(), has_server) {
        (true, true) if is_unused => Judgment::CouldGo(GoReason::NeverWatched),
        (true, false) if is_unused => Judgment::CouldGo(GoReason::Old),
        (true, _) => Judgment::Stays(StayReason::Unwatched),
        // A play without a time may be from yesterday, unless the title has been there for long.
        (false, _) if has_unknown_time && !is_unused => Judgment::Stays(StayReason::WatchedLately),
        (false, _) => Judgment::CouldGo(GoReason::Finished),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: &str = "2026-11-29T12:00:00Z";

    fn now() -> Timestamp {
        NOW.parse().unwrap()
    }

    fn days_ago(days: i64) -> Timestamp {
        now() - SignedDuration::from_hours(24 * days)
    }

    fn day(days: i64) -> Date {
        days_ago(days).to_zoned(TimeZone::UTC).date()
    }

    /// Title that was added a year ago and finished 100 days ago.
    fn finished() -> TitleUse {
        TitleUse {
            size_bytes: 18_000_000_000,
            added: Some(day(365)),
            last_requested_at: Some(days_ago(365)),
            is_kept: false,
            is_followed: false,
            viewing: watched(&[WatchProgress::Finished { at: Some(days_ago(100)) }, WatchProgress::Never]),
            playing: PlayingNow::Nobody,
        }
    }

    fn watched(all: &[WatchProgress]) -> ViewingEvidence {
        let viewer = |progress: &WatchProgress| ViewerProgress { user: None, progress: *progress };
        ViewingEvidence::Known(all.iter().map(viewer).collect())
    }

    #[track_caller]
    fn check(title: &TitleUse, expected: Judgment) {
        assert_eq!(judge_title(title, now(), &TimeZone::UTC), expected, "{title:?}");
    }

    #[test]
    fn title_that_was_finished_long_ago_could_go() {
        check(&finished(), Judgment::CouldGo(GoReason::Finished));
        let untimed = watched(&[WatchProgress::Finished { at: None }]);
        check(&TitleUse { viewing: untimed, ..finished() }, Judgment::CouldGo(GoReason::Finished));
    }

    #[test]
    fn title_that_nobody_watched_could_go_after_half_a_year() {
        let unwatched = TitleUse { viewing: watched(&[WatchProgress::Never]), ..finished() };
        check(&unwatched, Judgment::CouldGo(GoReason::NeverWatched));
        check(&TitleUse { added: Some(day(179)), ..unwatched }, Judgment::Stays(StayReason::Unwatched));
        let no_server = TitleUse { viewing: ViewingEvidence::NoServer, ..finished() };
        check(&no_server, Judgment::CouldGo(GoReason::Old));
        check(&TitleUse { added: Some(day(100)), ..no_server }, Judgment::Stays(StayReason::Unwatched));
    }

    #[test]
    fn title_that_somebody_uses_or_protects_stays() {
        use WatchProgress::{Finished, Never, Started, Unknown};
        let recent = Finished { at: Some(days_ago(29)) };
        let untimed =
            TitleUse { added: Some(day(60)), viewing: watched(&[Finished { at: None }]), ..finished() };
        for (title, reason) in [
            (TitleUse { size_bytes: 0, ..finished() }, StayReason::NotOnDisk),
            (TitleUse { is_kept: true, ..finished() }, StayReason::Kept),
            (TitleUse { is_followed: true, ..finished() }, StayReason::Followed),
            (TitleUse { playing: PlayingNow::Somebody, ..finished() }, StayReason::BeingWatched),
            (TitleUse { playing: PlayingNow::Unknown, ..finished() }, StayReason::Unknown),
            (TitleUse { viewing: ViewingEvidence::NotAnswered, ..finished() }, StayReason::Unknown),
            (TitleUse { viewing: watched(&[Never, Unknown]), ..finished() }, StayReason::Unknown),
            (TitleUse { viewing: watched(&[Never, Started]), ..finished() }, StayReason::HalfWatched),
            (TitleUse { viewing: watched(&[Never, recent]), ..finished() }, StayReason::WatchedLately),
            (TitleUse { added: Some(day(29)), ..finished() }, StayReason::New),
            (TitleUse { added: None, ..finished() }, StayReason::New),
            (TitleUse { last_requested_at: Some(days_ago(29)), ..finished() }, StayReason::New),
            (untimed, StayReason::WatchedLately),
        ] {
            check(&title, Judgment::Stays(reason));
        }
    }
}
