//! Connect events that a fake server would send about its current state.

use serde_json::{Value, json};

use super::activity::{HistoryFixture, download_id, parse_title_episodes};
use super::fake_server::{FakeLibraryState, FakeServer};
use super::library_api::LibraryKind;
use super::media_fixtures::{FakeMovie, FakeSeries};
use super::radarr::FakeRadarr;
use super::series_json::{episode_id, episode_numbers, stray_series};
use super::sonarr::FakeSonarr;

const IMPORTED: &str = "downloadFolderImported";

impl<D: LibraryKind> FakeServer<D> {
    /// Downloads and imports a movie, an episode such as `The Bear S02E03` or, for a season pack, `The Bear S02`.
    pub fn import_event(&self, title: &str) {
        self.add_download(title, 99, 1);
        self.finish_download(title);
    }

    /// Downloads and imports a movie or episodes, replacing the existing files.
    pub fn upgrade_event(&self, title: &str) {
        self.lock_state().record_loss(title, D::SERVER.file_deleted, "Upgrade");
        self.import_event(title);
    }
}

impl FakeRadarr {
    /// Returns the event for an imported movie.
    pub fn import_report(&self, title: &str) -> Value {
        let library = self.lock_state();
        json!({
            "movie": library.title_named(title).map(movie_json),
            "isUpgrade": library.was_upgraded(title),
            "downloadId": library.last_download_of(title),
            "eventType": "Download",
            "instanceName": "Radarr",
        })
    }

    /// Returns the event for a download that cannot be imported.
    pub fn stuck_report(&self, title: &str) -> Value {
        let library = self.lock_state();
        json!({
            "movie": library.title_named(title).map(movie_json),
            "downloadInfo": { "title": title },
            "downloadId": format!("stuck-{title}"),
            "downloadStatus": "Warning",
            "eventType": "ManualInteractionRequired",
            "instanceName": "Radarr",
        })
    }
}

impl FakeSonarr {
    /// Returns the event for the import of a whole download, which may have been an upgrade.
    pub fn import_report(&self, title: &str) -> Value {
        let library = self.lock_state();
        let mut event = import_event_json(&library, title, &|_| true);
        event["episodeFiles"] = json!([]);
        event["fileCount"] = json!(event["episodes"].as_array().map_or(0, Vec::len));
        event
    }

    /// Returns the event for one file of a download.
    pub fn file_report(&self, title: &str, number: u32) -> Value {
        let library = self.lock_state();
        let mut event = import_event_json(&library, title, &|one| one == number);
        event["episodeFile"] = json!({ "id": number });
        event["isUpgrade"] = json!(library.was_upgraded(title));
        event
    }
}

impl<D: Clone> FakeServer<D> {
    /// Adds a history event that concerns no current download.
    pub fn download_event(&self, title: &str, event: &'static str, reason: &str) {
        let mut library = self.lock_state();
        library.last_download += 1;
        let (at, download) = (library.clock.now(), library.last_download);
        let (title, reason) = (title.to_owned(), Some(reason.to_owned()));
        library.history.push(HistoryFixture {
            release: format!("{title}.mkv"),
            title,
            event,
            at,
            download,
            reason,
        });
    }

    /// Returns the event for a health problem of the server. The level is `warning` or `error`.
    pub fn health_report(&self, level: &str, check: &str, message: &str) -> Value {
        json!({ "level": level, "type": check, "message": message, "eventType": "Health" })
    }

    pub fn healed_report(&self, check: &str) -> Value {
        json!({ "level": "warning", "type": check, "eventType": "HealthRestored" })
    }

    /// Returns the event of a connection test.
    pub fn trial_report(&self) -> Value {
        json!({ "movie": { "id": 1, "title": "Test Title", "tmdbId": 0 }, "eventType": "Test" })
    }
}

impl<D> FakeLibraryState<D> {
    fn was_upgraded(&self, title: &str) -> bool {
        let mut before = self.history.iter().rev().filter(|happened| happened.title == title).skip(1);
        before.next().is_some_and(|happened| happened.reason.as_deref() == Some("Upgrade"))
    }

    fn last_download_of(&self, title: &str) -> Option<String> {
        let imports = self.history.iter().rev().filter(|happened| happened.event == IMPORTED);
        let mut of_title = imports.filter(|happened| happened.title == title && happened.download > 0);
        of_title.next().map(|happened| download_id(happened.download))
    }
}

fn movie_json(film: &FakeMovie) -> Value {
    json!({ "id": film.id, "title": film.title, "year": film.year, "tmdbId": film.catalog_id })
}

fn import_event_json(
    library: &FakeLibraryState<super::media_fixtures::SeriesDetails>,
    title: &str,
    wanted: &dyn Fn(u32) -> bool,
) -> Value {
    let meant = parse_title_episodes(title);
    let known = meant.as_ref().and_then(|meant| library.title_named(meant.show)).cloned();
    let item: FakeSeries = known.unwrap_or_else(|| stray_series(title, 0));
    let described = |season: u32, number: u32| {
        json!({
            "id": episode_id(&item, season, number),
            "seasonNumber": season,
            "episodeNumber": number,
            "seriesId": item.id,
        })
    };
    let of_it: Vec<Value> = meant.map_or_else(Vec::new, |meant| {
        episode_numbers(&item, &meant)
            .filter(|number| wanted(*number))
            .map(|number| described(meant.season, number))
            .collect()
    });
    json!({
        "series": { "id": item.id, "title": item.title, "year": item.year, "tvdbId": item.catalog_id },
        "episodes": of_it,
        "downloadId": library.last_download_of(title),
        "eventType": "Download",
        "instanceName": "Sonarr",
    })
}
