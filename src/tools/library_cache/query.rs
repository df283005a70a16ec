//! Selection and order of the titles that match a query.

use std::cmp::{Ordering, Reverse};
use std::collections::BTreeSet;

use jiff::Timestamp;
use jiff::civil::Date;
use schemars::JsonSchema;
use serde::Deserialize;

use super::entries::{CachedTitle, CachedTitles};
use crate::tools::formatting::to_gigabytes;
use crate::tools::ranking::{MatchQuality, TitleQuery, WordPrefixes, may_match};
use crate::tools::viewing::selection::WatchSelection;

/// Criteria of a query for titles.
#[derive(Debug)]
pub struct LibraryQuery {
    pub query: TitleQuery,
    pub spelling: QuerySpelling,
    pub only: Option<StatusFilter>,
    pub genre: Option<String>,
    pub year: Option<u16>,
    pub sort: Option<SortOrder>,
    pub bounds: SortBounds,
    /// Selection by what people have watched.
    pub watched: Option<WatchSelection>,
}

/// Comparison of the query with the names of titles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuerySpelling {
    Correct,
    /// The query may have typing errors, so only names that resemble it match.
    Similar,
}

/// Inclusive bounds of the value by which the titles are sorted: days since the addition, gigabytes, or rating.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SortBounds {
    pub min: Option<u32>,
    pub max: Option<u32>,
    pub today: Date,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StatusFilter {
    Missing,
    OnDisk,
    Unmonitored,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SortOrder {
    // `Newest` and `Oldest` refer to the date of the addition.
    Newest,
    Oldest,
    Biggest,
    Title,
    Rating,
    Worst,
    // Newest play first. Titles without a known play come last. Another argument selects it.
    #[serde(skip)]
    #[schemars(skip)]
    LastWatched,
}

/// Title that matches a query.
#[derive(Debug)]
pub struct TitleMatch<'a> {
    /// Index of the library among those that were queried.
    pub library: usize,
    pub entry: &'a CachedTitle,
    quality: MatchQuality,
    /// Index among the matches in the same library.
    position: usize,
}

impl TitleMatch<'_> {
    /// Returns whether the query is the name of the title or the beginning of its name.
    pub fn matches_start(&self) -> bool {
        self.quality <= MatchQuality::Prefix
    }

    /// Returns whether the queried name is an alias of the user for this title.
    pub fn is_alias(&self) -> bool {
        self.quality == MatchQuality::Alias
    }
}

impl LibraryQuery {
    /// Creates a query for the titles whose names match.
    pub fn by_title(query: TitleQuery) -> Self {
        Self {
            query,
            spelling: QuerySpelling::Correct,
            only: None,
            genre: None,
            year: None,
            sort: None,
            bounds: SortBounds::default(),
            watched: None,
        }
    }

    /// Returns whether the query has no criteria, so that it matches all titles.
    pub fn matches_everything(&self) -> bool {
        let Self { query, only, genre, year, sort, watched, spelling: _, bounds: _ } = self;
        let has_filter = only.is_some() || genre.is_some() || year.is_some() || watched.is_some();
        query.is_empty() && sort.is_none() && !has_filter
    }

    /// Returns the matching titles. The first ones, up to the number `shown`, are in the order in which they are reported.
    pub fn select_titles<'a>(&self, libraries: &[&'a CachedTitles], shown: usize) -> Vec<TitleMatch<'a>> {
        let mut matches = Vec::new();
        let query_prefixes = self.query.word_prefixes();
        for (library, entries) in libraries.iter().enumerate() {
            let genres = self.genre.as_deref().map(|genre| entries.matching_genres(genre));
            let collections = entries.collections_named(&self.query);
            let mut library_matches: Vec<(MatchQuality, &CachedTitle)> = entries
                .titles()
                .iter()
                .filter(|entry| {
                    self.meets_filter(entry)
                        && self.year.is_none_or(|year| entry.year == year)
                        && genres.is_none_or(|genres| entry.genres.intersects(genres))
                        && self.is_within_bounds(entry)
                        && self
                            .watched
                            .as_ref()
                            .is_none_or(|watched| watched.matches(entry.media_kind(), &entry.catalog_ids()))
                })
                .map(|entry| (self.match_quality(entry, &query_prefixes, &collections), entry))
                .filter(|(quality, _)| *quality < MatchQuality::Loose)
                .collect();
            library_matches.sort_by_key(|(quality, _)| *quality);
            let with_positions = library_matches.into_iter().enumerate();
            matches.extend(with_positions.map(|(position, (quality, entry))| TitleMatch {
                library,
                entry,
                quality,
                position,
            }));
        }
        self.sort_matches(&mut matches, shown);
        matches
    }

    /// Returns whether a title has the status that the query selects. Unlike the other criteria, the status of a title
    /// changes often.
    pub fn meets_filter(&self, entry: &CachedTitle) -> bool {
        match self.only {
            None => true,
            Some(StatusFilter::OnDisk) => entry.is_on_disk(),
            Some(StatusFilter::Missing) => entry.is_missing(),
            Some(StatusFilter::Unmonitored) => !entry.monitored,
        }
    }

    /// Returns whether the value by which the titles are sorted is within the bounds. A title without the value is not.
    fn is_within_bounds(&self, entry: &CachedTitle) -> bool {
        let SortBounds { min, max, today } = self.bounds;
        let value = match self.sort {
            _ if min.is_none() && max.is_none() => return true,
            Some(SortOrder::Newest | SortOrder::Oldest) => {
                entry.added.and_then(|day| day.until(today).ok()).map(|span| f64::from(span.get_days()))
            }
            Some(SortOrder::Biggest) => Some(to_gigabytes(entry.size_bytes)),
            Some(SortOrder::Rating | SortOrder::Worst) => {
                Some(f64::from(entry.rating)).filter(|rating| *rating > 0.0)
            }
            Some(SortOrder::Title | SortOrder::LastWatched) | None => return true,
        };
        value.is_some_and(|value| {
            min.is_none_or(|min| value >= f64::from(min)) && max.is_none_or(|max| value <= f64::from(max))
        })
    }

    /// Returns the heading for a list of the matching titles.
    pub fn list_heading(&self) -> &'static str {
        match self.only {
            _ if self.spelling == QuerySpelling::Similar => "Nothing of this name, but similar",
            None => self.watched.as_ref().map_or("In the library", WatchSelection::list_heading),
            Some(StatusFilter::Missing) => "Missing",
            Some(StatusFilter::OnDisk) => "On disk",
            Some(StatusFilter::Unmonitored) => "Not monitored",
        }
    }

    /// Returns the requested genre, if no library has it.
    pub fn unknown_genre(&self, libraries: &[&CachedTitles]) -> Option<&str> {
        let unknown = |genre: &&str| libraries.iter().all(|titles| titles.matching_genres(genre).is_empty());
        self.genre.as_deref().filter(unknown)
    }

    fn match_quality(
        &self,
        entry: &CachedTitle,
        query_prefixes: &[WordPrefixes],
        collections: &BTreeSet<i64>,
    ) -> MatchQuality {
        if self.query.is_empty() {
            return MatchQuality::Exact;
        }
        if self.spelling == QuerySpelling::Similar {
            let is_similar = self.query.resembles(&entry.normalized);
            return if is_similar { MatchQuality::Similar } else { MatchQuality::Loose };
        }
        let has_other_name =
            || entry.other_names().any(|name| self.query.matches_other_name(name, entry.year));
        let is_in_collection = || entry.collection_id().is_some_and(|id| collections.contains(&id));
        if !may_match(entry.prefixes, query_prefixes) {
            return if is_in_collection() { MatchQuality::Words } else { MatchQuality::Loose };
        }
        match self.query.match_title(&entry.normalized, entry.year) {
            MatchQuality::Loose if has_other_name() || is_in_collection() => MatchQuality::Words,
            quality => quality,
        }
    }

    /// Returns the time at which a title was last played by the selected people.
    pub fn last_play(&self, entry: &CachedTitle) -> Option<Timestamp> {
        self.watched.as_ref()?.last_play(entry.media_kind(), &entry.catalog_ids())
    }

    fn sort_matches(&self, matches: &mut [TitleMatch<'_>], shown: usize) {
        let sort = match self.sort {
            None if self.query.is_empty() => SortOrder::Newest,
            None => {
                // The first title of each library, then the second of each, and so on.
                let key = |title: &TitleMatch<'_>| (title.quality, title.position);
                return sort_first(matches, shown, |a, b| key(a).cmp(&key(b)));
            }
            Some(sort) => sort,
        };
        match sort {
            SortOrder::Newest => sort_first(matches, shown, |a, b| b.entry.added.cmp(&a.entry.added)),
            // A title without a date is not known to be old, so it comes last.
            SortOrder::Oldest => {
                let key = |title: &TitleMatch<'_>| (title.entry.added.is_none(), title.entry.added);
                sort_first(matches, shown, |a, b| key(a).cmp(&key(b)));
            }
            SortOrder::Biggest => {
                sort_first(matches, shown, |a, b| b.entry.size_bytes.cmp(&a.entry.size_bytes))
            }
            SortOrder::Title => sort_first(matches, shown, |a, b| {
                a.entry.normalized.sort_key().cmp(b.entry.normalized.sort_key())
            }),
            SortOrder::LastWatched => {
                matches.sort_by_cached_key(|title| Reverse(self.last_play(title.entry)))
            }
            SortOrder::Rating => sort_first(matches, shown, |a, b| b.entry.rating.total_cmp(&a.entry.rating)),
            // A title without a rating is not known to be bad, so it comes last.
            SortOrder::Worst => {
                let rating = |title: &TitleMatch<'_>| match title.entry.rating {
                    0.0 => f32::INFINITY,
                    rating => rating,
                };
                sort_first(matches, shown, |a, b| rating(a).total_cmp(&rating(b)));
            }
        }
    }
}

/// Sorts the first matches, up to the number `shown`. Equal ones stay in their order.
fn sort_first<'a>(
    matches: &mut [TitleMatch<'a>],
    shown: usize,
    compare: impl Fn(&TitleMatch<'a>, &TitleMatch<'a>) -> Ordering,
) {
    let compare = |a: &TitleMatch<'a>, b: &TitleMatch<'a>| {
        compare(a, b).then_with(|| (a.library, a.position).cmp(&(b.library, b.position)))
    };
    if shown < matches.len() {
        matches.select_nth_unstable_by(shown, compare);
    }
    let first = shown.min(matches.len());
    matches[..first].sort_unstable_by(compare);
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;
    use crate::arr::MovieCollection;
    use crate::arr::library_title::{EpisodeCounts, LibraryTitle, LibraryTitleDetails};

    struct MovieBuilder(LibraryTitle);

    fn movie(title: &str, year: u16) -> MovieBuilder {
        MovieBuilder(LibraryTitle {
            id: 1,
            catalog: 2,
            tmdb: None,
            imdb: None,
            title: title.to_owned(),
            other_titles: Vec::new(),
            year,
            monitored: true,
            size_bytes: 0,
            profile: 4,
            genres: Vec::new(),
            certification: String::new(),
            added: None,
            rating: 0.0,
            minutes: 0,
            detail: LibraryTitleDetails::Movie { has_file: false, available: true, collection: None },
        })
    }

    impl MovieBuilder {
        fn other_title(mut self, name: &str) -> Self {
            self.0.other_titles.push(name.to_owned());
            self
        }

        fn unmonitored(mut self) -> Self {
            self.0.monitored = false;
            self
        }

        fn genre(mut self, name: &str) -> Self {
            self.0.genres.push(name.to_owned());
            self
        }

        fn rated(mut self, rating: f32) -> Self {
            self.0.rating = rating;
            self
        }

        fn added(mut self, day: i8) -> Self {
            self.0.added = Some(date(2026, 1, day));
            self
        }

        fn on_disk(mut self, bytes: u64) -> Self {
            self.0.size_bytes = bytes;
            if let LibraryTitleDetails::Movie { has_file, .. } = &mut self.0.detail {
                *has_file = true;
            }
            self
        }

        fn collection(mut self, name: &str) -> Self {
            if let LibraryTitleDetails::Movie { collection, .. } = &mut self.0.detail {
                *collection = Some(MovieCollection { tmdb: 8091, title: name.to_owned() });
            }
            self
        }
    }

    fn query_all() -> LibraryQuery {
        LibraryQuery::by_title(TitleQuery::new(""))
    }

    fn query_title(query: &str) -> LibraryQuery {
        LibraryQuery::by_title(TitleQuery::new(query))
    }

    fn library() -> Vec<MovieBuilder> {
        vec![
            movie("The Thing", 1982).genre("Horror").rated(8.2).added(3).on_disk(7),
            movie("Alien", 1979)
                .genre("Horror")
                .genre("Science Fiction")
                .rated(8.5)
                .added(1)
                .collection("Alien Collection"),
            movie("Aliens", 1986)
                .genre("Science Fiction")
                .rated(8.4)
                .added(5)
                .on_disk(9)
                .collection("Alien Collection"),
            movie("Leon: The Professional", 1994).other_title("Der Profi").other_title("Leon").unmonitored(),
        ]
    }

    /// Checks the titles that a query selects from a library of movies and one of series.
    #[track_caller]
    fn check(query: &LibraryQuery, expected: &[&str]) {
        let (mut movies, mut series) = (CachedTitles::default(), CachedTitles::default());
        for MovieBuilder(movie) in library() {
            movies.push(movie);
        }
        let episodes = EpisodeCounts { seasons: 1, on_disk: 4, all: 8, missing: 4 };
        let MovieBuilder(title) = movie("Alien: Earth", 2025).genre("Drama").added(4);
        series.push(LibraryTitle { detail: LibraryTitleDetails::Series(episodes), ..title });
        for shown in [usize::MAX, expected.len(), 3, 2, 1, 0] {
            let matches = query.select_titles(&[&movies, &series], shown);
            let titles: Vec<&str> = matches.iter().map(|title| title.entry.title.as_ref()).collect();
            let shown = shown.min(expected.len());
            assert_eq!((titles.len(), &titles[..shown]), (expected.len(), &expected[..shown]));
        }
    }

    #[test]
    fn title_matches_by_words_with_the_exact_one_first() {
        check(&query_title("alien"), &["Alien", "Alien: Earth", "Aliens"]);
        check(&query_title("thing 1982"), &["The Thing"]);
        check(&query_title("thing 2011"), &[]);
    }

    #[test]
    fn title_matches_by_release_year() {
        let of_year = |year| LibraryQuery { year: Some(year), ..query_all() };
        check(&of_year(1986), &["Aliens"]);
        check(&of_year(2001), &[]);
        check(&LibraryQuery { query: TitleQuery::new("alien"), ..of_year(2025) }, &["Alien: Earth"]);
    }

    #[test]
    fn misspelled_query_matches_only_similar_names() {
        let similar = |query| LibraryQuery { spelling: QuerySpelling::Similar, ..query_title(query) };
        check(&similar("alein"), &["Alien"]);
        check(&similar("teh thing"), &["The Thing"]);
        check(&similar("predator"), &[]);
    }

    #[test]
    fn title_matches_by_alternate_names_and_collection() {
        check(&query_title("der profi"), &["Leon: The Professional"]);
        check(&query_title("der profi 1994"), &["Leon: The Professional"]);
        check(&query_title("Alien collection"), &["Alien", "Aliens"]);
    }

    #[test]
    fn titles_are_filtered_by_status() {
        check(
            &LibraryQuery { only: Some(StatusFilter::OnDisk), ..query_all() },
            &["Aliens", "Alien: Earth", "The Thing"],
        );
        check(&LibraryQuery { only: Some(StatusFilter::Missing), ..query_all() }, &["Alien: Earth", "Alien"]);
        check(
            &LibraryQuery { only: Some(StatusFilter::Unmonitored), ..query_all() },
            &["Leon: The Professional"],
        );
        check(
            &LibraryQuery { only: Some(StatusFilter::Missing), ..query_title("alien") },
            &["Alien", "Alien: Earth"],
        );
    }

    #[test]
    fn titles_are_filtered_by_genre_and_sorted() {
        let genre =
            |name: &str, sort| LibraryQuery { genre: Some(name.to_owned()), sort: Some(sort), ..query_all() };
        check(&genre("horror", SortOrder::Oldest), &["Alien", "The Thing"]);
        check(&genre("sci-fi", SortOrder::Newest), &["Aliens", "Alien"]);
        check(&genre("western", SortOrder::Newest), &[]);
        let sorted = |sort| LibraryQuery { sort: Some(sort), ..query_title("alien") };
        check(&sorted(SortOrder::Biggest), &["Aliens", "Alien", "Alien: Earth"]);
        check(&sorted(SortOrder::Rating), &["Alien", "Aliens", "Alien: Earth"]);
        let by_title = ["Alien", "Alien: Earth", "Aliens", "Leon: The Professional", "The Thing"];
        check(&LibraryQuery { sort: Some(SortOrder::Title), ..query_all() }, &by_title);
        check(&sorted(SortOrder::Worst), &["Aliens", "Alien", "Alien: Earth"]);
    }

    #[test]
    fn bounds_limit_the_sorted_value() {
        let bounded = |sort, min, max| LibraryQuery {
            sort: Some(sort),
            bounds: SortBounds { min, max, today: date(2026, 2, 1) },
            ..query_all()
        };
        check(&bounded(SortOrder::Newest, None, Some(28)), &["Aliens", "Alien: Earth"]);
        check(&bounded(SortOrder::Oldest, Some(28), Some(29)), &["The Thing", "Alien: Earth"]);
        check(&bounded(SortOrder::Rating, Some(8), None), &["Alien", "Aliens", "The Thing"]);
        check(&bounded(SortOrder::Worst, None, Some(8)), &[]);
        check(&bounded(SortOrder::Biggest, Some(1), None), &[]);
    }
}
