//! Fair shares of the connections whose sender has not authenticated yet. When all slots are in use, a client with
//! fewer slots than another takes the oldest slot of the client with the most. So a client that sends many slow
//! requests displaces its own connections and not those of other clients.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::http::HeaderMap;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::access_rules::{ClientAddress, TrustedProxies};

/// Shortest interval between two log lines about an overload.
const LOG_INTERVAL: Duration = Duration::from_secs(60);

/// Slots of one listener; clones share them.
#[derive(Debug, Clone)]
pub struct ClientShares {
    proxies: Arc<TrustedProxies>,
    table: Arc<Mutex<SlotTable>>,
}

/// Permission for a connection to continue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum SlotOutcome {
    Granted,
    /// Refusal: all slots are in use and no client holds more than this one, or another client took the slot.
    Refused,
}

/// Slot of one connection, held from its opening or from the end of a request's header, until the sender has
/// authenticated. Requests on a connection are sequential, so one slot is enough for all of them.
pub struct ConnectionSlot {
    shares: ClientShares,
    peer: IpAddr,
    displaced: CancellationToken,
    key: Mutex<Option<SlotKey>>,
}

/// Position of an entry in the table.
#[derive(Debug, Clone, Copy)]
struct SlotKey {
    client: ClientAddress,
    number: u64,
}

#[derive(Debug)]
struct SlotTable {
    limit: usize,
    used: usize,
    last_number: u64,
    /// Connections that hold a slot, by client, the oldest first. Every listed client has at least one.
    clients: HashMap<ClientAddress, BTreeMap<u64, CancellationToken>>,
    last_logged_at: Option<Instant>,
}

impl ClientShares {
    pub fn new(limit: usize, proxies: TrustedProxies) -> Self {
        let table =
            SlotTable { limit, used: 0, last_number: 0, clients: HashMap::new(), last_logged_at: None };
        Self { proxies: Arc::new(proxies), table: Arc::new(Mutex::new(table)) }
    }

    /// Returns the slot of a connection that was just accepted; `None` if its client gets none.
    pub(super) fn open_connection(&self, peer: IpAddr) -> Option<Arc<ConnectionSlot>> {
        let slot = ConnectionSlot {
            shares: self.clone(),
            peer,
            displaced: CancellationToken::new(),
            key: Mutex::new(None),
        };
        match slot.claim_slot(self.proxies.connection_client(peer)) {
            SlotOutcome::Granted => Some(Arc::new(slot)),
            SlotOutcome::Refused => None,
        }
    }

    fn lock_table(&self) -> MutexGuard<'_, SlotTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ConnectionSlot {
    /// Assigns the slot to the client of the request that begins on the connection.
    pub(super) fn begin_request(&self, headers: &HeaderMap) -> SlotOutcome {
        self.claim_slot(self.shares.proxies.request_client(self.peer, headers))
    }

    /// Releases the slot after the response to a request.
    pub(super) fn end_request(&self) {
        self.release_slot();
    }

    /// Releases the slot after the sender has authenticated. From then on the connection cannot be displaced.
    pub(super) fn prove_sender(&self) -> SlotOutcome {
        self.release_slot();
        // Only entries of the table can be displaced, and this connection no longer has one.
        if self.displaced.is_cancelled() { SlotOutcome::Refused } else { SlotOutcome::Granted }
    }

    /// Returns once another client has taken the slot.
    pub(super) async fn wait_displaced(&self) {
        self.displaced.cancelled().await;
    }

    fn claim_slot(&self, client: Option<ClientAddress>) -> SlotOutcome {
        let mut key = self.lock_key();
        let previous_client = key.map(|slot| slot.client);
        if self.displaced.is_cancelled() {
            return SlotOutcome::Refused;
        }
        if previous_client.is_some() && previous_client == client {
            return SlotOutcome::Granted;
        }
        let mut table = self.shares.lock_table();
        if let Some(slot) = key.take() {
            table.remove(slot);
        }
        let Some(client) = client else { return SlotOutcome::Granted };
        *key = table.insert(client, &self.displaced);
        if key.is_some() { SlotOutcome::Granted } else { SlotOutcome::Refused }
    }

    fn release_slot(&self) {
        if let Some(slot) = self.lock_key().take() {
            self.shares.lock_table().remove(slot);
        }
    }

    fn lock_key(&self) -> MutexGuard<'_, Option<SlotKey>> {
        self.key.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.release_slot();
    }
}

impl SlotTable {
    fn insert(&mut self, client: ClientAddress, displaced: &CancellationToken) -> Option<SlotKey> {
        if self.used >= self.limit && !self.displace_largest_client(client) {
            return None;
        }
        self.last_number += 1;
        let number = self.last_number;
        self.clients.entry(client).or_default().insert(number, displaced.clone());
        self.used += 1;
        Some(SlotKey { client, number })
    }

    /// Removes the oldest slot of the client that holds the most, if that is more than `claimant` holds. Returns true
    /// if a slot became free.
    fn displace_largest_client(&mut self, claimant: ClientAddress) -> bool {
        self.log_overload();
        let own_count = self.clients.get(&claimant).map_or(0, BTreeMap::len);
        let largest = self.clients.iter().max_by_key(|(_, slots)| {
            (slots.len(), Reverse(slots.first_key_value().map(|(number, _)| *number)))
        });
        let Some((&client, slots)) = largest.filter(|(_, slots)| slots.len() > own_count) else {
            return false;
        };
        let Some((&number, oldest)) = slots.first_key_value() else { return false };
        oldest.cancel();
        self.remove(SlotKey { client, number });
        true
    }

    /// Removes an entry. Has no effect if another client took the slot.
    fn remove(&mut self, slot: SlotKey) {
        let Some(slots) = self.clients.get_mut(&slot.client) else { return };
        if slots.remove(&slot.number).is_some() {
            self.used -= 1;
        }
        if slots.is_empty() {
            self.clients.remove(&slot.client);
        }
    }

    fn log_overload(&mut self) {
        let now = Instant::now();
        if self.last_logged_at.is_none_or(|last| now.duration_since(last) >= LOG_INTERVAL) {
            self.last_logged_at = Some(now);
            let clients = self.clients.len();
            tracing::warn!(
                slots = self.limit,
                clients,
                "all webhook slots are in use; slow requests are displaced"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use axum::http::HeaderName;
    use proptest::prelude::{ProptestConfig, Strategy, any, prop_oneof, proptest};

    use super::*;

    const SLOTS: usize = 6;

    /// Event at the listener. Connections are numbered in the order of their opening.
    #[derive(Debug, Clone, Copy)]
    enum Event {
        Open(u8),
        Prove(usize),
        Close(usize),
    }

    fn event() -> impl Strategy<Value = Event> {
        prop_oneof![
            6 => (0..5_u8).prop_map(Event::Open),
            1 => any::<usize>().prop_map(Event::Prove),
            1 => any::<usize>().prop_map(Event::Close),
        ]
    }

    fn client_ip(client: u8) -> IpAddr {
        Ipv4Addr::new(203, 0, 113, client).into()
    }

    fn count_slots(open: &[(u8, Arc<ConnectionSlot>)], client: u8) -> usize {
        open.iter()
            .filter(|(owner, slot)| *owner == client && slot.lock_key().is_some() && !is_displaced(slot))
            .count()
    }

    fn is_displaced(slot: &ConnectionSlot) -> bool {
        slot.displaced.is_cancelled()
    }

    fn wrap_index<T>(list: &[T], index: usize) -> Option<usize> {
        (!list.is_empty()).then(|| index % list.len())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]
        #[test]
        fn largest_client_loses_its_oldest_slot_to_smaller_ones(events in proptest::collection::vec(event(), 1..80)) {
            let shares = ClientShares::new(SLOTS, TrustedProxies::default());
            let mut open: Vec<(u8, Arc<ConnectionSlot>)> = Vec::new();
            let mut proven: Vec<Arc<ConnectionSlot>> = Vec::new();
            for event in events {
                match event {
                    Event::Open(client) => {
                        let counts: Vec<usize> = (0..5).map(|client| count_slots(&open, client)).collect();
                        let (is_full, largest) = (counts.iter().sum::<usize>() == SLOTS, counts.iter().max().copied().unwrap());
                        let own_count = counts[usize::from(client)];
                        let victim = open.iter().position(|(owner, slot)| {
                            !is_displaced(slot) && slot.lock_key().is_some() && counts[usize::from(*owner)] == largest
                        });
                        let admitted = shares.open_connection(client_ip(client));
                        assert_eq!(admitted.is_some(), !is_full || own_count < largest);
                        let displaced = is_full && own_count < largest;
                        if let Some(victim) = victim {
                            assert_eq!(is_displaced(&open[victim].1), displaced);
                        }
                        open.extend(admitted.map(|slot| (client, slot)));
                    }
                    Event::Prove(index) => if let Some(index) = wrap_index(&open, index) {
                        let (_, slot) = open.remove(index);
                        let expected = if is_displaced(&slot) { SlotOutcome::Refused } else { SlotOutcome::Granted };
                        assert_eq!(slot.prove_sender(), expected);
                        if expected == SlotOutcome::Granted { proven.push(slot); }
                    },
                    Event::Close(index) => if let Some(index) = wrap_index(&open, index) { open.remove(index); },
                }
                assert_eq!(shares.lock_table().used, (0..5).map(|client| count_slots(&open, client)).sum::<usize>());
                assert!(shares.lock_table().used <= SLOTS);
                assert!(proven.iter().all(|slot| !is_displaced(slot)));
            }
            drop(open);
            assert!(shares.lock_table().clients.is_empty());
        }
    }

    #[test]
    fn requests_on_one_proxy_connection_count_for_their_own_clients() {
        let proxy = IpAddr::from([127, 0, 0, 1]);
        let shares = ClientShares::new(1, TrustedProxies::from_networks(vec![proxy.into()]));
        let headers_from = |client: &str| -> HeaderMap {
            [(HeaderName::from_static("x-forwarded-for"), client.parse().unwrap())].into_iter().collect()
        };
        let connection = shares.open_connection(proxy).unwrap();
        assert_eq!(shares.lock_table().used, 0);
        assert_eq!(connection.begin_request(&headers_from("203.0.113.1")), SlotOutcome::Granted);
        assert_eq!(connection.prove_sender(), SlotOutcome::Granted);
        assert_eq!(connection.begin_request(&headers_from("203.0.113.2")), SlotOutcome::Granted);
        let other = shares.open_connection(proxy).unwrap();
        assert_eq!(other.begin_request(&headers_from("203.0.113.2")), SlotOutcome::Refused);
        assert_eq!(other.begin_request(&headers_from("203.0.113.1")), SlotOutcome::Granted);
        assert_eq!(connection.prove_sender(), SlotOutcome::Refused);
    }
}
