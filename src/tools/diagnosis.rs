//! Diagnosis of a missing title: the first problem on its way from the request to the disk. The diagnosis is a pure
//! function of facts that `why_missing.rs` fetches.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

use super::activity::format_download;
use super::formatting::clean_error_message;
use super::remove_download::REMOVE_DOWNLOAD;
use crate::arr::common_api::{HealthLevel, HealthProblem};
use crate::arr::history::{HistoryEntry, HistoryEvent};
use crate::arr::{Download, DownloadState};
use crate::conversation::text::message_format;
use crate::conversation::transcript::UserRights;

/// Minimum free space that a movie is assumed to need.
const MIN_FREE_BYTES: u64 = 5_000_000_000;

/// Facts about one title, or about the missing part of it.
#[derive(Debug, Clone)]
pub struct DiagnosisFacts<'a> {
    /// Name such as `Dune (2021)`, `The Bear (2022) S02E03`, `3 episodes of The Bear (2022)`.
    pub name: &'a str,
    /// Size in bytes, if the title is on disk.
    pub on_disk: Option<u64>,
    pub monitored: bool,
    pub release: ReleaseState,
    pub last_search: Option<Timestamp>,
    pub download: Option<&'a Download>,
    /// History of the missing part alone, newest first.
    pub history: &'a [HistoryEntry],
    /// Free bytes in the folder of the title. `None` if unknown.
    pub free_bytes: Option<u64>,
    pub problems: &'a [HealthProblem],
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

/// First reason why a title is not on disk, in the order of the steps from the request to the disk.
#[derive(Debug, Clone, PartialEq)]
pub enum MissingReason<'a> {
    OnDisk(u64),
    NotMonitored,
    NotReleased(Option<Date>),
    /// Finished download that cannot be imported because the disk is full.
    NoRoomForImport(&'a Download),
    /// Finished download that cannot be imported into the library.
    ImportBlocked(&'a Download, &'a str),
    DownloadFailed(&'a Download, &'a str),
    InProgress(&'a Download),
    /// Too little free space, in bytes, in the folder of the title.
    NoRoom(u64),
    /// Problem that prevents the instance from finding releases, as reported by the instance.
    ServerProblem(&'a HealthProblem),
    /// Failed download of a grabbed release, with no other release grabbed since.
    LastFailed(&'a HistoryEntry),
    /// Grabbed release that is neither downloading nor on disk.
    GrabLost(&'a HistoryEntry),
    NeverSearched,
    /// Last search, which found no release or only rejected ones.
    NoSuitableRelease(Timestamp),
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
        if let Some(free) = facts.free_bytes.filter(|free| *free < MIN_FREE_BYTES) {
            return Self::NoRoom(free);
        }
        if let Some(problem) = facts.problems.iter().find(|problem| prevents_search(problem)) {
            return Self::ServerProblem(problem);
        }
        match facts.history.iter().find(|entry| shows_grab_outcome(entry.event)) {
            Some(entry) if entry.event == HistoryEvent::Failed => return Self::LastFailed(entry),
            Some(entry) if entry.event == HistoryEvent::Grabbed => return Self::GrabLost(entry),
            Some(_) | None => {}
        }
        facts.last_search.map_or(Self::NeverSearched, Self::NoSuitableRelease)
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
            | DownloadState::ClientDown => Self::InProgress(download),
        }
    }

    /// Returns the code by which the result for the model names the reason.
    pub fn reason_code(&self) -> &'static str {
        match self {
            Self::OnDisk(_) => "on_disk",
            Self::NotMonitored => "not_monitored",
            Self::NotReleased(_) => "not_released",
            Self::NoRoomForImport(_) | Self::NoRoom(_) => "no_space",
            Self::ImportBlocked(..) => "import_blocked",
            Self::DownloadFailed(..) | Self::LastFailed(_) => "download_failed",
            Self::InProgress(_) => "downloading",
            Self::ServerProblem(_) => "server_problem",
            Self::GrabLost(_) => "grabbed_and_lost",
            Self::NeverSearched => "not_searched",
            Self::NoSuitableRelease(_) => "nothing_acceptable_found",
        }
    }

    /// Returns the name of the tool that can help.
    pub fn next_tool(&self) -> Option<&'static str> {
        match self {
            Self::ImportBlocked(..) | Self::DownloadFailed(..) => Some(REMOVE_DOWNLOAD),
            Self::NotMonitored
            | Self::LastFailed(_)
            | Self::GrabLost(_)
            | Self::NeverSearched
            | Self::NoSuitableRelease(_) => Some("get_more"),
            Self::NotReleased(_) => Some("tell_me_when_ready"),
            Self::OnDisk(_)
            | Self::NoRoomForImport(_)
            | Self::InProgress(_)
            | Self::NoRoom(_)
            | Self::ServerProblem(_) => None,
        }
    }

    /// Formats a sentence with the reason, and an offer or an instruction for the user.
    pub fn format_sentence(&self, facts: &DiagnosisFacts<'_>, context: &DiagnosisContext<'_>) -> String {
        let (name, zone) = (facts.name, context.zone);
        let day =
            |at: Timestamp| format_past_day(&at.to_zoned(zone.clone()), &context.now.to_zoned(zone.clone()));
        let offer_if = |is_permitted: bool, question: &'static str| {
            if is_permitted { question } else { "An admin can help." }
        };
        let offer_to_adder = |question| offer_if(context.rights.may_add(), question);
        let offer_to_deleter = |question| offer_if(context.rights.may_delete(), question);
        match self {
            Self::OnDisk(bytes) => format!("{name} is there, {}.", message_format::format_size(*bytes)),
            Self::NotMonitored => {
                let offer = offer_to_adder("Shall I switch it on?");
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
                let offer = offer_to_deleter("Shall I get another copy?");
                format!("{name} is downloaded, and stuck{}. {offer}", format_error_suffix(reason))
            }
            Self::DownloadFailed(_, reason) => {
                let offer = offer_to_deleter("Shall I get another copy?");
                format!("The download of {name} failed{}. {offer}", format_error_suffix(reason))
            }
            Self::InProgress(download)
                if matches!(download.state, DownloadState::ClientDown | DownloadState::Paused) =>
            {
                format!("{}. An admin has to look at it.", format_download(download))
            }
            Self::InProgress(download) => format!("It is on its way: {}.", format_download(download)),
            Self::NoRoom(free) => {
                let free = message_format::format_size(*free);
                format!("There is no room for {name}: only {free} are free. Something has to go first.")
            }
            Self::ServerProblem(problem) => {
                format!(
                    "{name} can't be found right now{}. An admin has to look at it.",
                    format_error_suffix(&problem.message)
                )
            }
            Self::LastFailed(entry) => {
                let (day, reason) = (day(entry.at), format_error_suffix(&entry.reason));
                format!(
                    "The last copy of {name} failed {day}{reason}. {}",
                    offer_to_adder("Shall I look for another one?")
                )
            }
            Self::GrabLost(entry) => {
                let (day, offer) = (day(entry.at), offer_to_adder("Shall I look for another one?"));
                format!("A copy of {name} was taken {day} and never arrived. {offer}")
            }
            Self::NeverSearched => {
                format!("{name} was not looked for yet. {}", offer_to_adder("Shall I look now?"))
            }
            Self::NoSuitableRelease(at) => {
                let (missing_copy, offer) =
                    (describe_missing_copy(facts.quality), offer_to_adder("Shall I look again?"));
                format!("{name} was last looked for {}: there was {missing_copy}. {offer}", day(*at))
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

/// Returns whether the problem prevents searches, by the name of the health check in Sonarr or Radarr.
fn prevents_search(problem: &HealthProblem) -> bool {
    // A warning concerns only one of several indexers, download clients or folders.
    problem.level == HealthLevel::Error
        && ["Indexer", "DownloadClient", "RootFolder", "Mount"]
            .iter()
            .any(|part| problem.source.contains(part))
}

fn mentions_disk_space(reason: &str) -> bool {
    let reason = reason.to_lowercase();
    ["free space", "disk space", "enough space", "no space"].iter().any(|phrase| reason.contains(phrase))
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

    const ADMIN: UserRights =
        UserRights { role: UserRole::Admin, add: true, delete: true, four_k: true, ..UserRights::MEMBER };
    const DUNE: DiagnosisFacts<'static> = DiagnosisFacts {
        name: "Dune (2021)",
        on_disk: None,
        monitored: true,
        release: ReleaseState::Released,
        last_search: None,
        download: None,
        history: &[],
        free_bytes: Some(1_000_000_000_000),
        problems: &[],
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
    fn check(facts: &DiagnosisFacts<'_>, code: &str, expected: &str) {
        let reason = MissingReason::from_facts(facts);
        let admin = DiagnosisContext { zone: &TimeZone::UTC, now: now(), rights: ADMIN };
        assert_eq!((reason.reason_code(), reason.format_sentence(facts, &admin).as_str()), (code, expected));
        assert!(expected.len() <= 160, "{expected}");
    }

    #[test]
    fn first_problem_is_reported_with_a_next_step() {
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
        let check_download = |state, code, expected: &str| {
            check(&DiagnosisFacts { download: Some(&download(state)), ..DUNE }, code, expected);
        };
        check_download(DownloadState::Downloading, "downloading", "It is on its way: Dune (2021) 60%.");
        check_download(
            DownloadState::Paused,
            "downloading",
            "Dune (2021) paused at 60%. An admin has to look at it.",
        );
        check_download(
            DownloadState::Stuck("Not enough free space: /movies".to_owned()),
            "no_space",
            "Dune (2021) is downloaded, and there is no room for it on the disk. Something has to go first.",
        );
        check_download(
            DownloadState::Stuck("No files are eligible".to_owned()),
            "import_blocked",
            "Dune (2021) is downloaded, and stuck (No files are eligible). Shall I get another copy?",
        );
        check_download(
            DownloadState::Failed(String::new()),
            "download_failed",
            "The download of Dune (2021) failed. Shall I get another copy?",
        );
    }

    #[test]
    fn outcome_of_the_last_grab_is_reported() {
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
    fn only_search_related_health_problems_are_reported() {
        let problem = |source: &str, message: &str| HealthProblem {
            level: HealthLevel::Error,
            source: source.to_owned(),
            message: message.to_owned(),
        };
        check(
            &DiagnosisFacts {
                problems: &[problem("IndexerStatusCheck", "All indexers are unavailable")],
                ..DUNE
            },
            "server_problem",
            "Dune (2021) can't be found right now (All indexers are unavailable). An admin has to look at it.",
        );
        check(
            &DiagnosisFacts { problems: &[problem("UpdateCheck", "New update is available")], ..DUNE },
            "not_searched",
            "Dune (2021) was not looked for yet. Shall I look now?",
        );
    }
}
