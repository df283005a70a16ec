//! Responses of Seerr and of TMDB. Both have the same fields, at Seerr in camel case.

use std::collections::{BTreeSet, HashMap};

use serde::Deserialize;
use serde_json::Value;

use super::{FoundPerson, FoundTitle, PersonCredits, Provider, RequestState, SearchHits, TitleFacts};
use crate::conversation::transcript::MediaKind;
use crate::loose_json::null_as_default;

/// Jobs of the people in a crew whose titles they are said to be.
const CREATIVE_JOBS: [&str; 2] = ["Director", "Creator"];
/// State of a title at Seerr: somebody asked for it.
const PENDING: i64 = 2;
/// State of a title at Seerr: the request was approved.
const PROCESSING: i64 = 3;

/// Page of titles and people.
#[derive(Debug, Deserialize)]
pub(super) struct Page {
    #[serde(default, deserialize_with = "null_as_default")]
    results: Vec<Value>,
}

/// Titles of a person.
#[derive(Debug, Deserialize)]
pub(super) struct Credits {
    #[serde(default, deserialize_with = "null_as_default")]
    cast: Vec<Value>,
    #[serde(default, deserialize_with = "null_as_default")]
    crew: Vec<Value>,
}

/// List of streaming services, which TMDB wraps.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum ProviderList {
    Plain(Vec<WireProvider>),
    Wrapped { results: Vec<WireProvider> },
}

#[derive(Debug, Deserialize)]
pub(super) struct WireProvider {
    #[serde(alias = "provider_id")]
    id: u32,
    #[serde(default, alias = "provider_name", deserialize_with = "null_as_default")]
    name: String,
}

/// Details of a title.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Details {
    #[serde(alias = "externalIds")]
    external_ids: Option<ExternalIds>,
    runtime: Option<f64>,
    #[serde(alias = "episodeRunTime")]
    episode_run_time: Option<Vec<f64>>,
    /// Streaming services by country, as Seerr lists them.
    #[serde(rename = "watchProviders")]
    seerr_providers: Option<Vec<RegionProviders>>,
    /// Streaming services by country, as TMDB lists them.
    #[serde(rename = "watch/providers")]
    tmdb_providers: Option<RegionMap>,
    #[serde(alias = "mediaInfo")]
    media_info: Option<MediaInfo>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ExternalIds {
    #[serde(alias = "tvdbId")]
    tvdb_id: Option<i64>,
}

#[derive(Debug, Deserialize)]
struct RegionProviders {
    #[serde(default, deserialize_with = "null_as_default")]
    iso_3166_1: String,
    #[serde(default, deserialize_with = "null_as_default")]
    flatrate: Vec<WireProvider>,
}

#[derive(Debug, Default, Deserialize)]
struct RegionMap {
    #[serde(default, deserialize_with = "null_as_default")]
    results: HashMap<String, Flatrate>,
}

#[derive(Debug, Deserialize)]
struct Flatrate {
    #[serde(default, deserialize_with = "null_as_default")]
    flatrate: Vec<WireProvider>,
}

/// Title or person in a list.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ListEntry {
    id: i64,
    #[serde(alias = "mediaType")]
    media_type: Option<String>,
    title: Option<String>,
    name: Option<String>,
    #[serde(alias = "releaseDate")]
    release_date: Option<String>,
    #[serde(alias = "firstAirDate")]
    first_air_date: Option<String>,
    overview: Option<String>,
    #[serde(alias = "genreIds")]
    genre_ids: Option<Vec<u32>>,
    #[serde(alias = "voteAverage")]
    vote_average: Option<f64>,
    #[serde(alias = "voteCount")]
    vote_count: Option<f64>,
    popularity: Option<f64>,
    adult: Option<bool>,
    job: Option<String>,
    #[serde(alias = "mediaInfo")]
    media_info: Option<MediaInfo>,
}

/// What Seerr knows about a title. Without it, nobody has asked for the title there.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct MediaInfo {
    tvdb_id: Option<i64>,
    status: Option<i64>,
}

impl Page {
    /// Returns the titles of a list, whose kind is `listed` where an entry does not name its own.
    pub(super) fn into_titles(self, listed: Option<MediaKind>) -> Vec<FoundTitle> {
        entries(self.results).filter_map(|entry| entry.into_title(listed)).collect()
    }

    pub(super) fn into_hits(self) -> SearchHits {
        let mut hits = SearchHits::default();
        for entry in entries(self.results) {
            match entry.media_type.as_deref() {
                Some("person") => hits.people.extend(entry.into_person()),
                _ => hits.titles.extend(entry.into_title(None)),
            }
        }
        hits
    }
}

impl Credits {
    pub(super) fn into_credits(self) -> PersonCredits {
        let has_creative_job =
            |entry: &ListEntry| entry.job.as_deref().is_some_and(|job| CREATIVE_JOBS.contains(&job));
        let mut seen = BTreeSet::new();
        let mut once = |title: &FoundTitle| seen.insert((title.kind, title.tmdb));
        let acted = entries(self.cast).filter_map(|entry| entry.into_title(None)).filter(&mut once).collect();
        let crew = entries(self.crew).filter(has_creative_job);
        let directed = crew.filter_map(|entry| entry.into_title(None)).filter(&mut once).collect();
        PersonCredits { acted, directed }
    }
}

impl ProviderList {
    pub(super) fn into_providers(self) -> Vec<Provider> {
        let (Self::Plain(list) | Self::Wrapped { results: list }) = self;
        list.into_iter().map(|WireProvider { id, name }| Provider { id, name }).collect()
    }
}

impl Details {
    pub(super) fn into_facts(self, region: &str) -> TitleFacts {
        let external = self.external_ids.unwrap_or_default().tvdb_id;
        let minutes = self.runtime.or_else(|| self.episode_run_time?.first().copied());
        let of_seerr = self.seerr_providers.into_iter().flatten();
        let of_seerr = of_seerr.filter(|entry| entry.iso_3166_1 == region).flat_map(|entry| entry.flatrate);
        let of_tmdb = self.tmdb_providers.and_then(|mut map| map.results.remove(region));
        let of_tmdb = of_tmdb.into_iter().flat_map(|entry| entry.flatrate);
        TitleFacts {
            tvdb: external.or(self.media_info.and_then(|info| info.tvdb_id)).filter(|id| *id > 0),
            minutes: minutes.filter(|minutes| *minutes > 0.0).map(|minutes| minutes as u32),
            providers: of_seerr.chain(of_tmdb).map(|provider| provider.id).collect(),
        }
    }
}

impl ListEntry {
    fn into_title(self, listed: Option<MediaKind>) -> Option<FoundTitle> {
        let kind = match self.media_type.as_deref() {
            Some("movie") => MediaKind::Movie,
            Some("tv") => MediaKind::Series,
            Some(_) => return None,
            None => listed?,
        };
        let title = self.title.or(self.name).filter(|title| !title.trim().is_empty())?;
        if self.id <= 0 || self.adult == Some(true) {
            return None;
        }
        let date = self.release_date.or(self.first_air_date).unwrap_or_default();
        let votes = self.vote_count.unwrap_or_default().max(0.0) as u32;
        let info = self.media_info.unwrap_or_default();
        Some(FoundTitle {
            kind,
            tmdb: self.id,
            tvdb: info.tvdb_id.filter(|id| *id > 0),
            title,
            year: date.get(..4).and_then(|year| year.parse().ok()).unwrap_or_default(),
            overview: self.overview.unwrap_or_default(),
            genres: self.genre_ids.unwrap_or_default(),
            rating: self.vote_average.filter(|rating| votes > 0 && *rating > 0.0),
            votes,
            popularity: self.popularity.unwrap_or_default(),
            request: match info.status {
                Some(PENDING | PROCESSING) => RequestState::Requested,
                _ => RequestState::NotRequested,
            },
        })
    }

    fn into_person(self) -> Option<FoundPerson> {
        let name = self.name.filter(|name| !name.trim().is_empty())?;
        (self.id > 0 && self.adult != Some(true)).then_some(FoundPerson { id: self.id, name })
    }
}

/// Reads the entries of a list. One that cannot be read is skipped, because the others are still useful.
fn entries(values: Vec<Value>) -> impl Iterator<Item = ListEntry> {
    values.into_iter().filter_map(|value| serde_json::from_value(value).ok())
}
