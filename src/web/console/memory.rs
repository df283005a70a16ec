//! Memory page: stored answers, a recall preview for a user, and retention periods.

use askama::Template;
use axum::extract::State;
use jiff::Timestamp;
use serde::Deserialize;

use super::flash::{self, FlashMessage};
use super::format::{display_name, format_count};
use super::layout::{ConsoleSection, DisplayTime, PageLayout, render_page};
use super::responses::{PageId, PageParams, PageResult, redirect_with_flash};
use crate::conversation::memory::recall::{RankedAnswer, RecalledAnswers};
use crate::conversation::transcript::UserId;
use crate::engine::operator::answers::SharingDecision;
use crate::store::audit::Actor;
use crate::store::memory::search::RecallRange;
use crate::store::memory::shared_answers::{self, ReviewOutcome, SharedAnswer};
use crate::store::memory::stats::{StoredAnswerStats, load_answer_stats};
use crate::store::people::users;
use crate::store::{Conn, QueryResult};
use crate::web::auth::{Operator, SignedForm};
use crate::web::console_state::ConsoleState;

/// Maximum number of suggested answers, and of shared ones, that are listed.
const MAX_LISTED_ANSWERS: usize = 25;
/// Maximum number of users that can be chosen for the preview.
const MAX_LISTED_USERS: i64 = 100;

#[derive(Debug, Clone, Default, Deserialize)]
pub(in crate::web) struct MemoryQuery {
    #[serde(default, deserialize_with = "flash::deserialize_code")]
    flash: Option<FlashMessage>,
    /// User whose memory is shown.
    user: Option<i64>,
    #[serde(default)]
    query: String,
}

#[derive(Deserialize)]
pub(in crate::web) struct MemoryButtonForm {}

#[derive(Template)]
#[template(path = "memory.html")]
struct MemoryPage {
    layout: PageLayout,
    totals: Vec<(&'static str, String)>,
    /// Names of categories with their counts.
    categories: Vec<(&'static str, Vec<(String, String)>)>,
    last_indexed_at: Option<DisplayTime>,
    waiting: i64,
    suggestions: Vec<AnswerLine>,
    /// True if there are suggestions beyond those listed.
    has_more_suggestions: bool,
    /// Answers that every user may find.
    shared: Vec<AnswerLine>,
    /// True if there are shared answers beyond those listed.
    has_more_shared: bool,
    users: Vec<(i64, String, bool)>,
    query: String,
    recalled: Option<Vec<RecallGroup>>,
    retention: String,
}

/// Entries under one heading.
struct RecallGroup {
    name: &'static str,
    lines: Vec<AnswerLine>,
}

struct AnswerLine {
    id: i64,
    question: String,
    answer: String,
    answered_at: DisplayTime,
}

pub(in crate::web) async fn show_memory(
    State(console): State<ConsoleState>,
    operator: Operator,
    PageParams(query): PageParams<MemoryQuery>,
) -> PageResult {
    let now = console.clock.now();
    let load = |conn: &mut Conn| -> QueryResult<_> {
        let (suggested, shared) =
            (shared_answers::load_suggested_answers(conn)?, shared_answers::load_shared_answers(conn)?);
        Ok((load_answer_stats(conn)?, suggested, shared, users::load_active_users(conn, MAX_LISTED_USERS)?))
    };
    let (stats, suggested, shared, users) = console.db.read(load).await?;
    let recalled = match query.user.filter(|_| !query.query.trim().is_empty()) {
        Some(user) => Some(
            console.engine.recall.recall_answers(UserId(user), &query.query, RecallRange::default()).await?,
        ),
        None => None,
    };
    let when = |at: Timestamp| DisplayTime::from_timestamp(at, now, &console.zone());
    let days = console.engine.settings().retention.as_hours() / 24;
    Ok(render_page(&MemoryPage {
        layout: PageLayout::new(&operator, ConsoleSection::Memory, "Memory").with_flash(query.flash),
        totals: memory_totals(&stats),
        categories: category_counts(&stats),
        last_indexed_at: stats.last_indexed_at.map(when),
        waiting: stats.by_state.get("pending").copied().unwrap_or(0),
        has_more_suggestions: suggested.len() > MAX_LISTED_ANSWERS,
        has_more_shared: shared.len() > MAX_LISTED_ANSWERS,
        suggestions: suggested
            .into_iter()
            .take(MAX_LISTED_ANSWERS)
            .map(|row| answer_line(row, &when))
            .collect(),
        shared: shared.into_iter().take(MAX_LISTED_ANSWERS).map(|row| answer_line(row, &when)).collect(),
        users: users
            .iter()
            .map(|user| (user.id.0, display_name(user), Some(user.id.0) == query.user))
            .collect(),
        recalled: recalled.map(|answers| recall_groups(&answers, &when)),
        query: query.query,
        retention: if days == 1 { "a day".to_owned() } else { format!("{days} days") },
    }))
}

fn format_signed_count(number: i64) -> String {
    format_count(number.unsigned_abs())
}

fn memory_totals(stats: &StoredAnswerStats) -> Vec<(&'static str, String)> {
    let findable: i64 = stats.by_scope.values().sum();
    let count_in = |state: &str| stats.by_state.get(state).copied().unwrap_or(0);
    vec![
        ("Answers it remembers", format_signed_count(findable)),
        ("New answers", format_signed_count(count_in("pending"))),
        ("Could not be remembered yet", format_signed_count(stats.failing)),
        ("Facts about people", format_signed_count(stats.facts)),
    ]
}

fn category_counts(stats: &StoredAnswerStats) -> Vec<(&'static str, Vec<(String, String)>)> {
    let list = |counts: &std::collections::BTreeMap<String, i64>, name: fn(&str) -> String| {
        counts.iter().map(|(key, count)| (name(key), format_signed_count(*count))).collect::<Vec<_>>()
    };
    let size = format!("{:.1} MB", stats.vector_bytes as f64 / 1e6);
    let categories = vec![
        ("Who can find them", list(&stats.by_scope, scope_name)),
        ("Kinds", list(&stats.by_type, capitalize_first)),
        ("Vector model", list(&stats.by_model, model_name)),
        ("States", list(&stats.by_state, state_name)),
        ("Size", vec![("Vectors".to_owned(), size)]),
    ];
    categories.into_iter().filter(|(_, list)| !list.is_empty()).collect()
}

fn scope_name(scope: &str) -> String {
    match scope {
        "user" => "Recipient",
        "group" => "All recipients of the message",
        "global" => "Everyone",
        other => other,
    }
    .to_owned()
}

fn state_name(state: &str) -> String {
    match state {
        "pending" => "Waiting",
        "done" => "Can be found",
        "skipped" => "Greetings, not remembered",
        "repeated" => "Repeated later",
        "erased" => "Erased",
        other => other,
    }
    .to_owned()
}

fn model_name(model: &str) -> String {
    if model.is_empty() { "No vectors yet: full-text search only".to_owned() } else { model.to_owned() }
}

fn capitalize_first(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

fn answer_line(row: SharedAnswer, when: &impl Fn(Timestamp) -> DisplayTime) -> AnswerLine {
    AnswerLine { id: row.id, question: row.question, answer: row.answer, answered_at: when(row.answered_at) }
}

fn recall_groups(recalled: &RecalledAnswers, when: &impl Fn(Timestamp) -> DisplayTime) -> Vec<RecallGroup> {
    let lines = |answers: &[RankedAnswer]| {
        let line = |ranked: &RankedAnswer| AnswerLine {
            id: ranked.candidate.id,
            question: ranked.candidate.question.clone(),
            answer: ranked.candidate.answer.clone(),
            answered_at: when(ranked.candidate.answered_at),
        };
        answers.iter().map(line).collect::<Vec<_>>()
    };
    let groups = [
        RecallGroup { name: "Similar questions", lines: lines(&recalled.similar_questions) },
        RecallGroup { name: "Answers to this user", lines: lines(&recalled.user_answers) },
        RecallGroup { name: "Messages to several users", lines: lines(&recalled.group_answers) },
    ];
    groups.into_iter().filter(|group| !group.lines.is_empty()).collect()
}

/// Indexes all waiting answers.
pub(in crate::web) async fn index_waiting_answers(
    State(console): State<ConsoleState>,
    SignedForm(MemoryButtonForm {}): SignedForm<MemoryButtonForm>,
) -> PageResult {
    console.engine.indexer.index_for_caller().await?;
    Ok(redirect_with_flash("/memory", FlashMessage::AnswersIndexed))
}

pub(in crate::web) async fn share_answer(
    State(console): State<ConsoleState>,
    PageId(id): PageId,
    SignedForm(MemoryButtonForm {}): SignedForm<MemoryButtonForm>,
) -> PageResult {
    decide_suggestion(&console, id, SharingDecision::Share).await
}

pub(in crate::web) async fn keep_answer_private(
    State(console): State<ConsoleState>,
    PageId(id): PageId,
    SignedForm(MemoryButtonForm {}): SignedForm<MemoryButtonForm>,
) -> PageResult {
    decide_suggestion(&console, id, SharingDecision::KeepPrivate).await
}

pub(in crate::web) async fn forget_answer(
    State(console): State<ConsoleState>,
    PageId(id): PageId,
    SignedForm(MemoryButtonForm {}): SignedForm<MemoryButtonForm>,
) -> PageResult {
    let flash = match console.engine.answer_actions.forget_answer(id, Actor::Console).await? {
        ReviewOutcome::Applied => FlashMessage::AnswerForgotten,
        ReviewOutcome::TooLate => FlashMessage::AlreadyDecided,
    };
    Ok(redirect_with_flash("/memory", flash))
}

async fn decide_suggestion(console: &ConsoleState, id: i64, decision: SharingDecision) -> PageResult {
    let flash =
        match (console.engine.answer_actions.decide_sharing(id, decision, Actor::Console).await?, decision) {
            (ReviewOutcome::TooLate, _) => FlashMessage::AlreadyDecided,
            (ReviewOutcome::Applied, SharingDecision::Share) => FlashMessage::AnswerShared,
            (ReviewOutcome::Applied, SharingDecision::KeepPrivate) => FlashMessage::AnswerKeptPrivate,
        };
    Ok(redirect_with_flash("/memory", flash))
}
