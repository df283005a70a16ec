//! Samples of the titles on each server of Sonarr and Radarr, by which a moved server is recognized.

use diesel::prelude::*;

use super::Conn;
use super::schema::{library_samples, service_identities};
use crate::conversation::library_sample::{ServerTitles, TitleIds};

/// Replaces the sample of a server. Samples of other servers of the slot are removed, except for the server before the
/// last move.
pub fn store_sample(conn: &mut Conn, sample: &ServerTitles) -> QueryResult<()> {
    let earlier = load_earlier_identity(conn, sample.slot)?;
    let outdated = library_samples::table
        .filter(library_samples::slot.eq(sample.slot))
        .filter(library_samples::identity.ne(earlier.unwrap_or_default()));
    diesel::delete(outdated).execute(conn)?;
    let rows: Vec<_> = sample
        .titles
        .iter()
        .map(|title| {
            (
                library_samples::slot.eq(sample.slot),
                library_samples::identity.eq(&sample.identity),
                library_samples::library_id.eq(title.library),
                library_samples::catalog_id.eq(title.catalog),
            )
        })
        .collect();
    // A server that was moved back to is the earlier one.
    diesel::replace_into(library_samples::table).values(rows).execute(conn).map(drop)
}

/// Loads the sample of a slot's server before the last move. Returns `None` if the slot was not moved.
pub fn load_earlier_sample(conn: &mut Conn, slot: &str) -> QueryResult<Option<Vec<TitleIds>>> {
    let Some(earlier) = load_earlier_identity(conn, slot)? else { return Ok(None) };
    let rows: Vec<(i64, i64)> = library_samples::table
        .filter(library_samples::slot.eq(slot).and(library_samples::identity.eq(earlier)))
        .select((library_samples::library_id, library_samples::catalog_id))
        .load(conn)?;
    Ok(Some(rows.into_iter().map(|(library, catalog)| TitleIds { library, catalog }).collect()))
}

fn load_earlier_identity(conn: &mut Conn, slot: &str) -> QueryResult<Option<String>> {
    let earlier: Option<Option<String>> = service_identities::table
        .find(slot)
        .select(service_identities::earlier_identity)
        .first(conn)
        .optional()?;
    Ok(earlier.flatten())
}
