//! Queries for the pages of the console. All queries are read-only and bounded: a growing list is read from its newest
//! row and continues below a cursor.

pub mod attention;
pub mod audit;
pub mod conversation;
pub mod conversations;
pub mod deliveries;
pub mod message_counts;
pub mod search;
pub mod usage;
pub mod user_details;
pub mod user_ref;

/// One page of a list, newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResultPage<T> {
    pub rows: Vec<T>,
    /// Cursor below which the list continues, if there are older rows.
    pub older: Option<i64>,
}

/// Cursor of the first page of a list: above every id.
pub const NEWEST: i64 = i64::MAX;

impl<T> ResultPage<T> {
    /// Builds a page from its rows and up to one more row than fits. `id` returns the column by which the list is
    /// ordered.
    fn from_rows(mut rows: Vec<T>, fits: usize, id: impl Fn(&T) -> i64) -> Self {
        let goes_on = rows.len() > fits;
        rows.truncate(fits);
        let older = rows.last().map(id).filter(|_| goes_on);
        Self { rows, older }
    }
}

/// Returns the number of rows to query for a page that holds `fits`: one more, to detect whether the list continues.
fn query_limit(fits: usize) -> i64 {
    i64::try_from(fits).unwrap_or(i64::MAX).saturating_add(1)
}
