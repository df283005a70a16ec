//! Events from Sonarr and Radarr, deduplicated by their matter, and the history cursor of each instance: the time up to
//! which its history was read.

use diesel::connection::DefaultLoadingMode;
use diesel::prelude::*;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::conversation::notifications::arr_events::{
    ArrEvent, ArrTitle, ImportKind, KeyedArrEvent, PendingArrEvent,
};
use crate::store::Conn;
use crate::store::codec::{from_json, ms, none_if_unreadable, to_json};
use crate::store::database::literal_sql::literal_sql;
use crate::store::schema::{arr_cursors, arr_events};

literal_sql! {
    const OPEN = "arr_events.handled_at IS NULL";
}

/// Stores the events that are not known yet. Returns the number of new events.
pub fn store_arr_events(
    conn: &mut Conn,
    instance: &str,
    events: &[KeyedArrEvent],
    now: Timestamp,
) -> QueryResult<usize> {
    let mut new_count = 0;
    for KeyedArrEvent { matter, event } in events {
        new_count += diesel::insert_into(arr_events::table)
            .values((
                arr_events::instance.eq(instance),
                arr_events::matter.eq(matter),
                arr_events::event.eq(to_json(&StoredEvent::from(event))?),
                arr_events::received_at.eq(ms(now)),
            ))
            .on_conflict_do_nothing()
            .execute(conn)?;
    }
    Ok(new_count)
}

/// Returns whether an event is already stored, from a webhook or from the history.
pub fn is_event_known(conn: &mut Conn, instance: &str, matter: &str) -> QueryResult<bool> {
    let known: Option<i64> = arr_events::table
        .filter(arr_events::instance.eq(instance).and(arr_events::matter.eq(matter)))
        .select(arr_events::id)
        .first(conn)
        .optional()?;
    Ok(known.is_some())
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = arr_events)]
struct ArrEventRow {
    id: i64,
    instance: String,
    event: String,
    received_at: Timestamp,
}

impl ArrEventRow {
    fn into_event(self) -> QueryResult<PendingArrEvent> {
        let event = from_json::<StoredEvent>("event", &self.event)?.into();
        Ok(PendingArrEvent { id: self.id, instance: self.instance, event, received_at: self.received_at })
    }
}

/// Loads the oldest events for which no notification was sent yet. An event that cannot be read does not block the
/// others.
pub fn load_pending_events(conn: &mut Conn, limit: i64) -> QueryResult<Vec<PendingArrEvent>> {
    let rows = arr_events::table
        .filter(OPEN)
        .order(arr_events::id)
        .limit(limit)
        .select(ArrEventRow::as_select())
        .load_iter::<ArrEventRow, DefaultLoadingMode>(conn)?;
    rows.filter_map(|row| none_if_unreadable(row.and_then(ArrEventRow::into_event)).transpose()).collect()
}

/// Loads the events that were received since `since`, oldest first. An event that cannot be read is skipped.
pub fn load_events_since(conn: &mut Conn, since: Timestamp) -> QueryResult<Vec<PendingArrEvent>> {
    let mut rows: Vec<ArrEventRow> = arr_events::table
        .filter(arr_events::received_at.ge(ms(since)))
        .select(ArrEventRow::as_select())
        .load(conn)?;
    rows.sort_unstable_by_key(|row| row.id);
    rows.into_iter().filter_map(|row| none_if_unreadable(row.into_event()).transpose()).collect()
}

/// Outcome of claiming a set of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventClaimOutcome {
    Claimed,
    /// Another task has already claimed one of the events.
    Lost,
}

/// Claims events, whose notifications are queued in the same transaction: all of them or none.
pub fn claim_events(conn: &mut Conn, ids: &[i64], now: Timestamp) -> QueryResult<EventClaimOutcome> {
    for id in ids {
        let open: Option<i64> =
            arr_events::table.find(id).filter(OPEN).select(arr_events::id).first(conn).optional()?;
        if open.is_none() {
            return Ok(EventClaimOutcome::Lost);
        }
    }
    for id in ids {
        diesel::update(arr_events::table.find(id)).set(arr_events::handled_at.eq(ms(now))).execute(conn)?;
    }
    Ok(EventClaimOutcome::Claimed)
}

/// Deletes events that were received before `before` and whose notifications were sent.
pub fn delete_handled_events(conn: &mut Conn, before: Timestamp) -> QueryResult<usize> {
    let is_expired = arr_events::received_at.lt(ms(before)).and(arr_events::handled_at.is_not_null());
    diesel::delete(arr_events::table.filter(is_expired)).execute(conn)
}

/// Returns the time up to which the history of an instance was read; `None` if it never was.
pub fn load_history_cursor(conn: &mut Conn, instance: &str) -> QueryResult<Option<Timestamp>> {
    arr_cursors::table.find(instance).select(arr_cursors::read_until).first(conn).optional()
}

pub fn store_history_cursor(conn: &mut Conn, instance: &str, until: Timestamp) -> QueryResult<()> {
    diesel::insert_into(arr_cursors::table)
        .values((arr_cursors::instance.eq(instance), arr_cursors::read_until.eq(ms(until))))
        .on_conflict(arr_cursors::instance)
        .do_update()
        .set(arr_cursors::read_until.eq(ms(until)))
        .execute(conn)
        .map(drop)
}

#[derive(Serialize, Deserialize)]
struct StoredTitle {
    id: i64,
    catalog_id: i64,
    title: String,
    year: u16,
}

/// Stored form of an [`ArrEvent`].
#[derive(Serialize, Deserialize)]
#[serde(tag = "kind")]
enum StoredEvent {
    #[serde(rename = "movie")]
    MovieImported {
        #[serde(rename = "of")]
        movie: StoredTitle,
        #[serde(rename = "better")]
        is_upgrade: bool,
    },
    #[serde(rename = "episode")]
    EpisodeImported {
        #[serde(rename = "of")]
        series: StoredTitle,
        season: u32,
        number: u32,
        #[serde(rename = "better")]
        is_upgrade: bool,
    },
    #[serde(rename = "stuck")]
    ImportBlocked {
        #[serde(rename = "of")]
        title: String,
    },
    #[serde(rename = "failed")]
    DownloadFailed {
        #[serde(rename = "of")]
        title: String,
    },
    #[serde(rename = "ill")]
    HealthIssue { check: String, message: String },
    #[serde(rename = "well")]
    HealthRestored { check: String },
}

impl From<&ArrEvent> for StoredEvent {
    fn from(event: &ArrEvent) -> Self {
        let stored = |ArrTitle { id, catalog_id, title, year }: &ArrTitle| StoredTitle {
            id: *id,
            catalog_id: *catalog_id,
            title: title.clone(),
            year: *year,
        };
        match event {
            ArrEvent::MovieImported(movie, copy) => {
                Self::MovieImported { movie: stored(movie), is_upgrade: *copy == ImportKind::Upgrade }
            }
            ArrEvent::EpisodeImported { show, season, number, copy } => Self::EpisodeImported {
                series: stored(show),
                season: *season,
                number: *number,
                is_upgrade: *copy == ImportKind::Upgrade,
            },
            ArrEvent::ImportBlocked(title) => Self::ImportBlocked { title: title.clone() },
            ArrEvent::DownloadFailed(title) => Self::DownloadFailed { title: title.clone() },
            ArrEvent::HealthIssue { check, message } => {
                Self::HealthIssue { check: check.clone(), message: message.clone() }
            }
            ArrEvent::HealthRestored { check } => Self::HealthRestored { check: check.clone() },
        }
    }
}

impl From<StoredEvent> for ArrEvent {
    fn from(stored: StoredEvent) -> Self {
        let arr_title =
            |StoredTitle { id, catalog_id, title, year }| ArrTitle { id, catalog_id, title, year };
        let import_kind = |is_upgrade| if is_upgrade { ImportKind::Upgrade } else { ImportKind::First };
        match stored {
            StoredEvent::MovieImported { movie, is_upgrade } => {
                Self::MovieImported(arr_title(movie), import_kind(is_upgrade))
            }
            StoredEvent::EpisodeImported { series, season, number, is_upgrade } => Self::EpisodeImported {
                show: arr_title(series),
                season,
                number,
                copy: import_kind(is_upgrade),
            },
            StoredEvent::ImportBlocked { title } => Self::ImportBlocked(title),
            StoredEvent::DownloadFailed { title } => Self::DownloadFailed(title),
            StoredEvent::HealthIssue { check, message } => Self::HealthIssue { check, message },
            StoredEvent::HealthRestored { check } => Self::HealthRestored { check },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::scratch;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    fn all_event_kinds() -> Vec<KeyedArrEvent> {
        let title = |id| ArrTitle { id, catalog_id: 9, title: "Dune".into(), year: 2021 };
        let events = [
            ArrEvent::MovieImported(title(1), ImportKind::First),
            ArrEvent::MovieImported(title(2), ImportKind::Upgrade),
            ArrEvent::EpisodeImported { show: title(3), season: 2, number: 4, copy: ImportKind::First },
            ArrEvent::ImportBlocked("Dune (2021)".into()),
            ArrEvent::DownloadFailed("Dune (2021)".into()),
            ArrEvent::HealthIssue { check: "Indexer".into(), message: "down".into() },
            ArrEvent::HealthRestored { check: "Indexer".into() },
        ];
        events.into_iter().map(|event| KeyedArrEvent::new(event, "abc", NOW)).collect()
    }

    #[test]
    fn event_is_stored_once_per_instance_and_loaded_unchanged() {
        let mut conn = scratch();
        let events = all_event_kinds();
        assert_eq!(store_arr_events(&mut conn, "radarr", &events, NOW), Ok(7));
        assert_eq!(store_arr_events(&mut conn, "radarr", &events, NOW), Ok(0));
        assert_eq!(store_arr_events(&mut conn, "radarr-4k", &events[..1], NOW), Ok(1));
        let pending = load_pending_events(&mut conn, 100).unwrap();
        let loaded: Vec<ArrEvent> = pending[..7].iter().map(|pending| pending.event.clone()).collect();
        let stored: Vec<ArrEvent> = events.into_iter().map(|keyed| keyed.event).collect();
        assert_eq!(loaded, stored);
    }

    #[test]
    fn events_are_claimed_together_once_and_deleted_when_old() {
        let mut conn = scratch();
        store_arr_events(&mut conn, "radarr", &all_event_kinds(), NOW).unwrap();
        assert_eq!(claim_events(&mut conn, &[1, 2], NOW), Ok(EventClaimOutcome::Claimed));
        assert_eq!(claim_events(&mut conn, &[2, 3], NOW), Ok(EventClaimOutcome::Lost));
        assert_eq!(load_pending_events(&mut conn, 100).unwrap().len(), 5);
        assert_eq!(delete_handled_events(&mut conn, NOW), Ok(0));
        assert_eq!(delete_handled_events(&mut conn, NOW + jiff::SignedDuration::from_secs(1)), Ok(2));
    }

    #[test]
    fn history_cursor_is_stored_per_instance() {
        let mut conn = scratch();
        assert_eq!(load_history_cursor(&mut conn, "radarr"), Ok(None));
        let later = NOW + jiff::SignedDuration::from_secs(60);
        for until in [NOW, later] {
            store_history_cursor(&mut conn, "radarr", until).unwrap();
        }
        assert_eq!(load_history_cursor(&mut conn, "radarr"), Ok(Some(later)));
        assert_eq!(load_history_cursor(&mut conn, "sonarr"), Ok(None));
    }
}
