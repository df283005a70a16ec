//! Home page: items that need attention, today's totals, and the latest conversations.

use askama::Template;
use axum::extract::State;
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;

use super::delivery_labels;
use super::flash::{self, FlashMessage};
use super::format::{UserLink, display_name, format_cost, format_count};
use super::layout::{ConsoleSection, DisplayTime, PageLayout, render_page};
use super::responses::{PageId, PageParams, PageResult, redirect_with_flash};
use crate::conversation::deletion::deletion_messages;
use crate::conversation::text::message_format;
use crate::conversation::transcript::User;
use crate::engine::operator::decisions::DecisionOutcome;
use crate::store::confirmation::approvals::{Approval, ApprovalKind};
use crate::store::console::attention::{
    AttentionItems, UnresolvedEffect, UnresolvedEffectKind, load_attention_items,
};
use crate::store::console::conversations::{self, ConversationState, ConversationSummary, LastMessageText};
use crate::store::console::deliveries::{DeliveryFilter, DeliverySummary};
use crate::store::console::message_counts::{self, MessageTimes};
use crate::store::console::usage::{self, UsageTotals};
use crate::store::console::{NEWEST, deliveries};
use crate::store::people::pauses::PauseOutcome;
use crate::store::turns::daily_budget::Day;
use crate::web::auth::{Operator, SignedForm};
use crate::web::console_state::ConsoleState;
use crate::web::health::{HealthCheckResult, HealthReport};

/// Period for which failures are listed.
const RECENT_PERIOD: SignedDuration = SignedDuration::from_hours(72);
const MAX_CONVERSATIONS: usize = 15;
const MAX_FAILED_MESSAGES: usize = 3;

#[derive(Debug, Clone, Copy, Deserialize)]
pub(in crate::web) struct HomeQuery {
    #[serde(default, deserialize_with = "flash::deserialize_code")]
    flash: Option<FlashMessage>,
}

#[derive(Template)]
#[template(path = "home.html")]
struct HomePage {
    layout: PageLayout,
    paused_since: Option<DisplayTime>,
    newcomers: Vec<NewcomerLine>,
    removal_requests: Vec<RemovalRequestLine>,
    problems: Vec<ProblemLine>,
    /// True if there are failed messages beyond those in the list of problems.
    more_failed: bool,
    totals: Vec<(&'static str, String)>,
    conversations: Vec<ConversationLine>,
}

struct NewcomerLine {
    id: i64,
    name: String,
    number: String,
}

struct RemovalRequestLine {
    id: i64,
    requester: String,
    title: String,
    size: Option<String>,
}

/// Problem for the operator to check, without a button.
struct ProblemLine {
    headline: &'static str,
    user: Option<UserLink>,
    /// Text of the message or the name of the conversation.
    about: String,
    reason: String,
    at: Option<DisplayTime>,
    path: String,
}

/// Conversation in a list.
pub(super) struct ConversationLine {
    pub(super) path: String,
    pub(super) name: String,
    pub(super) user: UserLink,
    pub(super) at: DisplayTime,
    /// Last message and its author.
    pub(super) last: Option<(&'static str, String)>,
    pub(super) state: (&'static str, &'static str),
}

impl HomePage {
    fn needs_no_attention(&self) -> bool {
        self.paused_since.is_none()
            && self.newcomers.is_empty()
            && self.removal_requests.is_empty()
            && self.problems.is_empty()
    }
}

struct HomeSnapshot {
    attention: AttentionItems,
    failed: Vec<DeliverySummary>,
    today: MessageTimes,
    spent: UsageTotals,
    conversations: Vec<ConversationSummary>,
}

pub(in crate::web) async fn show_home(
    State(console): State<ConsoleState>,
    operator: Operator,
    PageParams(query): PageParams<HomeQuery>,
) -> PageResult {
    let now = console.clock.now();
    let today = start_of_day(now, &console);
    let day = Day::from_timestamp(now, &console.zone());
    let load = console.db.read(move |conn| {
        let since = now - RECENT_PERIOD;
        let failed = deliveries::load_delivery_summaries(
            conn,
            DeliveryFilter::Failed,
            NEWEST,
            MAX_FAILED_MESSAGES + 1,
        )?;
        Ok(HomeSnapshot {
            attention: load_attention_items(conn, since, &day, now)?,
            failed: failed.rows.into_iter().filter(|delivery| delivery.message.written_at >= since).collect(),
            today: message_counts::load_message_times(conn, today)?,
            spent: usage::load_usage_report(conn, day.as_str())?
                .days
                .into_values()
                .fold(UsageTotals::default(), UsageTotals::combined_with),
            conversations: conversations::load_latest_conversations(conn, MAX_CONVERSATIONS)?,
        })
    });
    let HomeSnapshot { attention, failed, today, spent, conversations } = load.await?;
    let readiness = console.health.check_readiness().await;
    let removal_requests = attention
        .removal_requests
        .iter()
        .filter_map(|(request, user)| RemovalRequestLine::from_approval(request, user));
    Ok(render_page(&HomePage {
        layout: PageLayout::new(&operator, ConsoleSection::Home, "Home").with_flash(query.flash),
        paused_since: attention.paused_since.map(|at| console.display_time(at)),
        newcomers: attention.newcomers.iter().map(NewcomerLine::from_user).collect(),
        removal_requests: removal_requests.collect(),
        problems: health_problems(&readiness).chain(list_problems(&attention, &failed, &console)).collect(),
        more_failed: failed.len() > MAX_FAILED_MESSAGES,
        totals: today_totals(&today, spent),
        conversations: conversations
            .iter()
            .map(|conversation| ConversationLine::from_summary(conversation, &console))
            .collect(),
    }))
}

/// Returns the failed checks of `/ready` as problems.
fn health_problems(report: &HealthReport) -> impl Iterator<Item = ProblemLine> {
    let problem = |check: &HealthCheckResult| ProblemLine {
        headline: "Not ready",
        user: None,
        about: check.name.to_owned(),
        reason: check.detail.clone(),
        at: None,
        path: "/health-checks".to_owned(),
    };
    report.checks.iter().filter(|check| !check.ok).map(problem)
}

fn start_of_day(now: Timestamp, console: &ConsoleState) -> Timestamp {
    now.to_zoned(console.zone()).start_of_day().map_or(now, |day| day.timestamp())
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

impl NewcomerLine {
    fn from_user(user: &User) -> Self {
        Self {
            id: user.id.0,
            name: user.name.clone().unwrap_or_default(),
            number: user.phone.format_grouped(),
        }
    }
}

impl RemovalRequestLine {
    fn from_approval(request: &Approval, user: &User) -> Option<Self> {
        let ApprovalKind::Delete(item) = &request.kind else { return None };
        Some(Self {
            id: request.id,
            requester: display_name(user),
            title: deletion_messages::format_target_name(item),
            size: (item.fingerprint.size_bytes > 0)
                .then(|| message_format::format_size(item.fingerprint.size_bytes)),
        })
    }
}

fn list_problems(
    attention: &AttentionItems,
    failed: &[DeliverySummary],
    console: &ConsoleState,
) -> Vec<ProblemLine> {
    let unresolved = attention.unresolved.iter().map(|effect| ProblemLine::from_unresolved(effect, console));
    let failed = failed.iter().take(MAX_FAILED_MESSAGES).map(|delivery| ProblemLine {
        headline: "A text was not delivered",
        user: Some(UserLink::from(&delivery.to)),
        about: delivery.message.body.clone(),
        reason: delivery_labels::delivery_reason(&delivery.message).unwrap_or_default(),
        at: Some(console.display_time(delivery.message.written_at)),
        path: "/deliveries?which=failed".to_owned(),
    });
    let failed_turns = attention.failed_turns.iter().map(|turn| ProblemLine {
        headline: "A reply failed",
        user: Some(UserLink::from(&turn.user)),
        about: turn.name.clone(),
        reason: "the conversation shows where it ended".to_owned(),
        at: Some(console.display_time(turn.at)),
        path: format!("/conversations/{}", turn.conversation),
    });
    let opted_out = attention.opted_out_admins.iter().map(|admin| ProblemLine {
        headline: "An admin has opted out",
        user: None,
        about: display_name(admin),
        reason: "they get no texts until they text START".to_owned(),
        at: None,
        path: format!("/users/{}", admin.id),
    });
    let suspended = attention.suspended_users.iter().map(|user| ProblemLine {
        headline: "Deletions by text suspended",
        user: None,
        about: display_name(user),
        reason: "deletions and approvals by text are suspended until tomorrow; allow them again on the user's page"
            .to_owned(),
        at: None,
        path: format!("/users/{}", user.id),
    });
    suspended.chain(unresolved).chain(failed).chain(failed_turns).chain(opted_out).collect()
}

impl ProblemLine {
    fn from_unresolved(effect: &UnresolvedEffect, console: &ConsoleState) -> Self {
        let (headline, about, fallback_path) = match &effect.kind {
            UnresolvedEffectKind::Message => {
                ("Delivery status unknown", String::new(), "/deliveries?which=waiting")
            }
            UnresolvedEffectKind::Call(tool) => {
                ("Outcome of a change unknown", tool.replace('_', " "), "/conversations")
            }
        };
        let conversation = effect.conversation.map(|id| format!("/conversations/{id}"));
        Self {
            headline,
            user: None,
            about,
            reason: "Dialarr is checking it".to_owned(),
            at: Some(console.display_time(effect.since)),
            path: conversation.unwrap_or_else(|| fallback_path.to_owned()),
        }
    }
}

impl ConversationLine {
    pub(super) fn from_summary(summary: &ConversationSummary, console: &ConsoleState) -> Self {
        let last = summary.last_message.as_ref().map(|last| match last {
            LastMessageText::FromUser(text) => ("", text.clone()),
            LastMessageText::FromAssistant(text) => ("Dialarr: ", text.clone()),
        });
        Self {
            path: format!("/conversations/{}", summary.conversation.id),
            name: summary.conversation.name.clone(),
            user: UserLink::from(&summary.user),
            at: console.display_time(summary.conversation.last_activity_at),
            last,
            state: match summary.state {
                ConversationState::TurnRunning => ("live", "Working"),
                ConversationState::Open => ("open", "Open"),
                ConversationState::Ended => ("ended", "Ended"),
            },
        }
    }
}

/// Form with only a button.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(in crate::web) struct ButtonForm {}

pub(in crate::web) async fn approve_removal(
    State(console): State<ConsoleState>,
    id: PageId,
    SignedForm(ButtonForm {}): SignedForm<ButtonForm>,
) -> PageResult {
    Ok(redirect_with_flash(
        "/",
        decision_flash(
            console.engine.decisions.approve_removal_request(id.0).await?,
            FlashMessage::RemovalApproved,
        ),
    ))
}

pub(in crate::web) async fn deny_removal(
    State(console): State<ConsoleState>,
    id: PageId,
    SignedForm(ButtonForm {}): SignedForm<ButtonForm>,
) -> PageResult {
    Ok(redirect_with_flash(
        "/",
        decision_flash(
            console.engine.decisions.deny_removal_request(id.0).await?,
            FlashMessage::RemovalDenied,
        ),
    ))
}

fn decision_flash(outcome: DecisionOutcome, success: FlashMessage) -> FlashMessage {
    match outcome {
        DecisionOutcome::Decided => success,
        DecisionOutcome::TooLate => FlashMessage::AlreadyDecided,
        DecisionOutcome::NoAdmin => FlashMessage::NoActiveAdmin,
    }
}

pub(in crate::web) async fn resume_from_pause(
    State(console): State<ConsoleState>,
    SignedForm(ButtonForm {}): SignedForm<ButtonForm>,
) -> PageResult {
    Ok(match console.engine.decisions.resume_from_pause().await? {
        PauseOutcome::Changed => redirect_with_flash("/", FlashMessage::PauseEnded),
        PauseOutcome::Unchanged => redirect_with_flash("/", FlashMessage::NotPaused),
    })
}
