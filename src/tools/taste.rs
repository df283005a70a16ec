//! Taste of a household, derived from its library, and ranking of movies by how well they fit it. Only genres and
//! ratings are used.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::formatting::format_sentence_list;
use super::library_cache::entries::CachedTitles;
use crate::arr::collections::SuggestedMovie;

/// Rating assumed for an unrated movie. The value is below the rating of movies that are considered good.
const UNRATED: f64 = 5.0;

/// Number of titles of each genre.
#[derive(Debug, Default)]
pub struct GenreProfile<'a> {
    genres: BTreeMap<&'a str, usize>,
}

/// Title that recommendations should resemble.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LikedTitle {
    /// Title with its year.
    pub name: String,
    pub genres: Vec<String>,
}

/// Source of a suggested movie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecommendationSource {
    /// Movies similar to those in the library.
    Similar,
    /// Movies that are popular.
    Popular,
}

/// Reason why a movie is recommended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecommendationReason {
    Collection { name: String, held: usize },
    Like { shared: Vec<String>, name: String },
    Genre { genre: String, held: usize },
    Similar,
    Popular,
}

impl<'a> GenreProfile<'a> {
    /// Counts the genres of the libraries. A title that is in two libraries counts once.
    pub fn from_libraries(libraries: &[&'a CachedTitles]) -> Self {
        let (mut genres, mut seen) = (BTreeMap::new(), BTreeSet::new());
        for entries in libraries {
            for title in entries.titles().iter().filter(|title| seen.insert(title.catalog)) {
                for name in entries.genre_names(title.genres) {
                    *genres.entry(name).or_default() += 1;
                }
            }
        }
        Self { genres }
    }

    /// Returns the most frequent genres.
    pub fn top_genres(&self, count: usize) -> Vec<(&'a str, usize)> {
        let mut most: Vec<(&str, usize)> = self.genres.iter().map(|(name, held)| (*name, *held)).collect();
        most.sort_by_key(|(_, held)| Reverse(*held));
        most.truncate(count);
        most
    }

    fn most_frequent_genre(&self, genres: &[String]) -> Option<(&'a str, usize)> {
        let held = genres.iter().filter_map(|genre| self.genres.get_key_value(genre.as_str()));
        held.map(|(name, held)| (*name, *held)).max_by_key(|(_, held)| *held)
    }

    /// Returns the score of a list of genres, from 0 for genres that are not in the library to 1 for the most frequent
    /// one.
    fn genre_score(&self, genres: &[String]) -> f64 {
        let most = self.genres.values().max().copied().unwrap_or_default().max(1) as f64;
        let held = |genre: &String| self.genres.get(genre.as_str()).copied().unwrap_or_default() as f64;
        genres.iter().map(held).sum::<f64>() / most / genres.len().max(1) as f64
    }

    /// Ranks movies, best first. If `like` is given, only movies that share a genre with it are included.
    pub fn rank_movies(
        &self,
        films: Vec<(RecommendationSource, SuggestedMovie)>,
        like: Option<&LikedTitle>,
    ) -> Vec<(SuggestedMovie, RecommendationReason)> {
        let mut seen = BTreeSet::new();
        let mut scored: Vec<(f64, SuggestedMovie, RecommendationReason)> = films
            .into_iter()
            .filter(|(_, film)| seen.insert(film.tmdb))
            .filter_map(|(source, film)| {
                let (fit, why) = match like {
                    Some(liked) => liked.genre_overlap(&film.genres)?,
                    None => (self.genre_score(&film.genres), self.choose_reason(source, &film.genres)),
                };
                Some((film.rating.unwrap_or(UNRATED) * (1.0 + fit), film, why))
            })
            .collect();
        scored.sort_by(|(one, ..), (other, ..)| other.total_cmp(one));
        scored.into_iter().map(|(_, film, why)| (film, why)).collect()
    }

    fn choose_reason(&self, source: RecommendationSource, genres: &[String]) -> RecommendationReason {
        match (source, self.most_frequent_genre(genres)) {
            (RecommendationSource::Popular, _) => RecommendationReason::Popular,
            (RecommendationSource::Similar, Some((genre, held))) => {
                RecommendationReason::Genre { genre: genre.to_owned(), held }
            }
            (RecommendationSource::Similar, None) => RecommendationReason::Similar,
        }
    }
}

impl LikedTitle {
    /// Returns the share of the combined genres that both titles have, from 0 to 1. Returns `None` if they have none in
    /// common.
    fn genre_overlap(&self, genres: &[String]) -> Option<(f64, RecommendationReason)> {
        let shared: Vec<String> =
            self.genres.iter().filter(|genre| genres.contains(genre)).cloned().collect();
        if shared.is_empty() {
            return None;
        }
        let all = self.genres.len() + genres.len() - shared.len();
        Some((
            shared.len() as f64 / all as f64,
            RecommendationReason::Like { shared, name: self.name.clone() },
        ))
    }
}

impl RecommendationReason {
    /// Formats the reason for the model.
    pub fn format_reason(&self) -> String {
        match self {
            Self::Collection { name, held } => format!("of {name}, of which the library has {held}"),
            Self::Like { shared, name } => format!("{} like {name}", format_sentence_list(shared)),
            Self::Genre { genre, held } => format!("the library has {held} of {genre}"),
            Self::Similar => "Radarr finds it similar to the library".to_owned(),
            Self::Popular => "popular at present".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arr::library_title::{LibraryTitle, LibraryTitleDetails};

    fn held(catalog: i64, genres: &[&str]) -> LibraryTitle {
        LibraryTitle {
            id: catalog,
            catalog,
            title: format!("Film {catalog}"),
            other_titles: Vec::new(),
            year: 2000,
            monitored: true,
            size_bytes: 0,
            profile: 4,
            genres: genres.iter().map(ToString::to_string).collect(),
            added: None,
            rating: 0.0,
            detail: LibraryTitleDetails::Movie { has_file: true, available: true, collection: None },
        }
    }

    fn film(title: &str, genres: &[&str], rating: f64) -> SuggestedMovie {
        SuggestedMovie {
            tmdb: title.bytes().map(i64::from).sum(),
            title: title.to_owned(),
            year: 2020,
            overview: String::new(),
            genres: genres.iter().map(ToString::to_string).collect(),
            rating: (rating > 0.0).then_some(rating),
            in_library: false,
            excluded: false,
        }
    }

    /// Checks the order of the movies and the reason for each. The library has three titles of Drama, two of Crime, one
    /// of Horror.
    #[track_caller]
    fn check(
        films: Vec<(RecommendationSource, SuggestedMovie)>,
        like: Option<&LikedTitle>,
        expected: &[&str],
    ) {
        let (mut hd, mut four_k) = (CachedTitles::default(), CachedTitles::default());
        for (catalog, genres) in [(1, &["Drama", "Crime"][..]), (2, &["Drama", "Crime"]), (3, &["Drama"])] {
            hd.push(held(catalog, genres));
        }
        four_k.push(held(3, &["Drama"]));
        four_k.push(held(4, &["Horror"]));
        let libraries = [&hd, &four_k];
        let taste = GenreProfile::from_libraries(&libraries);
        assert_eq!(taste.top_genres(2), [("Drama", 3), ("Crime", 2)]);
        let ranked = taste.rank_movies(films, like);
        let told: Vec<String> =
            ranked.iter().map(|(film, why)| format!("{}: {}", film.title, why.format_reason())).collect();
        assert_eq!(told, expected);
    }

    #[test]
    fn frequent_genres_rank_above_slightly_better_ratings() {
        check(
            vec![
                (RecommendationSource::Similar, film("Scream", &["Horror"], 7.5)),
                (RecommendationSource::Similar, film("Casino", &["Drama", "Crime"], 7.0)),
                (RecommendationSource::Similar, film("Airplane", &["Comedy"], 7.9)),
                (RecommendationSource::Popular, film("Barbie", &["Drama"], 3.0)),
                (RecommendationSource::Popular, film("Casino", &["Drama", "Crime"], 7.0)),
            ],
            None,
            &[
                "Casino: the library has 3 of Drama",
                "Scream: the library has 1 of Horror",
                "Airplane: Radarr finds it similar to the library",
                "Barbie: popular at present",
            ],
        );
    }

    #[test]
    fn similar_movies_share_a_genre() {
        let liked =
            LikedTitle { name: "Heat (1995)".into(), genres: vec!["Crime".into(), "Thriller".into()] };
        check(
            vec![
                (RecommendationSource::Similar, film("Casino", &["Drama", "Crime"], 8.0)),
                (RecommendationSource::Similar, film("Scream", &["Horror"], 9.0)),
                (RecommendationSource::Popular, film("Drive", &["Thriller", "Crime"], 0.0)),
            ],
            Some(&liked),
            &["Casino: Crime like Heat (1995)", "Drive: Crime and Thriller like Heat (1995)"],
        );
    }
}
