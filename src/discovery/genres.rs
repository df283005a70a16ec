//! Genres of TMDB. Movies and shows have different lists.

use crate::conversation::transcript::MediaKind;

/// Genre with its ids at TMDB.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Genre {
    /// Name in lower case, such as `science fiction`.
    pub name: &'static str,
    movie: Option<u32>,
    series: Option<u32>,
}

impl Genre {
    const fn new(name: &'static str, movie: Option<u32>, series: Option<u32>) -> Self {
        Self { name, movie, series }
    }

    /// Returns the id for titles of a kind; `None` if such titles do not have the genre.
    pub fn id(self, kind: MediaKind) -> Option<u32> {
        match kind {
            MediaKind::Movie => self.movie,
            MediaKind::Series => self.series,
        }
    }

    /// Finds the genre that a word of people means, such as `sci-fi` or `comedies`.
    pub fn parse(text: &str) -> Option<Self> {
        let word = text.trim().to_lowercase().replace(['-', '_'], " ");
        let synonym = SYNONYMS.iter().find(|(synonym, _)| *synonym == word).map(|(_, name)| *name);
        let name = synonym.unwrap_or(&word);
        let singular = name.strip_suffix("ies").map(|stem| format!("{stem}y"));
        let is_meant = |genre: &&Self| {
            genre.name == name
                || name.strip_suffix('s') == Some(genre.name)
                || singular.as_deref() == Some(genre.name)
        };
        GENRES.iter().find(is_meant).copied()
    }
}

/// Returns the names of the genres with these ids.
pub fn genre_names(kind: MediaKind, ids: &[u32]) -> impl Iterator<Item = &'static str> {
    let is_given = move |genre: &&Genre| genre.id(kind).is_some_and(|id| ids.contains(&id));
    let mut named: Vec<u32> = Vec::new();
    // Two names share an id of shows: the first one is used.
    GENRES.iter().filter(is_given).filter_map(move |genre| {
        let id = genre.id(kind)?;
        (!named.contains(&id)).then(|| named.push(id)).map(|()| genre.name)
    })
}

/// Genres as of 2026, from the lists of TMDB (`/genre/movie/list`, `/genre/tv/list`), whose ids do not change.
const GENRES: &[Genre] = &[
    Genre::new("action", Some(28), Some(10_759)),
    Genre::new("adventure", Some(12), Some(10_759)),
    Genre::new("animation", Some(16), Some(16)),
    Genre::new("comedy", Some(35), Some(35)),
    Genre::new("crime", Some(80), Some(80)),
    Genre::new("documentary", Some(99), Some(99)),
    Genre::new("drama", Some(18), Some(18)),
    Genre::new("family", Some(10_751), Some(10_751)),
    Genre::new("fantasy", Some(14), Some(10_765)),
    Genre::new("history", Some(36), None),
    Genre::new("horror", Some(27), None),
    Genre::new("kids", Some(10_751), Some(10_762)),
    Genre::new("music", Some(10_402), None),
    Genre::new("mystery", Some(9_648), Some(9_648)),
    Genre::new("news", None, Some(10_763)),
    Genre::new("reality", None, Some(10_764)),
    Genre::new("romance", Some(10_749), None),
    Genre::new("science fiction", Some(878), Some(10_765)),
    Genre::new("soap", None, Some(10_766)),
    Genre::new("talk", None, Some(10_767)),
    Genre::new("thriller", Some(53), None),
    Genre::new("war", Some(10_752), Some(10_768)),
    Genre::new("western", Some(37), Some(37)),
];

/// Other words for genres.
const SYNONYMS: &[(&str, &str)] = &[
    ("animated", "animation"),
    ("cartoon", "animation"),
    ("cartoons", "animation"),
    ("children", "kids"),
    ("docu", "documentary"),
    ("docs", "documentary"),
    ("historical", "history"),
    ("murder mystery", "mystery"),
    ("romantic", "romance"),
    ("scary", "horror"),
    ("sci fi", "science fiction"),
    ("scifi", "science fiction"),
    ("sf", "science fiction"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_people_name_a_genre() {
        let name = |word| Genre::parse(word).map(|genre| genre.name);
        assert_eq!(name("Sci-Fi"), Some("science fiction"));
        assert_eq!(name("comedies"), Some("comedy"));
        assert_eq!(name("thrillers"), Some("thriller"));
        assert_eq!(name("westerns"), Some("western"));
        assert_eq!(name("walrus"), None);
    }

    #[test]
    fn id_that_two_genres_share_is_named_once() {
        let names = |kind, ids: &[u32]| genre_names(kind, ids).collect::<Vec<_>>();
        assert_eq!(names(MediaKind::Series, &[10_765, 35]), ["comedy", "fantasy"]);
        assert_eq!(names(MediaKind::Movie, &[878, 14]), ["fantasy", "science fiction"]);
    }
}
