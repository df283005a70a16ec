//! Client for the part of Sonarr's API that we use.

use std::sync::Arc;

use jiff::Timestamp;
use secrecy::SecretString;
use serde_json::{Value, json};
use url::Url;

use super::api::ApiClient;
use super::common_api::CommonApi;
use super::library_title::LibraryTitle;
use super::time_parsing::parse_instant;
use super::title_limit::TitleLimit;
use super::{
    AdditionOutcome, ArrError, CalendarDate, CalendarEntry, Download, ImportedDownload, NewSeries,
    QualityProfile, RemovalOutcome, RootFolder, SPECIALS, Series, WantedEpisodes, downloads, imports, wire,
};
use crate::conversation::people::age_ratings::{AgeLimit, RatingCountry};
use crate::http::HttpClient;

#[derive(Debug, Clone)]
pub struct Sonarr {
    pub(super) api: ApiClient,
}

impl Sonarr {
    pub fn new(http: HttpClient, base: Url, key: SecretString) -> Self {
        Self { api: ApiClient::new(http, base, key) }
    }

    /// Returns a client that reads only the titles within an age limit. Sonarr shows the ratings of the United States.
    pub fn limited_to(&self, limit: &AgeLimit) -> Self {
        let limit = TitleLimit { limit: limit.clone(), country: Some(RatingCountry::UnitedStates) };
        Self { api: self.api.limited_to(Some(Arc::new(limit))) }
    }

    /// Returns a client that reads all titles.
    pub fn unlimited(&self) -> Self {
        Self { api: self.api.limited_to(None) }
    }

    /// Returns the titles that the reader may see; `None` without a limit.
    pub fn title_limit(&self) -> Option<&TitleLimit> {
        self.api.limit().map(Arc::as_ref)
    }

    pub fn common_api(&self) -> CommonApi<'_> {
        CommonApi(&self.api)
    }

    /// Searches the catalog. `term` is a title or an id such as `tvdb:78107`. An empty term finds nothing.
    pub async fn lookup_series(&self, term: &str) -> Result<Vec<Series>, ArrError> {
        self.api.get_lookup::<wire::SeriesResource, _>("series/lookup", term).await
    }

    /// Streams the whole library and passes each title to `visit`.
    pub async fn for_each_title(&self, mut visit: impl FnMut(LibraryTitle)) -> Result<(), ArrError> {
        let visit = |record: wire::SeriesResource| visit(record.into());
        self.api.visit_library("series", &[], visit).await
    }

    /// Fetches the current state of one title of the library.
    pub async fn fetch_library_title(&self, id: i64) -> Result<Option<LibraryTitle>, ArrError> {
        self.api.get_record::<wire::SeriesResource, _>(&format!("series/{id}")).await
    }

    pub async fn fetch_series(&self, id: i64) -> Result<Option<Series>, ArrError> {
        self.api.get_record::<wire::SeriesResource, _>(&format!("series/{id}")).await
    }

    pub async fn fetch_series_by_tvdb(&self, tvdb: i64) -> Result<Option<Series>, ArrError> {
        let id = tvdb.to_string();
        self.api
            .find_in_list::<wire::SeriesResource, Series>("series", &[("tvdbId", &id)], |series| {
                series.tvdb == tvdb
            })
            .await
    }

    /// Adds a series with exactly the wanted seasons and searches for the missing episodes.
    pub async fn add_series(&self, series: &NewSeries) -> Result<AdditionOutcome, ArrError> {
        self.api.post_addition("series", &addition_json(series)).await
    }

    pub async fn delete_series(&self, id: i64, delete_files: bool) -> Result<RemovalOutcome, ArrError> {
        let delete_files = if delete_files { "true" } else { "false" };
        let query = [("deleteFiles", delete_files), ("addImportListExclusion", "false")];
        match self.api.delete(&format!("series/{id}"), &query).await {
            Ok(()) => Ok(RemovalOutcome::Removed),
            Err(ArrError::NotFound) => Ok(RemovalOutcome::AlreadyGone),
            // Sonarr returns this error for a series that does not exist. Only a lookup distinguishes it from a real
            // failure.
            Err(error @ ArrError::Server { .. }) => match self.fetch_series(id).await {
                Ok(None) => Ok(RemovalOutcome::AlreadyGone),
                Ok(Some(_)) | Err(_) => Err(error),
            },
            Err(error) => Err(error),
        }
    }

    pub async fn fetch_downloads(&self) -> Result<Vec<Download>, ArrError> {
        let includes = ["includeUnknownSeriesItems", "includeSeries", "includeEpisode"];
        downloads::fetch_queue(&self.api, &includes).await
    }

    /// Fetches the episodes that air from `start` to `end`, soonest first.
    pub async fn fetch_calendar(
        &self,
        start: Timestamp,
        end: Timestamp,
    ) -> Result<Vec<CalendarEntry>, ArrError> {
        let (start, end) = (start.to_string(), end.to_string());
        let query = [
            ("start", start.as_str()),
            ("end", end.as_str()),
            ("unmonitored", "false"),
            ("includeSeries", "true"),
        ];
        let episodes: Vec<wire::EpisodeResource> = self.api.get("calendar", &query).await?;
        let mut dated: Vec<(Timestamp, CalendarEntry)> = episodes.iter().filter_map(calendar_entry).collect();
        dated.sort_by(|(left_time, left), (right_time, right)| {
            (left_time, &left.title).cmp(&(right_time, &right.title))
        });
        Ok(dated.into_iter().map(|(_, entry)| entry).collect())
    }

    /// Fetches the imports since an instant, newest first.
    pub async fn fetch_imports_since(&self, since: Timestamp) -> Result<Vec<ImportedDownload>, ArrError> {
        imports::fetch_imports(&self.api, since, &["includeSeries", "includeEpisode"]).await
    }

    pub async fn fetch_profiles(&self) -> Result<Vec<QualityProfile>, ArrError> {
        self.common_api().fetch_profiles().await
    }

    pub async fn fetch_root_folders(&self) -> Result<Vec<RootFolder>, ArrError> {
        self.common_api().fetch_root_folders().await
    }
}

fn addition_json(series: &NewSeries) -> Value {
    let (monitor, new_seasons) = match &series.wanted {
        // "skip" leaves the flags of the seasons unchanged. Any other value overwrites them.
        WantedEpisodes::Seasons(seasons) => ("skip", includes_new_seasons(seasons)),
        WantedEpisodes::Future => ("future", true),
        WantedEpisodes::Pilot => ("pilot", false),
    };
    let mut body = json!({
        "title": series.title,
        "tvdbId": series.tvdb,
        "qualityProfileId": series.profile,
        "rootFolderPath": series.root_folder,
        "monitored": true,
        "monitorNewItems": if new_seasons { "all" } else { "none" },
        "seasonFolder": true,
        "seriesType": series.series_type,
        "tags": [],
        "addOptions": { "monitor": monitor, "searchForMissingEpisodes": true, "searchForCutoffUnmetEpisodes": false },
    });
    if let WantedEpisodes::Seasons(seasons) = &series.wanted {
        let flag = |(number, wanted): &(u32, bool)| json!({ "seasonNumber": number, "monitored": wanted });
        body["seasons"] = seasons.iter().map(flag).collect();
    }
    body
}

/// Returns whether future seasons will be monitored: yes if the latest season is wanted. The specials never count as the
/// latest season. A series without regular seasons is wanted as a whole, unless only its specials are wanted.
fn includes_new_seasons(seasons: &[(u32, bool)]) -> bool {
    let regular = seasons.iter().filter(|(number, _)| *number != SPECIALS);
    match regular.max_by_key(|(number, _)| *number) {
        Some((_, wanted)) => *wanted,
        None => seasons.iter().all(|(_, wanted)| !wanted),
    }
}

/// Returns the air time and the calendar entry of an episode. Returns `None` if the episode has no air time.
fn calendar_entry(episode: &wire::EpisodeResource) -> Option<(Timestamp, CalendarEntry)> {
    let at = parse_instant(episode.air_date_utc.as_deref())?;
    let series = episode.series.as_ref().and_then(|series| series.title.as_deref());
    let title = match (series, episode.episode_code()) {
        (Some(series), Some(code)) => format!("{series} {code}"),
        (Some(series), None) => series.to_owned(),
        (None, _) => episode.title.clone()?,
    };
    let (series, date) = (series.unwrap_or_default().to_owned(), CalendarDate::Airs(at));
    Some((at, CalendarEntry { title, series, date, on_disk: episode.has_file.unwrap_or_default() }))
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use bytes::Bytes;
    use futures_util::FutureExt;
    use http::{Method, Request, Response};

    use super::*;
    use crate::arr::Season;

    type RequestLog = Arc<Mutex<Vec<(String, Value)>>>;

    /// Creates a Sonarr client whose server returns one response to reads and one to writes, and the log of its
    /// requests.
    fn sonarr(reads: (u16, &Value), writes: (u16, &Value)) -> (Sonarr, RequestLog) {
        let requests = RequestLog::default();
        let log = Arc::clone(&requests);
        let [reads, writes] = [reads, writes].map(|(status, body)| (status, Bytes::from(body.to_string())));
        let respond = move |request: Request<Bytes>| {
            let body_json = serde_json::from_slice(request.body()).unwrap_or_default();
            log.lock().unwrap().push((format!("{} {}", request.method(), request.uri()), body_json));
            let (status, body) = if request.method() == Method::GET { &reads } else { &writes };
            let response = Response::builder().status(*status).body(body.clone()).unwrap();
            async move { response }.boxed()
        };
        let http = HttpClient::in_process(Arc::new(respond));
        (Sonarr::new(http, "http://s".parse().unwrap(), SecretString::from("k")), requests)
    }

    #[track_caller]
    fn check_requests(requests: &RequestLog, expected: &[(&str, Value)]) {
        let expected: Vec<(String, Value)> =
            expected.iter().map(|(request, body)| ((*request).to_owned(), body.clone())).collect();
        assert_eq!(*requests.lock().unwrap(), expected);
    }

    fn new_severance(seasons: Vec<(u32, bool)>) -> NewSeries {
        NewSeries {
            tvdb: 371_980,
            title: "Severance".into(),
            series_type: "standard".into(),
            profile: 1,
            root_folder: "/tv".into(),
            wanted: WantedEpisodes::Seasons(seasons),
        }
    }

    #[tokio::test]
    async fn episode_totals_exclude_the_specials() {
        let season = |number: u32, monitored: bool, on_disk: u32, all: u32| {
            json!({ "seasonNumber": number, "monitored": monitored,
                    "statistics": { "episodeFileCount": on_disk, "totalEpisodeCount": all, "sizeOnDisk": 3 } })
        };
        let (sonarr, requests) = sonarr(
            (
                200,
                &json!([{
                    "id": 15, "tvdbId": 371_980, "tmdbId": 95_396, "imdbId": "tt11280740", "title": "Severance", "year": 2022, "monitored": true,
                    "status": "continuing", "ended": false, "seriesType": "daily", "path": "/tv/s",
                    "qualityProfileId": 1, "nextAiring": "2026-09-01T01:00:00Z",
                    "monitorNewItems": "all", "genres": ["Drama"], "certification": "TV-MA", "added": "2024-01-01T00:00:00Z",
                    "ratings": { "votes": 9, "value": 8.3 },
                    "seasons": [season(0, false, 2, 30), season(1, false, 9, 9), season(2, true, 4, 10)],
                    "statistics": { "episodeFileCount": 15, "totalEpisodeCount": 49, "sizeOnDisk": 41_000_000_000_i64 },
                }]),
            ),
            (500, &json!({})),
        );
        let expected = Series {
            id: Some(15),
            tvdb: 371_980,
            tmdb: Some(95_396),
            imdb: Some(11_280_740),
            title: "Severance".into(),
            year: 2022,
            overview: String::new(),
            monitored: true,
            ended: false,
            series_type: "daily".into(),
            seasons: vec![
                Season { number: 1, monitored: false, episodes_on_disk: 9, episodes: 9, size_bytes: 3 },
                Season { number: 2, monitored: true, episodes_on_disk: 4, episodes: 10, size_bytes: 3 },
            ],
            specials: Some(Season {
                number: 0,
                monitored: false,
                episodes_on_disk: 2,
                episodes: 30,
                size_bytes: 3,
            }),
            episodes_on_disk: 13,
            episodes: 19,
            size_bytes: 41_000_000_000,
            path: "/tv/s".into(),
            profile: 1,
            next_airing: Some("2026-09-01T01:00:00Z".parse().unwrap()),
            new_seasons: true,
            genres: vec!["Drama".into()],
            certification: "TV-MA".into(),
            rating: Some(8.3),
            added: Some("2024-01-01T00:00:00Z".parse().unwrap()),
        };
        assert_eq!(sonarr.fetch_series_by_tvdb(371_980).await.unwrap(), Some(expected));
        check_requests(&requests, &[("GET http://s/api/v3/series?tvdbId=371980", Value::Null)]);
    }

    #[tokio::test]
    async fn series_is_added_with_exactly_the_selected_seasons() {
        let (sonarr, requests) = sonarr((500, &json!({})), (201, &json!({})));
        let new_series = new_severance(vec![(0, false), (1, true), (2, false)]);
        assert_eq!(sonarr.add_series(&new_series).await.unwrap(), AdditionOutcome::Added);
        check_requests(
            &requests,
            &[(
                "POST http://s/api/v3/series",
                json!({
                    "title": "Severance", "tvdbId": 371_980, "qualityProfileId": 1, "rootFolderPath": "/tv",
                    "monitored": true, "monitorNewItems": "none", "seasonFolder": true,
                    "seriesType": "standard", "tags": [],
                    "seasons": [
                        { "seasonNumber": 0, "monitored": false },
                        { "seasonNumber": 1, "monitored": true },
                        { "seasonNumber": 2, "monitored": false },
                    ],
                    "addOptions": {
                        "monitor": "skip",
                        "searchForMissingEpisodes": true,
                        "searchForCutoffUnmetEpisodes": false,
                    },
                }),
            )],
        );
    }

    #[test]
    fn wanted_latest_season_includes_future_seasons() {
        let body = addition_json(&new_severance(vec![(0, false), (2, true), (1, false)]));
        assert_eq!(body["monitorNewItems"], "all");
    }

    #[test]
    fn specials_never_count_as_the_latest_season() {
        let new_items = |seasons: &[(u32, bool)]| {
            addition_json(&new_severance(seasons.to_vec()))["monitorNewItems"].clone()
        };
        assert_eq!([new_items(&[]), new_items(&[(0, false)])], ["all", "all"]);
        assert_eq!([new_items(&[(0, true)]), new_items(&[(0, true), (1, false)])], ["none", "none"]);
    }

    #[tokio::test]
    async fn deletion_of_a_missing_series_is_already_gone() {
        let failure = json!({ "message": "Expected query to return 1 rows but returned 0" });
        let (sonarr, requests) = sonarr((404, &json!({})), (500, &failure));
        assert_eq!(sonarr.delete_series(15, true).await.unwrap(), RemovalOutcome::AlreadyGone);
        check_requests(
            &requests,
            &[
                (
                    "DELETE http://s/api/v3/series/15?deleteFiles=true&addImportListExclusion=false",
                    Value::Null,
                ),
                ("GET http://s/api/v3/series/15", Value::Null),
            ],
        );
    }

    #[tokio::test]
    async fn failed_deletion_of_an_existing_series_is_an_error() {
        let (sonarr, _) = sonarr((200, &json!({ "id": 15 })), (500, &json!({ "message": "disk full" })));
        let error = sonarr.delete_series(15, false).await.unwrap_err();
        assert_eq!(error.to_string(), "complete the request: status 500: disk full");
    }

    #[tokio::test]
    async fn calendar_names_episodes_by_series_and_number() {
        let episode = |number: u32, air: &str| {
            json!({ "seasonNumber": 4, "episodeNumber": number, "title": "Groundhogs", "airDateUtc": air,
                    "hasFile": false, "series": { "title": "The Bear" } })
        };
        let (sonarr, requests) = sonarr(
            (
                200,
                &json!([episode(2, "2026-06-25T02:00:00Z"), episode(1, "2026-06-25T01:00:00Z"), { "title": "undated" }]),
            ),
            (500, &json!({})),
        );
        let [start, end] = ["2026-06-24T00:00:00Z", "2026-07-01T00:00:00Z"].map(|at| at.parse().unwrap());
        let entry = |title: &str, at: &str| CalendarEntry {
            title: title.into(),
            series: "The Bear".into(),
            date: CalendarDate::Airs(at.parse().unwrap()),
            on_disk: false,
        };
        assert_eq!(
            sonarr.fetch_calendar(start, end).await.unwrap(),
            [
                entry("The Bear S04E01", "2026-06-25T01:00:00Z"),
                entry("The Bear S04E02", "2026-06-25T02:00:00Z")
            ]
        );
        check_requests(
            &requests,
            &[(
                "GET http://s/api/v3/calendar?start=2026-06-24T00%3A00%3A00Z&end=2026-07-01T00%3A00%3A00Z&unmonitored=false&includeSeries=true",
                Value::Null,
            )],
        );
    }
}
