//! Usage and cost, per day and per user.

use std::collections::BTreeMap;

use diesel::prelude::*;

use super::who::{self, Who};
use crate::conversation::transcript::UserId;
use crate::store::codec::number;
use crate::store::schema::usage;
use crate::store::{Conn, QueryResult};

/// Total usage over a period.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Spent {
    pub model_calls: u64,
    /// Input tokens, including the cached ones.
    pub tokens_in: u64,
    pub tokens_cached: u64,
    pub tokens_out: u64,
    /// Cost in millionths of the operator's currency.
    pub cost: u64,
    pub segments: u64,
}

impl Spent {
    pub fn plus(self, more: Self) -> Self {
        Self {
            model_calls: self.model_calls.saturating_add(more.model_calls),
            tokens_in: self.tokens_in.saturating_add(more.tokens_in),
            tokens_cached: self.tokens_cached.saturating_add(more.tokens_cached),
            tokens_out: self.tokens_out.saturating_add(more.tokens_out),
            cost: self.cost.saturating_add(more.cost),
            segments: self.segments.saturating_add(more.segments),
        }
    }
}

/// Usage by day, as `2026-11-20`, and by user.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Spending {
    pub days: BTreeMap<String, Spent>,
    /// Users in descending order of model usage.
    pub people: Vec<(Who, Spent)>,
}

type Sums = (i64, i64, i64, i64, i64, i64);

/// Loads the usage from the day `first` on.
pub fn since(conn: &mut Conn, first: &str) -> QueryResult<Spending> {
    let rows: Vec<(String, i64, Sums)> =
        usage::table.filter(usage::day.ge(first)).select((usage::day, usage::user_id, sums())).load(conn)?;
    let mut days: BTreeMap<String, Spent> = BTreeMap::new();
    let mut by_person: BTreeMap<i64, Spent> = BTreeMap::new();
    for (day, user, sums) in rows {
        let spent = read(sums)?;
        let sum = days.entry(day).or_default();
        *sum = sum.plus(spent);
        let sum = by_person.entry(user).or_default();
        *sum = sum.plus(spent);
    }
    let mut people = Vec::new();
    for (user, spent) in by_person {
        people.push((who::by_id(conn, UserId(user))?, spent));
    }
    people.sort_by_key(|(_, spent)| std::cmp::Reverse((spent.tokens_in + spent.tokens_out, spent.segments)));
    Ok(Spending { days, people })
}

/// Loads the usage of one user from the day `first` on.
pub fn of_person(conn: &mut Conn, user: UserId, first: &str) -> QueryResult<Spent> {
    let rows: Vec<Sums> =
        usage::table.filter(usage::user_id.eq(user.0).and(usage::day.ge(first))).select(sums()).load(conn)?;
    rows.into_iter().try_fold(Spent::default(), |sum, row| Ok(sum.plus(read(row)?)))
}

#[diesel::dsl::auto_type(no_type_alias)]
fn sums() -> _ {
    (
        usage::model_calls,
        usage::tokens_in,
        usage::tokens_cached,
        usage::tokens_out,
        usage::cost_micros,
        usage::segments,
    )
}

fn read((calls, tokens_in, cached, out, cost, segments): Sums) -> QueryResult<Spent> {
    Ok(Spent {
        model_calls: number(calls)?,
        tokens_in: number(tokens_in)?,
        tokens_cached: number(cached)?,
        tokens_out: number(out)?,
        cost: number(cost)?,
        segments: number(segments)?,
    })
}
