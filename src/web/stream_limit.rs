//! Limits on open streams, in total and per owner. When an owner loses access, its streams end.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::extract::FromRequestParts;
use axum::http::StatusCode;
use axum::http::request::Parts;
use tokio_util::sync::CancellationToken;

use super::auth::{Caller, Operator};
use super::console_state::ConsoleState;
use super::problem::ProblemDetails;

/// Maximum number of concurrent streams.
const MAX_STREAMS: usize = 640;
/// Maximum number of concurrent streams of one owner, which leaves capacity for others.
const MAX_STREAMS_PER_OWNER: usize = 512;

/// Registry of open streams; clones share it.
#[derive(Clone, Default)]
pub struct StreamLimit(Arc<Mutex<StreamTable>>);

#[derive(Default)]
struct StreamTable {
    streams: HashMap<StreamOwner, OwnerStreams>,
    /// Owners that lost access. An in-flight request that was authorized before may still ask for a lease. The set has
    /// one entry for each sign-out and each revoked key since the start.
    ended_owners: HashSet<StreamOwner>,
}

/// Streams of one owner.
#[derive(Default)]
struct OwnerStreams {
    open: usize,
    access_lost: CancellationToken,
}

/// Owner of streams that are counted together.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(in crate::web) enum StreamOwner {
    /// All pages of one session, by the token in its forms.
    Session(String),
    /// API key with this id.
    Key(i64),
}

/// Outcome of a request for a lease.
pub(in crate::web) enum StreamLeaseOutcome {
    Granted(StreamLease),
    /// Refusal: the total number of streams is at its limit.
    TotalLimitReached,
    /// Refusal: the number of streams of this owner is at its limit.
    OwnerLimitReached,
    /// Refusal: this owner no longer has access.
    AccessLost,
}

/// Permission for one open stream, until this value is dropped.
pub(in crate::web) struct StreamLease {
    limit: StreamLimit,
    owner: StreamOwner,
    access_lost: CancellationToken,
}

impl StreamLimit {
    pub(in crate::web) fn acquire_lease(&self, owner: StreamOwner) -> StreamLeaseOutcome {
        let mut table = self.lock_table();
        if table.ended_owners.contains(&owner) {
            return StreamLeaseOutcome::AccessLost;
        }
        if table.streams.values().map(|streams| streams.open).sum::<usize>() >= MAX_STREAMS {
            return StreamLeaseOutcome::TotalLimitReached;
        }
        let owner_streams = table.streams.entry(owner.clone()).or_default();
        if owner_streams.open >= MAX_STREAMS_PER_OWNER {
            return StreamLeaseOutcome::OwnerLimitReached;
        }
        owner_streams.open += 1;
        let access_lost = owner_streams.access_lost.clone();
        StreamLeaseOutcome::Granted(StreamLease { limit: self.clone(), owner, access_lost })
    }

    /// Ends all streams of an owner that lost access, at once, and refuses new ones.
    pub(in crate::web) fn end_streams(&self, owner: StreamOwner) {
        let mut table = self.lock_table();
        if let Some(owner_streams) = table.streams.get(&owner) {
            owner_streams.access_lost.cancel();
        }
        table.ended_owners.insert(owner);
    }

    fn lock_table(&self) -> MutexGuard<'_, StreamTable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StreamLease {
    /// Returns once the owner loses access.
    pub(in crate::web) async fn wait_ended(&self) {
        self.access_lost.cancelled().await;
    }
}

impl Drop for StreamLease {
    fn drop(&mut self) {
        let mut table = self.limit.lock_table();
        let Some(owner_streams) = table.streams.get_mut(&self.owner) else { return };
        owner_streams.open -= 1;
        if owner_streams.open == 0 {
            table.streams.remove(&self.owner);
        }
    }
}

impl StreamLeaseOutcome {
    /// Returns the lease, or the status and the detail of the response.
    pub(in crate::web) fn into_lease(self) -> Result<StreamLease, (StatusCode, &'static str)> {
        match self {
            Self::Granted(lease) => Ok(lease),
            Self::TotalLimitReached => Err((StatusCode::SERVICE_UNAVAILABLE, "too many streams are open")),
            Self::OwnerLimitReached => {
                Err((StatusCode::TOO_MANY_REQUESTS, "this key or session has too many open streams"))
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

    fn acquire_leases(limit: &StreamLimit, key: i64, count: usize) -> Vec<StreamLease> {
        (0..count).map_while(|_| limit.acquire_lease(StreamOwner::Key(key)).into_lease().ok()).collect()
    }

    /// Returns the status of the response to another request.
    fn response_status(limit: &StreamLimit, key: i64) -> u16 {
        match limit.acquire_lease(StreamOwner::Key(key)).into_lease() {
            Ok(_) => 200,
            Err((status, _)) => status.as_u16(),
        }
    }

    #[test]
    fn streams_are_limited_per_owner_and_in_total() {
        let limit = StreamLimit::default();
        let mut leases = acquire_leases(&limit, 1, MAX_STREAMS);
        assert_eq!(leases.len(), MAX_STREAMS_PER_OWNER);
        assert_eq!([response_status(&limit, 1), response_status(&limit, 2)], [429, 200]);
        let others = acquire_leases(&limit, 2, MAX_STREAMS);
        assert_eq!(others.len(), MAX_STREAMS - MAX_STREAMS_PER_OWNER);
        assert_eq!([1, 2, 3].map(|key| response_status(&limit, key)), [503, 503, 503]);
        leases.pop();
        assert_eq!(response_status(&limit, 3), 200);
        drop((leases, others));
        assert!(limit.lock_table().streams.is_empty());
    }

    #[test]
    fn revoked_owner_loses_all_streams_and_gets_no_other() {
        let limit = StreamLimit::default();
        let (revoked, others) = (acquire_leases(&limit, 1, 2), acquire_leases(&limit, 2, 1));
        limit.end_streams(StreamOwner::Key(1));
        let access_lost = |leases: &[StreamLease]| {
            leases.iter().map(|lease| lease.access_lost.is_cancelled()).collect::<Vec<_>>()
        };
        assert_eq!((access_lost(&revoked), access_lost(&others)), (vec![true, true], vec![false]));
        drop(revoked);
        assert_eq!([1, 2].map(|key| response_status(&limit, key)), [401, 200]);
    }
}
