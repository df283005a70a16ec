//! Imported downloads, read from the rows of the history: one entry per movie or season, newest first.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use jiff::Timestamp;

use super::api::ApiClient;
use super::time_format::parse_instant;
use super::wire::{EpisodeResource, HistoryRow, MovieResource};
use super::{ArrError, ImportedDownload};

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum ImportUnit {
    Movie(i64),
    Season(i64, Option<i64>),
    /// Release that matches no title of the library, as an entry of its own.
    Release(String),
}

/// Fetches the imports since an instant, newest first, including these parts of the history.
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

/// Converts history rows to imports. Rows without a date are left out, since they cannot be distinguished from old
/// ones.
fn imports_from_rows(rows: Vec<HistoryRow>) -> Vec<ImportedDownload> {
    let mut wholes: BTreeMap<ImportUnit, Vec<(Timestamp, HistoryRow)>> = BTreeMap::new();
    for row in rows {
        if let Some(at) = parse_instant(row.date.as_deref()) {
            wholes.entry(import_unit(&row)).or_default().push((at, row));
        }
    }
    let mut imported: Vec<ImportedDownload> = wholes
        .into_values()
        .filter_map(|mut rows| {
            rows.sort_by_key(|(at, _)| Reverse(*at));
            let (at, newest) = rows.first()?;
            Some(ImportedDownload { title: import_title(newest), detail: import_detail(&rows), at: *at })
        })
        .collect();
    imported.sort_by_key(|it| Reverse(it.at));
    imported
}

fn import_unit(row: &HistoryRow) -> ImportUnit {
    match (row.movie_id, row.series_id) {
        (Some(movie), _) => ImportUnit::Movie(movie),
        (None, Some(series)) => {
            ImportUnit::Season(series, row.episode.as_ref().and_then(|it| it.season_number))
        }
        (None, None) => ImportUnit::Release(row.source_title.clone().unwrap_or_default()),
    }
}

fn import_title(row: &HistoryRow) -> String {
    let movie = row.movie.as_ref().and_then(MovieResource::title_with_year);
    let series = || row.series.as_ref().and_then(|series| series.title.clone());
    movie.or_else(series).or_else(|| row.source_title.clone()).unwrap_or_default()
}

fn import_detail(rows: &[(Timestamp, HistoryRow)]) -> String {
    // A better copy of an existing episode has a row of its own.
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
            .map(|it| (it.title, it.detail, it.at.to_string()))
            .collect();
        let expected: Vec<(String, String, String)> =
            expected.iter().map(|&(title, detail, at)| (title.into(), detail.into(), at.into())).collect();
        assert_eq!(entries, expected);
    }

    fn bear(id: i64, season: i64, episode: i64, date: &str) -> Value {
        json!({
            "seriesId": 5, "episodeId": id, "date": date, "series": { "title": "The Bear" },
            "episode": { "seasonNumber": season, "episodeNumber": episode },
        })
    }

    #[test]
    fn episodes_of_one_season_are_one_entry() {
        check(
            json!([
                bear(1, 2, 1, "2026-05-01T10:00:00Z"),
                bear(2, 2, 2, "2026-05-01T11:00:00Z"),
                bear(2, 2, 2, "2026-05-01T12:00:00Z"),
                bear(9, 3, 4, "2026-05-02T12:00:00Z"),
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
    fn import_without_a_title_is_named_by_its_release() {
        check(
            json!([{ "sourceTitle": "Dune.x264", "date": "2026-05-01T10:00:00Z" }, { "sourceTitle": "undated" }]),
            &[("Dune.x264", "", "2026-05-01T10:00:00Z")],
        );
    }
}
