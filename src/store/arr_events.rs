//! Events from Sonarr and Radarr, each matter once, stored until every user is notified; and the time up to which the
//! history of each instance was read.

use diesel::prelude::*;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::Conn;
use super::codec::{from_json, if_readable, ms, time, to_json};
use super::schema::{arr_cursors, arr_events};
use super::written::Written;
use crate::conversation::notices::{Copy, Report, Reported, Title, Untold};

const OPEN: Written = Written("arr_events.handled_at IS NULL");

/// Stores the events that are not known yet; returns the number of new ones.
pub fn store(conn: &mut Conn, instance: &str, reported: &[Reported], now: Timestamp) -> QueryResult<usize> {
    let mut new = 0;
    for Reported { matter, report } in reported {
        new += diesel::insert_into(arr_events::table)
            .values((
                arr_events::instance.eq(instance),
                arr_events::matter.eq(matter),
                arr_events::event.eq(to_json(&Stored::from(report))?),
                arr_events::received_at.eq(ms(now)),
            ))
            .on_conflict_do_nothing()
            .execute(conn)?;
    }
    Ok(new)
}

/// Returns whether a matter was reported before, through any channel.
pub fn is_known(conn: &mut Conn, instance: &str, matter: &str) -> QueryResult<bool> {
    let known: Option<i64> = arr_events::table
        .filter(arr_events::instance.eq(instance).and(arr_events::matter.eq(matter)))
        .select(arr_events::id)
        .first(conn)
        .optional()?;
    Ok(known.is_some())
}

/// Loads the oldest events for which no notification was sent yet. An event that cannot be read holds up no other.
pub fn untold(conn: &mut Conn, limit: i64) -> QueryResult<Vec<Untold>> {
    let rows: Vec<(i64, String, String, i64)> = arr_events::table
        .filter(OPEN)
        .order(arr_events::id)
        .limit(limit)
        .select((arr_events::id, arr_events::instance, arr_events::event, arr_events::received_at))
        .load(conn)?;
    let read = |(id, instance, event, received_at): (i64, String, String, i64)| {
        let report = from_json::<Stored>("report", &event)?.into();
        Ok(Untold { id, instance, report, received_at: time(received_at)? })
    };
    rows.into_iter().filter_map(|row| if_readable(read(row)).transpose()).collect()
}

/// Outcome of claiming events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Take {
    Taken,
    /// Another task has claimed one of the events in the meantime.
    Lost,
}

/// Claims events for notification in the same transaction: all of them or none.
pub fn take(conn: &mut Conn, ids: &[i64], now: Timestamp) -> QueryResult<Take> {
    for id in ids {
        let open: Option<i64> =
            arr_events::table.find(id).filter(OPEN).select(arr_events::id).first(conn).optional()?;
        if open.is_none() {
            return Ok(Take::Lost);
        }
    }
    for id in ids {
        diesel::update(arr_events::table.find(id)).set(arr_events::handled_at.eq(ms(now))).execute(conn)?;
    }
    Ok(Take::Taken)
}

/// Deletes events that were received before `before` and for which the notifications were sent.
pub fn forget(conn: &mut Conn, before: Timestamp) -> QueryResult<usize> {
    let old = arr_events::received_at.lt(ms(before)).and(arr_events::handled_at.is_not_null());
    diesel::delete(arr_events::table.filter(old)).execute(conn)
}

/// Returns the time up to which the history of an instance was read; `None` if it never was.
pub fn read_until(conn: &mut Conn, instance: &str) -> QueryResult<Option<Timestamp>> {
    let until: Option<i64> =
        arr_cursors::table.find(instance).select(arr_cursors::read_until).first(conn).optional()?;
    until.map(time).transpose()
}

pub fn remember_read(conn: &mut Conn, instance: &str, until: Timestamp) -> QueryResult<()> {
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
enum Stored {
    Movie { of: StoredTitle, better: bool },
    Episode { of: StoredTitle, season: u32, number: u32, better: bool },
    Stuck { of: String },
    Failed { of: String },
    Ill { check: String, message: String },
    Well { check: String },
}

impl From<&Report> for Stored {
    fn from(report: &Report) -> Self {
        let stored = |Title { id, catalog_id, title, year }: &Title| StoredTitle {
            id: *id,
            catalog_id: *catalog_id,
            title: title.clone(),
            year: *year,
        };
        match report {
            Report::Movie(movie, copy) => Self::Movie { of: stored(movie), better: *copy == Copy::Better },
            Report::Episode { show, season, number, copy } => Self::Episode {
                of: stored(show),
                season: *season,
                number: *number,
                better: *copy == Copy::Better,
            },
            Report::Stuck(of) => Self::Stuck { of: of.clone() },
            Report::Failed(of) => Self::Failed { of: of.clone() },
            Report::Ill { check, message } => Self::Ill { check: check.clone(), message: message.clone() },
            Report::Well { check } => Self::Well { check: check.clone() },
        }
    }
}

impl From<Stored> for Report {
    fn from(stored: Stored) -> Self {
        let title = |StoredTitle { id, catalog_id, title, year }| Title { id, catalog_id, title, year };
        let copy = |better| if better { Copy::Better } else { Copy::First };
        match stored {
            Stored::Movie { of, better } => Self::Movie(title(of), copy(better)),
            Stored::Episode { of, season, number, better } => {
                Self::Episode { show: title(of), season, number, copy: copy(better) }
            }
            Stored::Stuck { of } => Self::Stuck(of),
            Stored::Failed { of } => Self::Failed(of),
            Stored::Ill { check, message } => Self::Ill { check, message },
            Stored::Well { check } => Self::Well { check },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::scratch;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    fn reports() -> Vec<Reported> {
        let title = |id| Title { id, catalog_id: 9, title: "Dune".into(), year: 2021 };
        let reports = [
            Report::Movie(title(1), Copy::First),
            Report::Movie(title(2), Copy::Better),
            Report::Episode { show: title(3), season: 2, number: 4, copy: Copy::First },
            Report::Stuck("Dune (2021)".into()),
            Report::Failed("Dune (2021)".into()),
            Report::Ill { check: "Indexer".into(), message: "down".into() },
            Report::Well { check: "Indexer".into() },
        ];
        reports.into_iter().map(|report| Reported::new(report, "abc", NOW)).collect()
    }

    #[test]
    fn a_matter_is_stored_once_per_library_and_comes_back_as_it_was() {
        let mut conn = scratch();
        let reports = reports();
        assert_eq!(store(&mut conn, "radarr", &reports, NOW), Ok(7));
        assert_eq!(store(&mut conn, "radarr", &reports, NOW), Ok(0));
        assert_eq!(store(&mut conn, "radarr-4k", &reports[..1], NOW), Ok(1));
        let untold = untold(&mut conn, 100).unwrap();
        let read: Vec<Report> = untold[..7].iter().map(|one| one.report.clone()).collect();
        let stored: Vec<Report> = reports.into_iter().map(|one| one.report).collect();
        assert_eq!(read, stored);
    }

    #[test]
    fn reports_are_taken_together_and_once_and_forgotten_when_old() {
        let mut conn = scratch();
        store(&mut conn, "radarr", &reports(), NOW).unwrap();
        assert_eq!(take(&mut conn, &[1, 2], NOW), Ok(Take::Taken));
        assert_eq!(take(&mut conn, &[2, 3], NOW), Ok(Take::Lost));
        assert_eq!(untold(&mut conn, 100).unwrap().len(), 5);
        assert_eq!(forget(&mut conn, NOW), Ok(0));
        assert_eq!(forget(&mut conn, NOW + jiff::SignedDuration::from_secs(1)), Ok(2));
    }

    #[test]
    fn how_far_a_history_was_read_is_known_for_each_library() {
        let mut conn = scratch();
        assert_eq!(read_until(&mut conn, "radarr"), Ok(None));
        let later = NOW + jiff::SignedDuration::from_secs(60);
        for until in [NOW, later] {
            remember_read(&mut conn, "radarr", until).unwrap();
        }
        assert_eq!(read_until(&mut conn, "radarr"), Ok(Some(later)));
        assert_eq!(read_until(&mut conn, "sonarr"), Ok(None));
    }
}
