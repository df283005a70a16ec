//! Client for the part of Radarr's API that we use.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::Date;
use secrecy::SecretString;
use serde_json::json;
use url::Url;

use super::api::ApiClient;
use super::common_api::{CommonApi, MetadataConfig, removal_outcome};
use super::library_title::LibraryTitle;
use super::time_parsing::parse_day;
use super::title_limit::TitleLimit;
use super::{
    AdditionOutcome, ArrError, CalendarDate, CalendarEntry, Download, ImportedDownload, Movie, NewMovie,
    QualityProfile, ReleaseKind, RemovalOutcome, RootFolder, downloads, imports, wire,
};
use crate::conversation::people::age_ratings::{AgeLimit, RatingCountry};
use crate::http::HttpClient;

/// Time limit for reading the country of the ratings.
const COUNTRY_TIMEOUT: Duration = Duration::from_secs(3);

#[derive(Debug, Clone)]
pub struct Radarr {
    pub(super) api: ApiClient,
}

impl Radarr {
    pub fn new(http: HttpClient, base: Url, key: SecretString) -> Self {
        Self { api: ApiClient::new(http, base, key) }
    }

    /// Returns a client that reads only the titles within an age limit. Their ratings are those of the country that
    /// Radarr is set to; if Radarr does not answer in time, no rating is known.
    pub async fn limited_to(&self, limit: &AgeLimit) -> Self {
        let config = self.api.get::<MetadataConfig>("config/metadata", &[]);
        let country = match tokio::time::timeout(COUNTRY_TIMEOUT, config).await {
            Ok(Ok(config)) => config.certification_country.as_deref().and_then(RatingCountry::from_code),
            Ok(Err(error)) => {
                tracing::warn!(%error, "failed to read the country of the ratings");
                None
            }
            Err(_) => None,
        };
        let limit = TitleLimit { limit: limit.clone(), country };
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

    /// Searches the catalog. `term` is a title or an id such as `tmdb:603`. An empty term finds nothing.
    pub async fn lookup_movies(&self, term: &str) -> Result<Vec<Movie>, ArrError> {
        self.api.get_lookup::<wire::MovieResource, _>("movie/lookup", term).await
    }

    /// Streams the whole library and passes each title to `visit`.
    pub async fn for_each_title(&self, mut visit: impl FnMut(LibraryTitle)) -> Result<(), ArrError> {
        let visit = |record: wire::MovieResource| visit(record.into());
        self.api.visit_library("movie", &[("excludeLocalCovers", "true")], visit).await
    }

    /// Fetches the current state of one title of the library.
    pub async fn fetch_library_title(&self, id: i64) -> Result<Option<LibraryTitle>, ArrError> {
        self.api.get_record::<wire::MovieResource, _>(&format!("movie/{id}")).await
    }

    pub async fn fetch_movie(&self, id: i64) -> Result<Option<Movie>, ArrError> {
        self.api.get_record::<wire::MovieResource, _>(&format!("movie/{id}")).await
    }

    pub async fn fetch_movie_by_tmdb(&self, tmdb: i64) -> Result<Option<Movie>, ArrError> {
        let query = [("tmdbId", tmdb.to_string()), ("excludeLocalCovers", "true".into())];
        let query = query.each_ref().map(|(name, value)| (*name, value.as_str()));
        self.api.find_in_list::<wire::MovieResource, Movie>("movie", &query, |movie| movie.tmdb == tmdb).await
    }

    /// Adds a movie as monitored and searches for it immediately.
    pub async fn add_movie(&self, movie: &NewMovie) -> Result<AdditionOutcome, ArrError> {
        let body = json!({
            "title": movie.title,
            "tmdbId": movie.tmdb,
            "qualityProfileId": movie.profile,
            "rootFolderPath": movie.root_folder,
            "monitored": true,
            "minimumAvailability": movie.availability.as_str(),
            "tags": [],
            "addOptions": { "monitor": "movieOnly", "searchForMovie": true },
        });
        self.api.post_addition("movie", &body).await
    }

    pub async fn delete_movie(&self, id: i64, delete_files: bool) -> Result<RemovalOutcome, ArrError> {
        let delete_files = if delete_files { "true" } else { "false" };
        let query = [("deleteFiles", delete_files), ("addImportExclusion", "false")];
        removal_outcome(self.api.delete(&format!("movie/{id}"), &query).await)
    }

    pub async fn fetch_downloads(&self) -> Result<Vec<Download>, ArrError> {
        downloads::fetch_queue(&self.api, &["includeUnknownMovieItems", "includeMovie"]).await
    }

    /// Fetches the releases from `start` to `end`, both included, soonest first, one entry per movie.
    pub async fn fetch_calendar(&self, start: Date, end: Date) -> Result<Vec<CalendarEntry>, ArrError> {
        let (first, last) = (format!("{start}T00:00:00Z"), format!("{end}T23:59:59Z"));
        let query = [("start", first.as_str()), ("end", last.as_str()), ("unmonitored", "false")];
        let movies: Vec<wire::MovieResource> = self.api.get("calendar", &query).await?;
        let mut dated: Vec<(Date, CalendarEntry)> =
            movies.iter().filter_map(|movie| calendar_entry(movie, start, end)).collect();
        dated.sort_by(|(left_day, left), (right_day, right)| {
            (left_day, &left.title).cmp(&(right_day, &right.title))
        });
        Ok(dated.into_iter().map(|(_, entry)| entry).collect())
    }

    /// Fetches the imports since an instant, newest first.
    pub async fn fetch_imports_since(&self, since: Timestamp) -> Result<Vec<ImportedDownload>, ArrError> {
        imports::fetch_imports(&self.api, since, &["includeMovie"]).await
    }

    pub async fn fetch_profiles(&self) -> Result<Vec<QualityProfile>, ArrError> {
        self.common_api().fetch_profiles().await
    }

    pub async fn fetch_root_folders(&self) -> Result<Vec<RootFolder>, ArrError> {
        self.common_api().fetch_root_folders().await
    }
}

/// Returns the calendar entry for the first release of a movie within the window. The calendar lists a movie for any of
/// three dates without naming the one that matched.
fn calendar_entry(movie: &wire::MovieResource, start: Date, end: Date) -> Option<(Date, CalendarEntry)> {
    let releases = [
        (&movie.digital_release, ReleaseKind::Digital),
        (&movie.physical_release, ReleaseKind::Physical),
        (&movie.in_cinemas, ReleaseKind::Cinema),
    ];
    let (day, release) = releases
        .into_iter()
        .filter_map(|(date, release)| Some((parse_day(date.as_deref())?, release)))
        .filter(|(day, _)| (start..=end).contains(day))
        .min_by_key(|(day, _)| *day)?;
    let date = CalendarDate::Released(day, release);
    let (title, on_disk) = (movie.title_with_year()?, movie.has_file.unwrap_or_default());
    Some((day, CalendarEntry { title, series: String::new(), date, on_disk }))
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use bytes::Bytes;
    use futures_util::FutureExt;
    use http::{Request, Response};
    use jiff::civil::date;
    use serde_json::Value;

    use super::*;
    use crate::arr::{Availability, MediaFile, MovieCollection, ReleaseStatus};

    type RequestLog = Arc<Mutex<Vec<(String, Value)>>>;

    /// Creates a Radarr client whose server returns the same response to every request, and the log of its requests.
    fn radarr(status: u16, body: &Value) -> (Radarr, RequestLog) {
        let requests = RequestLog::default();
        let (log, body) = (Arc::clone(&requests), Bytes::from(body.to_string()));
        let respond = move |request: Request<Bytes>| {
            let body_json = serde_json::from_slice(request.body()).unwrap_or_default();
            log.lock().unwrap().push((format!("{} {}", request.method(), request.uri()), body_json));
            let response = Response::builder().status(status).body(body.clone()).unwrap();
            async move { response }.boxed()
        };
        let http = HttpClient::in_process(Arc::new(respond));
        (Radarr::new(http, "http://r".parse().unwrap(), SecretString::from("k")), requests)
    }

    #[track_caller]
    fn check_requests(requests: &RequestLog, expected: &[(&str, Value)]) {
        let expected: Vec<(String, Value)> =
            expected.iter().map(|(request, body)| ((*request).to_owned(), body.clone())).collect();
        assert_eq!(*requests.lock().unwrap(), expected);
    }

    fn catalog_hit() -> Movie {
        Movie {
            id: None,
            tmdb: 603,
            imdb: None,
            title: "The Matrix".into(),
            year: 1999,
            overview: String::new(),
            has_file: false,
            monitored: false,
            available: false,
            size_bytes: 0,
            path: String::new(),
            profile: 0,
            popularity: 0.0,
            cinema: None,
            digital: None,
            physical: None,
            status: ReleaseStatus::Announced,
            availability: Availability::Released,
            file: None,
            genres: Vec::new(),
            certification: String::new(),
            rating: None,
            added: None,
            last_search: None,
            collection: None,
        }
    }

    fn new_matrix() -> NewMovie {
        NewMovie {
            tmdb: 603,
            title: "The Matrix".into(),
            profile: 4,
            root_folder: "/films".into(),
            availability: Availability::Released,
        }
    }

    #[tokio::test]
    async fn only_a_hit_with_an_id_is_in_the_library() {
        let (radarr, requests) = radarr(
            200,
            &json!([
                { "title": "The Matrix", "tmdbId": 603, "year": 1999, "isAvailable": true, "status": "announced" },
                { "title": "The Matrix", "tmdbId": 603, "year": 1999, "isAvailable": true, "id": 7,
                  "imdbId": "tt0133093",
                  "hasFile": true, "monitored": true, "sizeOnDisk": 9_000_000_000_i64, "path": "/films/m",
                  "qualityProfileId": 4, "popularity": 48.5, "inCinemas": "1999-03-31T00:00:00Z",
                  "digitalRelease": "0001-01-01T00:00:00Z", "status": "released",
                  "minimumAvailability": "inCinemas", "genres": ["Action"], "certification": "R", "added": "2024-01-01T00:00:00Z",
                  "lastSearchTime": "2024-01-02T00:00:00Z", "ratings": { "tmdb": { "votes": 9, "value": 8.2 } },
                  "collection": { "title": "The Matrix Collection", "tmdbId": 2344 },
                  "movieFile": { "id": 31, "size": 9_000_000_000_i64,
                                 "quality": { "quality": { "id": 7, "name": "Bluray-1080p" } } } },
            ]),
        );
        let in_library = Movie {
            id: Some(7),
            imdb: Some(133_093),
            has_file: true,
            monitored: true,
            available: true,
            size_bytes: 9_000_000_000,
            path: "/films/m".into(),
            profile: 4,
            popularity: 48.5,
            cinema: Some(date(1999, 3, 31)),
            status: ReleaseStatus::Released,
            availability: Availability::InCinemas,
            file: Some(MediaFile { id: 31, size_bytes: 9_000_000_000, quality: "Bluray-1080p".into() }),
            genres: vec!["Action".into()],
            certification: "R".into(),
            rating: Some(8.2),
            added: Some("2024-01-01T00:00:00Z".parse().unwrap()),
            last_search: Some("2024-01-02T00:00:00Z".parse().unwrap()),
            collection: Some(MovieCollection { tmdb: 2344, title: "The Matrix Collection".into() }),
            ..catalog_hit()
        };
        assert_eq!(radarr.lookup_movies("matrix 1999").await.unwrap(), [catalog_hit(), in_library]);
        check_requests(&requests, &[("GET http://r/api/v3/movie/lookup?term=matrix+1999", Value::Null)]);
    }

    #[tokio::test]
    async fn released_hit_is_available_and_an_empty_record_is_accepted() {
        let (radarr, _) = radarr(200, &json!([{ "status": "released" }, {}]));
        let empty =
            Movie { tmdb: 0, title: String::new(), year: 0, status: ReleaseStatus::Unclear, ..catalog_hit() };
        let released = Movie { available: true, status: ReleaseStatus::Released, ..empty.clone() };
        assert_eq!(radarr.lookup_movies("x").await.unwrap(), [released, empty]);
    }

    #[tokio::test]
    async fn movie_is_added_monitored_with_a_search_and_no_tags() {
        let (radarr, requests) = radarr(201, &json!({}));
        assert_eq!(radarr.add_movie(&new_matrix()).await.unwrap(), AdditionOutcome::Added);
        check_requests(
            &requests,
            &[(
                "POST http://r/api/v3/movie",
                json!({
                    "title": "The Matrix", "tmdbId": 603, "qualityProfileId": 4, "rootFolderPath": "/films",
                    "monitored": true, "minimumAvailability": "released", "tags": [],
                    "addOptions": { "monitor": "movieOnly", "searchForMovie": true },
                }),
            )],
        );
    }

    #[tokio::test]
    async fn deletion_adds_no_list_exclusion() {
        let (radarr, requests) = radarr(200, &json!({}));
        assert_eq!(radarr.delete_movie(7, true).await.unwrap(), RemovalOutcome::Removed);
        check_requests(
            &requests,
            &[("DELETE http://r/api/v3/movie/7?deleteFiles=true&addImportExclusion=false", Value::Null)],
        );
    }

    #[tokio::test]
    async fn deletion_of_a_missing_movie_is_already_gone() {
        let (radarr, _) = radarr(404, &json!({ "message": "Movie with ID 7 does not exist" }));
        assert_eq!(radarr.delete_movie(7, false).await.unwrap(), RemovalOutcome::AlreadyGone);
    }

    #[tokio::test]
    async fn calendar_uses_the_release_within_the_window() {
        let (radarr, requests) = radarr(
            200,
            &json!([
                { "title": "Later", "year": 2026, "hasFile": true,
                  "inCinemas": "2026-01-05T00:00:00Z", "digitalRelease": "2026-03-09T00:00:00Z" },
                { "title": "Sooner", "inCinemas": "2026-03-03T00:00:00Z", "physicalRelease": "2026-03-08T00:00:00Z" },
                { "title": "Elsewhere", "inCinemas": "2026-05-01T00:00:00Z" },
            ]),
        );
        let upcoming = radarr.fetch_calendar(date(2026, 3, 2), date(2026, 3, 9)).await.unwrap();
        let entry = |title: &str, day, release, on_disk| CalendarEntry {
            title: title.into(),
            series: String::new(),
            date: CalendarDate::Released(day, release),
            on_disk,
        };
        assert_eq!(
            upcoming,
            [
                entry("Sooner", date(2026, 3, 3), ReleaseKind::Cinema, false),
                entry("Later (2026)", date(2026, 3, 9), ReleaseKind::Digital, true),
            ]
        );
        check_requests(
            &requests,
            &[(
                "GET http://r/api/v3/calendar?start=2026-03-02T00%3A00%3A00Z&end=2026-03-09T23%3A59%3A59Z&unmonitored=false",
                Value::Null,
            )],
        );
    }

    #[tokio::test]
    async fn inaccessible_folder_has_no_free_space() {
        let (radarr, _) = radarr(
            200,
            &json!([{ "path": "/a", "accessible": true, "freeSpace": 5 }, { "path": "/b", "accessible": false }]),
        );
        assert_eq!(
            radarr.fetch_root_folders().await.unwrap(),
            [
                RootFolder { path: "/a".into(), free_bytes: Some(5) },
                RootFolder { path: "/b".into(), free_bytes: None },
            ]
        );
    }
}
