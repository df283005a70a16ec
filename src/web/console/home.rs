//! Start page: items that need the operator, today's totals, and the latest messages.

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

/// Period for which failures are shown here.
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
    troubles: Vec<ProblemLine>,
    /// True if there are failed messages beyond those in the list of problems.
    more_failed: bool,
    figures: Vec<(&'static str, String)>,
    conversations: Vec<ConversationLine>,
}

struct NewcomerLine {
    id: i64,
    name: String,
    number: String,
}

struct RemovalRequestLine {
    id: i64,
    who: String,
    title: String,
    size: Option<String>,
}

/// Problem to check, for which there is no button.
struct ProblemLine {
    what: &'static str,
    who: Option<UserLink>,
    /// Text of the message or the name of the conversation.
    about: String,
    why: String,
    at: Option<DisplayTime>,
    path: String,
}

/// Conversation in a list.
pub(super) struct ConversationLine {
    pub(super) path: String,
    pub(super) name: String,
    pub(super) who: UserLink,
    pub(super) at: DisplayTime,
    /// Last message and its author.
    pub(super) last: Option<(&'static str, String)>,
    pub(super) state: (&'static str, &'static str),
}

impl HomePage {
    fn is_calm(&self) -> bool {
        self.paused_since.is_none()
            && self.newcomers.is_empty()
            && self.removal_requests.is_empty()
            && self.troubles.is_empty()
    }
}

struct HomeSnapshot {
    needs: AttentionItems,
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
    let day = Day::from_timestamp(now, &console.zone);
    let read = console.db.read(move |conn| {
        let since = now - RECENT_PERIOD;
        let failed = deliveries::load_delivery_summaries(
            conn,
            DeliveryFilter::Failed,
            NEWEST,
            MAX_FAILED_MESSAGES + 1,
        )?;
        Ok(HomeSnapshot {
            needs: load_attention_items(conn, since, &day, now)?,
            failed: failed.rows.into_iter().filter(|text| text.message.written_at >= since).collect(),
            today: message_counts::load_message_times(conn, today)?,
            spent: usage::load_usage_report(conn, day.as_str())?
                .days
                .into_values()
                .fold(UsageTotals::default(), UsageTotals::combined_with),
            conversations: conversations::load_latest_conversations(conn, MAX_CONVERSATIONS)?,
        })
    });
    let HomeSnapshot { needs, failed, today, spent, conversations } = read.await?;
    let ill = console.health.check_readiness().await;
    let removal_requests = needs
        .removal_requests
        .iter()
        .filter_map(|(request, about)| RemovalRequestLine::from_approval(request, about));
    Ok(render_page(&HomePage {
        layout: PageLayout::new(&operator, ConsoleSection::Home, "Home").with_flash(query.flash),
        paused_since: needs.paused_since.map(|at| console.display_time(at)),
        newcomers: needs.newcomers.iter().map(NewcomerLine::from_user).collect(),
        removal_requests: removal_requests.collect(),
        troubles: health_problems(&ill).chain(list_problems(&needs, &failed, &console)).collect(),
        more_failed: failed.len() > MAX_FAILED_MESSAGES,
        figures: today_figures(&today, spent),
        conversations: conversations
            .iter()
            .map(|conversation| ConversationLine::from_summary(conversation, &console))
            .collect(),
    }))
}

/// Returns the problems that `/ready` finds.
fn health_problems(report: &HealthReport) -> impl Iterator<Item = ProblemLine> {
    let trouble = |check: &HealthCheckResult| ProblemLine {
        what: "Not ready",
        who: None,
        about: check.name.to_owned(),
        why: check.detail.clone(),
        at: None,
        path: "/health-checks".to_owned(),
    };
    report.checks.iter().filter(|check| !check.ok).map(trouble)
}

fn start_of_day(now: Timestamp, console: &ConsoleState) -> Timestamp {
    now.to_zoned(console.zone.clone()).start_of_day().map_or(now, |day| day.timestamp())
}

fn today_figures(today: &MessageTimes, spent: UsageTotals) -> Vec<(&'static str, String)> {
    let number = |of: usize| format_count(u64::try_from(of).unwrap_or(u64::MAX));
    let mut figures = vec![
        ("Texts in", number(today.received.len())),
        ("Texts out", number(today.sent.len())),
        ("Segments", format_count(spent.segments)),
        ("Tokens", format_count(spent.tokens_in.saturating_add(spent.tokens_out))),
    ];
    if spent.cost > 0 {
        figures.push(("Cost", format_cost(spent.cost)));
    }
    figures
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
    fn from_approval(request: &Approval, about: &User) -> Option<Self> {
        let ApprovalKind::Delete(item) = &request.kind else { return None };
        Some(Self {
            id: request.id,
            who: display_name(about),
            title: deletion_messages::format_target_name(item),
            size: (item.fingerprint.size_bytes > 0)
                .then(|| message_format::format_size(item.fingerprint.size_bytes)),
        })
    }
}

fn list_problems(
    needs: &AttentionItems,
    failed: &[DeliverySummary],
    console: &ConsoleState,
) -> Vec<ProblemLine> {
    let unknown = needs.unresolved.iter().map(|unknown| ProblemLine::from_unknown(unknown, console));
    let failed = failed.iter().take(MAX_FAILED_MESSAGES).map(|text| ProblemLine {
        what: "A text did not arrive",
        who: Some(UserLink::from(&text.to)),
        about: text.message.body.clone(),
        why: delivery_labels::delivery_reason(text.message.status(), &text.failure).unwrap_or_default(),
        at: Some(console.display_time(text.message.written_at)),
        path: "/deliveries?which=failed".to_owned(),
    });
    let broken = needs.failed_turns.iter().map(|turn| ProblemLine {
        what: "A reply failed",
        who: Some(UserLink::from(&turn.user)),
        about: turn.name.clone(),
        why: "the conversation shows where it ended".to_owned(),
        at: Some(console.display_time(turn.at)),
        path: format!("/conversations/{}", turn.conversation),
    });
    let silent = needs.opted_out_admins.iter().map(|admin| ProblemLine {
        what: "An admin has opted out",
        who: None,
        about: display_name(admin),
        why: "they hear of nothing until they text START".to_owned(),
        at: None,
        path: format!("/users/{}", admin.id),
    });
    let suspended = needs.suspended_users.iter().map(|user| ProblemLine {
        what: "Deletions by text suspended",
        who: None,
        about: display_name(user),
        why: "deletions and approvals by text are suspended until tomorrow; their page can allow them again"
            .to_owned(),
        at: None,
        path: format!("/users/{}", user.id),
    });
    suspended.chain(unknown).chain(failed).chain(broken).chain(silent).collect()
}

impl ProblemLine {
    fn from_unknown(unknown: &UnresolvedEffect, console: &ConsoleState) -> Self {
        let (what, about, elsewhere) = match &unknown.kind {
            UnresolvedEffectKind::Message => {
                ("Delivery status unknown", String::new(), "/deliveries?which=waiting")
            }
            UnresolvedEffectKind::Call(tool) => {
                ("It is not known whether a change was made", tool.replace('_', " "), "/conversations")
            }
        };
        let conversation = unknown.conversation.map(|id| format!("/conversations/{id}"));
        Self {
            what,
            who: None,
            about,
            why: "it is being looked into".to_owned(),
            at: Some(console.display_time(unknown.since)),
            path: conversation.unwrap_or_else(|| elsewhere.to_owned()),
        }
    }
}

impl ConversationLine {
    pub(super) fn from_summary(summary: &ConversationSummary, console: &ConsoleState) -> Self {
        let last = summary.last_message.as_ref().map(|last| match last {
            LastMessageText::FromUser(words) => ("", words.clone()),
            LastMessageText::FromAssistant(words) => ("Dialarr: ", words.clone()),
        });
        Self {
            path: format!("/conversations/{}", summary.conversation.id),
            name: summary.conversation.name.clone(),
            who: UserLink::from(&summary.user),
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

fn decision_flash(word: DecisionOutcome, done: FlashMessage) -> FlashMessage {
    match word {
        DecisionOutcome::Decided => done,
        DecisionOutcome::TooLate => FlashMessage::TooLate,
        DecisionOutcome::NoAdmin => FlashMessage::NoAdmin,
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
