//! Titles of a library as returned by a list of the whole library: for each title, only the fields that a query about
//! many titles needs.

use jiff::civil::Date;
use serde::Deserialize;

use super::Collection;
use super::times::day;
use super::wire::{bytes, total, whole};

/// Title of a library.
#[derive(Debug, Clone, PartialEq)]
pub struct Holding {
    pub id: i64,
    /// Catalog id: TMDB for a movie, TVDB for a series.
    pub catalog: i64,
    pub title: String,
    /// Other names of the title, in other languages and countries.
    pub other_titles: Vec<String>,
    /// Release year; 0 if unknown.
    pub year: u16,
    pub monitored: bool,
    pub size_bytes: u64,
    pub profile: i64,
    pub genres: Vec<String>,
    pub added: Option<Date>,
    /// Rating out of 10; 0 if there is none.
    pub rating: f32,
    pub detail: Detail,
}

/// Fields that only movies or only series have.
#[derive(Debug, Clone, PartialEq)]
pub enum Detail {
    Movie { has_file: bool, available: bool, collection: Option<Collection> },
    Series(Episodes),
}

/// Number of regular seasons of a series and of their episodes, without the specials.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Episodes {
    pub seasons: u32,
    pub on_disk: u32,
    pub all: u32,
    /// Number of episodes that have aired, are monitored and are not on disk.
    pub missing: u32,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct MovieRecord {
    id: Option<i64>,
    tmdb_id: Option<i64>,
    title: Option<String>,
    original_title: Option<String>,
    alternate_titles: Option<Vec<AlternateTitle>>,
    year: Option<i64>,
    monitored: Option<bool>,
    has_file: Option<bool>,
    is_available: Option<bool>,
    size_on_disk: Option<i64>,
    quality_profile_id: Option<i64>,
    genres: Option<Vec<String>>,
    added: Option<String>,
    ratings: Option<MovieRatings>,
    collection: Option<CollectionRecord>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct AlternateTitle {
    title: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct MovieRatings {
    imdb: Option<Rating>,
    tmdb: Option<Rating>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Rating {
    value: Option<f32>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct CollectionRecord {
    title: Option<String>,
    tmdb_id: Option<i64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct SeriesRecord {
    id: Option<i64>,
    tvdb_id: Option<i64>,
    title: Option<String>,
    alternate_titles: Option<Vec<AlternateTitle>>,
    year: Option<i64>,
    monitored: Option<bool>,
    quality_profile_id: Option<i64>,
    genres: Option<Vec<String>>,
    added: Option<String>,
    ratings: Option<Rating>,
    seasons: Option<Vec<SeasonRecord>>,
    statistics: Option<Statistics>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct SeasonRecord {
    season_number: Option<i64>,
    statistics: Option<Statistics>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Statistics {
    episode_file_count: Option<i64>,
    /// Number of episodes that have aired and are monitored, plus those that are on disk.
    episode_count: Option<i64>,
    total_episode_count: Option<i64>,
    size_on_disk: Option<i64>,
}

impl From<MovieRecord> for Holding {
    fn from(record: MovieRecord) -> Self {
        let ratings = record.ratings.unwrap_or_default();
        let rated = |rating: Option<Rating>| rating.and_then(|it| it.value).filter(|value| *value > 0.0);
        Self {
            id: record.id.unwrap_or_default(),
            catalog: record.tmdb_id.unwrap_or_default(),
            title: record.title.unwrap_or_default(),
            other_titles: record.original_title.into_iter().chain(titles(record.alternate_titles)).collect(),
            year: whole(record.year),
            monitored: record.monitored.unwrap_or_default(),
            size_bytes: bytes(record.size_on_disk),
            profile: record.quality_profile_id.unwrap_or_default(),
            genres: record.genres.unwrap_or_default(),
            added: day(record.added.as_deref()),
            rating: rated(ratings.imdb).or(rated(ratings.tmdb)).unwrap_or_default(),
            detail: Detail::Movie {
                has_file: record.has_file.unwrap_or_default(),
                available: record.is_available.unwrap_or_default(),
                collection: record.collection.and_then(|collection| {
                    let title = collection.title.filter(|title| !title.is_empty())?;
                    Some(Collection { tmdb: collection.tmdb_id?, title })
                }),
            },
        }
    }
}

impl From<SeriesRecord> for Holding {
    fn from(record: SeriesRecord) -> Self {
        let seasons: Vec<Statistics> = record
            .seasons
            .unwrap_or_default()
            .into_iter()
            .filter(|season| season.season_number > Some(0))
            .map(|season| season.statistics.unwrap_or_default())
            .collect();
        // The total is summed up here, because the server's totals include the specials.
        let sum =
            |count: fn(&Statistics) -> Option<i64>| total(seasons.iter().map(|season| whole(count(season))));
        let missing = |season: &Statistics| {
            whole::<u32>(season.episode_count).saturating_sub(whole(season.episode_file_count))
        };
        let monitored = record.monitored.unwrap_or_default();
        Self {
            id: record.id.unwrap_or_default(),
            catalog: record.tvdb_id.unwrap_or_default(),
            title: record.title.unwrap_or_default(),
            other_titles: titles(record.alternate_titles).collect(),
            year: whole(record.year),
            monitored,
            size_bytes: bytes(record.statistics.and_then(|statistics| statistics.size_on_disk)),
            profile: record.quality_profile_id.unwrap_or_default(),
            genres: record.genres.unwrap_or_default(),
            added: day(record.added.as_deref()),
            rating: record.ratings.and_then(|rating| rating.value).unwrap_or_default(),
            detail: Detail::Series(Episodes {
                seasons: u32::try_from(seasons.len()).unwrap_or(u32::MAX),
                on_disk: sum(|season| season.episode_file_count),
                all: sum(|season| season.total_episode_count),
                missing: if monitored { total(seasons.iter().map(missing)) } else { 0 },
            }),
        }
    }
}

fn titles(alternate: Option<Vec<AlternateTitle>>) -> impl Iterator<Item = String> {
    alternate.unwrap_or_default().into_iter().filter_map(|it| it.title)
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;
    use serde_json::{Value, json};

    use super::*;

    #[track_caller]
    fn check<W: Into<Holding> + serde::de::DeserializeOwned>(record: Value, expected: &Holding) {
        assert_eq!(&serde_json::from_value::<W>(record).unwrap().into(), expected);
    }

    fn nothing(detail: Detail) -> Holding {
        Holding {
            id: 0,
            catalog: 0,
            title: String::new(),
            other_titles: Vec::new(),
            year: 0,
            monitored: false,
            size_bytes: 0,
            profile: 0,
            genres: Vec::new(),
            added: None,
            rating: 0.0,
            detail,
        }
    }

    #[test]
    fn a_movie_is_read_with_what_it_is_sorted_by() {
        check::<MovieRecord>(
            json!({ "id": 7, "tmdbId": 348, "title": "Alien", "year": 1979, "originalTitle": "Alien",
                "alternateTitles": [{ "title": "Le huitieme passager" }, {}], "monitored": true, "hasFile": true,
                "isAvailable": true, "sizeOnDisk": 9_000_000_000_u64, "qualityProfileId": 4,
                "genres": ["Horror", "Science Fiction"], "added": "2024-05-01T10:00:00Z", "path": "/films/a",
                "ratings": { "imdb": { "value": 8.5 }, "tmdb": { "value": 8.1 } },
                "collection": { "title": "Alien Collection", "tmdbId": 8091 } }),
            &Holding {
                id: 7,
                catalog: 348,
                title: "Alien".into(),
                other_titles: vec!["Alien".into(), "Le huitieme passager".into()],
                year: 1979,
                monitored: true,
                size_bytes: 9_000_000_000,
                profile: 4,
                genres: vec!["Horror".into(), "Science Fiction".into()],
                added: Some(date(2024, 5, 1)),
                rating: 8.5,
                ..nothing(Detail::Movie {
                    has_file: true,
                    available: true,
                    collection: Some(Collection { tmdb: 8091, title: "Alien Collection".into() }),
                })
            },
        );
    }

    #[test]
    fn the_specials_of_a_show_are_not_counted() {
        let season = |number, files, wanted, all| {
            json!({ "seasonNumber": number, "statistics":
                { "episodeFileCount": files, "episodeCount": wanted, "totalEpisodeCount": all } })
        };
        let episodes = Episodes { seasons: 2, on_disk: 9, all: 20, missing: 3 };
        check::<SeriesRecord>(
            json!({ "monitored": true, "ratings": { "value": 7.9 },
                "seasons": [season(0, 1, 5, 9), season(1, 8, 10, 10), season(2, 1, 2, 10)],
                "statistics": { "sizeOnDisk": 5, "episodeCount": 17 } }),
            &Holding { monitored: true, size_bytes: 5, rating: 7.9, ..nothing(Detail::Series(episodes)) },
        );
    }

    #[test]
    fn an_empty_record_is_no_trouble() {
        check::<MovieRecord>(
            json!({}),
            &nothing(Detail::Movie { has_file: false, available: false, collection: None }),
        );
        let episodes = Episodes { seasons: 0, on_disk: 0, all: 0, missing: 0 };
        check::<SeriesRecord>(json!({}), &nothing(Detail::Series(episodes)));
    }

    #[test]
    fn figures_that_no_disk_has_add_up() {
        let season = |number| {
            json!({ "seasonNumber": number, "statistics": { "episodeFileCount": 0,
                "episodeCount": u32::MAX, "totalEpisodeCount": u32::MAX } })
        };
        let most = u32::MAX;
        let episodes = Episodes { seasons: 2, on_disk: 0, all: most, missing: most };
        check::<SeriesRecord>(
            json!({ "monitored": true, "seasons": [season(1), season(2)], "statistics": { "sizeOnDisk": i64::MAX } }),
            &Holding { monitored: true, ..nothing(Detail::Series(episodes)) },
        );
    }
}
