//! Queries for the pages of the console. All queries are read-only and bounded: growing lists use keyset pagination,
//! newest first.

pub mod attention;
pub mod audit;
pub mod conversation;
pub mod conversations;
pub mod deliveries;
pub mod making_room;
pub mod message_counts;
pub mod requests;
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
    /// Builds a page from up to `page_size + 1` rows. `id` returns the column by which the list is ordered.
    fn from_rows(mut rows: Vec<T>, page_size: usize, id: impl Fn(&T) -> i64) -> Self {
        let has_more = rows.len() > page_size;
        rows.truncate(page_size);
        let older = rows.last().map(id).filter(|_| has_more);
        Self { rows, older }
    }
}

/// Returns the number of rows to query for a page: one more than fits, to detect whether the list continues.
fn query_limit(page_size: usize) -> i64 {
    i64::try_from(page_size).unwrap_or(i64::MAX).saturating_add(1)
}
