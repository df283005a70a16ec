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
    pub fn combined_with(self, other: Self) -> Self {
        Self {
            model_calls: self.model_calls.saturating_add(other.model_calls),
            tokens_in: self.tokens_in.saturating_add(other.tokens_in),
            tokens_cached: self.tokens_cached.saturating_add(other.tokens_cached),
            tokens_out: self.tokens_out.saturating_add(other.tokens_out),
            cost: self.cost.saturating_add(other.cost),
            segments: self.segments.saturating_add(other.segments),
        }
    }
}

/// Usage by day, as `2026-11-20`, and by user.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UsageReport {
    pub days: BTreeMap<String, UsageTotals>,
    /// Users in descending order of tokens, then of segments, up to `USER_LIMIT`.
    pub users: Vec<(UserRef, UsageTotals)>,
    /// Number of users, including those beyond the limit.
    pub user_count: usize,
}

/// Maximum number of users of a report.
const USER_LIMIT: usize = 50;

type UsageColumns = (i64, i64, i64, i64, i64, i64);

/// Loads the usage since the day `first`.
pub fn load_usage_report(conn: &mut Conn, first: &str) -> QueryResult<UsageReport> {
    let rows: Vec<(String, i64, UsageColumns)> = usage::table
        .filter(usage::day.ge(first))
        .select((usage::day, usage::user_id, usage_columns()))
        .load(conn)?;
    let mut days: BTreeMap<String, UsageTotals> = BTreeMap::new();
    let mut totals_by_user: BTreeMap<i64, UsageTotals> = BTreeMap::new();
    for (day, user, columns) in rows {
        let totals = totals_from_columns(columns)?;
        let sum = days.entry(day).or_default();
        *sum = sum.combined_with(totals);
        let sum = totals_by_user.entry(user).or_default();
        *sum = sum.combined_with(totals);
    }
    let mut ranking: Vec<(i64, UsageTotals)> = totals_by_user.into_iter().collect();
    ranking.sort_by_key(|(_, totals)| {
        std::cmp::Reverse((totals.tokens_in + totals.tokens_out, totals.segments))
    });
    let user_count = ranking.len();
    let listed = ranking.into_iter().take(USER_LIMIT);
    let users = listed
        .map(|(user, totals)| Ok((user_ref::load_user_ref(conn, UserId(user))?, totals)))
        .collect::<QueryResult<_>>()?;
    Ok(UsageReport { days, users, user_count })
}

/// Loads the usage of one user since the day `first`.
pub fn load_user_usage(conn: &mut Conn, user: UserId, first: &str) -> QueryResult<UsageTotals> {
    let rows: Vec<UsageColumns> = usage::table
        .filter(usage::user_id.eq(user).and(usage::day.ge(first)))
        .select(usage_columns())
        .load(conn)?;
    rows.into_iter()
        .try_fold(UsageTotals::default(), |totals, row| Ok(totals.combined_with(totals_from_columns(row)?)))
}

#[diesel::dsl::auto_type(no_type_alias)]
fn usage_columns() -> _ {
    (
        usage::model_calls,
        usage::tokens_in,
        usage::tokens_cached,
        usage::tokens_out,
        usage::cost_micros,
        usage::segments,
    )
}

fn totals_from_columns(
    (calls, tokens_in, cached, out, cost, segments): UsageColumns,
) -> QueryResult<UsageTotals> {
    Ok(UsageTotals {
        model_calls: convert_integer(calls)?,
        tokens_in: convert_integer(tokens_in)?,
        tokens_cached: convert_integer(cached)?,
        tokens_out: convert_integer(out)?,
        cost: convert_integer(cost)?,
        segments: convert_integer(segments)?,
    })
}
