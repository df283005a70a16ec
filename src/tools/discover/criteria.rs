//! What a title must be like: the arguments of a call, as genres, keywords and bounds.

use serde_json::json;

use crate::conversation::text::title::quote_text;
use crate::conversation::transcript::{CallFailure, FailureCode, MediaKind};
use crate::discovery::genres::{Genre, genre_names};
use crate::discovery::{FoundTitle, YearRange};
use crate::tools::discover::mood::{MoodCriteria, mood_criteria, parse_mood};

/// Minimum number of votes that make a rating.
const MIN_VOTES: u32 = 50;

/// Criteria of a call that are checked on each title of a list.
#[derive(Debug, Default)]
pub(in crate::tools) struct Criteria {
    pub(in crate::tools) kind: Option<MediaKind>,
    pub(in crate::tools) genre: Option<Genre>,
    pub(in crate::tools) mood: Option<MoodCriteria>,
    pub(in crate::tools) years: Option<YearRange>,
    pub(in crate::tools) min_rating: Option<f64>,
    pub(in crate::tools) max_minutes: Option<u32>,
}

/// List from which titles are taken.
#[derive(Debug, Clone, Copy)]
pub(in crate::tools) enum Selection<'a> {
    /// Titles of a person, by the person's name.
    Person(&'a str),
    /// Titles similar to one, by its name.
    Like(&'a str),
    Trending,
    /// Titles that match the criteria.
    Catalog,
}

/// Arguments of a call, as the model states them.
#[derive(Debug, Default)]
pub(in crate::tools) struct StatedCriteria<'a> {
    pub(in crate::tools) kind: Option<MediaKind>,
    pub(in crate::tools) genre: Option<&'a str>,
    pub(in crate::tools) mood: Option<&'a str>,
    pub(in crate::tools) years: Option<&'a str>,
    pub(in crate::tools) min_rating: Option<f64>,
    pub(in crate::tools) max_minutes: Option<u32>,
}

impl Criteria {
    pub(in crate::tools) fn parse(stated: &StatedCriteria<'_>) -> Result<Self, CallFailure> {
        let StatedCriteria { kind, genre, mood, years, min_rating, max_minutes } = *stated;
        let mood = parse(mood, "mood", parse_mood)?.map(mood_criteria);
        let years = parse(years, "years", YearRange::parse)?;
        let genre = parse(genre, "genre", Genre::parse)?;
        Ok(Self { kind, genre, mood, years, min_rating, max_minutes })
    }

    /// Returns the kinds of titles that can match.
    pub(in crate::tools) fn kinds(&self) -> Vec<MediaKind> {
        let can_match = |kind: &MediaKind| {
            self.kind.is_none_or(|wanted| wanted == *kind)
                && self.genre.is_none_or(|genre| genre.id(*kind).is_some())
                && (self.kind.is_some() || self.mood.is_none_or(|mood| mood.applies_to(*kind)))
        };
        [MediaKind::Movie, MediaKind::Series].into_iter().filter(can_match).collect()
    }

    /// Returns the genres that each title of a kind must have.
    pub(in crate::tools) fn genre_ids(&self, kind: MediaKind) -> Vec<u32> {
        let mood = self.mood.map(|mood| mood.genres(kind)).unwrap_or_default();
        let mut ids: Vec<u32> = self.genre.and_then(|genre| genre.id(kind)).into_iter().collect();
        ids.extend(mood.iter().filter(|id| self.genre.and_then(|genre| genre.id(kind)) != Some(**id)));
        ids
    }

    /// Returns the name of the genre of the mood, if it has one and says no more than that.
    pub(in crate::tools) fn genre_of_mood(&self, kind: MediaKind) -> Option<&'static str> {
        let mood = self.mood.filter(|mood| mood.keywords.is_empty())?;
        genre_names(kind, mood.genres(kind)).next()
    }

    /// Returns whether a title of a list matches, as far as the list shows it.
    pub(in crate::tools) fn matches(&self, title: &FoundTitle) -> bool {
        let has_genres = self.genre_ids(title.kind).iter().all(|id| title.genres.contains(id));
        let is_excluded =
            self.mood.is_some_and(|mood| mood.excluded.iter().any(|id| title.genres.contains(id)));
        let is_rated =
            |min: f64| title.votes >= MIN_VOTES && title.rating.is_some_and(|rating| rating >= min);
        self.kind.is_none_or(|kind| kind == title.kind)
            && self.genre.is_none_or(|genre| genre.id(title.kind).is_some())
            && has_genres
            && !is_excluded
            && self.years.is_none_or(|years| years.contains(title.year))
            && self.min_rating.is_none_or(is_rated)
    }

    /// Returns the genre and the mood as words, such as `scary`.
    pub(in crate::tools) fn words(&self) -> Vec<&'static str> {
        let genre = self.genre.map(|genre| genre.name);
        self.mood.map(|mood| mood.word).into_iter().chain(genre).collect()
    }
}

/// Parses an argument that is not empty. The failure names the argument to the model, and its value to the user.
fn parse<T>(
    stated: Option<&str>,
    field: &str,
    parse: impl Fn(&str) -> Option<T>,
) -> Result<Option<T>, CallFailure> {
    let Some(text) = stated.map(str::trim).filter(|text| !text.is_empty()) else { return Ok(None) };
    let unknown = || {
        CallFailure::new(
            FailureCode::BadArguments,
            json!({ "field": field, "hint": "unknown value" }),
            Some(format!("I don't know the {field} {}.", quote_text(text))),
        )
    };
    parse(text).map(Some).ok_or_else(unknown)
}
