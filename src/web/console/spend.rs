//! Usage and cost of the last 30 days, per day and per user.

use std::collections::BTreeMap;

use askama::Template;
use axum::extract::State;
use jiff::civil::Date;
use jiff::{Timestamp, ToSpan};

use super::chart::{BarChart, DailySeries, ShareChart};
use super::delivery_labels;
use super::format::{UserLink, format_cost, format_count};
use super::layout::{ConsoleSection, PageLayout, render_page};
use super::responses::PageResult;
use crate::store::console::message_counts::{self, MessageTimes};
use crate::store::console::usage::{self, UsageReport, UsageTotals};
use crate::web::auth::Operator;
use crate::web::console_state::ConsoleState;

const DAYS: i64 = 30;

#[derive(Template)]
#[template(path = "spend.html")]
struct SpendPage {
    layout: PageLayout,
    totals: SpendRow,
    is_priced: bool,
    charts: Vec<BarChart>,
    outcomes: Option<ShareChart>,
    /// Users who spent most, with what they spent.
    users: Vec<(UserLink, SpendRow)>,
    unlisted_users: usize,
    /// Days, newest first; days without cost are left out.
    days: Vec<(String, SpendRow)>,
}

/// Formatted usage and cost.
pub(super) struct SpendRow {
    pub(super) calls: String,
    pub(super) tokens_in: String,
    pub(super) cached: String,
    pub(super) tokens_out: String,
    pub(super) segments: String,
    pub(super) cost: String,
}

impl From<UsageTotals> for SpendRow {
    fn from(spent: UsageTotals) -> Self {
        Self {
            calls: format_count(spent.model_calls),
            tokens_in: format_count(spent.tokens_in),
            cached: format_count(spent.tokens_cached),
            tokens_out: format_count(spent.tokens_out),
            segments: format_count(spent.segments),
            cost: format_cost(spent.cost),
        }
    }
}

/// Returns the first of the 30 days that end today.
pub(in crate::web) fn first_day(now: Timestamp, console: &ConsoleState) -> Date {
    let today = now.to_zoned(console.zone()).date();
    today.checked_sub((DAYS - 1).days()).unwrap_or(today)
}

pub(in crate::web) async fn show_spend(
    State(console): State<ConsoleState>,
    operator: Operator,
) -> PageResult {
    let now = console.clock.now();
    let first = first_day(now, &console);
    let from = first.to_zoned(console.zone()).map_or(now, |day| day.timestamp());
    let day = first.to_string();
    let load = console.db.read(move |conn| {
        Ok((message_counts::load_message_times(conn, from)?, usage::load_usage_report(conn, &day)?))
    });
    let (message_times, usage_report) = load.await?;
    let totals = usage_report.days.values().copied().fold(UsageTotals::default(), UsageTotals::combined_with);
    let days: Vec<Date> = first.series(1.day()).take(30).collect();
    let outcomes = delivery_labels::count_outcomes(message_times.sent.iter().map(|(_, delivery)| *delivery));
    let has_outcomes = outcomes.iter().any(|(_, count)| *count > 0);
    Ok(render_page(&SpendPage {
        layout: PageLayout::new(&operator, ConsoleSection::Spend, "Spend"),
        is_priced: totals.cost > 0,
        totals: totals.into(),
        charts: build_charts(&days, &message_times, &usage_report, &console),
        outcomes: has_outcomes.then(|| ShareChart::from_parts("Delivery status", &outcomes)),
        users: usage_report
            .users
            .iter()
            .map(|(user, spent)| (UserLink::from(user), (*spent).into()))
            .collect(),
        unlisted_users: usage_report.user_count - usage_report.users.len(),
        days: usage_report.days.iter().rev().map(|(day, spent)| (day.clone(), (*spent).into())).collect(),
    }))
}

fn build_charts(
    days: &[Date],
    message_times: &MessageTimes,
    usage_report: &UsageReport,
    console: &ConsoleState,
) -> Vec<BarChart> {
    let count_per_day = |times: &mut dyn Iterator<Item = Timestamp>| {
        let mut counts: BTreeMap<Date, u64> = BTreeMap::new();
        for at in times {
            *counts.entry(at.to_zoned(console.zone()).date()).or_default() += 1;
        }
        counts
    };
    let received = count_per_day(&mut message_times.received.iter().copied());
    let sent = count_per_day(&mut message_times.sent.iter().map(|(at, _)| *at));
    let spent = |day: &Date| usage_report.days.get(&day.to_string()).copied().unwrap_or_default();
    let chart_days = |values: &dyn Fn(&Date) -> Vec<u64>| -> Vec<(String, Vec<u64>)> {
        days.iter().map(|day| (day.strftime("%b %-d").to_string(), values(day))).collect()
    };
    let count_on = |counts: &BTreeMap<Date, u64>, day: &Date| counts.get(day).copied().unwrap_or(0);
    let texts = chart_days(&|day| vec![count_on(&received, day), count_on(&sent, day)]);
    let tokens = chart_days(&|day| {
        let spent = spent(day);
        let cached = spent.tokens_cached.min(spent.tokens_in);
        vec![spent.tokens_in - cached, cached, spent.tokens_out]
    });
    let segments = chart_days(&|day| vec![spent(day).segments]);
    let chart = |title: &str, series: &[&str], days: &[(String, Vec<u64>)]| {
        BarChart::from_daily_series(&DailySeries { title, series, days })
    };
    vec![
        chart("Texts per day", &["Received", "Sent"], &texts),
        chart("Tokens per day", &["Input", "Cached input", "Output"], &tokens),
        chart("Segments per day", &["Segments"], &segments),
    ]
}
