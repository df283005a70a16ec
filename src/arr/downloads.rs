//! Downloads, built from the queue rows of Sonarr and Radarr.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::time::Duration;

use super::api::ApiClient;
use super::wire::{EpisodeResource, QueueRow, ResourcePage, integer_or_default};
use super::{ArrError, error_message, time_parsing};

/// Download with all of its queue rows. A season pack has one row per episode.
#[derive(Debug, Clone, PartialEq)]
pub struct Download {
    /// Ids of the queue rows, in queue order. Any of them removes the download as a whole.
    pub rows: Vec<i64>,
    /// Download id, as in the history. Empty if the download has none yet.
    pub id: String,
    /// Name of the release.
    pub release: String,
    pub content: DownloadContent,
    /// Title such as `Dune (2021)`, `The Bear S02E03` or `The Bear season 2`, or the release name if no title matches.
    pub title: String,
    pub state: DownloadState,
    pub size_bytes: f64,
    pub left_bytes: f64,
    /// Remaining time. `None` if the download client does not know it or reports zero.
    pub time_left: Option<Duration>,
}

/// Content of a download, by library ids.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DownloadContent {
    Movie(i64),
    Episodes {
        series: i64,
        episodes: Vec<QueuedEpisode>,
    },
    /// The release matches no title of the library.
    Nothing,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueuedEpisode {
    pub id: i64,
    pub season: u32,
    pub number: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DownloadState {
    Downloading,
    Queued,
    Paused,
    /// Download that waits for a delay profile.
    Delayed,
    Importing,
    /// Finished download that cannot be imported, with the first message from Sonarr or Radarr.
    Stuck(String),
    Failed(String),
    ClientDown,
}

/// Page size for the queue, larger than any usual queue. A season pack has one row per episode.
const QUEUE_PAGE_SIZE: &str = "1000";

/// Fetches the queue, with the optional parts named in `includes`.
pub(super) async fn fetch_queue(api: &ApiClient, includes: &[&str]) -> Result<Vec<Download>, ArrError> {
    let mut query = vec![
        ("page", "1"),
        ("pageSize", QUEUE_PAGE_SIZE),
        ("sortKey", "timeleft"),
        ("sortDirection", "ascending"),
    ];
    query.extend(includes.iter().map(|part| (*part, "true")));
    Ok(downloads_from_page(api.get("queue", &query).await?))
}

/// Groups queue rows into downloads, in the order of their first rows.
fn downloads_from_page(page: ResourcePage<QueueRow>) -> Vec<Download> {
    let mut downloads: Vec<Vec<QueueRow>> = Vec::new();
    let mut indexes: HashMap<String, usize> = HashMap::new();
    for row in page.records {
        match row.download_id.clone().filter(|id| !id.is_empty()).map(|id| indexes.entry(id)) {
            Some(Entry::Occupied(index)) => downloads[*index.get()].push(row),
            Some(Entry::Vacant(entry)) => {
                entry.insert(downloads.len());
                downloads.push(vec![row]);
            }
            None => downloads.push(vec![row]),
        }
    }
    downloads.iter().filter_map(|rows| merge_rows(rows)).collect()
}

fn merge_rows(rows: &[QueueRow]) -> Option<Download> {
    // Every row of a season pack repeats the size and progress of the whole download.
    let first = rows.first()?;
    Some(Download {
        rows: rows.iter().filter_map(|row| row.id).collect(),
        id: first.download_id.clone().unwrap_or_default(),
        release: first.title.clone().unwrap_or_default(),
        content: download_content(rows),
        title: movie_title(rows)
            .or_else(|| episodes_title(rows))
            .or_else(|| first.title.clone())
            .unwrap_or_default(),
        state: download_state(first),
        size_bytes: first.size.unwrap_or_default(),
        left_bytes: first.sizeleft.unwrap_or_default(),
        time_left: first
            .timeleft
            .as_deref()
            .and_then(time_parsing::parse_time_span)
            .filter(|left| *left > Duration::ZERO),
    })
}

fn download_content(rows: &[QueueRow]) -> DownloadContent {
    let is_set = |id: &i64| *id > 0;
    if let Some(movie) = rows.iter().find_map(|row| row.movie_id.filter(is_set)) {
        return DownloadContent::Movie(movie);
    }
    let Some(series) = rows.iter().find_map(|row| row.series_id.filter(is_set)) else {
        return DownloadContent::Nothing;
    };
    let episode = |row: &QueueRow| {
        let number = row.episode.as_ref().and_then(|episode| episode.episode_number);
        Some(QueuedEpisode {
            id: row.episode_id.filter(is_set)?,
            season: integer_or_default(row.season_number),
            number: integer_or_default(number),
        })
    };
    DownloadContent::Episodes { series, episodes: rows.iter().filter_map(episode).collect() }
}

fn movie_title(rows: &[QueueRow]) -> Option<String> {
    rows.iter().find_map(|row| row.movie.as_ref()?.title_with_year())
}

fn episodes_title(rows: &[QueueRow]) -> Option<String> {
    let series = rows.iter().find_map(|row| row.series.as_ref()?.title.as_deref())?;
    if let [row] = rows
        && let Some(code) = row.episode.as_ref().and_then(EpisodeResource::episode_code)
    {
        return Some(format!("{series} {code}"));
    }
    let seasons = rows.iter().filter_map(|row| row.season_number);
    Some(match (seasons.clone().min(), seasons.max()) {
        (Some(first), Some(last)) if first != last => format!("{series} seasons {first}-{last}"),
        (Some(season), Some(_)) => format!("{series} season {season}"),
        (None, _) | (_, None) => series.to_owned(),
    })
}

fn download_state(row: &QueueRow) -> DownloadState {
    let status = row.status.as_deref().unwrap_or_default();
    let tracked = row.tracked_download_state.as_deref().unwrap_or_default();
    let has_problem = matches!(row.tracked_download_status.as_deref(), Some("warning" | "error"));
    match (status, tracked) {
        ("delay" | "fallback", _) => DownloadState::Delayed,
        ("downloadClientUnavailable", _) => DownloadState::ClientDown,
        ("failed", _) | (_, "failed" | "failedPending") => DownloadState::Failed(failure_reason(row)),
        (_, "importBlocked") => DownloadState::Stuck(failure_reason(row)),
        (_, "importPending") if has_problem => DownloadState::Stuck(failure_reason(row)),
        (_, "importPending" | "importing" | "imported") | ("completed", _) => DownloadState::Importing,
        ("paused", _) => DownloadState::Paused,
        // A warning from the client, such as too few peers, does not interrupt the download.
        ("downloading" | "warning", _) => DownloadState::Downloading,
        _ => DownloadState::Queued,
    }
}

fn failure_reason(row: &QueueRow) -> String {
    let statuses = row.status_messages.as_deref().unwrap_or_default();
    let messages =
        statuses.iter().filter_map(|status| status.messages.as_deref()).flatten().map(String::as_str);
    let titles = statuses.iter().filter_map(|status| status.title.as_deref());
    messages
        .chain(row.error_message.as_deref())
        .chain(titles)
        .map(error_message::plain_message)
        .find(|text| !text.is_empty())
        .unwrap_or_else(|| "no reason given".into())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[track_caller]
    fn check(rows: &Value, expected: &[&str]) {
        let page = serde_json::from_value(json!({ "records": rows })).unwrap();
        let downloads: Vec<String> = downloads_from_page(page)
            .into_iter()
            .map(|download| {
                let left = download.time_left.map_or("-".into(), |left| format!("{} s", left.as_secs()));
                format!(
                    "{}: {:?}, {} of {}, {left}",
                    download.title, download.state, download.left_bytes, download.size_bytes
                )
            })
            .collect();
        assert_eq!(downloads, expected);
    }

    fn bear_row(download: &str, season: u32, episode: u32) -> Value {
        json!({
            "downloadId": download, "title": "The.Bear.x264", "status": "downloading",
            "trackedDownloadStatus": "ok", "trackedDownloadState": "downloading",
            "size": 800.5, "sizeleft": 200.25, "timeleft": "00:10:00", "seasonNumber": season,
            "series": { "title": "The Bear" },
            "episode": { "seasonNumber": season, "episodeNumber": episode },
        })
    }

    #[test]
    fn rows_of_a_season_pack_are_one_download() {
        check(
            &json!([bear_row("a", 2, 1), bear_row("b", 3, 4), bear_row("a", 2, 2), bear_row("a", 2, 3)]),
            &[
                "The Bear season 2: Downloading, 200.25 of 800.5, 600 s",
                "The Bear S03E04: Downloading, 200.25 of 800.5, 600 s",
            ],
        );
    }

    #[test]
    fn pack_of_several_seasons_names_them() {
        check(
            &json!([bear_row("a", 1, 1), bear_row("a", 2, 1)]),
            &["The Bear seasons 1-2: Downloading, 200.25 of 800.5, 600 s"],
        );
    }

    #[test]
    fn rows_without_a_download_id_stay_separate() {
        check(
            &json!([{ "title": "A", "status": "delay" }, { "title": "B", "status": "delay", "downloadId": "" }]),
            &["A: Delayed, 0 of 0, -", "B: Delayed, 0 of 0, -"],
        );
    }

    #[test]
    fn movie_has_its_year_and_unmatched_download_its_release_name() {
        check(
            &json!([
                { "status": "queued", "title": "Dune.x264", "movie": { "title": "Dune", "year": 2021 } },
                { "status": "queued", "title": "Orphan.x264" },
            ]),
            &["Dune (2021): Queued, 0 of 0, -", "Orphan.x264: Queued, 0 of 0, -"],
        );
    }

    #[test]
    fn zero_time_left_is_unknown() {
        check(
            &json!([{ "title": "A", "status": "downloading", "size": 9, "sizeleft": 3, "timeleft": "00:00:00" }]),
            &["A: Downloading, 3 of 9, -"],
        );
    }

    #[test]
    fn stuck_download_has_the_first_reason_without_paths() {
        check(
            &json!([{
                "title": "A", "status": "completed", "trackedDownloadStatus": "warning",
                "trackedDownloadState": "importPending", "errorMessage": "",
                "statusMessages": [
                    { "title": "One or more episodes are missing", "messages": [] },
                    { "title": "a.mkv", "messages": ["No files are eligible in /data/a", "Sample"] },
                ],
            }]),
            &[r#"A: Stuck("No files are eligible"), 0 of 0, -"#],
        );
    }

    #[test]
    fn download_states_are_distinguished() {
        let row = |status: &str, tracked: &str| json!({ "title": status, "status": status, "trackedDownloadState": tracked });
        check(
            &json!([
                row("paused", "downloading"),
                row("downloadClientUnavailable", ""),
                row("failed", "downloading"),
                row("completed", "failedPending"),
                row("completed", "importBlocked"),
                row("completed", "importPending"),
                row("completed", "downloading"),
                row("warning", "downloading"),
                row("somethingElse", "queued"),
            ]),
            &[
                "paused: Paused, 0 of 0, -",
                "downloadClientUnavailable: ClientDown, 0 of 0, -",
                r#"failed: Failed("no reason given"), 0 of 0, -"#,
                r#"completed: Failed("no reason given"), 0 of 0, -"#,
                r#"completed: Stuck("no reason given"), 0 of 0, -"#,
                "completed: Importing, 0 of 0, -",
                "completed: Importing, 0 of 0, -",
                "warning: Downloading, 0 of 0, -",
                "somethingElse: Queued, 0 of 0, -",
            ],
        );
    }
}
