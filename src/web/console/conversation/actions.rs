//! Operator's actions in conversations. Each form redirects to a page that shows its outcome.

use axum::extract::State;
use axum::response::{IntoResponse, Redirect};
use serde::Deserialize;

use super::page;
use crate::conversation::transcript::{ConversationId, TurnId};
use crate::engine::operator::conversations::{
    OperatorMessageOutcome, OperatorText, OperatorTextOutcome, PromptAnswerOutcome, PromptDecision,
    ReopenOutcome, TestConversationOutcome,
};
use crate::engine::operator::turns::{CancelRequestOutcome, ResumeTurnOutcome};
use crate::store::audit::Actor;
use crate::store::conversation::record::conversations::conversation_exists;
use crate::store::database::db::DbError;
use crate::store::turns::turn_lifecycle;
use crate::web::auth::{Operator, SignedForm};
use crate::web::console::flash::FlashMessage;
use crate::web::console::home::actions::ButtonForm;
use crate::web::console::responses::{PageError, PageId, PageResult, redirect_with_flash};
use crate::web::console_state::ConsoleState;

/// Longest message in characters, as in the API.
pub(super) const MAX_MESSAGE_CHARS: usize = 1600;
const MAX_KEY_CHARS: usize = 64;

/// Returns the URL of a conversation's newest messages, where the outcome of a form is shown.
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
            redirect_with_flash("/conversations", FlashMessage::NoFreeTestNumber)
        }
    })
}

#[derive(Debug, Deserialize)]
pub(in crate::web) struct MessageForm {
    text: String,
    key: String,
    /// Kind of the text; test users have only one.
    #[serde(default, rename = "as")]
    kind: OperatorTextKind,
}

/// What the operator writes in a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum OperatorTextKind {
    /// Text of a test user.
    #[default]
    Test,
    /// Text to the user, from the household.
    Household,
    /// Text in the name of the user, which is answered in the console.
    User,
}

pub(in crate::web) async fn send_message(
    State(console): State<ConsoleState>,
    operator: Operator,
    PageId(id): PageId,
    SignedForm(form): SignedForm<MessageForm>,
) -> PageResult {
    let id = find_conversation(&console, id).await?;
    // Forms submit CRLF line breaks; SMS uses LF.
    let text = form.text.replace("\r\n", "\n");
    let text = text.trim();
    if text.is_empty() {
        return Ok(redirect_with_flash(&tail_path(id), FlashMessage::EmptyMessage));
    }
    if text.chars().count() > MAX_MESSAGE_CHARS {
        return page::show_rejected_text(
            &console,
            &operator,
            id,
            (text.to_owned(), FlashMessage::MessageTooLong),
        )
        .await;
    }
    if form.key.len() > MAX_KEY_CHARS {
        return Err(PageError::NotFound);
    }
    let actions = &console.engine.conversation_actions;
    let operator_text = || OperatorText { body: text.to_owned(), key: form.key.clone() };
    let (outcome, stored) = match form.kind {
        OperatorTextKind::Test => {
            return Ok(match actions.send_as_test_user(id, text, &form.key).await? {
                OperatorMessageOutcome::Admitted => {
                    Redirect::to(&format!("/conversations/{id}#box")).into_response()
                }
                OperatorMessageOutcome::NotOpen => {
                    redirect_with_flash(&tail_path(id), FlashMessage::ConversationEnded)
                }
            });
        }
        OperatorTextKind::Household => {
            (actions.write_to_user(id, operator_text()).await?, FlashMessage::TextQueued)
        }
        OperatorTextKind::User => {
            (actions.write_as_user(id, operator_text()).await?, FlashMessage::TextStored)
        }
    };
    let flash = match outcome {
        OperatorTextOutcome::Stored => stored,
        OperatorTextOutcome::Ended => FlashMessage::ConversationEnded,
        OperatorTextOutcome::NotReachable => FlashMessage::UserNotReachable,
    };
    Ok(redirect_with_flash(&tail_path(id), flash))
}

pub(in crate::web) async fn reopen_conversation(
    State(console): State<ConsoleState>,
    PageId(id): PageId,
    _form: SignedForm<ButtonForm>,
) -> PageResult {
    let id = find_conversation(&console, id).await?;
    let outcome = match console.engine.conversation_actions.reopen_conversation(id, Actor::Console).await? {
        ReopenOutcome::Reopened => FlashMessage::ConversationReopened,
        ReopenOutcome::AlreadyOpen => FlashMessage::AlreadyOpen,
        ReopenOutcome::Busy => FlashMessage::OtherConversationBusy,
        ReopenOutcome::NotActive | ReopenOutcome::OfAgent => FlashMessage::UserNotActive,
    };
    Ok(redirect_with_flash(&tail_path(id), outcome))
}

#[derive(Debug, Deserialize)]
pub(in crate::web) struct ConfirmationForm {
    #[serde(rename = "question")]
    prompt: i64,
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
    let decision = match form.answer {
        YesOrNo::Yes => PromptDecision::Approve,
        YesOrNo::No => PromptDecision::Reject,
    };
    let outcome = match console.engine.conversation_actions.answer_prompt(form.prompt, decision).await? {
        PromptAnswerOutcome::Stored => FlashMessage::PromptAnswered,
        PromptAnswerOutcome::Closed => FlashMessage::PromptClosed,
        PromptAnswerOutcome::NotSentYet => FlashMessage::PromptNotSent,
    };
    Ok(redirect_with_flash(&tail_path(id), outcome))
}

pub(in crate::web) async fn cancel_turn(
    State(console): State<ConsoleState>,
    PageId(turn): PageId,
    _form: SignedForm<ButtonForm>,
) -> PageResult {
    let outcome = match console.engine.turn_actions.cancel_turn(TurnId(turn), Actor::Console).await? {
        CancelRequestOutcome::Requested => FlashMessage::CancelRequested,
        CancelRequestOutcome::AlreadyEnded => FlashMessage::TurnAlreadyEnded,
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
        ResumeTurnOutcome::NotResumable(_) => FlashMessage::TurnNotResumed,
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
