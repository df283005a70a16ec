//! Facts about a user, on their page: each fact and suggestion with its buttons, and a form to add one.

use axum::extract::State;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::json;

use super::flash::FlashMessage;
use super::layout::DisplayTime;
use super::responses::{PageError, PageId, PageResult, redirect_with_flash};
use crate::conversation::people::facts::{FactKind, StoredFact, UserFact, UserFacts};
use crate::conversation::transcript::UserId;
use crate::store::audit::{self, Actor, AuditSubject, NewAuditEntry};
use crate::store::memory::facts::{self, FactOutcome, FactSelector, FactSource, FactSuggestion};
use crate::store::people::user_admin;
use crate::store::{Conn, QueryResult};
use crate::web::auth::SignedForm;
use crate::web::console_state::ConsoleState;

/// Fact as its row on the page shows it.
pub(super) struct FactLine {
    pub(super) number: u32,
    pub(super) sentence: String,
    pub(super) since: DisplayTime,
    /// Stamp by which a button verifies that the number is still that of the fact next to it.
    pub(super) stamp: i64,
}

pub(super) struct SuggestionLine {
    pub(super) id: i64,
    pub(super) sentence: String,
    pub(super) at: DisplayTime,
}

pub(super) fn fact_lines(facts: &UserFacts, console: &ConsoleState) -> Vec<FactLine> {
    let line = |known: &StoredFact| FactLine {
        number: known.number,
        sentence: known.fact.to_sentence(),
        since: console.display_time(known.since),
        stamp: known.since.as_millisecond(),
    };
    facts.0.iter().map(line).collect()
}

pub(super) fn suggestion_lines(
    suggestions: &[FactSuggestion],
    console: &ConsoleState,
) -> Vec<SuggestionLine> {
    let line = |one: &FactSuggestion| SuggestionLine {
        id: one.id,
        sentence: one.fact.to_sentence(),
        at: console.display_time(one.suggested_at),
    };
    suggestions.iter().map(line).collect()
}

#[derive(Debug, Clone, Deserialize)]
pub(in crate::web) struct FactForm {
    kind: String,
    about: String,
    value: String,
}

#[derive(Debug, Clone, Copy, Deserialize)]
pub(in crate::web) struct FactButtonForm {
    number: u32,
    stamp: i64,
}

#[derive(Debug, Clone, Copy, Deserialize)]
pub(in crate::web) struct SuggestionButtonForm {
    suggestion: i64,
}

pub(in crate::web) async fn add_fact(
    State(console): State<ConsoleState>,
    PageId(id): PageId,
    SignedForm(typed): SignedForm<FactForm>,
) -> PageResult {
    let kind = FactKind::parse(&typed.kind);
    let Some(Ok(fact)) = kind.map(|kind| UserFact::new(kind, Some(&typed.about), &typed.value)) else {
        return Ok(redirect_with_flash(&user_path(id), FlashMessage::NoFact));
    };
    change_facts(&console, id, move |conn, user, now| {
        Ok(match facts::record_fact(conn, user, &fact, FactSource::Operator, now)? {
            FactOutcome::Recorded(number) => {
                record_audit(conn, user, ("note_fact", Some(number)), now)?;
                FlashMessage::FactNoted
            }
            FactOutcome::Known(_) => FlashMessage::Unchanged,
            FactOutcome::Full => FlashMessage::TooManyFacts,
        })
    })
    .await
}

pub(in crate::web) async fn forget_fact(
    State(console): State<ConsoleState>,
    PageId(id): PageId,
    SignedForm(shown): SignedForm<FactButtonForm>,
) -> PageResult {
    change_facts(&console, id, move |conn, user, now| {
        let facts = facts::load_facts(conn, user)?;
        let still =
            facts.find_by_number(shown.number).filter(|known| known.since.as_millisecond() == shown.stamp);
        if still.is_none() {
            return Ok(FlashMessage::NoSuchFact);
        }
        facts::forget_fact(conn, user, FactSelector::Number(shown.number), now)?;
        record_audit(conn, user, ("forget_fact", Some(shown.number)), now)?;
        Ok(FlashMessage::FactForgotten)
    })
    .await
}

pub(in crate::web) async fn accept_suggestion(
    State(console): State<ConsoleState>,
    PageId(id): PageId,
    SignedForm(SuggestionButtonForm { suggestion }): SignedForm<SuggestionButtonForm>,
) -> PageResult {
    change_facts(&console, id, move |conn, user, now| {
        Ok(match facts::accept_suggestion(conn, user, suggestion, now)? {
            None => FlashMessage::NoSuchFact,
            Some((_, FactOutcome::Full)) => FlashMessage::TooManyFacts,
            Some((_, FactOutcome::Recorded(number) | FactOutcome::Known(number))) => {
                record_audit(conn, user, ("note_fact", Some(number)), now)?;
                FlashMessage::FactNoted
            }
        })
    })
    .await
}

pub(in crate::web) async fn dismiss_suggestion(
    State(console): State<ConsoleState>,
    PageId(id): PageId,
    SignedForm(SuggestionButtonForm { suggestion }): SignedForm<SuggestionButtonForm>,
) -> PageResult {
    change_facts(&console, id, move |conn, user, now| {
        if !facts::dismiss_suggestion(conn, user, suggestion, now)? {
            return Ok(FlashMessage::NoSuchFact);
        }
        record_audit(conn, user, ("dismiss_fact", None), now)?;
        Ok(FlashMessage::Dismissed)
    })
    .await
}

/// Changes the facts about an existing user, and returns to their page.
async fn change_facts(
    console: &ConsoleState,
    id: i64,
    work: impl FnOnce(&mut Conn, UserId, Timestamp) -> QueryResult<FlashMessage> + Send + 'static,
) -> PageResult {
    let (user, now) = (UserId(id), console.clock.now());
    let flash = console.db.write(move |conn| match user_admin::find_known_user(conn, user)? {
        Some(_) => work(conn, user, now).map(Some),
        None => Ok(None),
    });
    match flash.await? {
        Some(flash) => Ok(redirect_with_flash(&user_path(id), flash)),
        None => Err(PageError::NotFound),
    }
}

fn user_path(id: i64) -> String {
    format!("/users/{id}")
}

/// Records a change of a fact. The text of a fact belongs to its user, so the record has only its number.
fn record_audit(
    conn: &mut Conn,
    user: UserId,
    (kind, number): (&'static str, Option<u32>),
    now: Timestamp,
) -> QueryResult<()> {
    let detail = number.map_or_else(|| json!({}), |number| json!({ "number": number }));
    audit::record_change(
        conn,
        &NewAuditEntry { actor: Actor::Console, kind, subject: AuditSubject::User(user), detail },
        now,
    )
}
