//! Tools for downloads in progress, upcoming releases and recent imports.

use std::cmp::Reverse;
use std::time::Duration;

use futures_util::future::join_all;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan, Zoned};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::formatting::{
    add_failed_services, append_failed_services, clean_error_message, clean_title, format_sentence_list,
    list_first_results, page_start,
};
use super::library::{ArrInstances, INSTANCE_READ_TIMEOUT, InstanceResults, query_all};
use super::media_details::format_airing;
use super::typed_tool::TypedTool;
use super::{LOOKUP_TIMEOUT, ToolContext, ToolError, ToolOutput, playback, requesters};
use crate::arr::radarr::Radarr;
use crate::arr::sonarr::Sonarr;
use crate::arr::{
    CalendarDate, CalendarEntry, Download, DownloadContent, DownloadState, ImportedDownload, ReleaseKind,
};
use crate::conversation::text::title;
use crate::conversation::title_requests::{RequestedTitle, Requester, TitleRequest};
use crate::conversation::transcript::{CallResult, EffectLevel, MediaKind, MediaRef, ToolAudience};

const DEFAULT_DAYS: u32 = 7;
/// Maximum number of requested movies whose state is reported with the downloads.
const MAX_WAITING: usize = 3;

/// Tool that lists the downloads in progress.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CheckStatus {
    /// From 1.
    #[schemars(range(min = 1, max = 100))]
    page: Option<usize>,
}
/// Tool that lists upcoming releases of titles in the library.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UpcomingReleases {
    /// 1-60, else 7.
    #[schemars(range(min = 1, max = 60))]
    days: Option<u32>,
    /// From 1.
    #[schemars(range(min = 1, max = 100))]
    page: Option<usize>,
}

/// Tool that lists the recent imports.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecentlyAdded {
    /// 1-60, else 7.
    #[schemars(range(min = 1, max = 60))]
    days: Option<u32>,
}

impl TypedTool for CheckStatus {
    const NAME: &'static str = "check_status";
    const DESCRIPTION: &'static str = "What is downloading or stuck. Gives download_id.";
    const EFFECT_LEVEL: EffectLevel = EffectLevel::Read;
    const AUDIENCE: ToolAudience = ToolAudience::Everyone;
    /// Time for the downloads, and for the media servers after them.
    const TIMEOUT: Duration = LOOKUP_TIMEOUT;

    /// The first page says all that people ask for; the pages are for agents.
    fn hidden_arguments(_library: &ArrInstances) -> &'static [&'static str] {
        &["page"]
    }

    async fn run(&self, library: &ArrInstances, context: &ToolContext) -> Result<ToolOutput, ToolError> {
        let (queues, failed) = fetch_queues(library).await.or_failure()?;
        let with_instance = |(instance, queue): (_, Vec<Download>)| {
            queue.into_iter().map(move |download| (instance, download))
        };
        let mut downloads: Vec<(&str, Download)> = queues.into_iter().flat_map(with_instance).collect();
        downloads.sort_by_key(|(_, download)| {
            (download_urgency(&download.state), download.time_left.unwrap_or(Duration::MAX))
        });
        let entries = downloads.iter().map(|(instance, download)| {
            (download_json(instance, download, context), format_download(download))
        });
        let page = (self.page, "name the title");
        let mut result = activity_result(entries.unzip(), page, ("", "Nothing is downloading."), &failed);
        let shown_count = result.for_model["results"].as_array().map_or(0, Vec::len);
        let waiting = fetch_waiting_movies(library, context, &downloads).await;
        if !waiting.is_empty() {
            result.for_model["waiting"] = json!(waiting);
        }
        let media_ref = |(instance, download): &(&str, Download)| {
            let id = *download.rows.first()?;
            Some(MediaRef::Download { instance: (*instance).to_owned(), id })
        };
        let skipped = page_start(self.page);
        result.shown = downloads.iter().skip(skipped).take(shown_count).filter_map(media_ref).collect();
        Ok(result.into())
    }
}

/// Fetches the queue of each instance, with the name of the instance.
pub(super) async fn fetch_queues(library: &ArrInstances) -> InstanceResults<(&'static str, Vec<Download>)> {
    let (movies, series) = tokio::join!(
        query_all(&library.movies, INSTANCE_READ_TIMEOUT, Radarr::fetch_downloads),
        query_all(&library.series, INSTANCE_READ_TIMEOUT, Sonarr::fetch_downloads),
    );
    movies
        .map(|(instance, queue)| (instance.name, queue))
        .merge(series.map(|(instance, queue)| (instance.name, queue)))
}

impl TypedTool for UpcomingReleases {
    const NAME: &'static str = "upcoming";
    const DESCRIPTION: &'static str = "What of the library airs or comes out soon.";
    const EFFECT_LEVEL: EffectLevel = EffectLevel::Read;
    const AUDIENCE: ToolAudience = ToolAudience::Everyone;

    /// People ask for fewer days instead; the pages are for agents.
    fn hidden_arguments(_library: &ArrInstances) -> &'static [&'static str] {
        &["page"]
    }

    async fn run(&self, library: &ArrInstances, context: &ToolContext) -> Result<ToolOutput, ToolError> {
        let days = self.days.unwrap_or(DEFAULT_DAYS);
        let now = context.now.to_zoned(context.zone.clone());
        let (first, last) = (now.date(), now.saturating_add(i64::from(days).days()).date());
        // Whole days are used for episodes too, so that an episode that aired this morning still counts as today.
        let (start, end) =
            (start_of_day(first, &context.zone), start_of_day(last.saturating_add(1.day()), &context.zone));
        let (movies, series) = tokio::join!(
            query_all(&library.movies, INSTANCE_READ_TIMEOUT, |radarr: &Radarr| radarr
                .fetch_calendar(first, last)),
            query_all(&library.series, INSTANCE_READ_TIMEOUT, |sonarr: &Sonarr| sonarr
                .fetch_calendar(start, end.saturating_sub(SignedDuration::from_secs(1)).unwrap_or(end))),
        );
        let calendars = movies.map(|(_, entries)| entries).merge(series.map(|(_, entries)| entries));
        let (calendars, failed) = calendars.or_failure()?;
        let mut entries: Vec<CalendarEntry> = Vec::new();
        for entry in calendars.into_iter().flatten() {
            // A title that two instances report is listed once.
            if !entries.iter().any(|other| other.title == entry.title && other.date == entry.date) {
                entries.push(entry);
            }
        }
        entries.sort_by_key(|entry| release_start(entry.date, &context.zone));
        let formatted = entries.iter().map(|entry| {
            let day = release_day(entry.date, &context.zone);
            let sentence = format!(
                "{}{} {}",
                title::clean_title(&entry.title),
                release_phrase(entry.date),
                format_upcoming_day(day, first)
            );
            (upcoming_json(entry, &context.zone), sentence)
        });
        let empty_sentence = format!("Nothing comes out in the next {days} days.");
        let page = (self.page, "ask for fewer days");
        Ok(activity_result(formatted.unzip(), page, ("", &empty_sentence), &failed).into())
    }
}

impl TypedTool for RecentlyAdded {
    const NAME: &'static str = "recently_added";
    const DESCRIPTION: &'static str = "What arrived lately.";
    const EFFECT_LEVEL: EffectLevel = EffectLevel::Read;
    const AUDIENCE: ToolAudience = ToolAudience::Everyone;

    async fn run(&self, library: &ArrInstances, context: &ToolContext) -> Result<ToolOutput, ToolError> {
        let days = self.days.unwrap_or(DEFAULT_DAYS);
        let since = context.now.saturating_sub(SignedDuration::from_hours(24 * i64::from(days)));
        let since = since.unwrap_or(Timestamp::MIN);
        let (movies, series) = tokio::join!(
            query_all(&library.movies, INSTANCE_READ_TIMEOUT, |radarr: &Radarr| radarr
                .fetch_imports_since(since)),
            query_all(&library.series, INSTANCE_READ_TIMEOUT, |sonarr: &Sonarr| sonarr
                .fetch_imports_since(since)),
        );
        let imports = movies.map(|(_, imports)| imports).merge(series.map(|(_, imports)| imports));
        let (imports, failed) = imports.or_failure()?;
        let mut imports: Vec<ImportedDownload> = imports.into_iter().flatten().collect();
        imports.sort_by_key(|import| Reverse(import.at));
        let formatted = imports.iter().map(|import| {
            let title = format!("{} {}", clean_title(&import.title), import.detail).trim_end().to_owned();
            let for_user =
                format!("{} {}", title::clean_title(&import.title), import.detail).trim_end().to_owned();
            let day = import.at.to_zoned(context.zone.clone()).date();
            (json!({ "title": title, "day": day.strftime("%a %b %-d").to_string() }), for_user)
        });
        let empty_sentence = format!("Nothing arrived in the last {days} days.");
        let page = (None, "ask for fewer days");
        Ok(activity_result(formatted.unzip(), page, ("New: ", &empty_sentence), &failed).into())
    }
}

/// Returns the movies that the user requested last and that are neither ready nor downloading, each with its state:
/// `Heat (1995): searched Fri Nov 20 at 21:05, nothing found`.
async fn fetch_waiting_movies(
    library: &ArrInstances,
    context: &ToolContext,
    downloads: &[(&str, Download)],
) -> Vec<String> {
    let is_own_movie = |request: &&TitleRequest| {
        request.requester == Requester::You && request.wanted.kind == MediaKind::Movie
    };
    let requests = context.title_requests.iter().rev().filter(is_own_movie).take(MAX_WAITING);
    let states = requests.map(|request| fetch_waiting_state(library, context, &request.wanted, downloads));
    join_all(states).await.into_iter().flatten().collect()
}

/// Fetches the state of a requested movie. Returns `None` if it is ready, downloading or no longer in the library.
async fn fetch_waiting_state(
    library: &ArrInstances,
    context: &ToolContext,
    wanted: &RequestedTitle,
    downloads: &[(&str, Download)],
) -> Option<String> {
    let instance = library.movies.iter().find(|radarr| radarr.name == wanted.instance)?;
    let movie = match instance.client.fetch_movie_by_tmdb(wanted.catalog_id).await {
        Ok(movie) => movie?,
        Err(error) => {
            tracing::warn!(instance = instance.name, %error, "failed to fetch a requested movie");
            return None;
        }
    };
    if let Some(playback) = playback::check_movie(library, &movie, context.now).await {
        let sentence = || playback.format_sentence(&wanted.format_name(), context.rights.role);
        return (!playback.is_playable()).then(sentence);
    }
    let content = movie.id.map(DownloadContent::Movie);
    let is_downloading = downloads.iter().any(|(_, download)| content.as_ref() == Some(&download.content));
    if movie.has_file || is_downloading {
        return None;
    }
    let state = match (movie.monitored, movie.available, movie.last_search) {
        (false, ..) => "not looked for".to_owned(),
        (true, false, _) => "not out yet".to_owned(),
        (true, true, None) => "not searched yet".to_owned(),
        (true, true, Some(at)) => format!("searched {}, nothing found", format_airing(at, context)),
    };
    Some(format!("{}: {state}", wanted.format_name()))
}

/// Builds the result for a page of a list of entries, with a prefix of the sentence and the sentence for an empty list.
fn activity_result(
    (results, sentences): (Vec<Value>, Vec<String>),
    (page, narrowing_hint): (Option<usize>, &str),
    (prefix, empty_sentence): (&str, &str),
    failed: &[String],
) -> CallResult {
    let (total, skipped) = (results.len(), page_start(page));
    let results = results.into_iter().skip(skipped).collect();
    let sentences: Vec<String> = sentences.into_iter().skip(skipped).collect();
    let mut for_model = list_first_results(results, total, narrowing_hint);
    add_failed_services(&mut for_model, failed);
    let sentence = if sentences.is_empty() {
        empty_sentence.to_owned()
    } else {
        format!("{prefix}{}.", format_sentence_list(&sentences))
    };
    CallResult { for_model, for_user: append_failed_services(sentence, failed), shown: Vec::new() }
}

fn download_urgency(state: &DownloadState) -> u8 {
    match state {
        DownloadState::Downloading => 0,
        DownloadState::Importing => 1,
        DownloadState::Stuck(_) | DownloadState::Failed(_) | DownloadState::ClientDown => 2,
        DownloadState::Queued | DownloadState::Paused | DownloadState::Delayed => 3,
    }
}

fn download_json(instance: &str, download: &Download, context: &ToolContext) -> Value {
    let mut json = json!({ "download_id": download.rows.first(), "instance": instance, "title": clean_title(&download.title), "state": format_state(&download.state),
        "percent": percent_done(download) });
    if let Some(left) = download.time_left {
        json["time_left"] = json!(format_time_left(left));
    }
    if let Some(names) = requesters::download_requesters(&download.title, context) {
        json["asked_by"] = json!(names);
    }
    json
}

pub(super) fn format_download(download: &Download) -> String {
    let title = title::clean_title(&download.title);
    match (&download.state, download.time_left) {
        (DownloadState::Downloading, Some(left)) => {
            format!("{title} {}%, {} left", percent_done(download), format_time_left(left))
        }
        (DownloadState::Downloading, None) => format!("{title} {}%", percent_done(download)),
        (DownloadState::Paused, _) => format!("{title} paused at {}%", percent_done(download)),
        (state, _) => format!("{title} {}", format_state(state)),
    }
}

pub(super) fn format_state(state: &DownloadState) -> String {
    match state {
        DownloadState::Downloading => "downloading".to_owned(),
        DownloadState::Queued => "waiting in line".to_owned(),
        DownloadState::Paused => "paused".to_owned(),
        DownloadState::Delayed => "waiting for a better copy".to_owned(),
        DownloadState::Importing => "downloaded, being moved into the library".to_owned(),
        DownloadState::Stuck(reason) => state_with_reason("stuck", reason),
        DownloadState::Failed(reason) => state_with_reason("failed", reason),
        DownloadState::ClientDown => "stalled, the download program does not answer".to_owned(),
    }
}

fn state_with_reason(state: &str, reason: &str) -> String {
    let reason = clean_error_message(reason);
    if reason.is_empty() { state.to_owned() } else { format!("{state}: {reason}") }
}

/// Returns the progress in whole percent. The value is 100 only when nothing is left.
pub(super) fn percent_done(download: &Download) -> u8 {
    if download.size_bytes <= 0.0 {
        return 0;
    }
    let done = 1.0 - download.left_bytes / download.size_bytes;
    // Rounded first, because the float 0.62 is slightly less than 62 percent.
    let percent = (done * 1_000.0).round() / 10.0;
    percent.floor().clamp(0.0, 100.0) as u8
}

pub(super) fn format_time_left(left: Duration) -> String {
    let minutes = left.as_secs().div_ceil(60).max(1);
    match (minutes / 60, minutes % 60) {
        (0, minutes) => format!("{minutes} min"),
        (hours @ 1..24, 0) => format!("{hours} h"),
        (hours @ 1..24, minutes) => format!("{hours} h {minutes} min"),
        (hours @ 24..48, _) => format!("{hours} h"),
        (hours, _) => format!("{} days", hours / 24),
    }
}

fn upcoming_json(entry: &CalendarEntry, zone: &TimeZone) -> Value {
    let when = match entry.date {
        CalendarDate::Airs(at) => at.to_zoned(zone.clone()).strftime("%a %b %-d, %H:%M").to_string(),
        CalendarDate::Released(day, _) => {
            format!("{}{}", day.strftime("%a %b %-d"), release_phrase(entry.date))
        }
    };
    json!({ "title": clean_title(&entry.title), "when": when, "on_disk": entry.on_disk })
}

fn release_phrase(when: CalendarDate) -> &'static str {
    match when {
        CalendarDate::Airs(_) => "",
        CalendarDate::Released(_, ReleaseKind::Cinema) => " in cinemas",
        CalendarDate::Released(_, ReleaseKind::Digital) => " online",
        CalendarDate::Released(_, ReleaseKind::Physical) => " on disc",
    }
}

/// Formats a day relative to today: `today`, `tomorrow`, `on Wed` within six days, else `on Wed Mar 11`.
fn format_upcoming_day(day: Date, today: Date) -> String {
    match today.until(day).map(|span| span.get_days()) {
        Ok(0) => "today".to_owned(),
        Ok(1) => "tomorrow".to_owned(),
        Ok(2..=6) => format!("on {}", day.strftime("%a")),
        Ok(_) | Err(_) => format!("on {}", day.strftime("%a %b %-d")),
    }
}

fn release_day(when: CalendarDate, zone: &TimeZone) -> Date {
    match when {
        CalendarDate::Airs(at) => at.to_zoned(zone.clone()).date(),
        CalendarDate::Released(day, _) => day,
    }
}

/// Returns the sort key of an entry. A release counts from the start of its day.
fn release_start(when: CalendarDate, zone: &TimeZone) -> Timestamp {
    match when {
        CalendarDate::Airs(at) => at,
        CalendarDate::Released(day, _) => start_of_day(day, zone),
    }
}

/// Returns the first instant of a day. A day that a time zone has skipped sorts last.
fn start_of_day(day: Date, zone: &TimeZone) -> Timestamp {
    day.to_zoned(zone.clone()).as_ref().map_or(Timestamp::MAX, Zoned::timestamp)
}
