//! Parser for the webhook events that Sonarr and Radarr send through Connect. It converts them into arr events and
//! ignores unknown ones.

use jiff::Timestamp;
use serde::Deserialize;

use super::error_message;
use super::wire::integer_or_default;
use crate::conversation::notifications::arr_events::{
    ArrEvent, ArrTitle, ImportKind, KeyedArrEvent, format_arr_title, format_episodes,
};

/// Error for a webhook body that is not an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("parse the event")]
pub struct EventParseError;

/// Catalog id of the title in a connection test. No real title has this id.
const TEST_CATALOG_ID: i64 = 0;
/// Health check for updates of the application itself, whose findings are not reported.
const UPDATE_CHECK: &str = "UpdateCheck";

/// Parses the arr events of one webhook body. The result is empty for events that do not concern any user.
pub fn parse_events(body: &[u8], now: Timestamp) -> Result<Vec<KeyedArrEvent>, EventParseError> {
    let event: ConnectEvent = serde_json::from_slice(body).map_err(|_| EventParseError)?;
    let download = event.download_id.clone().unwrap_or_default();
    let events = match event.event_type.as_deref() {
        None => return Err(EventParseError),
        Some("Download") => event.into_import_events(),
        Some("ManualInteractionRequired") => {
            event.into_blocked_title().map(ArrEvent::ImportBlocked).into_iter().collect()
        }
        Some("Health") => event.into_health_issue().into_iter().collect(),
        Some("HealthRestored") => {
            event.into_health_check().map(|check| ArrEvent::HealthRestored { check }).into_iter().collect()
        }
        // Grab, Rename, Test, deletions, additions, and events that only other versions send.
        Some(_) => Vec::new(),
    };
    Ok(events.into_iter().map(|event| KeyedArrEvent::new(event, &download, now)).collect())
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
    /// Returns the arr events of an import. Sonarr uses the same event name for each imported file and for the complete
    /// import. Both list their episodes, and each episode of a download has one matter, so the later event is a
    /// duplicate.
    fn into_import_events(self) -> Vec<ArrEvent> {
        // The event of a complete import does not say whether it replaced a file.
        let kind = if self.is_upgrade == Some(true) { ImportKind::Upgrade } else { ImportKind::First };
        if let Some(movie) = self.movie.and_then(ConnectTitle::into_movie) {
            return vec![ArrEvent::MovieImported(movie, kind)];
        }
        let Some(series) = self.series.and_then(ConnectTitle::into_series) else { return Vec::new() };
        let event = |episode: ConnectEpisode| ArrEvent::EpisodeImported {
            show: series.clone(),
            season: integer_or_default(episode.season_number),
            number: integer_or_default(episode.episode_number),
            copy: kind.clone(),
        };
        self.episodes.unwrap_or_default().into_iter().map(event).collect()
    }

    /// Returns the name of the title whose import is blocked, or of the release if no title matches it.
    fn into_blocked_title(self) -> Option<String> {
        if let Some(movie) = self.movie.and_then(ConnectTitle::into_movie) {
            return Some(format_arr_title(&movie));
        }
        let Some(series) = self.series.and_then(ConnectTitle::into_series) else {
            return self.download_info.and_then(|info| info.title);
        };
        let numbers = |episode: &ConnectEpisode| {
            (integer_or_default(episode.season_number), integer_or_default(episode.episode_number))
        };
        let episodes: Vec<(u32, u32)> = self.episodes.iter().flatten().map(numbers).collect();
        Some(format_episodes(&series.title, &episodes))
    }

    fn into_health_issue(self) -> Option<ArrEvent> {
        let is_problem = self
            .level
            .as_deref()
            .is_none_or(|level| level.eq_ignore_ascii_case("warning") || level.eq_ignore_ascii_case("error"));
        let message = self.message.as_deref().map(error_message::plain_message).unwrap_or_default();
        let check = self.into_health_check().filter(|check| is_problem && check != UPDATE_CHECK)?;
        Some(ArrEvent::HealthIssue { check, message })
    }

    fn into_health_check(self) -> Option<String> {
        self.r#type.filter(|check| !check.is_empty())
    }
}

impl ConnectTitle {
    fn into_movie(self) -> Option<ArrTitle> {
        let catalog_id = self.tmdb_id;
        self.with_catalog_id(catalog_id)
    }

    /// Converts a series. Sonarr also sends its TMDB id, but series are identified by TheTVDB ids.
    fn into_series(self) -> Option<ArrTitle> {
        let catalog_id = self.tvdb_id;
        self.with_catalog_id(catalog_id)
    }

    fn with_catalog_id(self, catalog_id: Option<i64>) -> Option<ArrTitle> {
        Some(ArrTitle {
            id: self.id?,
            catalog_id: catalog_id.filter(|id| *id != TEST_CATALOG_ID)?,
            title: self.title?,
            year: integer_or_default(self.year),
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
        let parsed = parse_events(event.to_string().as_bytes(), Timestamp::UNIX_EPOCH).unwrap();
        let events: Vec<ArrEvent> = parsed.into_iter().map(|keyed| keyed.event).collect();
        assert_eq!(events, expected);
    }

    fn movie_json() -> Value {
        json!({ "id": 7, "tmdbId": 438_631, "title": "Dune", "year": 2021, "folderPath": "/movies/Dune (2021)" })
    }

    fn dune() -> ArrTitle {
        ArrTitle { id: 7, catalog_id: 438_631, title: "Dune".into(), year: 2021 }
    }

    fn series_json() -> Value {
        json!({ "id": 15, "tvdbId": 403_294, "title": "The Bear", "year": 2022 })
    }

    fn episode_imported(number: u32, kind: ImportKind) -> ArrEvent {
        let show = ArrTitle { id: 15, catalog_id: 403_294, title: "The Bear".into(), year: 2022 };
        ArrEvent::EpisodeImported { show, season: 2, number, copy: kind }
    }

    fn episodes_json(numbers: &[u32]) -> Value {
        numbers.iter().map(|number| json!({ "seasonNumber": 2, "episodeNumber": number })).collect()
    }

    #[test]
    fn movie_import_distinguishes_upgrades() {
        let event = |upgrade| json!({ "eventType": "Download", "movie": movie_json(), "isUpgrade": upgrade });
        check(&event(false), &[ArrEvent::MovieImported(dune(), ImportKind::First)]);
        check(&event(true), &[ArrEvent::MovieImported(dune(), ImportKind::Upgrade)]);
    }

    #[test]
    fn single_file_and_complete_import_have_the_same_matters() {
        let base = json!({ "eventType": "Download", "series": series_json(), "downloadId": "abc" });
        let with_fields = |fields: Value| {
            let mut event = base.clone();
            event.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
            event
        };
        let file_import =
            with_fields(json!({ "episodes": episodes_json(&[3]), "episodeFile": {}, "isUpgrade": false }));
        let complete_import = with_fields(
            json!({ "episodes": episodes_json(&[3, 4]), "episodeFiles": [{}, {}], "fileCount": 2 }),
        );
        check(
            &complete_import,
            &[episode_imported(3, ImportKind::First), episode_imported(4, ImportKind::First)],
        );
        let matters = |event: &Value| -> Vec<String> {
            let parsed = parse_events(event.to_string().as_bytes(), Timestamp::UNIX_EPOCH).unwrap();
            parsed.into_iter().map(|keyed| keyed.matter).collect()
        };
        assert_eq!(matters(&file_import), matters(&complete_import)[..1]);
    }

    #[test]
    fn blocked_import_is_named_by_title_or_release() {
        let event = |fields: Value| {
            let mut event = json!({ "eventType": "ManualInteractionRequired",
                                    "downloadInfo": { "title": "Some.Release.2021" } });
            event.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
            event
        };
        check(&event(json!({ "movie": movie_json() })), &[ArrEvent::ImportBlocked("Dune (2021)".into())]);
        let blocked_episodes =
            |numbers| event(json!({ "series": series_json(), "episodes": episodes_json(numbers) }));
        check(&blocked_episodes(&[3]), &[ArrEvent::ImportBlocked("The Bear S02E03".into())]);
        check(&blocked_episodes(&[3, 4]), &[ArrEvent::ImportBlocked("The Bear season 2".into())]);
        check(&event(json!({})), &[ArrEvent::ImportBlocked("Some.Release.2021".into())]);
    }

    #[test]
    fn health_issues_have_no_paths_and_skip_notices_and_updates() {
        let event = |level: &str, check: &str| {
            json!({ "eventType": "Health", "level": level, "type": check,
                    "message": "Folder '/data/films' is missing" })
        };
        let issue =
            ArrEvent::HealthIssue { check: "RootFolderCheck".into(), message: "Folder is missing".into() };
        check(&event("error", "RootFolderCheck"), &[issue]);
        check(&event("notice", "RootFolderCheck"), &[]);
        check(&event("warning", "UpdateCheck"), &[]);
        let restored = json!({ "eventType": "HealthRestored", "type": "RootFolderCheck" });
        check(&restored, &[ArrEvent::HealthRestored { check: "RootFolderCheck".into() }]);
    }

    #[test]
    fn irrelevant_and_test_events_give_no_arr_events() {
        check(&json!({ "eventType": "Test", "movie": { "id": 1, "title": "Test Title", "tmdbId": 0 } }), &[]);
        check(&json!({ "eventType": "Grab", "movie": movie_json(), "downloadId": "abc" }), &[]);
        check(&json!({ "eventType": "SomethingNew" }), &[]);
        check(&json!({ "eventType": "Download", "movie": { "id": 1, "tmdbId": 0, "title": "Test" } }), &[]);
    }

    #[test]
    fn malformed_event_is_rejected() {
        for body in ["", "null", "[]", "{}", "{\"eventType\":7}", "<html>"] {
            assert_eq!(parse_events(body.as_bytes(), Timestamp::UNIX_EPOCH), Err(EventParseError), "{body}");
        }
    }

    proptest! {
        #[test]
        fn any_event_has_a_matter_and_no_paths(
            kind in proptest::sample::select(vec!["Download", "ManualInteractionRequired", "Health", "HealthRestored"]),
            ids: [i64; 2],
            year: Option<i64>,
            (title, check) in any::<(String, String)>(),
            message in prop_oneof![any::<String>(), "[/\\\\'\"(): \ta\n\r.]{0,12}"],
            numbers in proptest::collection::vec(any::<(i64, Option<i64>)>(), 0..4),
            is_series: bool,
        ) {
            let title_json = json!({ "id": ids[0], "tmdbId": ids[1], "tvdbId": ids[1], "title": title, "year": year });
            let episodes: Vec<Value> = numbers
                .iter()
                .map(|(season, number)| json!({ "seasonNumber": season, "episodeNumber": number }))
                .collect();
            let event = json!({ "eventType": kind, (if is_series { "series" } else { "movie" }): title_json, "type": check,
                                "episodes": episodes, "message": message, "level": "error" });
            let parsed = parse_events(event.to_string().as_bytes(), Timestamp::UNIX_EPOCH).unwrap();
            assert!(parsed.len() <= numbers.len().max(1));
            let parsed_pretty = parse_events(&serde_json::to_vec_pretty(&event).unwrap(), Timestamp::UNIX_EPOCH);
            assert_eq!(parsed_pretty.as_ref(), Ok(&parsed));
            for KeyedArrEvent { matter, event } in parsed {
                assert!(!matter.is_empty());
                match event {
                    ArrEvent::MovieImported(title, _) | ArrEvent::EpisodeImported { show: title, .. } => {
                        assert_eq!((title.id, title.catalog_id), (ids[0], ids[1]));
                        assert_ne!(title.catalog_id, TEST_CATALOG_ID);
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
