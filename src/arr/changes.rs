//! Changes to titles of the library, and searches for their releases.

use http::Method;
use serde_json::{Map, Value, json};

use super::common_api::removal_outcome;
use super::radarr::Radarr;
use super::sonarr::Sonarr;
use super::title_limit::{LimitedRecord, TitleLimit};
use super::{ArrError, Availability, RemovalOutcome};

/// Changes to the settings of a movie. A field that is `None` stays unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MovieChange {
    pub monitored: Option<bool>,
    pub profile: Option<i64>,
    pub availability: Option<Availability>,
}

/// Changes to the settings of a series. A field that is `None` stays unchanged. Episodes are never changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SeriesChange {
    pub monitored: Option<bool>,
    pub profile: Option<i64>,
    /// True if future seasons will be monitored.
    pub new_seasons: Option<bool>,
    /// Series type: `standard`, `daily` or `anime`.
    pub series_type: Option<&'static str>,
}

/// Search that Sonarr starts immediately. Unmonitored episodes are searched for only in an `Episodes` search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SeriesSearch {
    Season {
        series: i64,
        season: u32,
    },
    Episodes(Vec<i64>),
    /// Every episode that is monitored, has aired and is not on disk.
    Missing(i64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeasonMonitoringOutcome {
    Updated,
    /// The series is not in the library.
    SeriesNotFound,
}

impl Availability {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Announced => "announced",
            Self::InCinemas => "inCinemas",
            Self::Released => "released",
        }
    }
}

impl Radarr {
    /// Edits a movie. Returns a server error if the movie is not in the library.
    pub async fn edit_movie(&self, movie: i64, change: MovieChange) -> Result<(), ArrError> {
        let MovieChange { monitored, profile, availability } = change;
        let body = present_fields([
            ("movieIds", Some(json!([movie]))),
            ("monitored", monitored.map(Value::from)),
            ("qualityProfileId", profile.map(Value::from)),
            ("minimumAvailability", availability.map(|availability| json!(availability.as_str()))),
        ]);
        self.api.write_json(Method::PUT, "movie/editor", &body).await
    }

    /// Searches for a movie immediately, even if it is unmonitored or unreleased.
    pub async fn search_movie(&self, movie: i64) -> Result<(), ArrError> {
        self.common_api().start_command(&json!({ "name": "MoviesSearch", "movieIds": [movie] })).await
    }

    /// Deletes a file from the disk. The movie stays in the library, and stays monitored unless Radarr is configured
    /// otherwise.
    pub async fn delete_file(&self, file: i64) -> Result<RemovalOutcome, ArrError> {
        removal_outcome(self.api.delete(&format!("moviefile/{file}"), &[]).await)
    }
}

impl Sonarr {
    /// Edits a series. Returns a server error if the series is not in the library.
    pub async fn edit_series(&self, series: i64, change: SeriesChange) -> Result<(), ArrError> {
        let SeriesChange { monitored, profile, new_seasons, series_type } = change;
        let body = present_fields([
            ("seriesIds", Some(json!([series]))),
            ("monitored", monitored.map(Value::from)),
            ("monitorNewItems", new_seasons.map(|all| json!(if all { "all" } else { "none" }))),
            ("qualityProfileId", profile.map(Value::from)),
            ("seriesType", series_type.map(Value::from)),
        ]);
        self.api.write_json(Method::PUT, "series/editor", &body).await
    }

    /// Sets the monitored flags of the given seasons. Sonarr copies a changed flag to all episodes of the season.
    pub async fn monitor_seasons(
        &self,
        series: i64,
        flags: &[(u32, bool)],
    ) -> Result<SeasonMonitoringOutcome, ArrError> {
        let path = format!("series/{series}");
        // Sonarr clears fields that are missing from the request, so the whole record is sent back.
        let Some(mut record) = self.api.get_record::<SeriesRecord, Value>(&path).await? else {
            return Ok(SeasonMonitoringOutcome::SeriesNotFound);
        };
        for season in record["seasons"].as_array_mut().into_iter().flatten() {
            let number = season["seasonNumber"].as_u64();
            if let Some((_, flag)) = flags.iter().find(|(flagged, _)| Some(u64::from(*flagged)) == number) {
                season["monitored"] = json!(flag);
            }
        }
        match self.api.write_json(Method::PUT, &path, &record).await {
            Ok(()) => Ok(SeasonMonitoringOutcome::Updated),
            Err(ArrError::NotFound) => Ok(SeasonMonitoringOutcome::SeriesNotFound),
            Err(error) => Err(error),
        }
    }

    /// Monitors exactly the episodes of a series that have not aired yet.
    pub async fn monitor_future_episodes(&self, series: i64) -> Result<(), ArrError> {
        let body = json!({
            "series": [{ "id": series, "monitored": true }],
            "monitoringOptions": { "monitor": "future" },
        });
        self.api.write_json(Method::POST, "seasonpass", &body).await
    }

    /// Starts a search for episodes.
    pub async fn search_series(&self, search: &SeriesSearch) -> Result<(), ArrError> {
        let command = match search {
            SeriesSearch::Season { series, season } => {
                json!({ "name": "SeasonSearch", "seriesId": series, "seasonNumber": season })
            }
            SeriesSearch::Episodes(ids) => json!({ "name": "EpisodeSearch", "episodeIds": ids }),
            SeriesSearch::Missing(series) => json!({ "name": "MissingEpisodeSearch", "seriesId": series }),
        };
        self.common_api().start_command(&command).await
    }
}

/// Complete record of a series, which is sent back with changes.
#[derive(serde::Deserialize)]
#[serde(transparent)]
struct SeriesRecord(Value);

impl From<SeriesRecord> for Value {
    fn from(SeriesRecord(record): SeriesRecord) -> Self {
        record
    }
}

impl LimitedRecord for SeriesRecord {
    fn within_limit(self, limit: &TitleLimit) -> Option<Self> {
        limit.allows_series(self.0["tvdbId"].as_i64(), self.0["certification"].as_str()).then_some(self)
    }
}

fn present_fields<const N: usize>(fields: [(&str, Option<Value>); N]) -> Value {
    let present = fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    Value::Object(present.collect::<Map<_, _>>())
}
