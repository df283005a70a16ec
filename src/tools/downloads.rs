//! Current activity: downloads in progress, upcoming releases, and recent arrivals.

use std::cmp::Reverse;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan, Zoned};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::answers::{clean_complaint, clean_title, listing, name_failed, sentence_list, with_failed};
use super::approval::Cleared;
use super::arguments::{cleared, read, schema};
use super::library::{Library, READ_PATIENCE, ask_all};
use super::{READ_TIMEOUT, Ran, Tool, ToolError, Uses, World, asked};
use crate::arr::radarr::Radarr;
use crate::arr::sonarr::Sonarr;
use crate::arr::{Download, DownloadState, Imported, Release, Upcoming, UpcomingWhen};
use crate::conversation::title;
use crate::conversation::transcript::{
    Arguments, Audience, CallFailure, CallResult, MediaRef, Tier, ToolSpec,
};

const DEFAULT_DAYS: u32 = 7;

pub struct CheckStatus {
    library: Arc<Library>,
}

pub struct UpcomingReleases {
    library: Arc<Library>,
}

pub struct RecentlyAdded {
    library: Arc<Library>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NoArgs {}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    #[schemars(range(min = 1, max = 60))]
    days: Option<u32>,
}

impl CheckStatus {
    pub fn new(library: Arc<Library>) -> Self {
        Self { library }
    }
}

#[async_trait]
impl Tool for CheckStatus {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "check_status",
            description: "What is downloading, how far it is, and what is stuck.",
            tier: Tier::Read,
            audience: Audience::Everyone,
            parameters: schema::<NoArgs>().into(),
        }
    }

    fn timeout(&self) -> Duration {
        READ_TIMEOUT
    }

    fn check(&self, arguments: &Arguments) -> Result<Uses, CallFailure> {
        read::<NoArgs>("check_status", &schema::<NoArgs>(), arguments).map(|NoArgs {}| Uses::default())
    }

    async fn run(&self, _call: &Cleared, world: &World) -> Result<Ran, ToolError> {
        status(&self.library, world).await.map(Ran::from)
    }
}

impl UpcomingReleases {
    pub fn new(library: Arc<Library>) -> Self {
        Self { library }
    }
}

#[async_trait]
impl Tool for UpcomingReleases {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "upcoming",
            description: "What of the library comes out in the next days.",
            tier: Tier::Read,
            audience: Audience::Everyone,
            parameters: schema::<Args>().into(),
        }
    }

    fn timeout(&self) -> Duration {
        READ_TIMEOUT
    }

    fn check(&self, arguments: &Arguments) -> Result<Uses, CallFailure> {
        days("upcoming", arguments).map(|_| Uses::default())
    }

    async fn run(&self, call: &Cleared, world: &World) -> Result<Ran, ToolError> {
        upcoming(&self.library, days("upcoming", cleared(call)?)?, world).await.map(Ran::from)
    }
}

impl RecentlyAdded {
    pub fn new(library: Arc<Library>) -> Self {
        Self { library }
    }
}

#[async_trait]
impl Tool for RecentlyAdded {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "recently_added",
            description: "What finished downloading in the last days.",
            tier: Tier::Read,
            audience: Audience::Everyone,
            parameters: schema::<Args>().into(),
        }
    }

    fn timeout(&self) -> Duration {
        READ_TIMEOUT
    }

    fn check(&self, arguments: &Arguments) -> Result<Uses, CallFailure> {
        days("recently_added", arguments).map(|_| Uses::default())
    }

    async fn run(&self, call: &Cleared, world: &World) -> Result<Ran, ToolError> {
        recently_added(&self.library, days("recently_added", cleared(call)?)?, world).await.map(Ran::from)
    }
}

fn days(tool: &str, arguments: &Arguments) -> Result<u32, CallFailure> {
    read::<Args>(tool, &schema::<Args>(), arguments).map(|args| args.days.unwrap_or(DEFAULT_DAYS))
}

pub(super) async fn status(library: &Library, world: &World) -> Result<CallResult, ToolError> {
    let (movies, series) = tokio::join!(
        ask_all(&library.movies, READ_PATIENCE, Radarr::downloads),
        ask_all(&library.series, READ_PATIENCE, Sonarr::downloads),
    );
    let queues = movies
        .map(|(instance, queue)| (instance.name, queue))
        .and(series.map(|(instance, queue)| (instance.name, queue)));
    let (queues, failed) = queues.or_failure()?;
    let of_instance =
        |(instance, queue): (_, Vec<Download>)| queue.into_iter().map(move |download| (instance, download));
    let mut downloads: Vec<(&str, Download)> = queues.into_iter().flat_map(of_instance).collect();
    downloads
        .sort_by_key(|(_, download)| (urgency(&download.state), download.time_left.unwrap_or(Duration::MAX)));
    let entries = downloads
        .iter()
        .map(|(instance, download)| (download_json(instance, download, world), download_told(download)));
    let mut told = answer(entries.unzip(), ("", "Nothing is downloading."), "name the title", &failed);
    let shown = told.for_model["results"].as_array().map_or(0, Vec::len);
    let named = |(instance, download): &(&str, Download)| {
        let id = *download.rows.first()?;
        Some(MediaRef::Download { instance: (*instance).to_owned(), id })
    };
    told.shown = downloads.iter().take(shown).filter_map(named).collect();
    Ok(told)
}

pub(super) async fn upcoming(library: &Library, days: u32, world: &World) -> Result<CallResult, ToolError> {
    let now = world.now.to_zoned(world.zone.clone());
    let (first, last) = (now.date(), now.saturating_add(i64::from(days).days()).date());
    // Whole days are used for episodes as for movies, so an episode that aired this morning still counts as today.
    let (start, end) = (midnight(first, &world.zone), midnight(last.saturating_add(1.day()), &world.zone));
    let (movies, series) = tokio::join!(
        ask_all(&library.movies, READ_PATIENCE, |radarr: &Radarr| radarr.upcoming(first, last)),
        ask_all(&library.series, READ_PATIENCE, |sonarr: &Sonarr| sonarr
            .upcoming(start, end.saturating_sub(SignedDuration::from_secs(1)).unwrap_or(end))),
    );
    let calendars = movies.map(|(_, entries)| entries).and(series.map(|(_, entries)| entries));
    let (calendars, failed) = calendars.or_failure()?;
    let mut entries: Vec<Upcoming> = Vec::new();
    for entry in calendars.into_iter().flatten() {
        // A title that is in two instances is listed once.
        if !entries.iter().any(|other| other.title == entry.title && other.when == entry.when) {
            entries.push(entry);
        }
    }
    entries.sort_by_key(|entry| begins(entry.when, &world.zone));
    let told = entries.iter().map(|entry| {
        let day = day_of(entry.when, &world.zone);
        let sentence =
            format!("{}{} {}", title::clean_title(&entry.title), how(entry.when), day_told(day, first));
        (upcoming_json(entry, &world.zone), sentence)
    });
    let nothing = format!("Nothing comes out in the next {days} days.");
    Ok(answer(told.unzip(), ("", &nothing), "ask for fewer days", &failed))
}

pub(super) async fn recently_added(
    library: &Library,
    days: u32,
    world: &World,
) -> Result<CallResult, ToolError> {
    let since = world.now.saturating_sub(SignedDuration::from_hours(24 * i64::from(days)));
    let since = since.unwrap_or(Timestamp::MIN);
    let (movies, series) = tokio::join!(
        ask_all(&library.movies, READ_PATIENCE, |radarr: &Radarr| radarr.imported_since(since)),
        ask_all(&library.series, READ_PATIENCE, |sonarr: &Sonarr| sonarr.imported_since(since)),
    );
    let imports = movies.map(|(_, imports)| imports).and(series.map(|(_, imports)| imports));
    let (imports, failed) = imports.or_failure()?;
    let mut imports: Vec<Imported> = imports.into_iter().flatten().collect();
    imports.sort_by_key(|import| Reverse(import.at));
    let told = imports.iter().map(|import| {
        let title = format!("{} {}", clean_title(&import.title), import.detail).trim_end().to_owned();
        let shown = format!("{} {}", title::clean_title(&import.title), import.detail).trim_end().to_owned();
        let day = import.at.to_zoned(world.zone.clone()).date();
        (json!({ "title": title, "day": day.strftime("%a %b %-d").to_string() }), shown)
    });
    let nothing = format!("Nothing arrived in the last {days} days.");
    Ok(answer(told.unzip(), ("New: ", &nothing), "ask for fewer days", &failed))
}

/// Formats a list of entries. `words` holds the text before the entries and the text for an empty list.
fn answer(
    (results, told): (Vec<Value>, Vec<String>),
    words: (&str, &str),
    narrow: &str,
    failed: &[String],
) -> CallResult {
    let (before, nothing) = words;
    let mut for_model = listing(results, narrow);
    name_failed(&mut for_model, failed);
    let sentence =
        if told.is_empty() { nothing.to_owned() } else { format!("{before}{}.", sentence_list(&told)) };
    CallResult { for_model, for_user: with_failed(sentence, failed), shown: Vec::new() }
}

fn urgency(state: &DownloadState) -> u8 {
    match state {
        DownloadState::Downloading => 0,
        DownloadState::Importing => 1,
        DownloadState::Stuck(_) | DownloadState::Failed(_) | DownloadState::ClientDown => 2,
        DownloadState::Queued | DownloadState::Paused | DownloadState::Delayed => 3,
    }
}

fn download_json(instance: &str, download: &Download, world: &World) -> Value {
    let mut json = json!({ "id": download.rows.first(), "instance": instance, "title": clean_title(&download.title), "state": state_told(&download.state),
        "percent": percent(download) });
    if let Some(left) = download.time_left {
        json["time_left"] = json!(time_told(left));
    }
    if let Some(names) = asked::by_download(&download.title, world) {
        json["asked_by"] = json!(names);
    }
    json
}

pub(super) fn download_told(download: &Download) -> String {
    let title = title::clean_title(&download.title);
    match (&download.state, download.time_left) {
        (DownloadState::Downloading, Some(left)) => {
            format!("{title} {}%, {} left", percent(download), time_told(left))
        }
        (DownloadState::Downloading, None) => format!("{title} {}%", percent(download)),
        (DownloadState::Paused, _) => format!("{title} paused at {}%", percent(download)),
        (state, _) => format!("{title} {}", state_told(state)),
    }
}

fn state_told(state: &DownloadState) -> String {
    match state {
        DownloadState::Downloading => "downloading".to_owned(),
        DownloadState::Queued => "waiting in line".to_owned(),
        DownloadState::Paused => "paused".to_owned(),
        DownloadState::Delayed => "waiting for a better copy".to_owned(),
        DownloadState::Importing => "downloaded, being moved into the library".to_owned(),
        DownloadState::Stuck(reason) => because("stuck", reason),
        DownloadState::Failed(reason) => because("failed", reason),
        DownloadState::ClientDown => "stalled, the download program does not answer".to_owned(),
    }
}

fn because(state: &str, reason: &str) -> String {
    let reason = clean_complaint(reason);
    if reason.is_empty() { state.to_owned() } else { format!("{state}: {reason}") }
}

/// Progress in whole percent. 100 is returned only when nothing is left.
fn percent(download: &Download) -> u8 {
    if download.size_bytes <= 0.0 {
        return 0;
    }
    let done = 1.0 - download.left_bytes / download.size_bytes;
    // Rounded first, because 0.62 is slightly less than 62 hundredths in binary.
    let percent = (done * 1_000.0).round() / 10.0;
    percent.floor().clamp(0.0, 100.0) as u8
}

fn time_told(left: Duration) -> String {
    let minutes = left.as_secs().div_ceil(60).max(1);
    match (minutes / 60, minutes % 60) {
        (0, minutes) => format!("{minutes} min"),
        (hours @ 1..24, 0) => format!("{hours} h"),
        (hours @ 1..24, minutes) => format!("{hours} h {minutes} min"),
        (hours @ 24..48, _) => format!("{hours} h"),
        (hours, _) => format!("{} days", hours / 24),
    }
}

fn upcoming_json(entry: &Upcoming, zone: &TimeZone) -> Value {
    let when = match entry.when {
        UpcomingWhen::Airs(at) => at.to_zoned(zone.clone()).strftime("%a %b %-d, %H:%M").to_string(),
        UpcomingWhen::Released(day, _) => format!("{}{}", day.strftime("%a %b %-d"), how(entry.when)),
    };
    json!({ "title": clean_title(&entry.title), "when": when, "on_disk": entry.on_disk })
}

fn how(when: UpcomingWhen) -> &'static str {
    match when {
        UpcomingWhen::Airs(_) => "",
        UpcomingWhen::Released(_, Release::Cinema) => " in cinemas",
        UpcomingWhen::Released(_, Release::Digital) => " online",
        UpcomingWhen::Released(_, Release::Physical) => " on disc",
    }
}

/// Day relative to today: `today`, `tomorrow`, `on Wed` within six days, else `on Wed Mar 11`.
fn day_told(day: Date, today: Date) -> String {
    match today.until(day).map(|span| span.get_days()) {
        Ok(0) => "today".to_owned(),
        Ok(1) => "tomorrow".to_owned(),
        Ok(2..=6) => format!("on {}", day.strftime("%a")),
        Ok(_) | Err(_) => format!("on {}", day.strftime("%a %b %-d")),
    }
}

fn day_of(when: UpcomingWhen, zone: &TimeZone) -> Date {
    match when {
        UpcomingWhen::Airs(at) => at.to_zoned(zone.clone()).date(),
        UpcomingWhen::Released(day, _) => day,
    }
}

/// Sort key of an entry. A release counts from the start of its day.
fn begins(when: UpcomingWhen, zone: &TimeZone) -> Timestamp {
    match when {
        UpcomingWhen::Airs(at) => at,
        UpcomingWhen::Released(day, _) => midnight(day, zone),
    }
}

/// First instant of a day. A day that a time zone has skipped sorts last.
fn midnight(day: Date, zone: &TimeZone) -> Timestamp {
    day.to_zoned(zone.clone()).as_ref().map_or(Timestamp::MAX, Zoned::timestamp)
}
