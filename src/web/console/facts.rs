//! Facts about a user, on their page: each fact and suggestion with its buttons, and a form to add one.

use axum::extract::State;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::json;

use super::answers::{Failure, Id, Shown, back};
use super::frame::When;
use super::said::Said;
use crate::conversation::facts::{Fact, FactKind, Facts, Known};
use crate::conversation::transcript::UserId;
use crate::store::audit::{self, By, Entry, Subject};
use crate::store::memory::facts::{self, Noting, Source, Suggestion, Which};
use crate::store::{Conn, QueryResult, roster};
use crate::web::auth::SignedForm;
use crate::web::console_state::ConsoleState;

/// Fact as its row on the page shows it.
pub(super) struct FactLine {
    pub(super) number: u32,
    pub(super) told: String,
    pub(super) since: When,
    /// Stamp by which a button verifies that the number is still that of the fact next to it.
    pub(super) stamp: i64,
}

pub(super) struct SuggestionLine {
    pub(super) id: i64,
    pub(super) told: String,
    pub(super) at: When,
}

pub(super) fn lines(facts: &Facts, console: &ConsoleState) -> Vec<FactLine> {
    let line = |known: &Known| FactLine {
        number: known.number,
        told: known.fact.told(),
        since: console.when(known.since),
        stamp: known.since.as_millisecond(),
    };
    facts.0.iter().map(line).collect()
}

pub(super) fn suggested(suggestions: &[Suggestion], console: &ConsoleState) -> Vec<SuggestionLine> {
    let line =
        |one: &Suggestion| SuggestionLine { id: one.id, told: one.fact.told(), at: console.when(one.at) };
    suggestions.iter().map(line).collect()
}

#[derive(Debug, Clone, Deserialize)]
pub(in crate::web) struct Typed {
    kind: String,
    about: String,
    value: String,
}

#[derive(Debug, Clone, Copy, Deserialize)]
pub(in crate::web) struct Shows {
    number: u32,
    stamp: i64,
}

#[derive(Debug, Clone, Copy, Deserialize)]
pub(in crate::web) struct Suggested {
    suggestion: i64,
}

pub(in crate::web) async fn note(
    State(console): State<ConsoleState>,
    Id(id): Id,
    SignedForm(typed): SignedForm<Typed>,
) -> Shown {
    let kind = FactKind::read(&typed.kind);
    let Some(Ok(fact)) = kind.map(|kind| Fact::new(kind, Some(&typed.about), &typed.value)) else {
        return Ok(back(&path(id), Said::NoFact));
    };
    change(&console, id, move |conn, user, now| {
        Ok(match facts::note(conn, user, &fact, Source::Operator, now)? {
            Noting::Noted(number) => {
                record(conn, user, ("note_fact", Some(number)), now)?;
                Said::FactNoted
            }
            Noting::Known(_) => Said::Unchanged,
            Noting::Full => Said::TooManyFacts,
        })
    })
    .await
}

pub(in crate::web) async fn forget(
    State(console): State<ConsoleState>,
    Id(id): Id,
    SignedForm(shown): SignedForm<Shows>,
) -> Shown {
    change(&console, id, move |conn, user, now| {
        let facts = facts::known(conn, user)?;
        let still = facts.numbered(shown.number).filter(|known| known.since.as_millisecond() == shown.stamp);
        if still.is_none() {
            return Ok(Said::NoSuchFact);
        }
        facts::forget(conn, user, Which::Number(shown.number), now)?;
        record(conn, user, ("forget_fact", Some(shown.number)), now)?;
        Ok(Said::FactForgotten)
    })
    .await
}

pub(in crate::web) async fn keep(
    State(console): State<ConsoleState>,
    Id(id): Id,
    SignedForm(Suggested { suggestion }): SignedForm<Suggested>,
) -> Shown {
    change(&console, id, move |conn, user, now| {
        Ok(match facts::accept(conn, user, suggestion, now)? {
            None => Said::NoSuchFact,
            Some((_, Noting::Full)) => Said::TooManyFacts,
            Some((_, Noting::Noted(number) | Noting::Known(number))) => {
                record(conn, user, ("note_fact", Some(number)), now)?;
                Said::FactNoted
            }
        })
    })
    .await
}

pub(in crate::web) async fn dismiss(
    State(console): State<ConsoleState>,
    Id(id): Id,
    SignedForm(Suggested { suggestion }): SignedForm<Suggested>,
) -> Shown {
    change(&console, id, move |conn, user, now| {
        if !facts::dismiss(conn, user, suggestion, now)? {
            return Ok(Said::NoSuchFact);
        }
        record(conn, user, ("dismiss_fact", None), now)?;
        Ok(Said::Dismissed)
    })
    .await
}

/// Changes the facts about an existing user, and returns to their page.
async fn change(
    console: &ConsoleState,
    id: i64,
    work: impl FnOnce(&mut Conn, UserId, Timestamp) -> QueryResult<Said> + Send + 'static,
) -> Shown {
    let (user, now) = (UserId(id), console.clock.now());
    let said = console.db.write(move |conn| match roster::known(conn, user)? {
        Some(_) => work(conn, user, now).map(Some),
        None => Ok(None),
    });
    match said.await? {
        Some(said) => Ok(back(&path(id), said)),
        None => Err(Failure::Missing),
    }
}

fn path(id: i64) -> String {
    format!("/users/{id}")
}

/// Records a change of a fact. The text of a fact belongs to its user, so the record has only its number.
fn record(
    conn: &mut Conn,
    user: UserId,
    (kind, number): (&'static str, Option<u32>),
    now: Timestamp,
) -> QueryResult<()> {
    let detail = number.map_or_else(|| json!({}), |number| json!({ "number": number }));
    audit::record(conn, &Entry { by: By::Console, kind, subject: Subject::User(user), detail }, now)
}
