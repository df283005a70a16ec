//! Taste of a household, derived from its library, and ranking of films by how well they fit it. Only genres and
//! ratings are used.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::answers::sentence_list;
use super::shelf::entries::Entries;
use crate::arr::collections::Suggestion;

/// Rating assumed for an unrated film. It is below the rating of films that people consider good.
const UNRATED: f64 = 5.0;

/// Number of titles of each genre.
#[derive(Debug, Default)]
pub struct Taste<'a> {
    genres: BTreeMap<&'a str, usize>,
}

/// Title that recommendations should resemble.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Liked {
    /// Title with its year.
    pub name: String,
    pub genres: Vec<String>,
}

/// Source of a suggested film.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// Films similar to those in the library.
    Similar,
    /// Films that are popular.
    Popular,
}

/// Reason why a film is recommended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Why {
    Collection { name: String, held: usize },
    Like { shared: Vec<String>, name: String },
    Genre { genre: String, held: usize },
    Similar,
    Popular,
}

impl<'a> Taste<'a> {
    /// Counts the genres of the libraries. A title that is in two libraries counts once.
    pub fn of(libraries: &[&'a Entries]) -> Self {
        let (mut genres, mut seen) = (BTreeMap::new(), BTreeSet::new());
        for entries in libraries {
            for title in entries.titles().iter().filter(|title| seen.insert(title.catalog)) {
                for name in entries.names_of(title.genres) {
                    *genres.entry(name).or_default() += 1;
                }
            }
        }
        Self { genres }
    }

    /// Most frequent genres.
    pub fn most(&self, count: usize) -> Vec<(&'a str, usize)> {
        let mut most: Vec<(&str, usize)> = self.genres.iter().map(|(name, held)| (*name, *held)).collect();
        most.sort_by_key(|(_, held)| Reverse(*held));
        most.truncate(count);
        most
    }

    fn favourite(&self, genres: &[String]) -> Option<(&'a str, usize)> {
        let held = genres.iter().filter_map(|genre| self.genres.get_key_value(genre.as_str()));
        held.map(|(name, held)| (*name, *held)).max_by_key(|(_, held)| *held)
    }

    /// Score of a list of genres, from 0 for genres that are not in the library to 1 for the most frequent one.
    fn liking(&self, genres: &[String]) -> f64 {
        let most = self.genres.values().max().copied().unwrap_or_default().max(1) as f64;
        let held = |genre: &String| self.genres.get(genre.as_str()).copied().unwrap_or_default() as f64;
        genres.iter().map(held).sum::<f64>() / most / genres.len().max(1) as f64
    }

    /// Ranks films, best first. If `like` is given, only films that share a genre with it are included.
    pub fn rank(&self, films: Vec<(Source, Suggestion)>, like: Option<&Liked>) -> Vec<(Suggestion, Why)> {
        let mut seen = BTreeSet::new();
        let mut scored: Vec<(f64, Suggestion, Why)> = films
            .into_iter()
            .filter(|(_, film)| seen.insert(film.tmdb))
            .filter_map(|(source, film)| {
                let (fit, why) = match like {
                    Some(liked) => liked.shared_with(&film.genres)?,
                    None => (self.liking(&film.genres), self.why(source, &film.genres)),
                };
                Some((film.rating.unwrap_or(UNRATED) * (1.0 + fit), film, why))
            })
            .collect();
        scored.sort_by(|(one, ..), (other, ..)| other.total_cmp(one));
        scored.into_iter().map(|(_, film, why)| (film, why)).collect()
    }

    fn why(&self, source: Source, genres: &[String]) -> Why {
        match (source, self.favourite(genres)) {
            (Source::Popular, _) => Why::Popular,
            (Source::Similar, Some((genre, held))) => Why::Genre { genre: genre.to_owned(), held },
            (Source::Similar, None) => Why::Similar,
        }
    }
}

impl Liked {
    /// Share of the combined genres that both titles have, from 0 to 1. Returns `None` if they have none in common.
    fn shared_with(&self, genres: &[String]) -> Option<(f64, Why)> {
        let shared: Vec<String> =
            self.genres.iter().filter(|genre| genres.contains(genre)).cloned().collect();
        if shared.is_empty() {
            return None;
        }
        let all = self.genres.len() + genres.len() - shared.len();
        Some((shared.len() as f64 / all as f64, Why::Like { shared, name: self.name.clone() }))
    }
}

impl Why {
    /// Text of the reason for the model.
    pub fn told(&self) -> String {
        match self {
            Self::Collection { name, held } => format!("of {name}, of which the library has {held}"),
            Self::Like { shared, name } => format!("{} like {name}", sentence_list(shared)),
            Self::Genre { genre, held } => format!("the library has {held} of {genre}"),
            Self::Similar => "Radarr finds it similar to the library".to_owned(),
            Self::Popular => "popular at present".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arr::holding::{Detail, Holding};

    fn held(catalog: i64, genres: &[&str]) -> Holding {
        Holding {
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
            detail: Detail::Movie { has_file: true, available: true, collection: None },
        }
    }

    fn film(title: &str, genres: &[&str], rating: f64) -> Suggestion {
        Suggestion {
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

    /// Checks the order of the films and the reason for each. The library has three titles of Drama, two of Crime, one
    /// of Horror.
    #[track_caller]
    fn check(films: Vec<(Source, Suggestion)>, like: Option<&Liked>, expected: &[&str]) {
        let (mut hd, mut four_k) = (Entries::default(), Entries::default());
        for (catalog, genres) in [(1, &["Drama", "Crime"][..]), (2, &["Drama", "Crime"]), (3, &["Drama"])] {
            hd.push(held(catalog, genres));
        }
        four_k.push(held(3, &["Drama"]));
        four_k.push(held(4, &["Horror"]));
        let libraries = [&hd, &four_k];
        let taste = Taste::of(&libraries);
        assert_eq!(taste.most(2), [("Drama", 3), ("Crime", 2)]);
        let ranked = taste.rank(films, like);
        let told: Vec<String> =
            ranked.iter().map(|(film, why)| format!("{}: {}", film.title, why.told())).collect();
        assert_eq!(told, expected);
    }

    #[test]
    fn what_there_is_most_of_comes_before_what_is_rated_a_little_higher() {
        check(
            vec![
                (Source::Similar, film("Scream", &["Horror"], 7.5)),
                (Source::Similar, film("Casino", &["Drama", "Crime"], 7.0)),
                (Source::Similar, film("Airplane", &["Comedy"], 7.9)),
                (Source::Popular, film("Barbie", &["Drama"], 3.0)),
                (Source::Popular, film("Casino", &["Drama", "Crime"], 7.0)),
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
    fn films_like_one_share_a_genre_with_it() {
        let liked = Liked { name: "Heat (1995)".into(), genres: vec!["Crime".into(), "Thriller".into()] };
        check(
            vec![
                (Source::Similar, film("Casino", &["Drama", "Crime"], 8.0)),
                (Source::Similar, film("Scream", &["Horror"], 9.0)),
                (Source::Popular, film("Drive", &["Thriller", "Crime"], 0.0)),
            ],
            Some(&liked),
            &["Casino: Crime like Heat (1995)", "Drive: Crime and Thriller like Heat (1995)"],
        );
    }
}
