//! Requests for titles, and their paths and parameters at Seerr and at TMDB.

use crate::conversation::transcript::MediaKind;

/// Minimum number of votes of a title that is selected by its rating.
const MIN_VOTES: u32 = 100;

/// Request that both sources answer.
#[derive(Debug, Clone, Copy)]
pub(super) enum CatalogRequest<'r> {
    /// Titles and people by name.
    Search(&'r str),
    /// Titles in which a person acted, or on which the person worked.
    Credits(i64),
    /// Titles that people liked who liked this one.
    Recommendations(MediaKind, i64),
    /// Titles that many people look at this week.
    Trending,
    Discover(MediaKind, &'r DiscoverFilter),
    /// Streaming services of a region.
    Providers(MediaKind, &'r str),
    /// Facts about one title.
    Facts(MediaKind, i64),
}

/// Filter of a list of titles, sorted by popularity.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DiscoverFilter {
    /// Genres that each title has, by their TMDB ids.
    pub genres: Vec<u32>,
    /// Keywords of which each title has at least one, by their TMDB ids.
    pub keywords: Vec<u32>,
    pub years: Option<YearRange>,
    pub min_rating: Option<f64>,
    pub max_minutes: Option<u32>,
    /// Streaming service, with the code of the country.
    pub provider: Option<(u32, String)>,
}

/// Years from the first to the last, of which either may be open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct YearRange {
    pub first: Option<u16>,
    pub last: Option<u16>,
}

impl YearRange {
    /// Parses `1995`, `1990-1999`, `2015-` or `-1980`.
    pub fn parse(text: &str) -> Option<Self> {
        let year = |text: &str| match text.trim() {
            "" => Some(None),
            digits => digits.parse().ok().filter(|year| (1870..=2200).contains(year)).map(Some),
        };
        let (first, last) = match text.split_once(['-', '\u{2013}']) {
            Some((first, last)) => (year(first)?, year(last)?),
            None => (year(text)?, year(text)?),
        };
        let is_ordered = first.zip(last).is_none_or(|(first, last)| first <= last);
        (is_ordered && (first.is_some() || last.is_some())).then_some(Self { first, last })
    }

    /// Returns whether a year is in the range; an unknown one, 0, is in none.
    pub fn contains(self, year: u16) -> bool {
        year > 0 && self.first.is_none_or(|first| first <= year) && self.last.is_none_or(|last| year <= last)
    }
}

/// Path and parameters of a request.
#[derive(Debug, PartialEq)]
pub(super) struct RequestParts {
    pub(super) path: String,
    pub(super) query: Vec<(&'static str, String)>,
}

impl CatalogRequest<'_> {
    pub(super) fn seerr_parts(self) -> RequestParts {
        // The path of a list has a plural noun for movies.
        let noun = |kind| if kind == MediaKind::Movie { "movies" } else { "tv" };
        let (path, query) = match self {
            Self::Search(text) => ("search".to_owned(), vec![("query", text.to_owned())]),
            Self::Trending => ("discover/trending".to_owned(), Vec::new()),
            Self::Discover(kind, filter) => {
                (format!("discover/{}", noun(kind)), filter.parameters(kind, &SEERR_NAMES))
            }
            Self::Providers(kind, region) => {
                (format!("watchproviders/{}", noun(kind)), vec![("watchRegion", region.to_owned())])
            }
            Self::Credits(person) => (format!("person/{person}/combined_credits"), Vec::new()),
            Self::Recommendations(kind, tmdb) => {
                (format!("{}/{tmdb}/recommendations", word(kind)), Vec::new())
            }
            Self::Facts(kind, tmdb) => (format!("{}/{tmdb}", word(kind)), Vec::new()),
        };
        RequestParts { path: format!("api/v1/{path}"), query }
    }

    pub(super) fn tmdb_parts(self) -> RequestParts {
        let without_adult = ("include_adult", "false".to_owned());
        let (path, query) = match self {
            Self::Search(text) => {
                ("search/multi".to_owned(), vec![("query", text.to_owned()), without_adult])
            }
            Self::Trending => ("trending/all/week".to_owned(), Vec::new()),
            Self::Discover(kind, filter) => {
                let mut query = filter.parameters(kind, &TMDB_NAMES);
                query.push(without_adult);
                (format!("discover/{}", word(kind)), query)
            }
            Self::Providers(kind, region) => {
                (format!("watch/providers/{}", word(kind)), vec![("watch_region", region.to_owned())])
            }
            Self::Credits(person) => (format!("person/{person}/combined_credits"), Vec::new()),
            Self::Recommendations(kind, tmdb) => {
                (format!("{}/{tmdb}/recommendations", word(kind)), Vec::new())
            }
            Self::Facts(kind, tmdb) => {
                let parts = "external_ids,watch/providers".to_owned();
                (format!("{}/{tmdb}", word(kind)), vec![("append_to_response", parts)])
            }
        };
        RequestParts { path, query }
    }
}

/// Names of the parameters of a filter. Those of dates are for a movie and for a show.
struct ParameterNames {
    genres: &'static str,
    keywords: &'static str,
    from: [&'static str; 2],
    until: [&'static str; 2],
    min_rating: &'static str,
    min_votes: &'static str,
    max_minutes: &'static str,
    min_minutes: &'static str,
    provider: &'static str,
    region: &'static str,
    sort: &'static str,
}

const SEERR_NAMES: ParameterNames = ParameterNames {
    genres: "genre",
    keywords: "keywords",
    from: ["primaryReleaseDateGte", "firstAirDateGte"],
    until: ["primaryReleaseDateLte", "firstAirDateLte"],
    min_rating: "voteAverageGte",
    min_votes: "voteCountGte",
    max_minutes: "withRuntimeLte",
    min_minutes: "withRuntimeGte",
    provider: "watchProviders",
    region: "watchRegion",
    sort: "sortBy",
};

const TMDB_NAMES: ParameterNames = ParameterNames {
    genres: "with_genres",
    keywords: "with_keywords",
    from: ["primary_release_date.gte", "first_air_date.gte"],
    until: ["primary_release_date.lte", "first_air_date.lte"],
    min_rating: "vote_average.gte",
    min_votes: "vote_count.gte",
    max_minutes: "with_runtime.lte",
    min_minutes: "with_runtime.gte",
    provider: "with_watch_providers",
    region: "watch_region",
    sort: "sort_by",
};

impl DiscoverFilter {
    fn parameters(&self, kind: MediaKind, names: &ParameterNames) -> Vec<(&'static str, String)> {
        let Self { genres, keywords, years, min_rating, max_minutes, provider } = self;
        let position = usize::from(kind == MediaKind::Series);
        let mut query = vec![(names.sort, "popularity.desc".to_owned())];
        if !genres.is_empty() {
            query.push((names.genres, join_ids(genres, ",")));
        }
        if !keywords.is_empty() {
            query.push((names.keywords, join_ids(keywords, "|")));
        }
        if let Some(first) = years.and_then(|years| years.first) {
            query.push((names.from[position], format!("{first}-01-01")));
        }
        if let Some(last) = years.and_then(|years| years.last) {
            query.push((names.until[position], format!("{last}-12-31")));
        }
        if let Some(rating) = min_rating {
            query.push((names.min_rating, rating.to_string()));
            query.push((names.min_votes, MIN_VOTES.to_string()));
        }
        if let Some(minutes) = max_minutes {
            // Without a minimum, titles of an unknown length have 0 minutes.
            query.extend([(names.min_minutes, "1".to_owned()), (names.max_minutes, minutes.to_string())]);
        }
        if let Some((provider, region)) = provider {
            query.extend([(names.provider, provider.to_string()), (names.region, region.clone())]);
        }
        query
    }
}

fn join_ids(ids: &[u32], separator: &str) -> String {
    ids.iter().map(u32::to_string).collect::<Vec<_>>().join(separator)
}

/// Returns the word for a kind in paths.
fn word(kind: MediaKind) -> &'static str {
    match kind {
        MediaKind::Movie => "movie",
        MediaKind::Series => "tv",
    }
}
