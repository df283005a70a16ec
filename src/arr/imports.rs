//! Imported downloads, built from the history: one entry per movie or season, newest first.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use jiff::Timestamp;

use super::api::ApiClient;
use super::time_parsing::parse_instant;
use super::wire::{EpisodeResource, HistoryRow, MovieResource};
use super::{ArrError, ImportedDownload};

/// Key by which history rows are grouped into one entry.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum ImportKey {
    Movie(i64),
    Season(i64, Option<i64>),
    /// Release that matches no title of the library.
    Release(String),
}

/// Fetches the imports since an instant, newest first, with the optional parts named in `includes`.
pub(super) async fn fetch_imports(
    api: &ApiClient,
    since: Timestamp,
    includes: &[&str],
) -> Result<Vec<ImportedDownload>, ArrError> {
    let since = since.to_string();
    let mut query = vec![("date", since.as_str()), ("eventType", "downloadFolderImported")];
    query.extend(includes.iter().map(|part| (*part, "true")));
    Ok(imports_from_rows(api.get("history/since", &query).await?))
}

/// Groups history rows into imports. Rows without a date are skipped, because they may be old.
fn imports_from_rows(rows: Vec<HistoryRow>) -> Vec<ImportedDownload> {
    let mut groups: BTreeMap<ImportKey, Vec<(Timestamp, HistoryRow)>> = BTreeMap::new();
    for row in rows {
        if let Some(at) = parse_instant(row.date.as_deref()) {
            groups.entry(group_key(&row)).or_default().push((at, row));
        }
    }
    let mut imported: Vec<ImportedDownload> = groups
        .into_values()
        .filter_map(|mut rows| {
            rows.sort_by_key(|(at, _)| Reverse(*at));
            let (at, newest) = rows.first()?;
            Some(ImportedDownload {
                title: format_import_title(newest),
                detail: format_import_detail(&rows),
                at: *at,
            })
        })
        .collect();
    imported.sort_by_key(|import| Reverse(import.at));
    imported
}

fn group_key(row: &HistoryRow) -> ImportKey {
    match (row.movie_id, row.series_id) {
        (Some(movie), _) => ImportKey::Movie(movie),
        (None, Some(series)) => {
            ImportKey::Season(series, row.episode.as_ref().and_then(|episode| episode.season_number))
        }
        (None, None) => ImportKey::Release(row.source_title.clone().unwrap_or_default()),
    }
}

fn format_import_title(row: &HistoryRow) -> String {
    let movie = row.movie.as_ref().and_then(MovieResource::title_with_year);
    let series = || row.series.as_ref().and_then(|series| series.title.clone());
    movie.or_else(series).or_else(|| row.source_title.clone()).unwrap_or_default()
}

fn format_import_detail(rows: &[(Timestamp, HistoryRow)]) -> String {
    // An upgraded episode has a second row.
    let mut episodes: Vec<i64> = rows.iter().filter_map(|(_, row)| row.episode_id).collect();
    episodes.sort_unstable();
    episodes.dedup();
    let newest = rows.first().and_then(|(_, row)| row.episode.as_ref());
    match (episodes.len(), newest.and_then(|episode| episode.season_number)) {
        (0, _) | (1, None) => String::new(),
        (1, Some(_)) => newest.and_then(EpisodeResource::episode_code).unwrap_or_default(),
        (count, Some(season)) => format!("season {season} ({count} episodes)"),
        (count, None) => format!("{count} episodes"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[track_caller]
    fn check(rows: Value, expected: &[(&str, &str, &str)]) {
        let entries: Vec<(String, String, String)> = imports_from_rows(serde_json::from_value(rows).unwrap())
            .into_iter()
            .map(|import| (import.title, import.detail, import.at.to_string()))
            .collect();
        let expected: Vec<(String, String, String)> =
            expected.iter().map(|&(title, detail, at)| (title.into(), detail.into(), at.into())).collect();
        assert_eq!(entries, expected);
    }

    fn bear_row(id: i64, season: i64, episode: i64, date: &str) -> Value {
        json!({
            "seriesId": 5, "episodeId": id, "date": date, "series": { "title": "The Bear" },
            "episode": { "seasonNumber": season, "episodeNumber": episode },
        })
    }

    #[test]
    fn episodes_of_one_season_are_one_entry() {
        check(
            json!([
                bear_row(1, 2, 1, "2026-05-01T10:00:00Z"),
                bear_row(2, 2, 2, "2026-05-01T11:00:00Z"),
                bear_row(2, 2, 2, "2026-05-01T12:00:00Z"),
                bear_row(9, 3, 4, "2026-05-02T12:00:00Z"),
            ]),
            &[
                ("The Bear", "S03E04", "2026-05-02T12:00:00Z"),
                ("The Bear", "season 2 (2 episodes)", "2026-05-01T12:00:00Z"),
            ],
        );
    }

    #[test]
    fn movie_imported_twice_is_one_entry() {
        let dune =
            |date: &str| json!({ "movieId": 7, "date": date, "movie": { "title": "Dune", "year": 2021 } });
        check(
            json!([dune("2026-05-01T10:00:00Z"), dune("2026-05-03T10:00:00Z")]),
            &[("Dune (2021)", "", "2026-05-03T10:00:00Z")],
        );
    }

    #[test]
    fn unmatched_import_has_its_release_name() {
        check(
            json!([{ "sourceTitle": "Dune.x264", "date": "2026-05-01T10:00:00Z" }, { "sourceTitle": "undated" }]),
            &[("Dune.x264", "", "2026-05-01T10:00:00Z")],
        );
    }
}
