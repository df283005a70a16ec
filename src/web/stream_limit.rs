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
use super::problem::ProblemDetails;

/// Most streams that are open concurrently.
const MAX_STREAMS: usize = 640;
/// Most streams of one caller: a caller who opens too many must leave room for others.
const MAX_STREAMS_PER_OWNER: usize = 512;

/// Slots for open streams; clones share them.
#[derive(Clone, Default)]
pub struct StreamLimit(Arc<Mutex<StreamTable>>);

#[derive(Default)]
struct StreamTable {
    streams: HashMap<StreamOwner, OwnerStreams>,
    /// Callers whose streams were ended. A request that was authorized before may ask for a slot only after that. The
    /// set has one entry for each sign-out and each revoked key since the start.
    ended_owners: HashSet<StreamOwner>,
}

/// Streams of one caller.
#[derive(Default)]
struct OwnerStreams {
    open: usize,
    over: CancellationToken,
}

/// Owner of streams that are counted together.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(in crate::web) enum StreamOwner {
    /// All pages of one session, by the token in its forms.
    Session(String),
    /// API key with this id.
    Key(i64),
}

/// Outcome of a request for a slot.
pub(in crate::web) enum StreamLeaseOutcome {
    Granted(StreamLease),
    /// Refusal: the total number of streams is at its limit.
    TotalLimitReached,
    /// Refusal: this caller has the most streams that one caller may have.
    OwnerLimitReached,
    /// Refusal: this caller no longer has access.
    AccessLost,
}

/// Slot that is in use until this value is dropped.
pub(in crate::web) struct StreamLease {
    limit: StreamLimit,
    owner: StreamOwner,
    over: CancellationToken,
}

impl StreamLimit {
    pub(in crate::web) fn acquire_lease(&self, follower: StreamOwner) -> StreamLeaseOutcome {
        let mut taken = self.lock_table();
        if taken.ended_owners.contains(&follower) {
            return StreamLeaseOutcome::AccessLost;
        }
        if taken.streams.values().map(|streams| streams.open).sum::<usize>() >= MAX_STREAMS {
            return StreamLeaseOutcome::TotalLimitReached;
        }
        let theirs = taken.streams.entry(follower.clone()).or_default();
        if theirs.open >= MAX_STREAMS_PER_OWNER {
            return StreamLeaseOutcome::OwnerLimitReached;
        }
        theirs.open += 1;
        let over = theirs.over.clone();
        StreamLeaseOutcome::Granted(StreamLease { limit: self.clone(), owner: follower, over })
    }

    /// Ends all streams of a caller who no longer has access, at once, and lets no new one begin.
    pub(in crate::web) fn end_streams(&self, follower: StreamOwner) {
        let mut taken = self.lock_table();
        if let Some(theirs) = taken.streams.get(&follower) {
            theirs.over.cancel();
        }
        taken.ended_owners.insert(follower);
    }

    fn lock_table(&self) -> MutexGuard<'_, StreamTable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StreamLease {
    /// Returns once the owner of the slot no longer has access.
    pub(in crate::web) async fn wait_ended(&self) {
        self.over.cancelled().await;
    }
}

impl Drop for StreamLease {
    fn drop(&mut self) {
        let mut taken = self.limit.lock_table();
        let Some(theirs) = taken.streams.get_mut(&self.owner) else { return };
        theirs.open -= 1;
        if theirs.open == 0 {
            taken.streams.remove(&self.owner);
        }
    }
}

impl StreamLeaseOutcome {
    /// Returns the slot, or the status and the text of the response to a refused caller.
    pub(in crate::web) fn into_lease(self) -> Result<StreamLease, (StatusCode, &'static str)> {
        match self {
            Self::Granted(place) => Ok(place),
            Self::TotalLimitReached => {
                Err((StatusCode::SERVICE_UNAVAILABLE, "as many streams are open as may be"))
            }
            Self::OwnerLimitReached => {
                Err((StatusCode::TOO_MANY_REQUESTS, "this key or session follows as many streams as one may"))
            }
            Self::AccessLost => {
                Err((StatusCode::UNAUTHORIZED, "this key was revoked, or this session has ended"))
            }
        }
    }
}

impl FromRequestParts<ConsoleState> for StreamOwner {
    type Rejection = ProblemDetails;

    async fn from_request_parts(parts: &mut Parts, console: &ConsoleState) -> Result<Self, ProblemDetails> {
        match Caller::from_request_parts(parts, console).await? {
            Caller::Program(key) => Ok(Self::Key(key)),
            Caller::Operator => {
                let operator = Operator::from_request_parts(parts, console).await;
                let operator = operator
                    .map_err(|_| ProblemDetails::new(StatusCode::UNAUTHORIZED, "this session has ended"))?;
                Ok(Self::Session(operator.form_token().to_owned()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_STREAMS, MAX_STREAMS_PER_OWNER, StreamLease, StreamLimit, StreamOwner};

    fn take(places: &StreamLimit, key: i64, count: usize) -> Vec<StreamLease> {
        (0..count).map_while(|_| places.acquire_lease(StreamOwner::Key(key)).into_lease().ok()).collect()
    }

    /// Returns the status of the response to one more request.
    fn one_more(places: &StreamLimit, key: i64) -> u16 {
        match places.acquire_lease(StreamOwner::Key(key)).into_lease() {
            Ok(_) => 200,
            Err((status, _)) => status.as_u16(),
        }
    }

    #[test]
    fn streams_are_limited_per_caller_and_in_total() {
        let places = StreamLimit::default();
        let mut greedy = take(&places, 1, MAX_STREAMS);
        assert_eq!(greedy.len(), MAX_STREAMS_PER_OWNER);
        assert_eq!([one_more(&places, 1), one_more(&places, 2)], [429, 200]);
        let others = take(&places, 2, MAX_STREAMS);
        assert_eq!(others.len(), MAX_STREAMS - MAX_STREAMS_PER_OWNER);
        assert_eq!([1, 2, 3].map(|key| one_more(&places, key)), [503, 503, 503]);
        greedy.pop();
        assert_eq!(one_more(&places, 3), 200);
        drop((greedy, others));
        assert!(places.lock_table().streams.is_empty());
    }

    #[test]
    fn revoked_owner_loses_all_streams_and_gets_no_other() {
        let places = StreamLimit::default();
        let (theirs, others) = (take(&places, 1, 2), take(&places, 2, 1));
        places.end_streams(StreamOwner::Key(1));
        let over = |of: &[StreamLease]| of.iter().map(|place| place.over.is_cancelled()).collect::<Vec<_>>();
        assert_eq!((over(&theirs), over(&others)), (vec![true, true], vec![false]));
        drop(theirs);
        assert_eq!([1, 2].map(|key| one_more(&places, key)), [401, 200]);
    }
}
