//! Combined caches of all libraries that a query covers, and the current state of single titles.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures_util::future::join_all;
use jiff::Timestamp;
use tokio::time::{Instant, timeout_at};

use super::entries::{Entries, Entry};
use super::freshness::{Held, Moment, Need, Reading};
use crate::arr::{ArrError, MediaKind};
use crate::conversation::transcript::{CallFailure, MediaRef};
use crate::http::HttpError;
use crate::tools::library::{Library, READ_PATIENCE};
use crate::tools::place::Place;

/// Contents of the libraries, and the failures of libraries that could not be loaded.
pub struct Stock<'a> {
    pub shelves: Vec<Shelved<'a>>,
    pub failures: Vec<CallFailure>,
    now: Timestamp,
    asked: Instant,
}

pub struct Shelved<'a> {
    pub(in crate::tools) place: Place<'a>,
    pub held: Arc<Held>,
}

/// Current state of a title, which may have changed since its library was loaded.
pub enum Now {
    /// The title is there. Its genres are numbered for this entry alone.
    Here(Box<Entry>),
    Gone,
    Failed(CallFailure),
}

impl<'a> Stock<'a> {
    pub async fn take(library: &'a Library, kind: Option<MediaKind>, now: Timestamp) -> Self {
        let movies = library.movies_of(kind).iter().map(Place::Movies);
        let series = library.series_of(kind).iter().map(Place::Series);
        let mut stock = Self { shelves: Vec::new(), failures: Vec::new(), now, asked: Instant::now() };
        stock.read(movies.chain(series).collect(), Need::Usual).await;
        stock
    }

    /// Loads the libraries again for a query that matched nothing. Returns `None` if that result is already up to date.
    pub async fn renewed(&self) -> Option<Self> {
        let is_final = |shelf: &Shelved<'_>| shelf.held.is_final(self.asked, shelf.place.moment(self.now));
        if self.shelves.iter().all(is_final) {
            return None;
        }
        let places = self.shelves.iter().map(|shelf| shelf.place).collect();
        let mut renewed = Self { shelves: Vec::new(), failures: Vec::new(), ..*self };
        renewed.read(places, Need::Missed(self.asked)).await;
        renewed.failures.extend(self.failures.iter().cloned());
        Some(renewed)
    }

    /// Entries of each library.
    pub fn entries(&self) -> Vec<&Entries> {
        self.shelves.iter().map(|shelf| &shelf.held.entries).collect()
    }

    /// Names of all existing genres, in alphabetical order.
    pub fn genres(&self) -> Vec<&str> {
        let all = self.shelves.iter().flat_map(|shelf| shelf.held.entries.all_genres());
        all.collect::<BTreeSet<&str>>().into_iter().collect()
    }

    async fn read(&mut self, places: Vec<Place<'a>>, need: Need) {
        let read = join_all(places.iter().map(|place| place.held(self.now, need))).await;
        for (place, held) in places.into_iter().zip(read) {
            match held {
                Ok(held) => self.shelves.push(Shelved { place, held }),
                Err(error) => self.failures.push(place.failure(&error)),
            }
        }
    }
}

impl Shelved<'_> {
    /// Fetches the current state of one title.
    pub async fn look(&self, id: i64, deadline: Instant) -> Now {
        match timeout_at(deadline, self.place.holding(id)).await {
            Ok(Ok(Some(entry))) => Now::Here(Box::new(entry)),
            Ok(Ok(None)) => {
                self.place.changed();
                Now::Gone
            }
            Ok(Err(error)) => Now::Failed(self.place.failure(&error)),
            Err(_) => {
                let late = ArrError::NoAnswer(HttpError::TimedOut(READ_PATIENCE));
                Now::Failed(self.place.failure(&late))
            }
        }
    }

    pub fn item(&self, id: i64) -> MediaRef {
        self.place.item(id)
    }
}

impl Place<'_> {
    async fn held(&self, now: Timestamp, need: Need) -> Reading {
        match self {
            Self::Movies(instance) => instance.held(now, need).await,
            Self::Series(instance) => instance.held(now, need).await,
        }
    }

    fn moment(&self, now: Timestamp) -> Moment {
        match self {
            Self::Movies(instance) => instance.moment(now),
            Self::Series(instance) => instance.moment(now),
        }
    }

    async fn holding(&self, id: i64) -> Result<Option<Entry>, ArrError> {
        let holding = match self {
            Self::Movies(instance) => instance.client.holding(id).await?,
            Self::Series(instance) => instance.client.holding(id).await?,
        };
        Ok(holding.map(|holding| Entries::default().entry(holding)))
    }

    fn changed(&self) {
        match self {
            Self::Movies(instance) => instance.client.server().changed(),
            Self::Series(instance) => instance.client.server().changed(),
        }
    }

    fn failure(&self, error: &ArrError) -> CallFailure {
        match self {
            Self::Movies(instance) => instance.failure(error),
            Self::Series(instance) => instance.failure(error),
        }
    }
}
