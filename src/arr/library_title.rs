//! Titles in the list of the whole library, with only the fields that queries over many titles need.

use jiff::civil::Date;

use super::MovieCollection;
use super::time_parsing::parse_day;
use super::wire::{
    AlternateTitle, CollectionResource, MovieResource, RatingResource, SeriesResource, StatisticsResource,
    bytes_or_zero, imdb_number, integer_or_default, saturating_total,
};

/// Movie or series of a library, as the library cache stores it.
#[derive(Debug, Clone, PartialEq)]
pub struct LibraryTitle {
    pub id: i64,
    /// Catalog id: TMDB for a movie, TVDB for a series.
    pub catalog: i64,
    /// Id of a series at TMDB.
    pub tmdb: Option<i64>,
    pub imdb: Option<i64>,
    pub title: String,
    /// Names of the title in other languages and countries.
    pub other_titles: Vec<String>,
    /// Release year. Zero if unknown.
    pub year: u16,
    pub monitored: bool,
    pub size_bytes: u64,
    pub profile: i64,
    pub genres: Vec<String>,
    /// Age rating, such as `PG-13`. Empty if the catalog has none.
    pub certification: String,
    pub added: Option<Date>,
    /// Rating out of 10. Zero if the title has no rating.
    pub rating: f32,
    /// Length of the movie, or of an episode, in minutes. Zero if unknown.
    pub minutes: u16,
    pub detail: LibraryTitleDetails,
}

/// Fields that only movies or only series have.
#[derive(Debug, Clone, PartialEq)]
pub enum LibraryTitleDetails {
    Movie { has_file: bool, available: bool, collection: Option<MovieCollection> },
    Series(EpisodeCounts),
}

/// Numbers of seasons and episodes of a series, without the specials.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EpisodeCounts {
    pub seasons: u32,
    pub on_disk: u32,
    pub all: u32,
    /// Number of episodes that have aired, are monitored and are not on disk.
    pub missing: u32,
}

impl From<MovieResource> for LibraryTitle {
    fn from(record: MovieResource) -> Self {
        let ratings = record.ratings.unwrap_or_default();
        let rating = [ratings.imdb, ratings.tmdb].iter().flatten().find_map(RatingResource::rating);
        Self {
            id: record.id.unwrap_or_default(),
            catalog: record.tmdb_id.unwrap_or_default(),
            tmdb: None,
            imdb: record.imdb_id.as_deref().and_then(imdb_number),
            title: record.title.unwrap_or_default(),
            other_titles: record
                .original_title
                .into_iter()
                .chain(alternate_titles(record.alternate_titles))
                .collect(),
            year: integer_or_default(record.year),
            monitored: record.monitored.unwrap_or_default(),
            size_bytes: bytes_or_zero(record.size_on_disk),
            profile: record.quality_profile_id.unwrap_or_default(),
            genres: record.genres.unwrap_or_default(),
            certification: record.certification.unwrap_or_default(),
            added: parse_day(record.added.as_deref()),
            rating: rating.unwrap_or_default() as f32,
            minutes: integer_or_default(record.runtime),
            detail: LibraryTitleDetails::Movie {
                has_file: record.has_file.unwrap_or_default(),
                available: record.is_available.unwrap_or_default(),
                collection: record.collection.and_then(CollectionResource::into_collection),
            },
        }
    }
}

impl From<SeriesResource> for LibraryTitle {
    fn from(record: SeriesResource) -> Self {
        let seasons: Vec<StatisticsResource> = record
            .seasons
            .unwrap_or_default()
            .into_iter()
            .filter(|season| season.season_number > Some(0))
            .map(|season| season.statistics.unwrap_or_default())
            .collect();
        // Totals are summed here, because those of Sonarr include the specials.
        let sum = |count: fn(&StatisticsResource) -> Option<i64>| {
            saturating_total(seasons.iter().map(|season| integer_or_default(count(season))))
        };
        let missing = |season: &StatisticsResource| {
            integer_or_default::<u32>(season.episode_count)
                .saturating_sub(integer_or_default(season.episode_file_count))
        };
        let monitored = record.monitored.unwrap_or_default();
        Self {
            id: record.id.unwrap_or_default(),
            catalog: record.tvdb_id.unwrap_or_default(),
            tmdb: record.tmdb_id.filter(|&id| id > 0),
            imdb: record.imdb_id.as_deref().and_then(imdb_number),
            title: record.title.unwrap_or_default(),
            other_titles: alternate_titles(record.alternate_titles).collect(),
            year: integer_or_default(record.year),
            monitored,
            size_bytes: bytes_or_zero(record.statistics.and_then(|statistics| statistics.size_on_disk)),
            profile: record.quality_profile_id.unwrap_or_default(),
            genres: record.genres.unwrap_or_default(),
            certification: record.certification.unwrap_or_default(),
            added: parse_day(record.added.as_deref()),
            rating: record.ratings.as_ref().and_then(RatingResource::rating).unwrap_or_default() as f32,
            minutes: integer_or_default(record.runtime),
            detail: LibraryTitleDetails::Series(EpisodeCounts {
                seasons: u32::try_from(seasons.len()).unwrap_or(u32::MAX),
                on_disk: sum(|season| season.episode_file_count),
                all: sum(|season| season.total_episode_count),
                missing: if monitored { saturating_total(seasons.iter().map(missing)) } else { 0 },
            }),
        }
    }
}

fn alternate_titles(titles: Option<Vec<AlternateTitle>>) -> impl Iterator<Item = String> {
    titles.unwrap_or_default().into_iter().filter_map(|alternate| alternate.title)
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;
    use serde_json::{Value, json};

    use super::*;

    #[track_caller]
    fn check<W: Into<LibraryTitle> + serde::de::DeserializeOwned>(record: Value, expected: &LibraryTitle) {
        assert_eq!(&serde_json::from_value::<W>(record).unwrap().into(), expected);
    }

    fn empty_title(detail: LibraryTitleDetails) -> LibraryTitle {
        LibraryTitle {
            id: 0,
            catalog: 0,
            tmdb: None,
            imdb: None,
            title: String::new(),
            other_titles: Vec::new(),
            year: 0,
            monitored: false,
            size_bytes: 0,
            profile: 0,
            genres: Vec::new(),
            certification: String::new(),
            added: None,
            rating: 0.0,
            minutes: 0,
            detail,
        }
    }

    #[test]
    fn movie_record_is_converted_with_all_fields() {
        check::<MovieResource>(
            json!({ "id": 7, "tmdbId": 348, "imdbId": "tt0078748", "title": "Alien", "year": 1979, "originalTitle": "Alien",
                "alternateTitles": [{ "title": "Le huitieme passager" }, {}], "monitored": true, "hasFile": true,
                "isAvailable": true, "sizeOnDisk": 9_000_000_000_u64, "qualityProfileId": 4,
                "genres": ["Horror", "Science Fiction"], "certification": "R", "added": "2024-05-01T10:00:00Z", "path": "/films/a",
                "ratings": { "imdb": { "value": 8.5 }, "tmdb": { "value": 8.1 } }, "runtime": 117,
                "collection": { "title": "Alien Collection", "tmdbId": 8091 } }),
            &LibraryTitle {
                id: 7,
                catalog: 348,
                imdb: Some(78_748),
                title: "Alien".into(),
                other_titles: vec!["Alien".into(), "Le huitieme passager".into()],
                year: 1979,
                monitored: true,
                size_bytes: 9_000_000_000,
                profile: 4,
                genres: vec!["Horror".into(), "Science Fiction".into()],
                certification: "R".into(),
                added: Some(date(2024, 5, 1)),
                rating: 8.5,
                minutes: 117,
                ..empty_title(LibraryTitleDetails::Movie {
                    has_file: true,
                    available: true,
                    collection: Some(MovieCollection { tmdb: 8091, title: "Alien Collection".into() }),
                })
            },
        );
    }

    #[test]
    fn specials_of_a_series_are_not_counted() {
        let season = |number, files, expected, all| {
            json!({ "seasonNumber": number, "statistics":
                { "episodeFileCount": files, "episodeCount": expected, "totalEpisodeCount": all } })
        };
        let episodes = EpisodeCounts { seasons: 2, on_disk: 9, all: 20, missing: 3 };
        check::<SeriesResource>(
            json!({ "tmdbId": 136_315, "imdbId": "tt14452776", "monitored": true, "ratings": { "value": 7.9 },
                "seasons": [season(0, 1, 5, 9), season(1, 8, 10, 10), season(2, 1, 2, 10)],
                "statistics": { "sizeOnDisk": 5, "episodeCount": 17 } }),
            &LibraryTitle {
                tmdb: Some(136_315),
                imdb: Some(14_452_776),
                monitored: true,
                size_bytes: 5,
                rating: 7.9,
                ..empty_title(LibraryTitleDetails::Series(episodes))
            },
        );
    }

    #[test]
    fn empty_record_is_accepted() {
        check::<MovieResource>(
            json!({}),
            &empty_title(LibraryTitleDetails::Movie { has_file: false, available: false, collection: None }),
        );
        let episodes = EpisodeCounts { seasons: 0, on_disk: 0, all: 0, missing: 0 };
        check::<SeriesResource>(json!({}), &empty_title(LibraryTitleDetails::Series(episodes)));
    }

    #[test]
    fn overflowing_episode_counts_saturate() {
        let season = |number| {
            json!({ "seasonNumber": number, "statistics": { "episodeFileCount": 0,
                "episodeCount": u32::MAX, "totalEpisodeCount": u32::MAX } })
        };
        let episodes = EpisodeCounts { seasons: 2, on_disk: 0, all: u32::MAX, missing: u32::MAX };
        check::<SeriesResource>(
            json!({ "monitored": true, "seasons": [season(1), season(2)], "statistics": { "sizeOnDisk": i64::MAX } }),
            &LibraryTitle { monitored: true, ..empty_title(LibraryTitleDetails::Series(episodes)) },
        );
    }
}
