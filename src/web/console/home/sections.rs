//! Sections of the home page, as HTML: the same for the page and for its live updates.

use std::hash::{DefaultHasher, Hash, Hasher};

use askama::Template;
use jiff::{SignedDuration, Timestamp};

use super::attention::AttentionView;
use super::connections::ConnectionsView;
use crate::store::console::attention::{AttentionItems, load_attention_items};
use crate::store::console::conversations::{self, ConversationSummary};
use crate::store::console::deliveries::{DeliveryFilter, DeliverySummary};
use crate::store::console::message_counts::{self, MessageTimes};
use crate::store::console::usage::{self, UsageTotals};
use crate::store::console::{NEWEST, deliveries};
use crate::store::database::db::DbError;
use crate::store::turns::daily_budget::Day;
use crate::store::{Conn, QueryResult};
use crate::web::console::conversation_line::ConversationLine;
use crate::web::console::format::{format_cost, format_count};
use crate::web::console_state::ConsoleState;

/// Period for which failures are listed.
const RECENT_PERIOD: SignedDuration = SignedDuration::from_hours(72);
const MAX_CONVERSATIONS: usize = 15;
pub(super) const MAX_FAILED_MESSAGES: usize = 3;

/// Sections in the order of the page. Each has one root element with an id.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct HomeSections(pub(super) [String; 4]);

/// Rows that the page shows.
struct HomeSnapshot {
    attention: AttentionItems,
    failed: Vec<DeliverySummary>,
    today: MessageTimes,
    spent: UsageTotals,
    conversations: Vec<ConversationSummary>,
}

#[derive(Template)]
#[template(path = "home_today.html")]
struct TodayView {
    totals: Vec<(&'static str, String)>,
}

#[derive(Template)]
#[template(path = "home_latest.html")]
struct LatestView<'a> {
    token: &'a str,
    conversations: Vec<ConversationLine>,
}

/// Error of loading or rendering the sections.
#[derive(Debug, thiserror::Error)]
pub(super) enum SectionsError {
    #[error(transparent)]
    Database(#[from] DbError),
    #[error("render the sections")]
    Template(#[from] askama::Error),
}

impl HomeSections {
    pub(super) async fn load(console: &ConsoleState, token: &str) -> Result<Self, SectionsError> {
        let now = console.clock.now();
        let today = now.to_zoned(console.zone()).start_of_day().map_or(now, |day| day.timestamp());
        let day = Day::from_timestamp(now, &console.zone());
        let load = move |conn: &mut Conn| HomeSnapshot::load(conn, &day, today, now);
        let snapshot = console.db.read(load).await?;
        let readiness = console.health.check_readiness().await;
        let HomeSnapshot { attention, failed, today, spent, conversations } = snapshot;
        let lines =
            conversations.iter().map(|conversation| ConversationLine::from_summary(conversation, console));
        let latest = LatestView { token, conversations: lines.collect() };
        Ok(Self([
            AttentionView::build(console, token, (&attention, &failed), &readiness).render()?,
            ConnectionsView::build(console).render()?,
            TodayView { totals: today_totals(&today, spent) }.render()?,
            latest.render()?,
        ]))
    }

    /// Returns a number that differs if the sections differ.
    pub(super) fn version(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        hasher.finish()
    }
}

impl HomeSnapshot {
    fn load(conn: &mut Conn, day: &Day, today: Timestamp, now: Timestamp) -> QueryResult<Self> {
        let since = now - RECENT_PERIOD;
        let limit = MAX_FAILED_MESSAGES + 1;
        let failed = deliveries::load_delivery_summaries(conn, DeliveryFilter::Failed, NEWEST, limit)?;
        Ok(Self {
            attention: load_attention_items(conn, since, day, now)?,
            failed: failed.rows.into_iter().filter(|delivery| delivery.message.written_at >= since).collect(),
            today: message_counts::load_message_times(conn, today)?,
            spent: usage::load_usage_report(conn, day.as_str())?
                .days
                .into_values()
                .fold(UsageTotals::default(), UsageTotals::combined_with),
            conversations: conversations::load_latest_conversations(conn, MAX_CONVERSATIONS)?,
        })
    }
}

fn today_totals(today: &MessageTimes, spent: UsageTotals) -> Vec<(&'static str, String)> {
    let format_len = |count: usize| format_count(u64::try_from(count).unwrap_or(u64::MAX));
    let mut totals = vec![
        ("Texts in", format_len(today.received.len())),
        ("Texts out", format_len(today.sent.len())),
        ("Segments", format_count(spent.segments)),
        ("Tokens", format_count(spent.tokens_in.saturating_add(spent.tokens_out))),
    ];
    if spent.cost > 0 {
        totals.push(("Cost", format_cost(spent.cost)));
    }
    totals
}
