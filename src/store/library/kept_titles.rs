//! Titles that people protect from proposals to make room.

use diesel::dsl::exists;
use diesel::prelude::*;
use jiff::Timestamp;

use crate::conversation::deletion::target::DeletionTarget;
use crate::conversation::making_room::KEEP_PERIOD;
use crate::conversation::transcript::{MediaKind, UserId};
use crate::store::Conn;
use crate::store::codec::{convert_integer, ms};
use crate::store::column_types::Millis;
use crate::store::schema::kept_titles;

/// Title that a person protects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptTitle {
    pub user: UserId,
    pub kind: MediaKind,
    /// TMDB id of a movie, TheTVDB id of a series.
    pub catalog_id: i64,
    pub title: String,
    pub year: u16,
    pub kept_until: Timestamp,
}

/// Title to protect, by its TMDB or TheTVDB id.
#[derive(Debug, Clone, Copy)]
pub struct TitleToKeep<'a> {
    pub kind: MediaKind,
    pub catalog_id: i64,
    pub title: &'a str,
    pub year: u16,
}

/// Protects a title for a person, from now on for the whole period. Returns the end of the period.
pub fn keep_title(
    conn: &mut Conn,
    user: UserId,
    title: TitleToKeep<'_>,
    now: Timestamp,
) -> QueryResult<Timestamp> {
    let until = now + KEEP_PERIOD;
    let renewed = (kept_titles::kept_at.eq(ms(now)), kept_titles::kept_until_at.eq(ms(until)));
    diesel::insert_into(kept_titles::table)
        .values((
            (kept_titles::kind.eq(title.kind), kept_titles::catalog_id.eq(title.catalog_id)),
            (kept_titles::user_id.eq(user), kept_titles::title.eq(title.title)),
            kept_titles::year.eq(i64::from(title.year)),
            renewed,
        ))
        .on_conflict((kept_titles::kind, kept_titles::catalog_id, kept_titles::user_id))
        .do_update()
        .set(renewed)
        .execute(conn)?;
    Ok(until)
}

/// Loads the protected titles, in the order of their names.
pub fn load_kept_titles(conn: &mut Conn, now: Timestamp) -> QueryResult<Vec<KeptTitle>> {
    let rows: Vec<(UserId, MediaKind, i64, String, i64, Timestamp)> = kept_titles::table
        .filter(kept_titles::kept_until_at.gt(ms(now)))
        .order((kept_titles::title, kept_titles::kind, kept_titles::catalog_id, kept_titles::user_id))
        .select((
            kept_titles::user_id,
            kept_titles::kind,
            kept_titles::catalog_id,
            kept_titles::title,
            kept_titles::year,
            kept_titles::kept_until_at,
        ))
        .load(conn)?;
    let kept_title = |(user, kind, catalog_id, title, year, kept_until)| {
        Ok(KeptTitle { user, kind, catalog_id, title, year: convert_integer(year)?, kept_until })
    };
    rows.into_iter().map(kept_title).collect()
}

/// Returns whether somebody protects a title.
pub fn is_kept(conn: &mut Conn, kind: MediaKind, catalog_id: i64, now: Timestamp) -> QueryResult<bool> {
    let kept = of_title(kind, catalog_id).filter(kept_titles::kept_until_at.gt(ms(now)));
    diesel::select(exists(kept)).get_result(conn)
}

/// Selects the protections of a title that a deletion would delete. A deletion without files matches none.
#[diesel::dsl::auto_type(no_type_alias)]
pub(in crate::store) fn protections(target: &DeletionTarget, now: Timestamp) -> _ {
    let kind: MediaKind = target.kind;
    let catalog_id: i64 = protected_id(target);
    let until: Millis = ms(now);
    kept_titles::table
        .filter(kept_titles::kind.eq(kind))
        .filter(kept_titles::catalog_id.eq(catalog_id))
        .filter(kept_titles::kept_until_at.gt(until))
}

/// Returns the TMDB or TheTVDB id of a title whose files a deletion deletes; 0, which no title has, for another deletion.
fn protected_id(target: &DeletionTarget) -> i64 {
    let catalog_id = match target.kind {
        MediaKind::Movie => target.fingerprint.ids.tmdb,
        MediaKind::Series => target.fingerprint.ids.tvdb,
    };
    catalog_id.filter(|_| target.deletes_playable_files()).unwrap_or_default()
}

#[diesel::dsl::auto_type(no_type_alias)]
fn of_title(kind: MediaKind, catalog_id: i64) -> _ {
    let is_kind = kept_titles::kind.eq(kind);
    let has_id = kept_titles::catalog_id.eq(catalog_id);
    kept_titles::table.filter(is_kind.and(has_id))
}

/// Ends the protection of a title by a person.
pub fn unkeep_title(conn: &mut Conn, kept: &KeptTitle) -> QueryResult<()> {
    diesel::delete(kept_titles::table.find((kept.kind, kept.catalog_id, kept.user))).execute(conn).map(drop)
}

/// Ends all protections by a person.
pub(in crate::store) fn delete_kept_titles_of(conn: &mut Conn, user: UserId) -> QueryResult<()> {
    diesel::delete(kept_titles::table.filter(kept_titles::user_id.eq(user))).execute(conn).map(drop)
}

/// Selects the protections whose period is over.
#[diesel::dsl::auto_type(no_type_alias)]
pub(super) fn ended_protections(now: Timestamp) -> _ {
    let until: Millis = ms(now);
    kept_titles::table.filter(kept_titles::kept_until_at.le(until))
}

/// Deletes the protections whose period is over.
pub(super) fn delete_ended_protections(conn: &mut Conn, now: Timestamp) -> QueryResult<()> {
    diesel::delete(ended_protections(now)).execute(conn).map(drop)
}
