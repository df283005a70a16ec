//! Groups of waiting additions: the requests of one user for one title, tried as one addition and closed with one
//! notification.

use diesel::prelude::*;
use jiff::Timestamp;

use super::title_requests::{
    self as rows, DeferredAddition, RequestState, SettleRequestOutcome, TitleRequestOutcome,
};
use crate::conversation::title_requests::{DeferredAdditionState, QueuedRequest};
use crate::store::Conn;
use crate::store::codec::ms;
use crate::store::schema::requests;
use crate::store::turns::calls::CallStartOutcome;

/// Waiting additions of one user for one title that are tried together.
#[derive(Debug, Clone, PartialEq)]
pub struct RequestGroup {
    /// The newest request, merged with everything that the others want.
    pub whole: DeferredAddition,
    /// The requests as they were made, oldest first.
    parts: Vec<DeferredAddition>,
    /// Newer requests for the same seasons that were refused. They are closed with the group.
    refused: Vec<DeferredAddition>,
    /// Reason of the first refusal, for the user.
    pub refusal: Option<String>,
}

impl RequestGroup {
    pub fn from_single(open: DeferredAddition) -> Self {
        Self { parts: vec![open.clone()], whole: open, refused: Vec::new(), refusal: None }
    }

    /// Builds the group of these requests; `None` if there are none, or if they cannot be merged.
    fn from_parts(mut parts: Vec<DeferredAddition>) -> Option<Self> {
        parts.sort_by_key(|part| part.id);
        let requests: Vec<QueuedRequest> = parts.iter().map(DeferredAddition::request).collect();
        let QueuedRequest { wanted, arguments } = QueuedRequest::merge_all(&requests)?;
        let tries = parts.iter().map(|part| part.tries).max()?;
        let whole = DeferredAddition { wanted, arguments, tries, ..parts.last()?.clone() };
        Some(Self { whole, parts, refused: Vec::new(), refusal: None })
    }

    /// Returns the ids of the additions that are tried.
    pub fn request_ids(&self) -> Vec<i64> {
        self.parts.iter().map(|part| part.id).collect()
    }

    /// Returns the ids of the additions that wait and end together, including refused ones.
    pub fn all_ids(&self) -> Vec<i64> {
        self.parts.iter().chain(&self.refused).map(|part| part.id).collect()
    }

    pub fn parts(&self) -> &[DeferredAddition] {
        &self.parts
    }

    /// Splits the group into one group for each list of seasons, in the order of their oldest requests.
    pub fn by_seasons(&self) -> Vec<Self> {
        let mut groups: Vec<Self> = Vec::new();
        for part in &self.parts {
            let same = |group: &&mut Self| group.whole.wanted.has_same_seasons_as(&part.wanted);
            let joined = groups.iter_mut().find(same).and_then(|group| {
                let joined = Self::from_parts([group.parts.clone(), vec![part.clone()]].concat())?;
                *group = joined;
                Some(())
            });
            if joined.is_none() {
                groups.push(Self::from_single(part.clone()));
            }
        }
        groups
    }

    /// Returns the group without its newest request, which was refused; `None` if no request is left.
    pub fn without_newest(&self, reason: Option<&str>) -> Option<Self> {
        let (newest, earlier) = self.parts.split_last()?;
        let refused = [self.refused.clone(), vec![newest.clone()]].concat();
        let refusal = self.refusal.clone().or_else(|| reason.map(str::to_owned));
        Some(Self { refused, refusal, ..Self::from_parts(earlier.to_vec())? })
    }
}

/// Loads the additions that are tried together with `due`. A try with an unknown outcome is checked alone.
pub fn load_request_group(conn: &mut Conn, due: DeferredAddition) -> QueryResult<RequestGroup> {
    let mut group = RequestGroup::from_single(due);
    if group.whole.state == DeferredAdditionState::InProgress {
        return Ok(group);
    }
    for other in rows::load_waiting_additions(conn, group.whole.user, &group.whole.wanted)? {
        if other.state == DeferredAdditionState::InProgress || group.request_ids().contains(&other.id) {
            continue;
        }
        let together = RequestGroup::from_parts([group.parts.clone(), vec![other]].concat());
        group = together.unwrap_or(group);
    }
    Ok(group)
}

/// Writes the intent to add. If one of the additions is no longer waiting, none is started.
pub fn start_addition(conn: &mut Conn, ids: &[i64]) -> QueryResult<CallStartOutcome> {
    let waiting =
        || requests::table.filter(requests::id.eq_any(ids)).filter(requests::state.eq(RequestState::Queued));
    let count: i64 = waiting().count().get_result(conn)?;
    if usize::try_from(count) != Ok(ids.len()) {
        return Ok(CallStartOutcome::NotStartable);
    }
    diesel::update(waiting())
        .set((requests::state.eq(RequestState::Adding), requests::tries.eq(requests::tries + 1)))
        .execute(conn)?;
    Ok(CallStartOutcome::Started)
}

/// Schedules another try at `at`, for additions that were certainly not made.
pub fn schedule_next_try(conn: &mut Conn, ids: &[i64], at: Timestamp) -> QueryResult<()> {
    diesel::update(
        requests::table.filter(requests::id.eq_any(ids)).filter(requests::next_try_at.is_not_null()),
    )
    .set((requests::state.eq(RequestState::Queued), requests::next_try_at.eq(ms(at))))
    .execute(conn)
    .map(drop)
}

/// Schedules the next check at `at`. The states of the additions do not change until then.
pub fn schedule_next_check(conn: &mut Conn, ids: &[i64], at: Timestamp) -> QueryResult<()> {
    diesel::update(
        requests::table.filter(requests::id.eq_any(ids)).filter(requests::next_try_at.is_not_null()),
    )
    .set(requests::next_try_at.eq(ms(at)))
    .execute(conn)
    .map(drop)
}

/// Outcome of closing a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CloseGroupOutcome {
    /// The rows are merged into the one with this id.
    Into(i64),
    /// The user has left, or already has the title: no user waits for a notification.
    Withdrawn,
}

/// Settles the additions of a group that are still open, as one row.
pub fn close_group(
    conn: &mut Conn,
    group: &RequestGroup,
    end: &TitleRequestOutcome<'_>,
    now: Timestamp,
) -> QueryResult<CloseGroupOutcome> {
    let open: Vec<(i64, i64)> = requests::table
        .filter(requests::id.eq_any(group.all_ids()).and(requests::next_try_at.is_not_null()))
        .order(requests::id)
        .select((requests::id, requests::tries))
        .load(conn)?;
    let ids: Vec<i64> = open.iter().map(|(id, _)| *id).collect();
    let Some((last, merged)) = ids.split_last() else { return Ok(CloseGroupOutcome::Withdrawn) };
    if rows::settle_title_request(conn, *last, end, now)? == SettleRequestOutcome::Withdrawn {
        return Ok(CloseGroupOutcome::Withdrawn);
    }
    if !merged.is_empty() {
        diesel::delete(requests::table.filter(requests::id.eq_any(merged))).execute(conn)?;
        let wanted = match end {
            TitleRequestOutcome::Added(wanted) => *wanted,
            TitleRequestOutcome::GivenUp => &group.whole.wanted,
        };
        let tries = open.iter().map(|(_, tries)| *tries).max().unwrap_or_default();
        diesel::update(requests::table.find(*last))
            .set((requests::seasons.eq(rows::seasons_json(wanted)?), requests::tries.eq(tries)))
            .execute(conn)?;
    }
    Ok(CloseGroupOutcome::Into(*last))
}
