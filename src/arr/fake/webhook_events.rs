//! Webhook events that a fake server would send about its current state.

use serde_json::{Value, json};

use super::activity::{HistoryFixture, download_id, parse_title_episodes};
use super::fake_server::{FakeLibraryState, FakeServer};
use super::library_api::LibraryKind;
use super::media_fixtures::{FakeMovie, FakeSeries};
use super::radarr::FakeRadarr;
use super::series_json::{episode_id, episode_numbers, series_outside_library};
use super::sonarr::FakeSonarr;

const IMPORTED: &str = "downloadFolderImported";

impl<D: LibraryKind> FakeServer<D> {
    /// Downloads and imports a movie, an episode such as `The Bear S02E03`, or a season pack such as `The Bear S02`.
    pub fn download_and_import(&self, title: &str) {
        self.add_download(title, 99, 1);
        self.finish_download(title);
    }

    /// Downloads and imports a movie or episodes that replace existing files.
    pub fn download_and_upgrade(&self, title: &str) {
        self.lock_state().record_deletion(title, D::SERVER.file_deleted, "Upgrade");
        self.download_and_import(title);
    }
}

impl FakeRadarr {
    /// Returns the event for an imported movie.
    pub fn import_event_json(&self, title: &str) -> Value {
        let state = self.lock_state();
        json!({
            "movie": state.find_title(title).map(movie_json),
            "isUpgrade": state.was_upgraded(title),
            "downloadId": state.last_download_id(title),
            "eventType": "Download",
            "instanceName": "Radarr",
        })
    }

    /// Returns the event for a download that cannot be imported.
    pub fn stuck_event_json(&self, title: &str) -> Value {
        let state = self.lock_state();
        json!({
            "movie": state.find_title(title).map(movie_json),
            "downloadInfo": { "title": title },
            "downloadId": format!("stuck-{title}"),
            "downloadStatus": "Warning",
            "eventType": "ManualInteractionRequired",
            "instanceName": "Radarr",
        })
    }
}

impl FakeSonarr {
    /// Returns the event for the complete import of a download.
    pub fn import_event_json(&self, title: &str) -> Value {
        let state = self.lock_state();
        let mut event = episodes_event_json(&state, title, &|_| true);
        event["episodeFiles"] = json!([]);
        event["fileCount"] = json!(event["episodes"].as_array().map_or(0, Vec::len));
        event
    }

    /// Returns the event for one file of a download.
    pub fn file_event_json(&self, title: &str, number: u32) -> Value {
        let state = self.lock_state();
        let mut event = episodes_event_json(&state, title, &|episode| episode == number);
        event["episodeFile"] = json!({ "id": number });
        event["isUpgrade"] = json!(state.was_upgraded(title));
        event
    }
}

impl<D: Clone> FakeServer<D> {
    /// Adds a history event for a download that is not in the queue.
    pub fn add_history_event(&self, title: &str, event: &'static str, reason: &str) {
        let mut state = self.lock_state();
        state.last_download += 1;
        let (at, download) = (state.clock.now(), state.last_download);
        let (title, reason) = (title.to_owned(), Some(reason.to_owned()));
        state.history.push(HistoryFixture {
            release: format!("{title}.mkv"),
            title,
            event,
            at,
            download,
            reason,
        });
    }

    /// Returns the event for a health problem of the server. The level is `warning` or `error`.
    pub fn health_event_json(&self, level: &str, check: &str, message: &str) -> Value {
        json!({ "level": level, "type": check, "message": message, "eventType": "Health" })
    }

    /// Returns the event for a health problem that was resolved.
    pub fn health_restored_event_json(&self, check: &str) -> Value {
        json!({ "level": "warning", "type": check, "eventType": "HealthRestored" })
    }

    /// Returns the event of a connection test.
    pub fn connection_test_json(&self) -> Value {
        json!({ "movie": { "id": 1, "title": "Test Title", "tmdbId": 0 }, "eventType": "Test" })
    }
}

impl<D> FakeLibraryState<D> {
    fn was_upgraded(&self, title: &str) -> bool {
        let mut earlier = self.history.iter().rev().filter(|event| event.title == title).skip(1);
        earlier.next().is_some_and(|event| event.reason.as_deref() == Some("Upgrade"))
    }

    fn last_download_id(&self, title: &str) -> Option<String> {
        let imports = self.history.iter().rev().filter(|event| event.event == IMPORTED);
        let mut title_imports = imports.filter(|event| event.title == title && event.download > 0);
        title_imports.next().map(|event| download_id(event.download))
    }
}

fn movie_json(movie: &FakeMovie) -> Value {
    json!({ "id": movie.id, "title": movie.title, "year": movie.year, "tmdbId": movie.catalog_id })
}

fn episodes_event_json(
    state: &FakeLibraryState<super::media_fixtures::SeriesDetails>,
    title: &str,
    is_included: &dyn Fn(u32) -> bool,
) -> Value {
    let episodes = parse_title_episodes(title);
    let found = episodes.as_ref().and_then(|episodes| state.find_title(episodes.series)).cloned();
    let series: FakeSeries = found.unwrap_or_else(|| series_outside_library(title, 0));
    let episode_json = |season: u32, number: u32| {
        json!({
            "id": episode_id(&series, season, number),
            "seasonNumber": season,
            "episodeNumber": number,
            "seriesId": series.id,
        })
    };
    let episodes_json: Vec<Value> = episodes.map_or_else(Vec::new, |episodes| {
        episode_numbers(&series, &episodes)
            .filter(|number| is_included(*number))
            .map(|number| episode_json(episodes.season, number))
            .collect()
    });
    json!({
        "series": { "id": series.id, "title": series.title, "year": series.year, "tvdbId": series.catalog_id },
        "episodes": episodes_json,
        "downloadId": state.last_download_id(title),
        "eventType": "Download",
        "instanceName": "Sonarr",
    })
}
