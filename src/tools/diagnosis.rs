//! Reason why a title is missing: the first problem between its request and the disk. This file is pure.
//! `why_missing.rs` fetches the facts that it evaluates.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

use super::activity::format_download;
use super::formatting::clean_error_message;
use crate::arr::common_api::{HealthLevel, HealthProblem};
use crate::arr::history::{HistoryEntry, HistoryEvent};
use crate::arr::{Download, DownloadState};
use crate::conversation::text::message_format;
use crate::conversation::transcript::UserRights;

/// Free space in bytes below which there is no room for a movie.
const LITTLE_ROOM: u64 = 5_000_000_000;

/// Known facts about one title, or about the missing part of it.
#[derive(Debug, Clone)]
pub struct DiagnosisFacts<'a> {
    /// Name such as `Dune (2021)`, `The Bear (2022) S02E03`, `3 episodes of The Bear (2022)`.
    pub name: &'a str,
    /// Bytes on the disk, if the title is on disk.
    pub on_disk: Option<u64>,
    pub monitored: bool,
    pub release: ReleaseState,
    pub last_search: Option<Timestamp>,
    pub download: Option<&'a Download>,
    /// History of the missing part alone, newest first.
    pub history: &'a [HistoryEntry],
    /// Free bytes in the folder of the title. `None` if unknown.
    pub free_bytes: Option<u64>,
    pub ailments: &'a [HealthProblem],
    /// Quality that is searched for. Empty if unknown.
    pub quality: &'a str,
}

/// Context of the diagnosis: time, time zone and the rights of the user.
#[derive(Debug, Clone, Copy)]
pub struct DiagnosisContext<'a> {
    pub zone: &'a TimeZone,
    pub now: Timestamp,
    pub rights: UserRights,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReleaseState {
    Released,
    /// Expected release day.
    Expected(Option<Date>),
}

/// First problem that keeps a title from the disk, in the order of the steps between its request and the disk.
#[derive(Debug, Clone, PartialEq)]
pub enum MissingReason<'a> {
    OnDisk(u64),
    NotMonitored,
    NotReleased(Option<Date>),
    /// Finished download that is stuck because of missing disk space.
    NoRoomForImport(&'a Download),
    /// Finished download that cannot be imported into the library.
    ImportBlocked(&'a Download, &'a str),
    DownloadFailed(&'a Download, &'a str),
    Underway(&'a Download),
    /// Full disk of the folder of the title.
    NoRoom(u64),
    /// Problem that prevents the instance from finding releases, as reported by the instance.
    ServerProblem(&'a HealthProblem),
    /// Failed download of a grabbed release, with no other release grabbed since.
    LastFailed(&'a HistoryEntry),
    /// Grabbed release that is neither downloading nor on disk.
    Vanished(&'a HistoryEntry),
    NeverSearched,
    /// Search that found no release, or only releases that were rejected.
    NothingFits(Timestamp),
}

impl<'a> MissingReason<'a> {
    pub fn from_facts(facts: &DiagnosisFacts<'a>) -> Self {
        if let Some(bytes) = facts.on_disk {
            return Self::OnDisk(bytes);
        }
        if let Some(download) = facts.download {
            return Self::from_download(download);
        }
        if !facts.monitored {
            return Self::NotMonitored;
        }
        if let ReleaseState::Expected(day) = facts.release {
            return Self::NotReleased(day);
        }
        if let Some(free) = facts.free_bytes.filter(|free| *free < LITTLE_ROOM) {
            return Self::NoRoom(free);
        }
        if let Some(ailment) = facts.ailments.iter().find(|ailment| stops_searches(ailment)) {
            return Self::ServerProblem(ailment);
        }
        match facts.history.iter().find(|entry| shows_grab_outcome(entry.event)) {
            Some(entry) if entry.event == HistoryEvent::Failed => return Self::LastFailed(entry),
            Some(entry) if entry.event == HistoryEvent::Grabbed => return Self::Vanished(entry),
            Some(_) | None => {}
        }
        facts.last_search.map_or(Self::NeverSearched, Self::NothingFits)
    }

    fn from_download(download: &'a Download) -> Self {
        match &download.state {
            DownloadState::Stuck(reason) if mentions_disk_space(reason) => Self::NoRoomForImport(download),
            DownloadState::Stuck(reason) => Self::ImportBlocked(download, reason),
            DownloadState::Failed(reason) => Self::DownloadFailed(download, reason),
            DownloadState::Downloading
            | DownloadState::Queued
            | DownloadState::Paused
            | DownloadState::Delayed
            | DownloadState::Importing
            | DownloadState::ClientDown => Self::Underway(download),
        }
    }

    /// Returns the code of the reason for the model.
    pub fn reason_code(&self) -> &'static str {
        match self {
            Self::OnDisk(_) => "on_disk",
            Self::NotMonitored => "not_monitored",
            Self::NotReleased(_) => "not_released",
            Self::NoRoomForImport(_) | Self::NoRoom(_) => "no_space",
            Self::ImportBlocked(..) => "import_blocked",
            Self::DownloadFailed(..) | Self::LastFailed(_) => "download_failed",
            Self::Underway(_) => "downloading",
            Self::ServerProblem(_) => "server_problem",
            Self::Vanished(_) => "grabbed_and_lost",
            Self::NeverSearched => "not_searched",
            Self::NothingFits(_) => "nothing_acceptable_found",
        }
    }

    /// Returns the name of the tool that can help.
    pub fn next_tool(&self) -> Option<&'static str> {
        match self {
            Self::ImportBlocked(..) | Self::DownloadFailed(..) => Some("remove_download"),
            Self::NotMonitored
            | Self::LastFailed(_)
            | Self::Vanished(_)
            | Self::NeverSearched
            | Self::NothingFits(_) => Some("get_more"),
            Self::NotReleased(_) => Some("tell_me_when_ready"),
            Self::OnDisk(_)
            | Self::NoRoomForImport(_)
            | Self::Underway(_)
            | Self::NoRoom(_)
            | Self::ServerProblem(_) => None,
        }
    }

    /// Formats one sentence with the reason, and an action that is available to the user.
    pub fn format_sentence(&self, facts: &DiagnosisFacts<'_>, moment: &DiagnosisContext<'_>) -> String {
        let (name, zone) = (facts.name, moment.zone);
        let day =
            |at: Timestamp| format_past_day(&at.to_zoned(zone.clone()), &moment.now.to_zoned(zone.clone()));
        let offered = |may: bool, question: &'static str| if may { question } else { "An admin can help." };
        let add = |question| offered(moment.rights.may_add(), question);
        let delete = |question| offered(moment.rights.may_delete(), question);
        match self {
            Self::OnDisk(bytes) => format!("{name} is there, {}.", message_format::format_size(*bytes)),
            Self::NotMonitored => {
                let offer = add("Shall I switch it on?");
                format!("{name} is not looked for, because it is switched off. {offer}")
            }
            Self::NotReleased(Some(date)) => {
                let date = date.strftime("%a %b %-d, %Y");
                format!("{name} is not out before {date}. It is fetched when it is.")
            }
            Self::NotReleased(None) => {
                format!("{name} is not out yet, and has no date. It is fetched when it is.")
            }
            Self::NoRoomForImport(_) => {
                format!(
                    "{name} is downloaded, and there is no room for it on the disk. Something has to go first."
                )
            }
            Self::ImportBlocked(_, reason) => {
                let offer = delete("Shall I get another copy?");
                format!("{name} is downloaded, and stuck{}. {offer}", format_error_suffix(reason))
            }
            Self::DownloadFailed(_, reason) => {
                let offer = delete("Shall I get another copy?");
                format!("The download of {name} failed{}. {offer}", format_error_suffix(reason))
            }
            Self::Underway(download)
                if matches!(download.state, DownloadState::ClientDown | DownloadState::Paused) =>
            {
                format!("{}. An admin has to look at it.", format_download(download))
            }
            Self::Underway(download) => format!("It is on its way: {}.", format_download(download)),
            Self::NoRoom(free) => {
                let free = message_format::format_size(*free);
                format!("There is no room for {name}: only {free} are free. Something has to go first.")
            }
            Self::ServerProblem(ailment) => {
                format!(
                    "{name} can't be found right now{}. An admin has to look at it.",
                    format_error_suffix(&ailment.message)
                )
            }
            Self::LastFailed(entry) => {
                let (day, why) = (day(entry.at), format_error_suffix(&entry.reason));
                format!("The last copy of {name} failed {day}{why}. {}", add("Shall I look for another one?"))
            }
            Self::Vanished(entry) => {
                let (day, offer) = (day(entry.at), add("Shall I look for another one?"));
                format!("A copy of {name} was taken {day} and never arrived. {offer}")
            }
            Self::NeverSearched => {
                format!("{name} was not looked for yet. {}", add("Shall I look now?"))
            }
            Self::NothingFits(at) => {
                let (copy, offer) = (describe_missing_copy(facts.quality), add("Shall I look again?"));
                format!("{name} was last looked for {}: there was {copy}. {offer}", day(*at))
            }
        }
    }
}

fn describe_missing_copy(quality: &str) -> String {
    if quality.is_empty() { "no copy that fits".to_owned() } else { format!("no copy in {quality}") }
}

/// Returns whether an event shows the outcome of the last grabbed release.
fn shows_grab_outcome(event: HistoryEvent) -> bool {
    matches!(
        event,
        HistoryEvent::Grabbed | HistoryEvent::Imported | HistoryEvent::Failed | HistoryEvent::FileDeleted
    )
}

/// Returns whether the problem prevents searches. Health checks are recognized by the names that Sonarr and Radarr give
/// them.
fn stops_searches(ailment: &HealthProblem) -> bool {
    // A warning concerns only one of several indexers, download clients or folders.
    ailment.level == HealthLevel::Error
        && ["Indexer", "DownloadClient", "RootFolder", "Mount"]
            .iter()
            .any(|part| ailment.source.contains(part))
}

fn mentions_disk_space(reason: &str) -> bool {
    let reason = reason.to_lowercase();
    ["free space", "disk space", "enough space", "no space"].iter().any(|words| reason.contains(words))
}

fn format_error_suffix(reason: &str) -> String {
    let reason = clean_error_message(reason);
    if reason.is_empty() { String::new() } else { format!(" ({reason})") }
}

/// Formats a day relative to today: `today`, `yesterday`, `on Mar 3`.
fn format_past_day(at: &Zoned, now: &Zoned) -> String {
    match at.date().until(now.date()).map(|span| span.get_days()) {
        Ok(0) => "today".to_owned(),
        Ok(1) => "yesterday".to_owned(),
        Ok(_) | Err(_) => format!("on {}", at.strftime("%b %-d")),
    }
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;
    use crate::arr::DownloadContent;
    use crate::conversation::transcript::UserRole;

    fn now() -> Timestamp {
        "2026-03-06T19:00:00Z".parse().unwrap()
    }

    const ADMIN: UserRights = UserRights { role: UserRole::Admin, add: true, delete: true, four_k: true };
    const DUNE: DiagnosisFacts<'static> = DiagnosisFacts {
        name: "Dune (2021)",
        on_disk: None,
        monitored: true,
        release: ReleaseState::Released,
        last_search: None,
        download: None,
        history: &[],
        free_bytes: Some(1_000_000_000_000),
        ailments: &[],
        quality: "HD-1080p",
    };

    fn download(state: DownloadState) -> Download {
        Download {
            rows: vec![1000],
            id: "A".to_owned(),
            release: "Dune.1080p".to_owned(),
            content: DownloadContent::Movie(1),
            title: "Dune (2021)".to_owned(),
            state,
            size_bytes: 10e9,
            left_bytes: 4e9,
            time_left: None,
        }
    }

    fn entry(event: HistoryEvent, reason: &str) -> HistoryEntry {
        HistoryEntry {
            id: 1,
            at: "2026-03-05T10:00:00Z".parse().unwrap(),
            event,
            title_id: 1,
            download: "A".to_owned(),
            release: "Dune.1080p".to_owned(),
            quality: String::new(),
            episode: None,
            reason: reason.to_owned(),
        }
    }

    #[track_caller]
    fn check(facts: &DiagnosisFacts<'_>, code: &str, told: &str) {
        let why = MissingReason::from_facts(facts);
        let admin = DiagnosisContext { zone: &TimeZone::UTC, now: now(), rights: ADMIN };
        assert_eq!((why.reason_code(), why.format_sentence(facts, &admin).as_str()), (code, told));
        assert!(told.len() <= 160, "{told}");
    }

    #[test]
    fn first_obstacle_is_reported_with_a_next_step() {
        check(
            &DiagnosisFacts { on_disk: Some(21_400_000_000), ..DUNE },
            "on_disk",
            "Dune (2021) is there, 21.4 GB.",
        );
        check(
            &DiagnosisFacts { monitored: false, release: ReleaseState::Expected(None), ..DUNE },
            "not_monitored",
            "Dune (2021) is not looked for, because it is switched off. Shall I switch it on?",
        );
        check(
            &DiagnosisFacts {
                release: ReleaseState::Expected(Some(date(2026, 12, 18))),
                free_bytes: Some(0),
                ..DUNE
            },
            "not_released",
            "Dune (2021) is not out before Fri Dec 18, 2026. It is fetched when it is.",
        );
        check(
            &DiagnosisFacts { release: ReleaseState::Expected(None), ..DUNE },
            "not_released",
            "Dune (2021) is not out yet, and has no date. It is fetched when it is.",
        );
        check(
            &DiagnosisFacts { free_bytes: Some(900_000_000), ..DUNE },
            "no_space",
            "There is no room for Dune (2021): only 0.9 GB are free. Something has to go first.",
        );
        check(&DUNE, "not_searched", "Dune (2021) was not looked for yet. Shall I look now?");
        check(
            &DiagnosisFacts { last_search: Some(now()), ..DUNE },
            "nothing_acceptable_found",
            "Dune (2021) was last looked for today: there was no copy in HD-1080p. Shall I look again?",
        );
    }

    #[test]
    fn download_state_is_reported() {
        let told = |state, code, words: &str| {
            check(&DiagnosisFacts { download: Some(&download(state)), ..DUNE }, code, words);
        };
        told(DownloadState::Downloading, "downloading", "It is on its way: Dune (2021) 60%.");
        told(DownloadState::Paused, "downloading", "Dune (2021) paused at 60%. An admin has to look at it.");
        told(
            DownloadState::Stuck("Not enough free space: /movies".to_owned()),
            "no_space",
            "Dune (2021) is downloaded, and there is no room for it on the disk. Something has to go first.",
        );
        told(
            DownloadState::Stuck("No files are eligible".to_owned()),
            "import_blocked",
            "Dune (2021) is downloaded, and stuck (No files are eligible). Shall I get another copy?",
        );
        told(
            DownloadState::Failed(String::new()),
            "download_failed",
            "The download of Dune (2021) failed. Shall I get another copy?",
        );
    }

    #[test]
    fn history_explains_the_last_copy() {
        let history = [entry(HistoryEvent::Other, ""), entry(HistoryEvent::Failed, "Out of retention")];
        check(
            &DiagnosisFacts { history: &history, last_search: Some(now()), ..DUNE },
            "download_failed",
            "The last copy of Dune (2021) failed yesterday (Out of retention). Shall I look for another one?",
        );
        check(
            &DiagnosisFacts { history: &[entry(HistoryEvent::Grabbed, "")], ..DUNE },
            "grabbed_and_lost",
            "A copy of Dune (2021) was taken yesterday and never arrived. Shall I look for another one?",
        );
        // A title that was deleted after its import is simply missing.
        check(
            &DiagnosisFacts { history: &[entry(HistoryEvent::FileDeleted, "")], ..DUNE },
            "not_searched",
            "Dune (2021) was not looked for yet. Shall I look now?",
        );
    }

    #[test]
    fn only_search_related_health_problems_are_blamed() {
        let ailment = |source: &str, message: &str| HealthProblem {
            level: HealthLevel::Error,
            source: source.to_owned(),
            message: message.to_owned(),
        };
        check(
            &DiagnosisFacts {
                ailments: &[ailment("IndexerStatusCheck", "All indexers are unavailable")],
                ..DUNE
            },
            "server_problem",
            "Dune (2021) can't be found right now (All indexers are unavailable). An admin has to look at it.",
        );
        check(
            &DiagnosisFacts { ailments: &[ailment("UpdateCheck", "New update is available")], ..DUNE },
            "not_searched",
            "Dune (2021) was not looked for yet. Shall I look now?",
        );
    }
}
