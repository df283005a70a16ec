//! Responses of a source in memory, so that the same question of several people is asked once.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use jiff::{SignedDuration, Timestamp};

/// Age at which a response is too old. The terms of TMDB allow six months.
const MAX_AGE: SignedDuration = SignedDuration::from_hours(12);
/// Maximum size of all responses.
const MAX_BYTES: usize = 8 << 20;

/// Cache of responses by path and query. Its size is bounded.
#[derive(Default)]
pub(super) struct ResponseCache(Mutex<HashMap<String, CachedResponse>>);

struct CachedResponse {
    body: Bytes,
    received_at: Timestamp,
}

impl CachedResponse {
    fn is_fresh(&self, now: Timestamp) -> bool {
        let age = now.duration_since(self.received_at);
        !age.is_negative() && age < MAX_AGE
    }
}

impl ResponseCache {
    pub(super) fn get(&self, key: &str, now: Timestamp) -> Option<Bytes> {
        let responses = self.lock();
        responses.get(key).filter(|response| response.is_fresh(now)).map(|response| response.body.clone())
    }

    /// Stores a response. The oldest ones are dropped until it fits.
    pub(super) fn insert(&self, key: String, body: Bytes, now: Timestamp) {
        if body.len() > MAX_BYTES / 4 {
            return;
        }
        let mut responses = self.lock();
        responses.insert(key, CachedResponse { body, received_at: now });
        let mut size: usize = responses.values().map(|response| response.body.len()).sum();
        while size > MAX_BYTES {
            let oldest = responses.iter().min_by_key(|(_, response)| response.received_at);
            let Some(key) = oldest.map(|(key, _)| key.clone()) else { break };
            size -= responses.remove(&key).map_or(0, |response| response.body.len());
        }
    }

    pub(super) fn drop_old(&self, now: Timestamp) {
        self.lock().retain(|_, response| response.is_fresh(now));
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, CachedResponse>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    #[test]
    fn response_is_used_until_it_is_too_old() {
        let cache = ResponseCache::default();
        cache.insert("a".to_owned(), Bytes::from_static(b"1"), NOW);
        assert!(cache.get("a", NOW + SignedDuration::from_hours(11)).is_some());
        assert!(cache.get("a", NOW + SignedDuration::from_hours(12)).is_none());
        // The clock was set back.
        assert!(cache.get("a", NOW - SignedDuration::from_hours(1)).is_none());
        cache.drop_old(NOW + SignedDuration::from_hours(12));
        assert!(cache.lock().is_empty());
    }

    #[test]
    fn oldest_responses_make_room_for_new_ones() {
        let cache = ResponseCache::default();
        for number in 0..10_i64 {
            let body = Bytes::from(vec![0; 1 << 20]);
            cache.insert(number.to_string(), body, NOW + SignedDuration::from_mins(number));
        }
        let now = NOW + SignedDuration::from_mins(10);
        assert!(cache.get("1", now).is_none() && cache.get("2", now).is_some());
        cache.insert("huge".to_owned(), Bytes::from(vec![0; 4 << 20]), now);
        assert!(cache.get("huge", now).is_none());
    }
}
