//! Downloads and history of a fake server. `media_fixtures.rs` defines the titles.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::fake_server::FakeLibraryState;
use super::media_fixtures::gigabytes_to_bytes;
use super::radarr::FakeRadarr;
use super::responses::wire_time;
use super::sonarr::FakeSonarr;

/// Number of episodes of a season that is not in the library.
pub(super) const DEFAULT_SEASON_LENGTH: u32 = 8;
/// Time from the grab of a release to its import.
const GRAB_TO_IMPORT: jiff::SignedDuration = jiff::SignedDuration::from_mins(40);

/// Download in the queue. A season pack has one queue row per episode.
#[derive(Debug, Clone)]
pub struct FakeDownload {
    pub(super) title: String,
    pub(super) minutes_left: Option<u32>,
    /// Key of the download. Zero until the queue assigns one.
    pub(super) key: usize,
    pub(super) release: String,
    pub(super) size_bytes: u64,
    percent: u32,
    state: FakeDownloadState,
}

/// History event. An event about a season has one row per episode.
#[derive(Debug, Clone)]
pub(super) struct HistoryFixture {
    pub title: String,
    pub release: String,
    /// Event name in the API: `grabbed`, `downloadFolderImported`, `downloadFailed`, `movieFileDeleted`, ...
    pub event: &'static str,
    pub at: Timestamp,
    /// Key of the download that the event belongs to. Zero if the event has no download.
    pub download: usize,
    pub reason: Option<String>,
}

#[derive(Debug, Clone)]
enum FakeDownloadState {
    Downloading,
    Queued,
    Paused,
    Delayed,
    Importing,
    Stuck(String),
    Failed(String),
}

pub fn download(title: &str) -> FakeDownload {
    FakeDownload {
        title: title.to_owned(),
        minutes_left: None,
        key: 0,
        release: release_name(title),
        size_bytes: gigabytes_to_bytes(8.0),
        percent: 0,
        state: FakeDownloadState::Downloading,
    }
}

impl FakeDownload {
    pub fn percent(mut self, percent: u32) -> Self {
        self.percent = percent.min(100);
        self
    }

    /// Sets the remaining time. Some download clients report 0 while they are working.
    pub fn minutes_left(mut self, minutes: u32) -> Self {
        self.minutes_left = Some(minutes);
        self
    }

    pub fn size_gb(mut self, gigabytes: f64) -> Self {
        self.size_bytes = gigabytes_to_bytes(gigabytes);
        self
    }

    pub fn queued(self) -> Self {
        self.with_state(FakeDownloadState::Queued)
    }

    pub fn paused(self) -> Self {
        self.with_state(FakeDownloadState::Paused)
    }

    pub fn delayed(self) -> Self {
        self.with_state(FakeDownloadState::Delayed)
    }

    pub fn importing(self) -> Self {
        self.percent(100).with_state(FakeDownloadState::Importing)
    }

    pub fn stuck(self, reason: &str) -> Self {
        self.percent(100).with_state(FakeDownloadState::Stuck(reason.to_owned()))
    }

    pub fn failed(self, reason: &str) -> Self {
        self.with_state(FakeDownloadState::Failed(reason.to_owned()))
    }

    fn with_state(mut self, state: FakeDownloadState) -> Self {
        self.state = state;
        self
    }

    /// Builds a queue row without its movie or series. `part` distinguishes the rows of one download.
    pub(super) fn queue_row_json(&self, part: u32) -> Value {
        let (status, health, tracked) = match &self.state {
            FakeDownloadState::Downloading => ("downloading", "ok", "downloading"),
            FakeDownloadState::Queued => ("queued", "ok", "downloading"),
            FakeDownloadState::Paused => ("paused", "ok", "downloading"),
            FakeDownloadState::Delayed => ("delay", "ok", "downloading"),
            FakeDownloadState::Importing => ("completed", "ok", "importing"),
            FakeDownloadState::Stuck(_) => ("completed", "warning", "importPending"),
            FakeDownloadState::Failed(_) => ("failed", "error", "failedPending"),
        };
        let (messages, error) = match &self.state {
            FakeDownloadState::Stuck(reason) => {
                (json!([{ "title": self.release, "messages": [reason] }]), None)
            }
            FakeDownloadState::Failed(reason) => (json!([]), Some(reason)),
            FakeDownloadState::Downloading
            | FakeDownloadState::Queued
            | FakeDownloadState::Paused
            | FakeDownloadState::Delayed
            | FakeDownloadState::Importing => (json!([]), None),
        };
        let left = self.size_bytes as f64 * f64::from(100 - self.percent) / 100.0;
        json!({
            "id": self.key * ROW_IDS_PER_EVENT + part as usize,
            "title": self.release,
            "size": self.size_bytes as f64,
            "sizeleft": left,
            "timeleft": self.minutes_left.map(time_span),
            "status": status,
            "trackedDownloadStatus": health,
            "trackedDownloadState": tracked,
            "statusMessages": messages,
            "errorMessage": error,
            "downloadId": download_id(self.key),
            "protocol": "usenet",
            "downloadClient": "SABnzbd",
            "indexer": "Demo Indexer",
            "languages": [{ "id": 1, "name": "English" }],
            "quality": { "quality": { "id": 3, "name": "WEBDL-1080p", "source": "web", "resolution": 1080 } },
        })
    }
}

/// Number of row ids that are reserved for each download or history event.
pub(super) const ROW_IDS_PER_EVENT: usize = 1000;

impl HistoryFixture {
    /// Builds a history row without its movie or series. `index` distinguishes events, and `part` the rows of one event.
    pub(super) fn history_row_json(&self, index: usize, part: u32) -> Value {
        json!({
            "id": (index + 1) * ROW_IDS_PER_EVENT + part as usize,
            "sourceTitle": self.release,
            "date": wire_time(self.at),
            "eventType": self.event,
            "downloadId": (self.download > 0).then(|| download_id(self.download)),
            "quality": { "quality": { "id": 3, "name": "WEBDL-1080p", "source": "web", "resolution": 1080 } },
            "qualityCutoffNotMet": false,
            "data": { "downloadClient": "SABnzbd", "releaseGroup": null, "message": self.reason },
        })
    }
}

impl<D> FakeLibraryState<D> {
    pub(super) fn enqueue_download(&mut self, mut download: FakeDownload) {
        self.last_download += 1;
        download.key = self.last_download;
        self.downloads.push(download);
    }

    /// Adds a grab of the title and its import to the history.
    pub(super) fn record_import(&mut self, title: &str, at: Timestamp) {
        self.last_download += 1;
        let grabbed = at.saturating_sub(GRAB_TO_IMPORT).unwrap_or(at);
        for (event, at) in [("grabbed", grabbed), ("downloadFolderImported", at)] {
            self.history.push(HistoryFixture {
                title: title.to_owned(),
                release: release_name(title),
                event,
                at,
                download: self.last_download,
                reason: None,
            });
        }
    }

    /// Adds the deletion of a file at the current time to the history.
    pub(super) fn record_deletion(&mut self, title: &str, event: &'static str, reason: &str) {
        self.history.push(HistoryFixture {
            title: title.to_owned(),
            release: format!("{title}.mkv"),
            event,
            at: self.clock.now(),
            download: 0,
            reason: Some(reason.to_owned()),
        });
    }

    /// Adds an event at the current time to the history of a download.
    pub(super) fn record_event(
        &mut self,
        download: &FakeDownload,
        event: &'static str,
        reason: Option<&str>,
    ) {
        self.history.push(HistoryFixture {
            title: download.title.clone(),
            release: download.release.clone(),
            event,
            at: self.clock.now(),
            download: download.key,
            reason: reason.map(str::to_owned),
        });
    }
}

fn release_name(title: &str) -> String {
    let parts: Vec<_> = title.split_whitespace().collect();
    format!("{}.1080p.WEB.H264-DEMO", parts.join("."))
}

pub(super) fn download_id(key: usize) -> String {
    format!("{:040X}", key * 0x00FA_CADE)
}

/// Episode or season that a title such as `The Bear S04E03` refers to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TitleEpisodes<'a> {
    pub series: &'a str,
    pub season: u32,
    /// Episode number. `None` for the whole season.
    pub episode: Option<u32>,
}

/// Parses the title of an episode (`The Bear S04E03`) or a season (`The Bear S04`). Returns `None` for other titles.
pub(super) fn parse_title_episodes(title: &str) -> Option<TitleEpisodes<'_>> {
    let (series, code) = title.trim().rsplit_once(' ')?;
    let code = code.strip_prefix(['S', 's'])?;
    let (season, episode) = match code.split_once(['E', 'e']) {
        Some((season, episode)) => (season, Some(episode.parse().ok()?)),
        None => (code, None),
    };
    Some(TitleEpisodes { series, season: season.parse().ok()?, episode })
}

/// Both fake servers. Each method chooses the server by the format of the title.
#[derive(Debug, Clone)]
pub struct FakeServers {
    pub radarr: FakeRadarr,
    pub sonarr: FakeSonarr,
}

impl FakeServers {
    /// Adds a download to the server that its title belongs to.
    pub fn add_download(&self, download: FakeDownload) {
        match parse_title_episodes(&download.title) {
            Some(_) => self.sonarr.add_to_queue(download),
            None => self.radarr.add_to_queue(download),
        }
    }

    /// Adds an import to the server that its title belongs to.
    pub fn add_import(&self, title: &str, at: Timestamp) {
        match parse_title_episodes(title) {
            Some(_) => self.sonarr.add_import(title, at),
            None => self.radarr.add_import(title, at),
        }
    }

    /// Makes a release available to searches on the server that its title belongs to.
    pub fn add_release(&self, title: &str) {
        match parse_title_episodes(title) {
            Some(_) => self.sonarr.add_release(title),
            None => self.radarr.add_release(title),
        }
    }

    /// Adds a calendar entry to the server that the title belongs to. An episode airs at 20:00 UTC, which is the same
    /// day from Hawaii to Moscow.
    pub fn add_calendar_entry(&self, title: &str, date: jiff::civil::Date) {
        match parse_title_episodes(title) {
            Some(_) => {
                if let Ok(airs_at) = date.at(20, 0, 0, 0).to_zoned(jiff::tz::TimeZone::UTC) {
                    self.sonarr.add_calendar_entry(title, airs_at.timestamp());
                }
            }
            None => self.radarr.add_calendar_entry(title, date),
        }
    }
}

/// Formats a time span as .NET does.
fn time_span(minutes: u32) -> String {
    let (days, hours, minutes) = (minutes / 1440, minutes / 60 % 24, minutes % 60);
    let days = if days > 0 { format!("{days}.") } else { String::new() };
    format!("{days}{hours:02}:{minutes:02}:00")
}
