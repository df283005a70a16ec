//! The places for open streams: how many there are, and how many of them one caller may take.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::extract::FromRequestParts;
use axum::http::StatusCode;
use axum::http::request::Parts;

use super::auth::{Caller, Operator};
use super::console::Console;
use super::problem::Problem;

/// Streams that are open at the same time.
const MOST: usize = 640;
/// Those of one caller: whoever opens more than they need leaves room for others.
const MOST_OF_ONE: usize = 512;

/// The places for open streams; clones share them.
#[derive(Clone, Default)]
pub struct Places(Arc<Mutex<HashMap<Follower, usize>>>);

/// Whose streams count together.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(in crate::web) enum Follower {
    /// All pages of one session, by what its forms carry.
    Session(String),
    /// The API key of this id.
    Key(i64),
}

/// What came of asking for a place.
pub(in crate::web) enum Seat {
    Taken(Place),
    /// There are as many streams as there may be.
    NoneLeft,
    /// This caller has as many as one may have.
    Enough,
}

/// A place that is taken for as long as this is kept.
pub(in crate::web) struct Place {
    places: Places,
    follower: Follower,
}

impl Places {
    pub(in crate::web) fn take(&self, follower: Follower) -> Seat {
        let mut taken = self.taken();
        if taken.values().sum::<usize>() >= MOST {
            return Seat::NoneLeft;
        }
        let theirs = taken.entry(follower.clone()).or_default();
        if *theirs >= MOST_OF_ONE {
            return Seat::Enough;
        }
        *theirs += 1;
        Seat::Taken(Place { places: self.clone(), follower })
    }

    fn taken(&self) -> MutexGuard<'_, HashMap<Follower, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.taken();
        let Some(theirs) = taken.get_mut(&self.follower) else { return };
        *theirs -= 1;
        if *theirs == 0 {
            taken.remove(&self.follower);
        }
    }
}

impl Seat {
    /// The place, or the status and the words of the answer to whoever gets none.
    pub(in crate::web) fn place(self) -> Result<Place, (StatusCode, &'static str)> {
        match self {
            Self::Taken(place) => Ok(place),
            Self::NoneLeft => Err((StatusCode::SERVICE_UNAVAILABLE, "as many streams are open as may be")),
            Self::Enough => {
                Err((StatusCode::TOO_MANY_REQUESTS, "this key or session follows as many streams as one may"))
            }
        }
    }
}

impl FromRequestParts<Console> for Follower {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, console: &Console) -> Result<Self, Problem> {
        match Caller::from_request_parts(parts, console).await? {
            Caller::Program(key) => Ok(Self::Key(key)),
            Caller::Operator => {
                let operator = Operator::from_request_parts(parts, console).await;
                let operator =
                    operator.map_err(|_| Problem::new(StatusCode::UNAUTHORIZED, "this session has ended"))?;
                Ok(Self::Session(operator.form_token().to_owned()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Follower, MOST, MOST_OF_ONE, Place, Places};

    fn take(places: &Places, key: i64, count: usize) -> Vec<Place> {
        (0..count).map_while(|_| places.take(Follower::Key(key)).place().ok()).collect()
    }

    /// The status of the answer to one more.
    fn one_more(places: &Places, key: i64) -> u16 {
        match places.take(Follower::Key(key)).place() {
            Ok(_) => 200,
            Err((status, _)) => status.as_u16(),
        }
    }

    #[test]
    fn one_caller_cannot_take_every_place_and_all_together_no_more_than_there_are() {
        let places = Places::default();
        let mut greedy = take(&places, 1, MOST);
        assert_eq!(greedy.len(), MOST_OF_ONE);
        assert_eq!([one_more(&places, 1), one_more(&places, 2)], [429, 200]);
        let others = take(&places, 2, MOST);
        assert_eq!(others.len(), MOST - MOST_OF_ONE);
        assert_eq!([1, 2, 3].map(|key| one_more(&places, key)), [503, 503, 503]);
        greedy.pop();
        assert_eq!(one_more(&places, 3), 200);
        drop((greedy, others));
        assert!(places.taken().is_empty());
    }
}
