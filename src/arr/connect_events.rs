//! Parser for the events that the webhook entries of Connect send us. The JSON is converted into arr events. Unknown
//! events give no arr event.

use jiff::Timestamp;
use serde::Deserialize;

use super::error_message;
use super::wire::whole_or_default;
use crate::conversation::notifications::arr_events::{
    ArrEvent, ArrTitle, ImportKind, KeyedArrEvent, format_arr_title, format_episodes,
};

/// Error for a body that is not an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("read the event")]
pub struct NoEvent;

/// Catalog id of the title in a connection test. No real title has this id.
const NO_TITLE: i64 = 0;
/// Health check for available updates of the application itself, which is not reported as a problem.
const UPDATE_CHECK: &str = "UpdateCheck";

/// Parses the arr events of one webhook body. The result is empty for events that do not concern any user.
pub fn parse_events(body: &[u8], now: Timestamp) -> Result<Vec<KeyedArrEvent>, NoEvent> {
    let event: ConnectEvent = serde_json::from_slice(body).map_err(|_| NoEvent)?;
    let download = event.download_id.clone().unwrap_or_default();
    let reports = match event.event_type.as_deref() {
        None => return Err(NoEvent),
        Some("Download") => event.import_reports(),
        Some("ManualInteractionRequired") => {
            event.failed_title().map(ArrEvent::ImportBlocked).into_iter().collect()
        }
        Some("Health") => event.health_report().into_iter().collect(),
        Some("HealthRestored") => {
            event.health_check().map(|check| ArrEvent::HealthRestored { check }).into_iter().collect()
        }
        // Grab, Rename, Test, deletions, additions and the events of other versions.
        Some(_) => Vec::new(),
    };
    Ok(reports.into_iter().map(|report| KeyedArrEvent::new(report, &download, now)).collect())
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ConnectEvent {
    event_type: Option<String>,
    movie: Option<ConnectTitle>,
    series: Option<ConnectTitle>,
    episodes: Option<Vec<ConnectEpisode>>,
    is_upgrade: Option<bool>,
    download_id: Option<String>,
    download_info: Option<DownloadInfo>,
    level: Option<String>,
    r#type: Option<String>,
    message: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ConnectTitle {
    id: Option<i64>,
    tmdb_id: Option<i64>,
    tvdb_id: Option<i64>,
    title: Option<String>,
    year: Option<i64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ConnectEpisode {
    season_number: Option<i64>,
    episode_number: Option<i64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct DownloadInfo {
    title: Option<String>,
}

impl ConnectEvent {
    /// Returns the arr events of an import. The event of one file and that of a complete import have the same name.
    /// Both list their episodes, and an episode of a download is reported once, so the second of the two events reports
    /// nothing new.
    fn import_reports(self) -> Vec<ArrEvent> {
        // A complete import does not indicate whether it replaced a file.
        let copy = if self.is_upgrade == Some(true) { ImportKind::Upgrade } else { ImportKind::First };
        if let Some(movie) = self.movie.and_then(ConnectTitle::into_movie) {
            return vec![ArrEvent::MovieImported(movie, copy)];
        }
        let Some(show) = self.series.and_then(ConnectTitle::into_series) else { return Vec::new() };
        let report = |episode: ConnectEpisode| ArrEvent::EpisodeImported {
            show: show.clone(),
            season: whole_or_default(episode.season_number),
            number: whole_or_default(episode.episode_number),
            copy: copy.clone(),
        };
        self.episodes.unwrap_or_default().into_iter().map(report).collect()
    }

    /// Returns the name of the title, or of the release if no title matches it.
    fn failed_title(self) -> Option<String> {
        if let Some(movie) = self.movie.and_then(ConnectTitle::into_movie) {
            return Some(format_arr_title(&movie));
        }
        let Some(show) = self.series.and_then(ConnectTitle::into_series) else {
            return self.download_info.and_then(|info| info.title);
        };
        let numbers = |episode: &ConnectEpisode| {
            (whole_or_default(episode.season_number), whole_or_default(episode.episode_number))
        };
        let episodes: Vec<(u32, u32)> = self.episodes.iter().flatten().map(numbers).collect();
        Some(format_episodes(&show.title, &episodes))
    }

    fn health_report(self) -> Option<ArrEvent> {
        let is_trouble = self
            .level
            .as_deref()
            .is_none_or(|level| level.eq_ignore_ascii_case("warning") || level.eq_ignore_ascii_case("error"));
        let message = self.message.as_deref().map(error_message::plain_message).unwrap_or_default();
        let check = self.health_check().filter(|check| is_trouble && check != UPDATE_CHECK)?;
        Some(ArrEvent::HealthIssue { check, message })
    }

    fn health_check(self) -> Option<String> {
        self.r#type.filter(|check| !check.is_empty())
    }
}

impl ConnectTitle {
    fn into_movie(self) -> Option<ArrTitle> {
        let catalog_id = self.tmdb_id;
        self.with_catalog_id(catalog_id)
    }

    /// Converts a series. Sonarr names its TMDB id too, which is not the one that we use.
    fn into_series(self) -> Option<ArrTitle> {
        let catalog_id = self.tvdb_id;
        self.with_catalog_id(catalog_id)
    }

    fn with_catalog_id(self, catalog_id: Option<i64>) -> Option<ArrTitle> {
        Some(ArrTitle {
            id: self.id?,
            catalog_id: catalog_id.filter(|id| *id != NO_TITLE)?,
            title: self.title?,
            year: whole_or_default(self.year),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop_oneof, proptest};
    use serde_json::{Value, json};

    use super::*;

    #[track_caller]
    fn check(event: &Value, expected: &[ArrEvent]) {
        let read = parse_events(event.to_string().as_bytes(), Timestamp::UNIX_EPOCH).unwrap();
        let reports: Vec<ArrEvent> = read.into_iter().map(|one| one.event).collect();
        assert_eq!(reports, expected);
    }

    fn film() -> Value {
        json!({ "id": 7, "tmdbId": 438_631, "title": "Dune", "year": 2021, "folderPath": "/movies/Dune (2021)" })
    }

    fn dune() -> ArrTitle {
        ArrTitle { id: 7, catalog_id: 438_631, title: "Dune".into(), year: 2021 }
    }

    fn show() -> Value {
        json!({ "id": 15, "tvdbId": 403_294, "title": "The Bear", "year": 2022 })
    }

    fn episode(number: u32, copy: ImportKind) -> ArrEvent {
        let show = ArrTitle { id: 15, catalog_id: 403_294, title: "The Bear".into(), year: 2022 };
        ArrEvent::EpisodeImported { show, season: 2, number, copy }
    }

    fn episodes(numbers: &[u32]) -> Value {
        numbers.iter().map(|number| json!({ "seasonNumber": 2, "episodeNumber": number })).collect()
    }

    #[test]
    fn movie_import_distinguishes_upgrades() {
        let event = |upgrade| json!({ "eventType": "Download", "movie": film(), "isUpgrade": upgrade });
        check(&event(false), &[ArrEvent::MovieImported(dune(), ImportKind::First)]);
        check(&event(true), &[ArrEvent::MovieImported(dune(), ImportKind::Upgrade)]);
    }

    #[test]
    fn single_file_and_complete_import_have_the_same_matters() {
        let base = json!({ "eventType": "Download", "series": show(), "downloadId": "abc" });
        let with = |more: Value| {
            let mut event = base.clone();
            event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            event
        };
        let file = with(json!({ "episodes": episodes(&[3]), "episodeFile": {}, "isUpgrade": false }));
        let all = with(json!({ "episodes": episodes(&[3, 4]), "episodeFiles": [{}, {}], "fileCount": 2 }));
        check(&all, &[episode(3, ImportKind::First), episode(4, ImportKind::First)]);
        let matters = |event: &Value| -> Vec<String> {
            let read = parse_events(event.to_string().as_bytes(), Timestamp::UNIX_EPOCH).unwrap();
            read.into_iter().map(|one| one.matter).collect()
        };
        assert_eq!(matters(&file), matters(&all)[..1]);
    }

    #[test]
    fn blocked_import_is_named_by_title_or_release() {
        let event = |more: Value| {
            let mut event = json!({ "eventType": "ManualInteractionRequired",
                                    "downloadInfo": { "title": "Some.Release.2021" } });
            event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            event
        };
        check(&event(json!({ "movie": film() })), &[ArrEvent::ImportBlocked("Dune (2021)".into())]);
        let of = |numbers| event(json!({ "series": show(), "episodes": episodes(numbers) }));
        check(&of(&[3]), &[ArrEvent::ImportBlocked("The Bear S02E03".into())]);
        check(&of(&[3, 4]), &[ArrEvent::ImportBlocked("The Bear season 2".into())]);
        check(&event(json!({})), &[ArrEvent::ImportBlocked("Some.Release.2021".into())]);
    }

    #[test]
    fn health_issues_have_no_paths_and_exclude_trivial_ones() {
        let event = |level: &str, check: &str| {
            json!({ "eventType": "Health", "level": level, "type": check,
                    "message": "Folder '/data/films' is missing" })
        };
        let ill =
            ArrEvent::HealthIssue { check: "RootFolderCheck".into(), message: "Folder is missing".into() };
        check(&event("error", "RootFolderCheck"), &[ill]);
        check(&event("notice", "RootFolderCheck"), &[]);
        check(&event("warning", "UpdateCheck"), &[]);
        let well = json!({ "eventType": "HealthRestored", "type": "RootFolderCheck" });
        check(&well, &[ArrEvent::HealthRestored { check: "RootFolderCheck".into() }]);
    }

    #[test]
    fn irrelevant_events_and_test_events_are_empty() {
        check(&json!({ "eventType": "Test", "movie": { "id": 1, "title": "Test Title", "tmdbId": 0 } }), &[]);
        check(&json!({ "eventType": "Grab", "movie": film(), "downloadId": "abc" }), &[]);
        check(&json!({ "eventType": "SomethingNew" }), &[]);
        check(&json!({ "eventType": "Download", "movie": { "id": 1, "tmdbId": 0, "title": "Test" } }), &[]);
    }

    #[test]
    fn malformed_event_is_refused() {
        for body in ["", "null", "[]", "{}", "{\"eventType\":7}", "<html>"] {
            assert_eq!(parse_events(body.as_bytes(), Timestamp::UNIX_EPOCH), Err(NoEvent), "{body}");
        }
    }

    proptest! {
        #[test]
        fn any_event_is_parsed_with_named_matters(
            kind in proptest::sample::select(vec!["Download", "ManualInteractionRequired", "Health", "HealthRestored"]),
            ids: [i64; 2],
            year: Option<i64>,
            (title, check) in any::<(String, String)>(),
            message in prop_oneof![any::<String>(), "[/\\\\'\"(): \ta\n\r.]{0,12}"],
            numbers in proptest::collection::vec(any::<(i64, Option<i64>)>(), 0..4),
            is_show: bool,
        ) {
            let named = json!({ "id": ids[0], "tmdbId": ids[1], "tvdbId": ids[1], "title": title, "year": year });
            let episodes: Vec<Value> = numbers
                .iter()
                .map(|(season, number)| json!({ "seasonNumber": season, "episodeNumber": number }))
                .collect();
            let event = json!({ "eventType": kind, (if is_show { "series" } else { "movie" }): named, "type": check,
                                "episodes": episodes, "message": message, "level": "error" });
            let reports = parse_events(event.to_string().as_bytes(), Timestamp::UNIX_EPOCH).unwrap();
            assert!(reports.len() <= numbers.len().max(1));
            let spaced = parse_events(&serde_json::to_vec_pretty(&event).unwrap(), Timestamp::UNIX_EPOCH);
            assert_eq!(spaced.as_ref(), Ok(&reports));
            for KeyedArrEvent { matter, event } in reports {
                assert!(!matter.is_empty());
                match event {
                    ArrEvent::MovieImported(title, _) | ArrEvent::EpisodeImported { show: title, .. } => {
                        assert_eq!((title.id, title.catalog_id), (ids[0], ids[1]));
                        assert_ne!(title.catalog_id, NO_TITLE);
                    }
                    ArrEvent::HealthIssue { check, message } => {
                        assert!(!check.is_empty() && !message.contains(['\n', '\r']), "{message:?}");
                        let path = message.trim_start_matches('/');
                        assert!(path.len() == message.len() || !path.starts_with(char::is_alphanumeric), "{message:?}");
                    }
                    ArrEvent::HealthRestored { check } => assert!(!check.is_empty()),
                    ArrEvent::ImportBlocked(_) | ArrEvent::DownloadFailed(_) => {}
                }
            }
        }
    }
}
