//! Selection of titles of the library by what people have watched.

use serde_json::{Map, Value, json};

use crate::conversation::transcript::MediaKind;

/// Selection of titles of the library by what people have watched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchedTitles {
    pub state: WatchedState,
    pub by: WatchedBy,
    pub kind: Option<MediaKind>,
}

/// State of the selected titles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatchedState {
    Unwatched,
    Started,
    Watched,
    /// Not watched for this number of days.
    NotSince(u32),
}

/// People whose watching selects the titles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WatchedBy {
    User,
    Anyone,
    Person(String),
}

impl WatchedTitles {
    /// Returns the arguments, by the names that `find_in_library` has for them.
    pub fn arguments(&self) -> Map<String, Value> {
        let state = match self.state {
            WatchedState::Unwatched => ("watched", json!("unwatched")),
            WatchedState::Started => ("watched", json!("started")),
            WatchedState::Watched => ("watched", json!("watched")),
            WatchedState::NotSince(days) => ("not_watched_days", json!(days)),
        };
        let by = match &self.by {
            WatchedBy::User => None,
            WatchedBy::Anyone => Some(("watched_by", json!("anyone"))),
            WatchedBy::Person(name) => Some(("watched_by", json!(name))),
        };
        let kind = self.kind.map(|kind| ("type", json!(kind)));
        let all = std::iter::once(state).chain(by).chain(kind);
        all.map(|(name, value)| (name.to_owned(), value)).collect()
    }
}
