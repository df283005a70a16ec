//! Usage and cost, per day and per user.

use std::collections::BTreeMap;

use diesel::prelude::*;

use super::user_ref::{self, UserRef};
use crate::conversation::transcript::UserId;
use crate::store::codec::convert_integer;
use crate::store::schema::usage;
use crate::store::{Conn, QueryResult};

/// Total usage over a period.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct UsageTotals {
    pub model_calls: u64,
    /// Input tokens, including the cached ones.
    pub tokens_in: u64,
    pub tokens_cached: u64,
    pub tokens_out: u64,
    /// Cost in millionths of the operator's currency.
    pub cost: u64,
    pub segments: u64,
}

impl UsageTotals {
    pub fn combined_with(self, more: Self) -> Self {
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
pub struct UsageReport {
    pub days: BTreeMap<String, UsageTotals>,
    /// Users in descending order of model usage.
    pub users: Vec<(UserRef, UsageTotals)>,
}

type UsageSums = (i64, i64, i64, i64, i64, i64);

/// Loads the usage from the day `first` on.
pub fn load_usage_report(conn: &mut Conn, first: &str) -> QueryResult<UsageReport> {
    let rows: Vec<(String, i64, UsageSums)> = usage::table
        .filter(usage::day.ge(first))
        .select((usage::day, usage::user_id, usage_sum_columns()))
        .load(conn)?;
    let mut days: BTreeMap<String, UsageTotals> = BTreeMap::new();
    let mut by_person: BTreeMap<i64, UsageTotals> = BTreeMap::new();
    for (day, user, sums) in rows {
        let spent = totals_from_sums(sums)?;
        let sum = days.entry(day).or_default();
        *sum = sum.combined_with(spent);
        let sum = by_person.entry(user).or_default();
        *sum = sum.combined_with(spent);
    }
    let mut people = Vec::new();
    for (user, spent) in by_person {
        people.push((user_ref::load_user_ref(conn, UserId(user))?, spent));
    }
    people.sort_by_key(|(_, spent)| std::cmp::Reverse((spent.tokens_in + spent.tokens_out, spent.segments)));
    Ok(UsageReport { days, users: people })
}

/// Loads the usage of one user from the day `first` on.
pub fn load_user_usage(conn: &mut Conn, user: UserId, first: &str) -> QueryResult<UsageTotals> {
    let rows: Vec<UsageSums> = usage::table
        .filter(usage::user_id.eq(user).and(usage::day.ge(first)))
        .select(usage_sum_columns())
        .load(conn)?;
    rows.into_iter()
        .try_fold(UsageTotals::default(), |sum, row| Ok(sum.combined_with(totals_from_sums(row)?)))
}

#[diesel::dsl::auto_type(no_type_alias)]
fn usage_sum_columns() -> _ {
    (
        usage::model_calls,
        usage::tokens_in,
        usage::tokens_cached,
        usage::tokens_out,
        usage::cost_micros,
        usage::segments,
    )
}

fn totals_from_sums((calls, tokens_in, cached, out, cost, segments): UsageSums) -> QueryResult<UsageTotals> {
    Ok(UsageTotals {
        model_calls: convert_integer(calls)?,
        tokens_in: convert_integer(tokens_in)?,
        tokens_cached: convert_integer(cached)?,
        tokens_out: convert_integer(out)?,
        cost: convert_integer(cost)?,
        segments: convert_integer(segments)?,
    })
}
