//! Stored memory of users' messages and replies: its contents, a recall preview for a user, and its retention period.

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
use crate::store::memory::shared_answers::{self, ReviewOutcome, SharedAnswer};
use crate::store::memory::stats::{StoredAnswerStats, load_answer_stats};
use crate::store::people::user_admin;
use crate::store::{Conn, QueryResult};
use crate::web::auth::{Operator, SignedForm};
use crate::web::console_state::ConsoleState;

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
    figures: Vec<(&'static str, String)>,
    /// Names of categories with their counts.
    sorts: Vec<(&'static str, Vec<(String, String)>)>,
    worked: Option<DisplayTime>,
    waiting: i64,
    suggestions: Vec<AnswerLine>,
    /// Answers that every user may find.
    shared: Vec<AnswerLine>,
    people: Vec<(i64, String, bool)>,
    query: String,
    found: Option<Vec<RecallGroup>>,
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
    let read = |conn: &mut Conn| -> QueryResult<_> {
        let (suggested, shared) =
            (shared_answers::load_suggested_answers(conn)?, shared_answers::load_shared_answers(conn)?);
        Ok((load_answer_stats(conn)?, suggested, shared, user_admin::load_user_accounts(conn)?))
    };
    let (stats, suggested, shared, people) = console.db.read(read).await?;
    let found = match query.user.filter(|_| !query.query.trim().is_empty()) {
        Some(user) => Some(console.engine.recall.recall_answers(UserId(user), &query.query, None).await?),
        None => None,
    };
    let when = |at: Timestamp| DisplayTime::from_timestamp(at, now, &console.zone);
    let days = console.retention.as_hours() / 24;
    Ok(render_page(&MemoryPage {
        layout: PageLayout::new(&operator, ConsoleSection::Memory, "Memory").with_flash(query.flash),
        figures: memory_figures(&stats),
        sorts: category_counts(&stats),
        worked: stats.last_indexed_at.map(when),
        waiting: stats.by_state.get("pending").copied().unwrap_or(0),
        suggestions: suggested.into_iter().map(|row| answer_line(row, &when)).collect(),
        shared: shared.into_iter().map(|row| answer_line(row, &when)).collect(),
        people: people
            .iter()
            .map(|person| {
                (person.user.id.0, display_name(&person.user), Some(person.user.id.0) == query.user)
            })
            .collect(),
        found: found.map(|found| recall_groups(&found, &when)),
        query: query.query,
        retention: if days == 1 { "a day".to_owned() } else { format!("{days} days") },
    }))
}

fn format_signed_count(number: i64) -> String {
    format_count(number.unsigned_abs())
}

fn memory_figures(stats: &StoredAnswerStats) -> Vec<(&'static str, String)> {
    let findable: i64 = stats.by_scope.values().sum();
    let of = |state: &str| stats.by_state.get(state).copied().unwrap_or(0);
    vec![
        ("Answers that can be found", format_signed_count(findable)),
        ("Waiting for indexing", format_signed_count(of("pending"))),
        ("Failed on the last try", format_signed_count(stats.failing)),
        ("Facts about users", format_signed_count(stats.facts)),
        ("Vectors", format!("{:.1} MB", stats.vector_bytes as f64 / 1e6)),
    ]
}

fn category_counts(stats: &StoredAnswerStats) -> Vec<(&'static str, Vec<(String, String)>)> {
    let list = |counts: &std::collections::BTreeMap<String, i64>, name: fn(&str) -> String| {
        counts.iter().map(|(word, of)| (name(word), format_signed_count(*of))).collect::<Vec<_>>()
    };
    let sorts = vec![
        ("Who can find them", list(&stats.by_scope, scope_name)),
        ("Kinds", list(&stats.by_type, capitalize_first)),
        ("Vectors by", list(&stats.by_model, model_name)),
        ("States", list(&stats.by_state, state_name)),
    ];
    sorts.into_iter().filter(|(_, list)| !list.is_empty()).collect()
}

fn scope_name(word: &str) -> String {
    match word {
        "user" => "Recipient",
        "group" => "Those who heard it together",
        "global" => "Everybody",
        other => other,
    }
    .to_owned()
}

fn state_name(word: &str) -> String {
    match word {
        "pending" => "Waiting",
        "done" => "Can be found",
        "skipped" => "Greetings, not kept to be found",
        "repeated" => "Repeated later",
        "erased" => "Erased",
        other => other,
    }
    .to_owned()
}

fn model_name(word: &str) -> String {
    if word.is_empty() { "None yet: found by words".to_owned() } else { word.to_owned() }
}

fn capitalize_first(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

fn answer_line(row: SharedAnswer, when: &impl Fn(Timestamp) -> DisplayTime) -> AnswerLine {
    AnswerLine { id: row.id, question: row.question, answer: row.answer, answered_at: when(row.answered_at) }
}

fn recall_groups(found: &RecalledAnswers, when: &impl Fn(Timestamp) -> DisplayTime) -> Vec<RecallGroup> {
    let lines = |found: &[RankedAnswer]| {
        let line = |found: &RankedAnswer| AnswerLine {
            id: found.candidate.id,
            question: found.candidate.question.clone(),
            answer: found.candidate.answer.clone(),
            answered_at: when(found.candidate.answered_at),
        };
        found.iter().map(line).collect::<Vec<_>>()
    };
    let groups = [
        RecallGroup { name: "Similar questions", lines: lines(&found.similar_questions) },
        RecallGroup { name: "Answers to this user", lines: lines(&found.user_answers) },
        RecallGroup { name: "Messages to several users", lines: lines(&found.group_answers) },
    ];
    groups.into_iter().filter(|group| !group.lines.is_empty()).collect()
}

/// Indexes everything that waits.
pub(in crate::web) async fn index_waiting_answers(
    State(console): State<ConsoleState>,
    SignedForm(MemoryButtonForm {}): SignedForm<MemoryButtonForm>,
) -> PageResult {
    console.engine.indexer.index_for_caller().await?;
    Ok(redirect_with_flash("/memory", FlashMessage::Processed))
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
    decide_suggestion(&console, id, SharingDecision::Keep).await
}

pub(in crate::web) async fn forget_answer(
    State(console): State<ConsoleState>,
    PageId(id): PageId,
    SignedForm(MemoryButtonForm {}): SignedForm<MemoryButtonForm>,
) -> PageResult {
    let flash = match console.engine.answer_actions.forget_answer(id, Actor::Console).await? {
        ReviewOutcome::Applied => FlashMessage::AnswerForgotten,
        ReviewOutcome::TooLate => FlashMessage::TooLate,
    };
    Ok(redirect_with_flash("/memory", flash))
}

async fn decide_suggestion(console: &ConsoleState, id: i64, verdict: SharingDecision) -> PageResult {
    let flash = match (
        console.engine.answer_actions.decide_suggestion(id, verdict, Actor::Console).await?,
        verdict,
    ) {
        (ReviewOutcome::TooLate, _) => FlashMessage::TooLate,
        (ReviewOutcome::Applied, SharingDecision::Share) => FlashMessage::Shared,
        (ReviewOutcome::Applied, SharingDecision::Keep) => FlashMessage::KeptPrivate,
    };
    Ok(redirect_with_flash("/memory", flash))
}
