//! Identities of Sonarr, Radarr and the carrier: the server behind each configured slot, and the turns that concern an
//! earlier server of the slot.

use diesel::dsl::max;
use diesel::prelude::*;
use jiff::Timestamp;

use super::Conn;
use super::codec::ms;
use super::schema::{service_identities, turns};
use crate::conversation::channel_list::CHANNELS;
use crate::conversation::transcript::{MediaRef, TurnId};

/// Server that is configured for a slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceIdentity {
    /// Slot, such as `radarr-4k`.
    pub slot: &'static str,
    /// Scheme, host, port and URL base, and the account of a carrier.
    pub identity: String,
}

/// Returns the slots for which another identity is stored.
pub fn find_moved_slots(conn: &mut Conn, current: &[ServiceIdentity]) -> QueryResult<Vec<&'static str>> {
    let mut moved = Vec::new();
    for service in current {
        let stored: Option<String> = service_identities::table
            .find(service.slot)
            .select(service_identities::identity)
            .first(conn)
            .optional()?;
        if stored.is_some_and(|stored| stored != service.identity) {
            moved.push(service.slot);
        }
    }
    Ok(moved)
}

/// Records that all turns so far concern an earlier server of the slot.
pub fn void_turns(conn: &mut Conn, slot: &str, now: Timestamp) -> QueryResult<()> {
    // A second call for the same move keeps the turn of the move before it.
    let first_call = service_identities::table.find(slot).filter(
        service_identities::earlier_identity
            .is_null()
            .or(service_identities::earlier_identity.ne(service_identities::identity.nullable())),
    );
    diesel::update(first_call)
        .set((
            service_identities::earlier_identity.eq(service_identities::identity.nullable()),
            service_identities::earlier_moved_after_turn.eq(service_identities::moved_after_turn),
        ))
        .execute(conn)?;
    let newest: Option<TurnId> = turns::table.select(max(turns::id)).first(conn)?;
    diesel::update(service_identities::table.find(slot))
        .set((
            service_identities::moved_after_turn.eq(newest.unwrap_or(TurnId(0))),
            service_identities::changed_at.eq(ms(now)),
        ))
        .execute(conn)
        .map(drop)
}

/// Returns the slots of the accounts of channels. All other slots are the instance names of Sonarr and Radarr.
fn account_slots() -> Vec<&'static str> {
    CHANNELS.into_iter().map(|channel| channel.profile().account_slot).collect()
}

/// Slot that was moved to another server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MovedInstance {
    pub slot: String,
    pub moved_at: Timestamp,
}

/// Loads the slots of Sonarr and Radarr about whose last move the operator has stated nothing.
pub fn load_moved_instances(conn: &mut Conn) -> QueryResult<Vec<MovedInstance>> {
    let moved: Vec<(String, Timestamp)> = service_identities::table
        .filter(service_identities::earlier_identity.is_not_null())
        .filter(service_identities::slot.ne_all(account_slots()))
        .order(service_identities::slot)
        .select((service_identities::slot, service_identities::changed_at))
        .load(conn)?;
    Ok(moved.into_iter().map(|(slot, moved_at)| MovedInstance { slot, moved_at }).collect())
}

/// Records that the last move of a slot was to this server under another address, so that the turns before it concern
/// the same server. Returns `false` if the slot was moved again meanwhile.
pub fn record_same_server(conn: &mut Conn, slot: &str, identity: &str) -> QueryResult<bool> {
    let moved = service_identities::table
        .find(slot)
        .filter(service_identities::identity.eq(identity))
        .filter(service_identities::earlier_identity.is_not_null());
    let changed = diesel::update(moved)
        .set((
            service_identities::moved_after_turn.eq(service_identities::earlier_moved_after_turn),
            service_identities::earlier_identity.eq(None::<String>),
        ))
        .execute(conn)?;
    Ok(changed > 0)
}

/// Records that this move of a slot was to another server, so that the turns before it stay void. Returns `false` if it
/// is not the last move, or was stated before.
pub fn record_other_server(conn: &mut Conn, moved: &MovedInstance) -> QueryResult<bool> {
    let moved = service_identities::table
        .find(&moved.slot)
        .filter(service_identities::slot.ne_all(account_slots()))
        .filter(service_identities::changed_at.eq(ms(moved.moved_at)))
        .filter(service_identities::earlier_identity.is_not_null());
    let changed =
        diesel::update(moved).set(service_identities::earlier_identity.eq(None::<String>)).execute(conn)?;
    Ok(changed > 0)
}

pub fn store_identities(conn: &mut Conn, current: &[ServiceIdentity], now: Timestamp) -> QueryResult<()> {
    for service in current {
        diesel::insert_into(service_identities::table)
            .values((
                service_identities::slot.eq(service.slot),
                service_identities::identity.eq(&service.identity),
                service_identities::moved_after_turn.eq(TurnId(0)),
                service_identities::changed_at.eq(ms(now)),
            ))
            .on_conflict(service_identities::slot)
            .do_update()
            .set(service_identities::identity.eq(&service.identity))
            .execute(conn)?;
    }
    Ok(())
}

/// Slots that were moved to another server after a turn began.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MovedSlots(Vec<(String, TurnId)>);

impl MovedSlots {
    pub fn load(conn: &mut Conn) -> QueryResult<Self> {
        let moved = service_identities::table
            .filter(service_identities::moved_after_turn.gt(TurnId(0)))
            .select((service_identities::slot, service_identities::moved_after_turn));
        Ok(Self(moved.load(conn)?))
    }

    /// Returns whether the instance was moved after the turn began.
    pub fn includes(&self, instance: &str, turn: TurnId) -> bool {
        self.0.iter().any(|(slot, last)| slot == instance && turn <= *last)
    }

    /// Returns whether an id that the turn showed is of an earlier server. Ids of a catalog are the same on all servers.
    pub fn voids(&self, media: &MediaRef, turn: TurnId) -> bool {
        match media {
            MediaRef::Item { instance, .. } | MediaRef::Download { instance, .. } => {
                self.includes(instance, turn)
            }
            MediaRef::Tmdb(_) | MediaRef::Tvdb(_) => false,
        }
    }

    /// Returns whether a change of these titles by the turn may have been sent to an earlier server. A change without
    /// ids counts if any instance was moved.
    pub fn may_concern(&self, changed: &[MediaRef], turn: TurnId) -> bool {
        let any_of = |app: &str| self.0.iter().any(|(slot, last)| slot.starts_with(app) && turn <= *last);
        let concerns = |media: &MediaRef| match media {
            MediaRef::Tmdb(_) => any_of("radarr"),
            MediaRef::Tvdb(_) => any_of("sonarr"),
            MediaRef::Item { .. } | MediaRef::Download { .. } => self.voids(media, turn),
        };
        if changed.is_empty() { any_of("radarr") || any_of("sonarr") } else { changed.iter().any(concerns) }
    }
}
