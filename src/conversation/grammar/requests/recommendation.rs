//! Request for something to watch, with the filters that narrow it.

use serde_json::{Map, Value, json};

use super::years::NamedYears;
use crate::conversation::transcript::MediaKind;

/// Request for something to watch. Each field narrows the titles.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Recommendation {
    /// Genres and moods, in the words of the text.
    pub mood: Option<String>,
    pub kind: Option<MediaKind>,
    /// Similar title.
    pub like: Option<String>,
    /// Only titles that the library has, and that the user has not watched.
    pub in_library: bool,
    /// Name of somebody who acts or directs.
    pub person: Option<String>,
    pub years: Option<NamedYears>,
    /// Streaming service.
    pub provider: Option<&'static str>,
    pub trending: bool,
    pub max_minutes: Option<u32>,
    pub min_rating: Option<Rating>,
}

/// Rating in tenths, from 1 to 10.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rating(pub u8);

impl Recommendation {
    /// Returns the arguments, by the names that `recommend` has for them, and the description as the text states it.
    pub fn arguments(&self) -> Map<String, Value> {
        let mut arguments = self.filters();
        arguments.extend(self.mood.as_ref().map(|mood| ("mood".to_owned(), json!(mood))));
        arguments
    }

    /// Returns the arguments without the description.
    pub fn filters(&self) -> Map<String, Value> {
        let all = [
            ("type", self.kind.map(|kind| json!(kind))),
            ("like", self.like.as_ref().map(|title| json!(title))),
            ("in_library", self.in_library.then_some(json!(true))),
            ("person", self.person.as_ref().map(|name| json!(name))),
            ("years", self.years.map(|years| json!(years.to_string()))),
            ("provider", self.provider.map(|provider| json!(provider))),
            ("trending", self.trending.then_some(json!(true))),
            ("max_minutes", self.max_minutes.map(|minutes| json!(minutes))),
            ("min_rating", self.min_rating.map(Rating::to_json)),
        ];
        let given = all.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
        given.collect()
    }

    /// Returns whether anything but the type, the genre and the mood narrows the titles.
    pub fn is_filtered(&self) -> bool {
        self.filters().keys().any(|name| name != "type")
    }
}

impl Rating {
    fn to_json(self) -> Value {
        match self.0 % 10 {
            0 => json!(self.0 / 10),
            _ => json!(f64::from(self.0) / 10.0),
        }
    }
}
