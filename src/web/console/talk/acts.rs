//! Operator's actions in conversations. Each form leads to a page that shows its outcome.

use axum::extract::State;
use axum::response::{IntoResponse, Redirect};
use serde::Deserialize;

use super::show;
use crate::conversation::transcript::{ConversationId, TurnId};
use crate::engine::console::{Answered, Reopened, Trial, Typed, Verdict};
use crate::engine::intervening::{Cancellation, Resumption};
use crate::store::audit::By;
use crate::store::db::DbError;
use crate::store::stream::snapshot;
use crate::store::turns;
use crate::web::auth::{Operator, SignedForm};
use crate::web::console::answers::{Failure, Id, Shown, back};
use crate::web::console::home::Press;
use crate::web::console::said::Said;
use crate::web::console_state::ConsoleState;

/// Longest message in characters, the same as over the API.
pub(super) const LONGEST: usize = 1600;
const LONGEST_KEY: usize = 64;

/// Returns the address of a conversation's newest messages, where the outcome of a form is shown.
fn tail(id: ConversationId) -> String {
    format!("/conversations/{id}#tail")
}

pub(in crate::web) async fn begin(State(console): State<ConsoleState>, _form: SignedForm<Press>) -> Shown {
    Ok(match console.engine.begin_trial().await? {
        Trial::Begun(id) => Redirect::to(&format!("/conversations/{id}#box")).into_response(),
        Trial::NoNumberFree => back("/conversations", Said::NoNumber),
    })
}

#[derive(Debug, Deserialize)]
pub(in crate::web) struct TypedText {
    text: String,
    key: String,
}

pub(in crate::web) async fn text(
    State(console): State<ConsoleState>,
    operator: Operator,
    Id(id): Id,
    SignedForm(form): SignedForm<TypedText>,
) -> Shown {
    let id = known(&console, id).await?;
    // A browser ends lines with two characters, a phone with one.
    let text = form.text.replace("\r\n", "\n");
    let text = text.trim();
    if text.is_empty() {
        return Ok(back(&tail(id), Said::NoWords));
    }
    if text.chars().count() > LONGEST {
        return show::returned(&console, &operator, id, (text.to_owned(), Said::TooLong)).await;
    }
    if form.key.len() > LONGEST_KEY {
        return Err(Failure::Missing);
    }
    Ok(match console.engine.type_in(id, text, &form.key).await? {
        Typed::Admitted => Redirect::to(&format!("/conversations/{id}#box")).into_response(),
        Typed::NotHere => back(&tail(id), Said::NotHere),
    })
}

pub(in crate::web) async fn reopen(
    State(console): State<ConsoleState>,
    Id(id): Id,
    _form: SignedForm<Press>,
) -> Shown {
    let id = known(&console, id).await?;
    let outcome = match console.engine.reopen(id, By::Console).await? {
        Reopened::Open => Said::Reopened,
        Reopened::WasOpen => Said::WasOpen,
        Reopened::Busy => Said::InAnother,
        Reopened::NotActive => Said::NotActive,
    };
    Ok(back(&tail(id), outcome))
}

#[derive(Debug, Deserialize)]
pub(in crate::web) struct Answer {
    question: i64,
    answer: YesOrNo,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum YesOrNo {
    Yes,
    No,
}

pub(in crate::web) async fn answer(
    State(console): State<ConsoleState>,
    Id(id): Id,
    SignedForm(form): SignedForm<Answer>,
) -> Shown {
    let id = known(&console, id).await?;
    let verdict = match form.answer {
        YesOrNo::Yes => Verdict::Approve,
        YesOrNo::No => Verdict::Reject,
    };
    let outcome = match console.engine.answer_question(form.question, verdict).await? {
        Answered::Taken => Said::Answered,
        Answered::Closed => Said::Closed,
        Answered::NotAskedYet => Said::NotAsked,
    };
    Ok(back(&tail(id), outcome))
}

pub(in crate::web) async fn cancel(
    State(console): State<ConsoleState>,
    Id(turn): Id,
    _form: SignedForm<Press>,
) -> Shown {
    let outcome = match console.engine.cancel_turn(TurnId(turn), By::Console).await? {
        Cancellation::Requested => Said::Ending,
        Cancellation::AlreadyOver => Said::Over,
        Cancellation::Unknown => return Err(Failure::Missing),
    };
    in_conversation_of(&console, TurnId(turn), outcome).await
}

pub(in crate::web) async fn resume(
    State(console): State<ConsoleState>,
    Id(turn): Id,
    _form: SignedForm<Press>,
) -> Shown {
    let outcome = match console.engine.resume_turn(TurnId(turn), By::Console).await? {
        Resumption::Resumed => Said::TurnResumed,
        Resumption::NotResumable(_) => Said::NotResumed,
        Resumption::Unknown => return Err(Failure::Missing),
    };
    in_conversation_of(&console, TurnId(turn), outcome).await
}

async fn in_conversation_of(console: &ConsoleState, turn: TurnId, outcome: Said) -> Shown {
    let id = console.db.read(move |conn| turns::conversation(conn, turn)).await?;
    Ok(back(&tail(id), outcome))
}

async fn known(console: &ConsoleState, id: i64) -> Result<ConversationId, Failure> {
    let id = ConversationId(id);
    let exists: Result<bool, DbError> = console.db.read(move |conn| snapshot::exists(conn, id)).await;
    if exists? { Ok(id) } else { Err(Failure::Missing) }
}
