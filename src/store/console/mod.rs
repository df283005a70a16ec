//! What the pages of the console show. Only reads, each bounded: a list that grows is read from its newest row, and
//! goes on below a cursor.

pub mod audit;
pub mod conversations;
pub mod deliveries;
pub mod fate;
pub mod figures;
pub mod home;
pub mod listing;
pub mod people;
pub mod search;
pub mod spending;
pub mod talks;
pub mod thread;
pub mod who;

/// One page of a list, newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed<T> {
    pub rows: Vec<T>,
    /// The cursor below which the list goes on, if it does.
    pub older: Option<i64>,
}

/// Where a list begins: above every id, if nobody has gone down it yet.
pub const NEWEST: i64 = i64::MAX;

impl<T> Listed<T> {
    /// Of one row more than fits. `id` is what the list is ordered by.
    fn of(mut rows: Vec<T>, fits: usize, id: impl Fn(&T) -> i64) -> Self {
        let goes_on = rows.len() > fits;
        rows.truncate(fits);
        let older = rows.last().map(id).filter(|_| goes_on);
        Self { rows, older }
    }
}

/// How many rows are asked of the database for a page that holds `fits`.
fn one_more(fits: usize) -> i64 {
    i64::try_from(fits).unwrap_or(i64::MAX).saturating_add(1)
}
