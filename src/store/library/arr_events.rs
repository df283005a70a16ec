//! Events from Sonarr and Radarr, each stored once and until every user is notified, and the history cursor of each
//! instance: the time up to which its history was read.

use diesel::connection::DefaultLoadingMode;
use diesel::prelude::*;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::conversation::notifications::arr_events::{
    ArrEvent, ArrTitle, ImportKind, KeyedArrEvent, PendingArrEvent,
};
use crate::store::Conn;
use crate::store::codec::{from_json, ms, none_if_unreadable, to_json};
use crate::store::database::literal_sql::LiteralSql;
use crate::store::schema::{arr_cursors, arr_events};

const OPEN: LiteralSql = LiteralSql("arr_events.handled_at IS NULL");

/// Stores the events that are not known yet. Returns the number of new events.
pub fn store_arr_events(
    conn: &mut Conn,
    instance: &str,
    reported: &[KeyedArrEvent],
    now: Timestamp,
) -> QueryResult<usize> {
    let mut new = 0;
    for KeyedArrEvent { matter, event: report } in reported {
        new += diesel::insert_into(arr_events::table)
            .values((
                arr_events::instance.eq(instance),
                arr_events::matter.eq(matter),
                arr_events::event.eq(to_json(&StoredEvent::from(report))?),
                arr_events::received_at.eq(ms(now)),
            ))
            .on_conflict_do_nothing()
            .execute(conn)?;
    }
    Ok(new)
}

/// Returns whether an event was reported before, through any channel.
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

/// Loads the oldest events for which no notification was sent yet. An event that cannot be read does not block the
/// others.
pub fn load_unreported_events(conn: &mut Conn, limit: i64) -> QueryResult<Vec<PendingArrEvent>> {
    let rows = arr_events::table
        .filter(OPEN)
        .order(arr_events::id)
        .limit(limit)
        .select(ArrEventRow::as_select())
        .load_iter::<ArrEventRow, DefaultLoadingMode>(conn)?;
    let read = |row: ArrEventRow| {
        let event = from_json::<StoredEvent>("report", &row.event)?.into();
        Ok(PendingArrEvent { id: row.id, instance: row.instance, event, received_at: row.received_at })
    };
    rows.filter_map(|row| none_if_unreadable(row.and_then(read)).transpose()).collect()
}

/// Outcome of claiming events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventClaimOutcome {
    Claimed,
    /// Another task has already claimed one of the events.
    Lost,
}

/// Claims events for notification in the same transaction: all of them or none.
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
pub fn delete_reported_events(conn: &mut Conn, before: Timestamp) -> QueryResult<usize> {
    let old = arr_events::received_at.lt(ms(before)).and(arr_events::handled_at.is_not_null());
    diesel::delete(arr_events::table.filter(old)).execute(conn)
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

#[derive(Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum StoredEvent {
    Movie { of: StoredTitle, better: bool },
    Episode { of: StoredTitle, season: u32, number: u32, better: bool },
    Stuck { of: String },
    Failed { of: String },
    Ill { check: String, message: String },
    Well { check: String },
}

impl From<&ArrEvent> for StoredEvent {
    fn from(report: &ArrEvent) -> Self {
        let stored = |ArrTitle { id, catalog_id, title, year }: &ArrTitle| StoredTitle {
            id: *id,
            catalog_id: *catalog_id,
            title: title.clone(),
            year: *year,
        };
        match report {
            ArrEvent::MovieImported(movie, copy) => {
                Self::Movie { of: stored(movie), better: *copy == ImportKind::Upgrade }
            }
            ArrEvent::EpisodeImported { show, season, number, copy } => Self::Episode {
                of: stored(show),
                season: *season,
                number: *number,
                better: *copy == ImportKind::Upgrade,
            },
            ArrEvent::ImportBlocked(of) => Self::Stuck { of: of.clone() },
            ArrEvent::DownloadFailed(of) => Self::Failed { of: of.clone() },
            ArrEvent::HealthIssue { check, message } => {
                Self::Ill { check: check.clone(), message: message.clone() }
            }
            ArrEvent::HealthRestored { check } => Self::Well { check: check.clone() },
        }
    }
}

impl From<StoredEvent> for ArrEvent {
    fn from(stored: StoredEvent) -> Self {
        let title = |StoredTitle { id, catalog_id, title, year }| ArrTitle { id, catalog_id, title, year };
        let copy = |better| if better { ImportKind::Upgrade } else { ImportKind::First };
        match stored {
            StoredEvent::Movie { of, better } => Self::MovieImported(title(of), copy(better)),
            StoredEvent::Episode { of, season, number, better } => {
                Self::EpisodeImported { show: title(of), season, number, copy: copy(better) }
            }
            StoredEvent::Stuck { of } => Self::ImportBlocked(of),
            StoredEvent::Failed { of } => Self::DownloadFailed(of),
            StoredEvent::Ill { check, message } => Self::HealthIssue { check, message },
            StoredEvent::Well { check } => Self::HealthRestored { check },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::scratch;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    fn reports() -> Vec<KeyedArrEvent> {
        let title = |id| ArrTitle { id, catalog_id: 9, title: "Dune".into(), year: 2021 };
        let reports = [
            ArrEvent::MovieImported(title(1), ImportKind::First),
            ArrEvent::MovieImported(title(2), ImportKind::Upgrade),
            ArrEvent::EpisodeImported { show: title(3), season: 2, number: 4, copy: ImportKind::First },
            ArrEvent::ImportBlocked("Dune (2021)".into()),
            ArrEvent::DownloadFailed("Dune (2021)".into()),
            ArrEvent::HealthIssue { check: "Indexer".into(), message: "down".into() },
            ArrEvent::HealthRestored { check: "Indexer".into() },
        ];
        reports.into_iter().map(|report| KeyedArrEvent::new(report, "abc", NOW)).collect()
    }

    #[test]
    fn matter_is_stored_once_per_library_and_loaded_unchanged() {
        let mut conn = scratch();
        let reports = reports();
        assert_eq!(store_arr_events(&mut conn, "radarr", &reports, NOW), Ok(7));
        assert_eq!(store_arr_events(&mut conn, "radarr", &reports, NOW), Ok(0));
        assert_eq!(store_arr_events(&mut conn, "radarr-4k", &reports[..1], NOW), Ok(1));
        let untold = load_unreported_events(&mut conn, 100).unwrap();
        let read: Vec<ArrEvent> = untold[..7].iter().map(|one| one.event.clone()).collect();
        let stored: Vec<ArrEvent> = reports.into_iter().map(|one| one.event).collect();
        assert_eq!(read, stored);
    }

    #[test]
    fn events_are_claimed_together_once_and_deleted_when_old() {
        let mut conn = scratch();
        store_arr_events(&mut conn, "radarr", &reports(), NOW).unwrap();
        assert_eq!(claim_events(&mut conn, &[1, 2], NOW), Ok(EventClaimOutcome::Claimed));
        assert_eq!(claim_events(&mut conn, &[2, 3], NOW), Ok(EventClaimOutcome::Lost));
        assert_eq!(load_unreported_events(&mut conn, 100).unwrap().len(), 5);
        assert_eq!(delete_reported_events(&mut conn, NOW), Ok(0));
        assert_eq!(delete_reported_events(&mut conn, NOW + jiff::SignedDuration::from_secs(1)), Ok(2));
    }

    #[test]
    fn history_cursor_is_stored_per_library() {
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
