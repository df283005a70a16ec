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

/// Row of a fact on the page.
pub(super) struct FactLine {
    pub(super) number: u32,
    pub(super) sentence: String,
    pub(super) since: DisplayTime,
    /// Time of the fact, which its button sends back to verify that the number still identifies the same fact.
    pub(super) stamp: i64,
}

pub(super) struct SuggestionLine {
    pub(super) id: i64,
    pub(super) sentence: String,
    pub(super) at: DisplayTime,
}

pub(super) fn fact_lines(facts: &UserFacts, console: &ConsoleState) -> Vec<FactLine> {
    let line = |stored: &StoredFact| FactLine {
        number: stored.number,
        sentence: stored.fact.to_sentence(),
        since: console.display_time(stored.since),
        stamp: stored.since.as_millisecond(),
    };
    facts.0.iter().map(line).collect()
}

pub(super) fn suggestion_lines(
    suggestions: &[FactSuggestion],
    console: &ConsoleState,
) -> Vec<SuggestionLine> {
    let line = |suggestion: &FactSuggestion| SuggestionLine {
        id: suggestion.id,
        sentence: suggestion.fact.to_sentence(),
        at: console.display_time(suggestion.suggested_at),
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
    SignedForm(form): SignedForm<FactForm>,
) -> PageResult {
    let kind = FactKind::parse(&form.kind);
    let Some(Ok(fact)) = kind.map(|kind| UserFact::new(kind, Some(&form.about), &form.value)) else {
        return Ok(redirect_with_flash(&user_path(id), FlashMessage::InvalidFact));
    };
    change_facts(&console, id, move |conn, user, now| {
        Ok(match facts::record_fact(conn, user, &fact, FactSource::Operator, now)? {
            FactOutcome::Recorded(number) => {
                record_audit(conn, user, ("note_fact", Some(number)), now)?;
                FlashMessage::FactSaved
            }
            FactOutcome::Known(_) => FlashMessage::NothingChanged,
            FactOutcome::Full => FlashMessage::TooManyFacts,
        })
    })
    .await
}

pub(in crate::web) async fn forget_fact(
    State(console): State<ConsoleState>,
    PageId(id): PageId,
    SignedForm(form): SignedForm<FactButtonForm>,
) -> PageResult {
    change_facts(&console, id, move |conn, user, now| {
        let facts = facts::load_facts(conn, user)?;
        let fact = facts.find_by_number(form.number).filter(|fact| fact.since.as_millisecond() == form.stamp);
        if fact.is_none() {
            return Ok(FlashMessage::NoSuchFact);
        }
        facts::forget_fact(conn, user, FactSelector::Number(form.number), now)?;
        record_audit(conn, user, ("forget_fact", Some(form.number)), now)?;
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
                FlashMessage::FactSaved
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
        Ok(FlashMessage::SuggestionDismissed)
    })
    .await
}

/// Changes the facts about an existing user, and redirects to their page.
async fn change_facts(
    console: &ConsoleState,
    id: i64,
    change: impl Fn(&mut Conn, UserId, Timestamp) -> QueryResult<FlashMessage> + Send + 'static,
) -> PageResult {
    let (user, now) = (UserId(id), console.clock.now());
    let flash = console.db.write(move |conn| match user_admin::find_known_user(conn, user)? {
        Some(_) => change(conn, user, now).map(Some),
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

/// Records a change of a fact. The audit entry has only the number of the fact, because its text is personal data.
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
