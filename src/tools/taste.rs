//! Genre profile of a household's libraries, and ranking of suggested movies by their genres and ratings.

use std::collections::{BTreeMap, BTreeSet};

use super::formatting::format_sentence_list;
use super::library_cache::entries::{CachedTitle, CachedTitles};
use crate::arr::collections::SuggestedMovie;

/// Rating assumed for an unrated movie. The value is below the rating of good movies.
const DEFAULT_RATING: f64 = 5.0;

/// Number of titles of each genre in the libraries.
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
    /// Suggestion because it is similar to movies in the library.
    Similar,
    /// Suggestion because it is popular.
    Popular,
}

/// Reason why a movie is recommended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecommendationReason {
    Collection { name: String, owned: usize },
    Like { shared: Vec<String>, name: String },
    Genre { genre: String, count: usize },
    Similar,
    Popular,
}

impl<'a> GenreProfile<'a> {
    /// Counts the genres of the libraries. A title that is in two libraries counts once.
    pub fn from_libraries(libraries: &[&'a CachedTitles]) -> Self {
        let mut seen = BTreeSet::new();
        let all = libraries.iter().flat_map(|entries| entries.titles().iter().map(|title| (*entries, title)));
        Self::from_titles(all.filter(|(_, title)| seen.insert(title.catalog)))
    }

    /// Counts the genres of titles, each with its library.
    pub fn from_titles(titles: impl Iterator<Item = (&'a CachedTitles, &'a CachedTitle)>) -> Self {
        let mut genres = BTreeMap::new();
        for name in titles.flat_map(|(entries, title)| entries.genre_names(title.genres)) {
            *genres.entry(name).or_default() += 1;
        }
        Self { genres }
    }

    /// Returns the score of a title from its rating, 0 if it has none, and its genres.
    pub fn score(&self, rating: f64, genres: &[String]) -> f64 {
        let rating = if rating > 0.0 { rating } else { DEFAULT_RATING };
        rating * (1.0 + self.genre_score(genres))
    }

    fn most_frequent_genre(&self, genres: &[String]) -> Option<(&'a str, usize)> {
        let counts = genres.iter().filter_map(|genre| self.genres.get_key_value(genre.as_str()));
        counts.map(|(name, count)| (*name, *count)).max_by_key(|(_, count)| *count)
    }

    /// Returns the score of a list of genres, from 0 for genres that are not in the library to 1 for the most frequent
    /// one.
    fn genre_score(&self, genres: &[String]) -> f64 {
        let highest = self.genres.values().max().copied().unwrap_or_default().max(1) as f64;
        let count = |genre: &String| self.genres.get(genre.as_str()).copied().unwrap_or_default() as f64;
        genres.iter().map(count).sum::<f64>() / highest / genres.len().max(1) as f64
    }

    /// Ranks movies, best first. If `like` is given, only movies that share a genre with it are included.
    pub fn rank_movies(
        &self,
        movies: Vec<(RecommendationSource, SuggestedMovie)>,
        liked: Option<&LikedTitle>,
    ) -> Vec<(SuggestedMovie, RecommendationReason)> {
        let mut seen = BTreeSet::new();
        let mut scored: Vec<(f64, SuggestedMovie, RecommendationReason)> = movies
            .into_iter()
            .filter(|(_, movie)| seen.insert(movie.tmdb))
            .filter_map(|(source, movie)| {
                let (score, reason) = match liked {
                    Some(liked) => liked.genre_overlap(&movie.genres)?,
                    None => (self.genre_score(&movie.genres), self.choose_reason(source, &movie.genres)),
                };
                Some((movie.rating.unwrap_or(DEFAULT_RATING) * (1.0 + score), movie, reason))
            })
            .collect();
        scored.sort_by(|(a, ..), (b, ..)| b.total_cmp(a));
        scored.into_iter().map(|(_, movie, reason)| (movie, reason)).collect()
    }

    fn choose_reason(&self, source: RecommendationSource, genres: &[String]) -> RecommendationReason {
        match (source, self.most_frequent_genre(genres)) {
            (RecommendationSource::Popular, _) => RecommendationReason::Popular,
            (RecommendationSource::Similar, Some((genre, count))) => {
                RecommendationReason::Genre { genre: genre.to_owned(), count }
            }
            (RecommendationSource::Similar, None) => RecommendationReason::Similar,
        }
    }
}

impl LikedTitle {
    /// Returns the Jaccard similarity of the genres of both titles, from 0 to 1, with the shared genres as the reason.
    /// Returns `None` if they share no genre.
    fn genre_overlap(&self, genres: &[String]) -> Option<(f64, RecommendationReason)> {
        let shared: Vec<String> =
            self.genres.iter().filter(|genre| genres.contains(genre)).cloned().collect();
        if shared.is_empty() {
            return None;
        }
        let union_size = self.genres.len() + genres.len() - shared.len();
        Some((
            shared.len() as f64 / union_size as f64,
            RecommendationReason::Like { shared, name: self.name.clone() },
        ))
    }
}

impl RecommendationReason {
    /// Formats the reason for the model.
    pub fn format_reason(&self) -> String {
        match self {
            Self::Collection { name, owned } => format!("of {name}, of which the library has {owned}"),
            Self::Like { shared, name } => format!("{} like {name}", format_sentence_list(shared)),
            Self::Genre { genre, count } => format!("the library has {count} of {genre}"),
            Self::Similar => "Radarr finds it similar to the library".to_owned(),
            Self::Popular => "popular at present".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arr::library_title::{LibraryTitle, LibraryTitleDetails};

    fn library_title(catalog: i64, genres: &[&str]) -> LibraryTitle {
        LibraryTitle {
            id: catalog,
            catalog,
            tmdb: None,
            imdb: None,
            title: format!("Film {catalog}"),
            other_titles: Vec::new(),
            year: 2000,
            monitored: true,
            size_bytes: 0,
            profile: 4,
            genres: genres.iter().map(ToString::to_string).collect(),
            certification: String::new(),
            added: None,
            rating: 0.0,
            minutes: 0,
            detail: LibraryTitleDetails::Movie { has_file: true, available: true, collection: None },
        }
    }

    fn movie(title: &str, genres: &[&str], rating: f64) -> SuggestedMovie {
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
        movies: Vec<(RecommendationSource, SuggestedMovie)>,
        liked: Option<&LikedTitle>,
        expected: &[&str],
    ) {
        let (mut hd, mut four_k) = (CachedTitles::default(), CachedTitles::default());
        for (catalog, genres) in [(1, &["Drama", "Crime"][..]), (2, &["Drama", "Crime"]), (3, &["Drama"])] {
            hd.push(library_title(catalog, genres));
        }
        four_k.push(library_title(3, &["Drama"]));
        four_k.push(library_title(4, &["Horror"]));
        let libraries = [&hd, &four_k];
        let genre_profile = GenreProfile::from_libraries(&libraries);
        let ranked = genre_profile.rank_movies(movies, liked);
        let actual: Vec<String> = ranked
            .iter()
            .map(|(movie, reason)| format!("{}: {}", movie.title, reason.format_reason()))
            .collect();
        assert_eq!(actual, expected);
    }

    #[test]
    fn frequent_genres_rank_above_slightly_better_ratings() {
        check(
            vec![
                (RecommendationSource::Similar, movie("Scream", &["Horror"], 7.5)),
                (RecommendationSource::Similar, movie("Casino", &["Drama", "Crime"], 7.0)),
                (RecommendationSource::Similar, movie("Airplane", &["Comedy"], 7.9)),
                (RecommendationSource::Popular, movie("Barbie", &["Drama"], 3.0)),
                (RecommendationSource::Popular, movie("Casino", &["Drama", "Crime"], 7.0)),
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
    fn movies_like_a_title_share_a_genre_with_it() {
        let liked =
            LikedTitle { name: "Heat (1995)".into(), genres: vec!["Crime".into(), "Thriller".into()] };
        check(
            vec![
                (RecommendationSource::Similar, movie("Casino", &["Drama", "Crime"], 8.0)),
                (RecommendationSource::Similar, movie("Scream", &["Horror"], 9.0)),
                (RecommendationSource::Popular, movie("Drive", &["Thriller", "Crime"], 0.0)),
            ],
            Some(&liked),
            &["Casino: Crime like Heat (1995)", "Drive: Crime and Thriller like Heat (1995)"],
        );
    }
}
