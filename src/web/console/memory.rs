//! Stored memory of users' messages and replies: its contents, a recall preview for a user, and its retention period.

use askama::Template;
use axum::extract::State;
use jiff::Timestamp;
use serde::Deserialize;

use super::answers::{Asked, Id, Shown, back};
use super::frame::{Frame, Place, When, page};
use super::said::{self, Said};
use super::words::{called, count};
use crate::conversation::recall::{Found, Recalled};
use crate::conversation::transcript::UserId;
use crate::engine::learning::Verdict;
use crate::store::audit::By;
use crate::store::memory::everyone::{self, General, Settled};
use crate::store::memory::stats::{Stats, stats};
use crate::store::{Conn, QueryResult, roster};
use crate::web::auth::{Operator, SignedForm};
use crate::web::console_state::ConsoleState;

#[derive(Debug, Clone, Default, Deserialize)]
pub(in crate::web) struct Query {
    #[serde(default, deserialize_with = "said::known")]
    said: Option<Said>,
    /// User whose memory is shown.
    user: Option<i64>,
    #[serde(default)]
    query: String,
}

#[derive(Deserialize)]
pub(in crate::web) struct Nothing {}

#[derive(Template)]
#[template(path = "memory.html")]
struct Memory {
    frame: Frame,
    figures: Vec<(&'static str, String)>,
    /// Names of categories with their counts.
    sorts: Vec<(&'static str, Vec<(String, String)>)>,
    worked: Option<When>,
    waiting: i64,
    suggestions: Vec<Line>,
    /// Answers that every user may find.
    shared: Vec<Line>,
    people: Vec<(i64, String, bool)>,
    query: String,
    found: Option<Vec<Shelf>>,
    retention: String,
}

/// Entries under one heading.
struct Shelf {
    name: &'static str,
    lines: Vec<Line>,
}

struct Line {
    id: i64,
    question: String,
    answer: String,
    said: When,
}

pub(in crate::web) async fn show(
    State(console): State<ConsoleState>,
    operator: Operator,
    Asked(query): Asked<Query>,
) -> Shown {
    let now = console.clock.now();
    let read = |conn: &mut Conn| -> QueryResult<_> {
        let (suggested, shared) = (everyone::suggestions(conn)?, everyone::shared(conn)?);
        Ok((stats(conn)?, suggested, shared, roster::everyone(conn)?))
    };
    let (stats, suggested, shared, people) = console.db.read(read).await?;
    let found = match query.user.filter(|_| !query.query.trim().is_empty()) {
        Some(user) => Some(console.engine.recall(UserId(user), &query.query, None).await?),
        None => None,
    };
    let when = |at: Timestamp| When::of(at, now, &console.zone);
    let days = console.retention.as_hours() / 24;
    Ok(page(&Memory {
        frame: Frame::new(&operator, Place::Memory, "Memory").saying(query.said),
        figures: figures(&stats),
        sorts: sorts(&stats),
        worked: stats.last_worked_at.map(when),
        waiting: stats.by_state.get("pending").copied().unwrap_or(0),
        suggestions: suggested.into_iter().map(|row| line_of(row, &when)).collect(),
        shared: shared.into_iter().map(|row| line_of(row, &when)).collect(),
        people: people
            .iter()
            .map(|person| (person.user.id.0, called(&person.user), Some(person.user.id.0) == query.user))
            .collect(),
        found: found.map(|found| shelves(&found, &when)),
        query: query.query,
        retention: if days == 1 { "a day".to_owned() } else { format!("{days} days") },
    }))
}

fn number(number: i64) -> String {
    count(number.unsigned_abs())
}

fn figures(stats: &Stats) -> Vec<(&'static str, String)> {
    let findable: i64 = stats.by_scope.values().sum();
    let of = |state: &str| stats.by_state.get(state).copied().unwrap_or(0);
    vec![
        ("Answers that can be found", number(findable)),
        ("Waiting to be worked on", number(of("pending"))),
        ("Failed at their last try", number(stats.failing)),
        ("Facts about people", number(stats.facts)),
        ("Vectors", format!("{:.1} MB", stats.vector_bytes as f64 / 1e6)),
    ]
}

fn sorts(stats: &Stats) -> Vec<(&'static str, Vec<(String, String)>)> {
    let list = |counts: &std::collections::BTreeMap<String, i64>, name: fn(&str) -> String| {
        counts.iter().map(|(word, of)| (name(word), number(*of))).collect::<Vec<_>>()
    };
    let sorts = vec![
        ("Who can find them", list(&stats.by_scope, scope_name)),
        ("What they are", list(&stats.by_type, capital)),
        ("Vectors by", list(&stats.by_model, model_name)),
        ("What became of them", list(&stats.by_state, state_name)),
    ];
    sorts.into_iter().filter(|(_, list)| !list.is_empty()).collect()
}

fn scope_name(word: &str) -> String {
    match word {
        "user" => "Whoever was answered",
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
        "repeated" => "Said again later",
        "erased" => "Erased",
        other => other,
    }
    .to_owned()
}

fn model_name(word: &str) -> String {
    if word.is_empty() { "None yet: found by words".to_owned() } else { word.to_owned() }
}

fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

fn line_of(row: General, when: &impl Fn(Timestamp) -> When) -> Line {
    Line { id: row.id, question: row.question, answer: row.answer, said: when(row.said_at) }
}

fn shelves(found: &Recalled, when: &impl Fn(Timestamp) -> When) -> Vec<Shelf> {
    let lines = |found: &[Found]| {
        let line = |found: &Found| Line {
            id: found.row.id,
            question: found.row.question.clone(),
            answer: found.row.answer.clone(),
            said: when(found.row.said_at),
        };
        found.iter().map(line).collect::<Vec<_>>()
    };
    let shelves = [
        Shelf { name: "Similar questions", lines: lines(&found.similar_questions) },
        Shelf { name: "Said to them", lines: lines(&found.said_to_user) },
        Shelf { name: "Said to several", lines: lines(&found.said_in_group) },
    ];
    shelves.into_iter().filter(|shelf| !shelf.lines.is_empty()).collect()
}

/// Indexes everything that waits.
pub(in crate::web) async fn process(
    State(console): State<ConsoleState>,
    SignedForm(Nothing {}): SignedForm<Nothing>,
) -> Shown {
    console.engine.learn_for().await?;
    Ok(back("/memory", Said::Processed))
}

pub(in crate::web) async fn share(
    State(console): State<ConsoleState>,
    Id(id): Id,
    SignedForm(Nothing {}): SignedForm<Nothing>,
) -> Shown {
    settle(&console, id, Verdict::Share).await
}

pub(in crate::web) async fn keep(
    State(console): State<ConsoleState>,
    Id(id): Id,
    SignedForm(Nothing {}): SignedForm<Nothing>,
) -> Shown {
    settle(&console, id, Verdict::Keep).await
}

pub(in crate::web) async fn forget(
    State(console): State<ConsoleState>,
    Id(id): Id,
    SignedForm(Nothing {}): SignedForm<Nothing>,
) -> Shown {
    let said = match console.engine.forget_answer(id, By::Console).await? {
        Settled::Done => Said::AnswerForgotten,
        Settled::TooLate => Said::TooLate,
    };
    Ok(back("/memory", said))
}

async fn settle(console: &ConsoleState, id: i64, verdict: Verdict) -> Shown {
    let said = match (console.engine.settle_suggestion(id, verdict, By::Console).await?, verdict) {
        (Settled::TooLate, _) => Said::TooLate,
        (Settled::Done, Verdict::Share) => Said::Shared,
        (Settled::Done, Verdict::Keep) => Said::KeptPrivate,
    };
    Ok(back("/memory", said))
}
