//! Operator's actions in conversations. Each form leads to a page that shows its outcome.

use axum::extract::State;
use axum::response::{IntoResponse, Redirect};
use serde::Deserialize;

use super::page;
use crate::conversation::transcript::{ConversationId, TurnId};
use crate::engine::operator::conversations::{
    OperatorMessageOutcome, PromptAnswerOutcome, PromptDecision, ReopenOutcome, TestConversationOutcome,
};
use crate::engine::operator::turns::{CancelRequestOutcome, ResumeTurnOutcome};
use crate::store::audit::Actor;
use crate::store::conversation::record::conversations::conversation_exists;
use crate::store::database::db::DbError;
use crate::store::turns::turn_lifecycle;
use crate::web::auth::{Operator, SignedForm};
use crate::web::console::flash::FlashMessage;
use crate::web::console::home::ButtonForm;
use crate::web::console::responses::{PageError, PageId, PageResult, redirect_with_flash};
use crate::web::console_state::ConsoleState;

/// Longest message in characters, the same as over the API.
pub(super) const MAX_MESSAGE_CHARS: usize = 1600;
const MAX_KEY_CHARS: usize = 64;

/// Returns the address of a conversation's newest messages, where the outcome of a form is shown.
fn tail_path(id: ConversationId) -> String {
    format!("/conversations/{id}#tail")
}

pub(in crate::web) async fn begin_test_conversation(
    State(console): State<ConsoleState>,
    _form: SignedForm<ButtonForm>,
) -> PageResult {
    Ok(match console.engine.conversation_actions.start_test_conversation().await? {
        TestConversationOutcome::Started(id) => {
            Redirect::to(&format!("/conversations/{id}#box")).into_response()
        }
        TestConversationOutcome::NoFreeNumber => {
            redirect_with_flash("/conversations", FlashMessage::NoNumber)
        }
    })
}

#[derive(Debug, Deserialize)]
pub(in crate::web) struct MessageForm {
    text: String,
    key: String,
}

pub(in crate::web) async fn send_message(
    State(console): State<ConsoleState>,
    operator: Operator,
    PageId(id): PageId,
    SignedForm(form): SignedForm<MessageForm>,
) -> PageResult {
    let id = find_conversation(&console, id).await?;
    // A browser ends lines with two characters, a phone with one.
    let text = form.text.replace("\r\n", "\n");
    let text = text.trim();
    if text.is_empty() {
        return Ok(redirect_with_flash(&tail_path(id), FlashMessage::NoWords));
    }
    if text.chars().count() > MAX_MESSAGE_CHARS {
        return page::show_rejected_text(&console, &operator, id, (text.to_owned(), FlashMessage::TooLong))
            .await;
    }
    if form.key.len() > MAX_KEY_CHARS {
        return Err(PageError::NotFound);
    }
    Ok(match console.engine.conversation_actions.send_as_test_user(id, text, &form.key).await? {
        OperatorMessageOutcome::Admitted => Redirect::to(&format!("/conversations/{id}#box")).into_response(),
        OperatorMessageOutcome::NotOpen => redirect_with_flash(&tail_path(id), FlashMessage::NotHere),
    })
}

pub(in crate::web) async fn reopen_conversation(
    State(console): State<ConsoleState>,
    PageId(id): PageId,
    _form: SignedForm<ButtonForm>,
) -> PageResult {
    let id = find_conversation(&console, id).await?;
    let outcome = match console.engine.conversation_actions.reopen_conversation(id, Actor::Console).await? {
        ReopenOutcome::Reopened => FlashMessage::Reopened,
        ReopenOutcome::AlreadyOpen => FlashMessage::WasOpen,
        ReopenOutcome::Busy => FlashMessage::InAnother,
        ReopenOutcome::NotActive => FlashMessage::NotActive,
    };
    Ok(redirect_with_flash(&tail_path(id), outcome))
}

#[derive(Debug, Deserialize)]
pub(in crate::web) struct ConfirmationForm {
    question: i64,
    answer: YesOrNo,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum YesOrNo {
    Yes,
    No,
}

pub(in crate::web) async fn answer_prompt(
    State(console): State<ConsoleState>,
    PageId(id): PageId,
    SignedForm(form): SignedForm<ConfirmationForm>,
) -> PageResult {
    let id = find_conversation(&console, id).await?;
    let verdict = match form.answer {
        YesOrNo::Yes => PromptDecision::Approve,
        YesOrNo::No => PromptDecision::Reject,
    };
    let outcome = match console.engine.conversation_actions.answer_prompt(form.question, verdict).await? {
        PromptAnswerOutcome::Stored => FlashMessage::Answered,
        PromptAnswerOutcome::Closed => FlashMessage::Closed,
        PromptAnswerOutcome::NotSentYet => FlashMessage::NotAsked,
    };
    Ok(redirect_with_flash(&tail_path(id), outcome))
}

pub(in crate::web) async fn cancel_turn(
    State(console): State<ConsoleState>,
    PageId(turn): PageId,
    _form: SignedForm<ButtonForm>,
) -> PageResult {
    let outcome = match console.engine.turn_actions.cancel_turn(TurnId(turn), Actor::Console).await? {
        CancelRequestOutcome::Requested => FlashMessage::Ending,
        CancelRequestOutcome::AlreadyEnded => FlashMessage::Over,
        CancelRequestOutcome::Unknown => return Err(PageError::NotFound),
    };
    redirect_to_turn(&console, TurnId(turn), outcome).await
}

pub(in crate::web) async fn resume_turn(
    State(console): State<ConsoleState>,
    PageId(turn): PageId,
    _form: SignedForm<ButtonForm>,
) -> PageResult {
    let outcome = match console.engine.turn_actions.resume_turn(TurnId(turn), Actor::Console).await? {
        ResumeTurnOutcome::Resumed => FlashMessage::TurnResumed,
        ResumeTurnOutcome::NotResumable(_) => FlashMessage::NotResumed,
        ResumeTurnOutcome::Unknown => return Err(PageError::NotFound),
    };
    redirect_to_turn(&console, TurnId(turn), outcome).await
}

async fn redirect_to_turn(console: &ConsoleState, turn: TurnId, outcome: FlashMessage) -> PageResult {
    let id = console.db.read(move |conn| turn_lifecycle::load_conversation_id(conn, turn)).await?;
    Ok(redirect_with_flash(&tail_path(id), outcome))
}

async fn find_conversation(console: &ConsoleState, id: i64) -> Result<ConversationId, PageError> {
    let id = ConversationId(id);
    let exists: Result<bool, DbError> = console.db.read(move |conn| conversation_exists(conn, id)).await;
    if exists? { Ok(id) } else { Err(PageError::NotFound) }
}
