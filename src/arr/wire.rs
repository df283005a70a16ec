//! Wire types of Sonarr and Radarr, and their conversion into domain types. The servers omit null values, so every field
//! is optional. States are strings, because new versions add unknown ones.

use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::time_parsing::{parse_day, parse_instant};
use super::{Availability, ReleaseStatus, SPECIALS};
use crate::conversation::catalog_ids::CatalogIds;

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct MovieResource {
    pub(super) id: Option<i64>,
    pub(super) tmdb_id: Option<i64>,
    pub(super) imdb_id: Option<String>,
    pub(super) title: Option<String>,
    pub(super) original_title: Option<String>,
    pub(super) alternate_titles: Option<Vec<AlternateTitle>>,
    pub(super) year: Option<i64>,
    overview: Option<String>,
    status: Option<String>,
    pub(super) has_file: Option<bool>,
    pub(super) monitored: Option<bool>,
    pub(super) is_available: Option<bool>,
    pub(super) size_on_disk: Option<i64>,
    path: Option<String>,
    pub(super) quality_profile_id: Option<i64>,
    popularity: Option<f64>,
    pub(super) ratings: Option<RatingsResource>,
    pub(super) in_cinemas: Option<String>,
    pub(super) digital_release: Option<String>,
    pub(super) physical_release: Option<String>,
    minimum_availability: Option<String>,
    movie_file: Option<MediaFileResource>,
    pub(super) certification: Option<String>,
    pub(super) genres: Option<Vec<String>>,
    pub(super) added: Option<String>,
    last_search_time: Option<String>,
    pub(super) collection: Option<CollectionResource>,
    /// Length in minutes.
    pub(super) runtime: Option<i64>,
}

/// Name of a title in another language or country.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct AlternateTitle {
    pub(super) title: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct RatingsResource {
    pub(super) imdb: Option<RatingResource>,
    pub(super) tmdb: Option<RatingResource>,
}

impl RatingsResource {
    pub(super) fn tmdb_rating(&self) -> Option<f64> {
        self.tmdb.as_ref().and_then(RatingResource::rating)
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct RatingResource {
    votes: Option<f64>,
    value: Option<f64>,
}

impl RatingResource {
    /// Returns the rating. Returns `None` for zero, which means that there are no votes.
    pub(super) fn rating(&self) -> Option<f64> {
        self.value.filter(|value| *value > 0.0)
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct CollectionResource {
    tmdb_id: Option<i64>,
    title: Option<String>,
}

impl CollectionResource {
    pub(super) fn into_collection(self) -> Option<super::MovieCollection> {
        let title = self.title.filter(|title| !title.is_empty())?;
        Some(super::MovieCollection { tmdb: self.tmdb_id.filter(|&id| id > 0)?, title })
    }
}

/// File of a movie or of episodes.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct MediaFileResource {
    id: Option<i64>,
    size: Option<i64>,
    quality: Option<QualityResource>,
}

impl From<MediaFileResource> for super::MediaFile {
    fn from(wire: MediaFileResource) -> Self {
        Self {
            id: wire.id.unwrap_or_default(),
            size_bytes: bytes_or_zero(wire.size),
            quality: wire.quality.map(QualityResource::into_name).unwrap_or_default(),
        }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct QualityResource {
    quality: Option<QualityName>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct QualityName {
    name: Option<String>,
}

impl QualityResource {
    pub(super) fn into_name(self) -> String {
        self.quality.and_then(|quality| quality.name).unwrap_or_default()
    }
}

impl MovieResource {
    /// Formats title and year as `Dune (2021)`. Returns `None` without a title.
    pub(super) fn title_with_year(&self) -> Option<String> {
        let title = self.title.as_deref()?;
        Some(match self.year {
            Some(year) if year > 0 => format!("{title} ({year})"),
            Some(_) | None => title.to_owned(),
        })
    }
}

impl From<MovieResource> for super::Movie {
    fn from(wire: MovieResource) -> Self {
        let id = wire.id.filter(|&id| id > 0);
        let ratings = wire.ratings.unwrap_or_default();
        let rating = ratings.tmdb_rating();
        let votes = ratings.tmdb.and_then(|rating| rating.votes);
        Self {
            id,
            tmdb: wire.tmdb_id.unwrap_or_default(),
            imdb: wire.imdb_id.as_deref().and_then(imdb_number),
            title: wire.title.unwrap_or_default(),
            year: integer_or_default(wire.year),
            overview: wire.overview.unwrap_or_default(),
            has_file: wire.has_file.unwrap_or_default(),
            monitored: wire.monitored.unwrap_or_default(),
            available: match id {
                Some(_) => wire.is_available.unwrap_or_default(),
                // Radarr evaluates a catalog hit by its loosest rule, but additions use the rule `released`.
                None => wire.status.as_deref() == Some("released"),
            },
            size_bytes: bytes_or_zero(wire.size_on_disk),
            path: wire.path.unwrap_or_default(),
            profile: wire.quality_profile_id.unwrap_or_default(),
            popularity: wire.popularity.or(votes).unwrap_or_default(),
            cinema: parse_day(wire.in_cinemas.as_deref()),
            digital: parse_day(wire.digital_release.as_deref()),
            physical: parse_day(wire.physical_release.as_deref()),
            status: match wire.status.as_deref() {
                Some("announced") => ReleaseStatus::Announced,
                Some("inCinemas") => ReleaseStatus::InCinemas,
                Some("released") => ReleaseStatus::Released,
                Some(_) | None => ReleaseStatus::Unclear,
            },
            availability: match wire.minimum_availability.as_deref() {
                Some("announced" | "tba") => Availability::Announced,
                Some("inCinemas") => Availability::InCinemas,
                Some(_) | None => Availability::Released,
            },
            file: wire.movie_file.map(Into::into),
            genres: wire.genres.unwrap_or_default(),
            certification: wire.certification.unwrap_or_default(),
            rating,
            added: parse_instant(wire.added.as_deref()),
            last_search: parse_instant(wire.last_search_time.as_deref()),
            collection: wire.collection.and_then(CollectionResource::into_collection),
        }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct SeriesResource {
    pub(super) id: Option<i64>,
    pub(super) tvdb_id: Option<i64>,
    pub(super) tmdb_id: Option<i64>,
    pub(super) imdb_id: Option<String>,
    pub(super) title: Option<String>,
    pub(super) alternate_titles: Option<Vec<AlternateTitle>>,
    pub(super) year: Option<i64>,
    overview: Option<String>,
    pub(super) monitored: Option<bool>,
    ended: Option<bool>,
    status: Option<String>,
    series_type: Option<String>,
    pub(super) seasons: Option<Vec<SeasonResource>>,
    pub(super) statistics: Option<StatisticsResource>,
    path: Option<String>,
    pub(super) quality_profile_id: Option<i64>,
    next_airing: Option<String>,
    monitor_new_items: Option<String>,
    pub(super) certification: Option<String>,
    pub(super) genres: Option<Vec<String>>,
    pub(super) ratings: Option<RatingResource>,
    pub(super) added: Option<String>,
    /// Length of an episode in minutes.
    pub(super) runtime: Option<i64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct SeasonResource {
    pub(super) season_number: Option<i64>,
    monitored: Option<bool>,
    pub(super) statistics: Option<StatisticsResource>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct StatisticsResource {
    pub(super) episode_file_count: Option<i64>,
    /// Number of episodes that have aired and are monitored, plus those that are on disk.
    pub(super) episode_count: Option<i64>,
    pub(super) total_episode_count: Option<i64>,
    pub(super) size_on_disk: Option<i64>,
}

impl From<SeasonResource> for super::Season {
    fn from(wire: SeasonResource) -> Self {
        let statistics = wire.statistics.unwrap_or_default();
        Self {
            number: integer_or_default(wire.season_number),
            monitored: wire.monitored.unwrap_or_default(),
            episodes_on_disk: integer_or_default(statistics.episode_file_count),
            episodes: integer_or_default(statistics.total_episode_count),
            size_bytes: bytes_or_zero(statistics.size_on_disk),
        }
    }
}

/// Returns the number in an id such as `tt0113277`.
pub(super) fn imdb_number(id: &str) -> Option<i64> {
    let mut ids = CatalogIds::default();
    ids.add("imdb", id);
    ids.imdb
}

impl From<SeriesResource> for super::Series {
    fn from(wire: SeriesResource) -> Self {
        let all_seasons = wire.seasons.unwrap_or_default().into_iter().map(super::Season::from);
        let (seasons, specials): (Vec<_>, Vec<_>) = all_seasons.partition(|season| season.number != SPECIALS);
        Self {
            id: wire.id.filter(|&id| id > 0),
            tvdb: wire.tvdb_id.unwrap_or_default(),
            tmdb: wire.tmdb_id.filter(|&id| id > 0),
            imdb: wire.imdb_id.as_deref().and_then(imdb_number),
            title: wire.title.unwrap_or_default(),
            year: integer_or_default(wire.year),
            overview: wire.overview.unwrap_or_default(),
            monitored: wire.monitored.unwrap_or_default(),
            ended: wire.ended.unwrap_or(wire.status.as_deref() == Some("ended")),
            series_type: wire.series_type.unwrap_or_else(|| "standard".into()),
            // Totals are summed here, because those of Sonarr include the specials.
            episodes_on_disk: saturating_total(seasons.iter().map(|season| season.episodes_on_disk)),
            episodes: saturating_total(seasons.iter().map(|season| season.episodes)),
            seasons,
            specials: specials.into_iter().next(),
            size_bytes: bytes_or_zero(wire.statistics.and_then(|statistics| statistics.size_on_disk)),
            path: wire.path.unwrap_or_default(),
            profile: wire.quality_profile_id.unwrap_or_default(),
            next_airing: parse_instant(wire.next_airing.as_deref()),
            new_seasons: wire.monitor_new_items.as_deref() == Some("all"),
            genres: wire.genres.unwrap_or_default(),
            certification: wire.certification.unwrap_or_default(),
            rating: wire.ratings.as_ref().and_then(RatingResource::rating),
            added: parse_instant(wire.added.as_deref()),
        }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct EpisodeResource {
    pub(super) id: Option<i64>,
    pub(super) season_number: Option<i64>,
    pub(super) episode_number: Option<i64>,
    pub(super) title: Option<String>,
    pub(super) air_date_utc: Option<String>,
    pub(super) monitored: Option<bool>,
    pub(super) has_file: Option<bool>,
    pub(super) episode_file_id: Option<i64>,
    pub(super) episode_file: Option<MediaFileResource>,
    pub(super) last_search_time: Option<String>,
    pub(super) finale_type: Option<String>,
    pub(super) series: Option<SeriesResource>,
}

impl EpisodeResource {
    /// Formats season and episode number as `S02E03`. Returns `None` if one of them is missing.
    pub(super) fn episode_code(&self) -> Option<String> {
        Some(format!("S{:02}E{:02}", self.season_number?, self.episode_number?))
    }
}

/// Page of a paginated list.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ResourcePage<T> {
    pub(super) records: Vec<T>,
}

/// Row of the queue, for both Sonarr and Radarr.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct QueueRow {
    pub(super) id: Option<i64>,
    pub(super) movie_id: Option<i64>,
    pub(super) series_id: Option<i64>,
    pub(super) episode_id: Option<i64>,
    pub(super) download_id: Option<String>,
    pub(super) title: Option<String>,
    pub(super) status: Option<String>,
    pub(super) tracked_download_status: Option<String>,
    pub(super) tracked_download_state: Option<String>,
    pub(super) status_messages: Option<Vec<StatusMessage>>,
    pub(super) error_message: Option<String>,
    pub(super) size: Option<f64>,
    pub(super) sizeleft: Option<f64>,
    pub(super) timeleft: Option<String>,
    pub(super) movie: Option<MovieResource>,
    pub(super) series: Option<SeriesResource>,
    pub(super) season_number: Option<i64>,
    pub(super) episode: Option<EpisodeResource>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct StatusMessage {
    pub(super) title: Option<String>,
    pub(super) messages: Option<Vec<String>>,
}

/// Row of the history, for both Sonarr and Radarr.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct HistoryRow {
    pub(super) id: Option<i64>,
    pub(super) movie_id: Option<i64>,
    pub(super) series_id: Option<i64>,
    pub(super) episode_id: Option<i64>,
    pub(super) source_title: Option<String>,
    pub(super) quality: Option<QualityResource>,
    pub(super) date: Option<String>,
    pub(super) download_id: Option<String>,
    pub(super) event_type: Option<String>,
    pub(super) movie: Option<MovieResource>,
    pub(super) series: Option<SeriesResource>,
    pub(super) episode: Option<EpisodeResource>,
    /// Event data, whose values may have any type.
    pub(super) data: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ProfileResource {
    id: Option<i64>,
    name: Option<String>,
    items: Option<Vec<ProfileItem>>,
}

/// Quality of a profile, or a group of qualities that are allowed together.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ProfileItem {
    allowed: Option<bool>,
    quality: Option<ResolutionResource>,
    items: Option<Vec<ProfileItem>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ResolutionResource {
    resolution: Option<i64>,
}

/// Vertical resolution of 4K video.
const FOUR_K_LINES: i64 = 2160;

impl ProfileItem {
    fn includes_four_k(&self) -> bool {
        let lines = self.quality.as_ref().and_then(|quality| quality.resolution);
        lines >= Some(FOUR_K_LINES) || self.items.iter().flatten().any(Self::includes_four_k)
    }
}

impl From<ProfileResource> for super::QualityProfile {
    fn from(wire: ProfileResource) -> Self {
        // A profile without a list of allowed qualities may allow everything.
        let four_k = wire.items.is_none_or(|items| {
            items.iter().any(|item| item.allowed != Some(false) && item.includes_four_k())
        });
        Self { id: wire.id.unwrap_or_default(), name: wire.name.unwrap_or_default(), four_k }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct RootFolderResource {
    path: Option<String>,
    accessible: Option<bool>,
    free_space: Option<i64>,
}

impl From<RootFolderResource> for super::RootFolder {
    fn from(wire: RootFolderResource) -> Self {
        let free = wire.free_space.filter(|_| wire.accessible != Some(false));
        Self {
            path: wire.path.unwrap_or_default(),
            free_bytes: free.map(|free| integer_or_default(Some(free))),
        }
    }
}

/// Deserializes null as the default value.
pub(super) fn null_as_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// Largest plausible size of a title on disk: 1 PiB.
const MAX_SIZE_BYTES: i64 = 1 << 50;

/// Converts a size. Returns 0 if the size is absent or implausible, so that sums of sizes do not overflow.
pub(super) fn bytes_or_zero(number: Option<i64>) -> u64 {
    integer_or_default(number.filter(|&bytes| bytes <= MAX_SIZE_BYTES))
}

/// Adds up counts from an instance, saturating because they may be arbitrary.
pub(super) fn saturating_total(numbers: impl Iterator<Item = u32>) -> u32 {
    numbers.fold(0, u32::saturating_add)
}

/// Converts an integer. Returns 0 if it is absent or out of range.
pub(super) fn integer_or_default<T: TryFrom<i64> + Default>(number: Option<i64>) -> T {
    number.and_then(|number| T::try_from(number).ok()).unwrap_or_default()
}
