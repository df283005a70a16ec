//! Groups of waiting additions: the requests of one user for one title, tried as one addition and closed with one
//! notification.

use diesel::prelude::*;
use jiff::Timestamp;

use super::Conn;
use super::calls::Start;
use super::codec::ms;
use super::requests::{self as rows, End, Open, Settling};
use super::schema::requests;
use crate::conversation::requests::{QueuedRequest, Trying};

/// Waiting additions of one user for one title that are tried together.
#[derive(Debug, Clone, PartialEq)]
pub struct RequestGroup {
    /// The newest part, with everything that the parts want.
    pub whole: Open,
    /// The requests as they were made, oldest first.
    parts: Vec<Open>,
    /// Newer requests for the same seasons, which were refused. They are closed with the group.
    refused: Vec<Open>,
    /// Reason of the first refusal, for the user.
    pub refusal: Option<String>,
}

impl RequestGroup {
    pub fn single(open: Open) -> Self {
        Self { parts: vec![open.clone()], whole: open, refused: Vec::new(), refusal: None }
    }

    /// Group of these requests; `None` without any, or if they cannot be merged.
    fn from_parts(mut parts: Vec<Open>) -> Option<Self> {
        parts.sort_by_key(|part| part.id);
        let requests: Vec<QueuedRequest> = parts.iter().map(Open::request).collect();
        let QueuedRequest { wanted, arguments } = QueuedRequest::merge_all(&requests)?;
        let tries = parts.iter().map(|part| part.tries).max()?;
        let whole = Open { wanted, arguments, tries, ..parts.last()?.clone() };
        Some(Self { whole, parts, refused: Vec::new(), refusal: None })
    }

    /// Ids of the additions that are tried.
    pub fn ids(&self) -> Vec<i64> {
        self.parts.iter().map(|part| part.id).collect()
    }

    /// Ids of the additions that wait and end together.
    pub fn all_ids(&self) -> Vec<i64> {
        self.parts.iter().chain(&self.refused).map(|part| part.id).collect()
    }

    pub fn parts(&self) -> &[Open] {
        &self.parts
    }

    /// One group for each list of seasons, in the order of their oldest requests.
    pub fn by_seasons(&self) -> Vec<Self> {
        let mut groups: Vec<Self> = Vec::new();
        for part in &self.parts {
            let same = |group: &&mut Self| group.whole.wanted.names_the_seasons_of(&part.wanted);
            let joined = groups.iter_mut().find(same).and_then(|group| {
                let joined = Self::from_parts([group.parts.clone(), vec![part.clone()]].concat())?;
                *group = joined;
                Some(())
            });
            if joined.is_none() {
                groups.push(Self::single(part.clone()));
            }
        }
        groups
    }

    /// The group without its newest request, which was refused; `None` if that leaves no request.
    pub fn without_newest(&self, reason: Option<&str>) -> Option<Self> {
        let (newest, earlier) = self.parts.split_last()?;
        let refused = [self.refused.clone(), vec![newest.clone()]].concat();
        let refusal = self.refusal.clone().or_else(|| reason.map(str::to_owned));
        Some(Self { refused, refusal, ..Self::from_parts(earlier.to_vec())? })
    }
}

/// Loads the additions that are tried together with `due`. A try with an unknown outcome is checked alone.
pub fn load(conn: &mut Conn, due: Open) -> QueryResult<RequestGroup> {
    let mut group = RequestGroup::single(due);
    if group.whole.trying == Trying::UnderWay {
        return Ok(group);
    }
    for other in rows::waiting(conn, group.whole.user, &group.whole.wanted)? {
        if other.trying == Trying::UnderWay || group.ids().contains(&other.id) {
            continue;
        }
        let together = RequestGroup::from_parts([group.parts.clone(), vec![other]].concat());
        group = together.unwrap_or(group);
    }
    Ok(group)
}

/// Writes the intent to add. If one of the additions does not wait any more, none is started.
pub fn start(conn: &mut Conn, ids: &[i64]) -> QueryResult<Start> {
    let waiting = || requests::table.filter(requests::id.eq_any(ids)).filter(requests::state.eq("queued"));
    let count: i64 = waiting().count().get_result(conn)?;
    if usize::try_from(count) != Ok(ids.len()) {
        return Ok(Start::NotStartable);
    }
    diesel::update(waiting())
        .set((requests::state.eq("adding"), requests::tries.eq(requests::tries + 1)))
        .execute(conn)?;
    Ok(Start::Started)
}

/// Schedules another try at `at`, for additions that were certainly not made.
pub fn try_at(conn: &mut Conn, ids: &[i64], at: Timestamp) -> QueryResult<()> {
    diesel::update(
        requests::table.filter(requests::id.eq_any(ids)).filter(requests::next_try_at.is_not_null()),
    )
    .set((requests::state.eq("queued"), requests::next_try_at.eq(ms(at))))
    .execute(conn)
    .map(drop)
}

/// Schedules the next check at `at`; the states of the additions stay as they are until then.
pub fn look_at(conn: &mut Conn, ids: &[i64], at: Timestamp) -> QueryResult<()> {
    diesel::update(
        requests::table.filter(requests::id.eq_any(ids)).filter(requests::next_try_at.is_not_null()),
    )
    .set(requests::next_try_at.eq(ms(at)))
    .execute(conn)
    .map(drop)
}

/// Outcome of closing a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Closed {
    /// The rows are merged into the one with this id.
    Into(i64),
    /// The user has left in the meantime, or has the title already: no user waits for a notification.
    Withdrawn,
}

/// Settles the additions of a group that are still open, as one row.
pub fn close(conn: &mut Conn, group: &RequestGroup, end: &End<'_>, now: Timestamp) -> QueryResult<Closed> {
    let open: Vec<(i64, i64)> = requests::table
        .filter(requests::id.eq_any(group.all_ids()).and(requests::next_try_at.is_not_null()))
        .order(requests::id)
        .select((requests::id, requests::tries))
        .load(conn)?;
    let ids: Vec<i64> = open.iter().map(|(id, _)| *id).collect();
    let Some((last, merged)) = ids.split_last() else { return Ok(Closed::Withdrawn) };
    if rows::settle(conn, *last, end, now)? == Settling::Withdrawn {
        return Ok(Closed::Withdrawn);
    }
    if !merged.is_empty() {
        diesel::delete(requests::table.filter(requests::id.eq_any(merged))).execute(conn)?;
        let wanted = match end {
            End::Added(wanted) => *wanted,
            End::GivenUp => &group.whole.wanted,
        };
        let tries = open.iter().map(|(_, tries)| *tries).max().unwrap_or_default();
        diesel::update(requests::table.find(*last))
            .set((requests::seasons.eq(rows::seasons_json(wanted)?), requests::tries.eq(tries)))
            .execute(conn)?;
    }
    Ok(Closed::Into(*last))
}
