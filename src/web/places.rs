//! Limits on open streams: their total number, the number per caller, and the end of the streams of a caller who loses
//! access.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::extract::FromRequestParts;
use axum::http::StatusCode;
use axum::http::request::Parts;
use tokio_util::sync::CancellationToken;

use super::auth::{Caller, Operator};
use super::console_state::ConsoleState;
use super::problem::Problem;

/// Most streams that are open concurrently.
const MOST: usize = 640;
/// Most streams of one caller: a caller who opens too many must leave room for others.
const MOST_OF_ONE: usize = 512;

/// Slots for open streams; clones share them.
#[derive(Clone, Default)]
pub struct Places(Arc<Mutex<Taken>>);

#[derive(Default)]
struct Taken {
    streams: HashMap<Follower, Streams>,
    /// Callers whose streams were ended. A request that was authorized before may ask for a slot only after that. The
    /// set has one entry for each sign-out and each revoked key since the start.
    ended: HashSet<Follower>,
}

/// Streams of one caller.
#[derive(Default)]
struct Streams {
    open: usize,
    over: CancellationToken,
}

/// Owner of streams that are counted together.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(in crate::web) enum Follower {
    /// All pages of one session, by the token in its forms.
    Session(String),
    /// API key with this id.
    Key(i64),
}

/// Outcome of a request for a slot.
pub(in crate::web) enum Seat {
    Taken(Place),
    /// The total number of streams is at its limit.
    NoneLeft,
    /// This caller has the most streams that one caller may have.
    Enough,
    /// This caller no longer has access.
    Ended,
}

/// Slot that is in use until this value is dropped.
pub(in crate::web) struct Place {
    places: Places,
    follower: Follower,
    over: CancellationToken,
}

impl Places {
    pub(in crate::web) fn take(&self, follower: Follower) -> Seat {
        let mut taken = self.taken();
        if taken.ended.contains(&follower) {
            return Seat::Ended;
        }
        if taken.streams.values().map(|streams| streams.open).sum::<usize>() >= MOST {
            return Seat::NoneLeft;
        }
        let theirs = taken.streams.entry(follower.clone()).or_default();
        if theirs.open >= MOST_OF_ONE {
            return Seat::Enough;
        }
        theirs.open += 1;
        let over = theirs.over.clone();
        Seat::Taken(Place { places: self.clone(), follower, over })
    }

    /// Ends all streams of a caller who no longer has access, at once, and lets no new one begin.
    pub(in crate::web) fn end(&self, follower: Follower) {
        let mut taken = self.taken();
        if let Some(theirs) = taken.streams.get(&follower) {
            theirs.over.cancel();
        }
        taken.ended.insert(follower);
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// Returns once the owner of the slot no longer has access.
    pub(in crate::web) async fn ended(&self) {
        self.over.cancelled().await;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.taken();
        let Some(theirs) = taken.streams.get_mut(&self.follower) else { return };
        theirs.open -= 1;
        if theirs.open == 0 {
            taken.streams.remove(&self.follower);
        }
    }
}

impl Seat {
    /// Returns the slot, or the status and the text of the response to a refused caller.
    pub(in crate::web) fn place(self) -> Result<Place, (StatusCode, &'static str)> {
        match self {
            Self::Taken(place) => Ok(place),
            Self::NoneLeft => Err((StatusCode::SERVICE_UNAVAILABLE, "as many streams are open as may be")),
            Self::Enough => {
                Err((StatusCode::TOO_MANY_REQUESTS, "this key or session follows as many streams as one may"))
            }
            Self::Ended => Err((StatusCode::UNAUTHORIZED, "this key was revoked, or this session has ended")),
        }
    }
}

impl FromRequestParts<ConsoleState> for Follower {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, console: &ConsoleState) -> Result<Self, Problem> {
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

    /// Returns the status of the response to one more request.
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
        assert!(places.taken().streams.is_empty());
    }

    #[test]
    fn whoever_may_read_no_more_loses_every_place_and_gets_no_other() {
        let places = Places::default();
        let (theirs, others) = (take(&places, 1, 2), take(&places, 2, 1));
        places.end(Follower::Key(1));
        let over = |of: &[Place]| of.iter().map(|place| place.over.is_cancelled()).collect::<Vec<_>>();
        assert_eq!((over(&theirs), over(&others)), (vec![true, true], vec![false]));
        drop(theirs);
        assert_eq!([1, 2].map(|key| one_more(&places, key)), [401, 200]);
    }
}
