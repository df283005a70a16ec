//! Cost of the last thirty days, per day and per user.

use std::collections::BTreeMap;

use askama::Template;
use axum::extract::State;
use jiff::civil::Date;
use jiff::{Timestamp, ToSpan};

use super::answers::Shown;
use super::chart::{Bars, Days, Shares};
use super::fates;
use super::frame::{Frame, Place, page};
use super::words::{Named, cost, count};
use crate::store::console::figures::{self, Texts};
use crate::store::console::spending::{self, Spending, Spent};
use crate::web::auth::Operator;
use crate::web::console_state::ConsoleState;

const DAYS: i64 = 30;

#[derive(Template)]
#[template(path = "spend.html")]
struct Spend {
    frame: Frame,
    sums: Row,
    is_priced: bool,
    charts: Vec<Bars>,
    outcomes: Option<Shares>,
    people: Vec<(Named, Row)>,
    /// Days, newest first; days without cost are left out.
    days: Vec<(String, Row)>,
}

/// Costs, as text.
pub(super) struct Row {
    pub(super) calls: String,
    pub(super) tokens_in: String,
    pub(super) cached: String,
    pub(super) tokens_out: String,
    pub(super) segments: String,
    pub(super) cost: String,
}

impl From<Spent> for Row {
    fn from(spent: Spent) -> Self {
        Self {
            calls: count(spent.model_calls),
            tokens_in: count(spent.tokens_in),
            cached: count(spent.tokens_cached),
            tokens_out: count(spent.tokens_out),
            segments: count(spent.segments),
            cost: cost(spent.cost),
        }
    }
}

/// The day from which on thirty days with today are counted.
pub(super) fn first_day(now: Timestamp, console: &ConsoleState) -> Date {
    let today = now.to_zoned(console.zone.clone()).date();
    today.checked_sub((DAYS - 1).days()).unwrap_or(today)
}

pub(in crate::web) async fn show(State(console): State<ConsoleState>, operator: Operator) -> Shown {
    let now = console.clock.now();
    let first = first_day(now, &console);
    let from = first.to_zoned(console.zone.clone()).map_or(now, |day| day.timestamp());
    let day = first.to_string();
    let read = console.db.read(move |conn| Ok((figures::since(conn, from)?, spending::since(conn, &day)?)));
    let (texts, spending) = read.await?;
    let sums = spending.days.values().copied().fold(Spent::default(), Spent::plus);
    let days: Vec<Date> = first.series(1.day()).take(30).collect();
    let outcomes = fates::outcomes(texts.sent.iter().map(|(_, fate)| *fate));
    let has_outcomes = outcomes.iter().any(|(_, count)| *count > 0);
    Ok(page(&Spend {
        frame: Frame::new(&operator, Place::Spend, "Spend"),
        is_priced: sums.cost > 0,
        sums: sums.into(),
        charts: charts(&days, &texts, &spending, &console),
        outcomes: has_outcomes.then(|| Shares::of("What became of our texts", &outcomes)),
        people: spending.people.iter().map(|(who, spent)| (Named::from(who), (*spent).into())).collect(),
        days: spending.days.iter().rev().map(|(day, spent)| (day.clone(), (*spent).into())).collect(),
    }))
}

fn charts(days: &[Date], texts: &Texts, spending: &Spending, console: &ConsoleState) -> Vec<Bars> {
    let per_day = |times: &mut dyn Iterator<Item = Timestamp>| {
        let mut counts: BTreeMap<Date, u64> = BTreeMap::new();
        for at in times {
            *counts.entry(at.to_zoned(console.zone.clone()).date()).or_default() += 1;
        }
        counts
    };
    let received = per_day(&mut texts.received.iter().copied());
    let sent = per_day(&mut texts.sent.iter().map(|(at, _)| *at));
    let spent = |day: &Date| spending.days.get(&day.to_string()).copied().unwrap_or_default();
    let by_day = |of: &dyn Fn(&Date) -> Vec<u64>| -> Vec<(String, Vec<u64>)> {
        days.iter().map(|day| (day.strftime("%b %-d").to_string(), of(day))).collect()
    };
    let on = |counts: &BTreeMap<Date, u64>, day: &Date| counts.get(day).copied().unwrap_or(0);
    let texts = by_day(&|day| vec![on(&received, day), on(&sent, day)]);
    let tokens = by_day(&|day| {
        let spent = spent(day);
        let cached = spent.tokens_cached.min(spent.tokens_in);
        vec![spent.tokens_in - cached, cached, spent.tokens_out]
    });
    let segments = by_day(&|day| vec![spent(day).segments]);
    let chart =
        |title: &str, series: &[&str], days: &[(String, Vec<u64>)]| Bars::of(&Days { title, series, days });
    vec![
        chart("Texts per day", &["Received", "Sent"], &texts),
        chart("Tokens per day", &["Read", "Read from cache", "Written"], &tokens),
        chart("Segments per day", &["Segments"], &segments),
    ]
}
