//! What the operator does in conversations. Each form leads to a page that says what came of it.

use axum::extract::State;
use axum::response::{IntoResponse, Redirect, Response};
use serde::Deserialize;

use crate::conversation::transcript::{ConversationId, TurnId};
use crate::engine::console::{Answered, Reopened, Trial, Typed, Verdict};
use crate::engine::intervening::{Cancellation, Resumption};
use crate::store::audit::By;
use crate::store::db::DbError;
use crate::store::stream::snapshot;
use crate::store::turns;
use crate::web::auth::SignedForm;
use crate::web::console::Console;
use crate::web::console::answers::{Failure, Id, Shown};
use crate::web::console::home::Press;

/// What came of a form, named in the address by a word: no link can have our pages say something else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::web) struct Outcome {
    word: &'static str,
    pub(super) words: &'static str,
    pub(super) class: &'static str,
}

const fn good(word: &'static str, words: &'static str) -> Outcome {
    Outcome { word, words, class: "good" }
}

const fn warn(word: &'static str, words: &'static str) -> Outcome {
    Outcome { word, words, class: "warn" }
}

const NO_NUMBER: Outcome = warn(
    "no-number",
    "Every test number is in an open conversation. They end by themselves after a silence.",
);
const NOT_HERE: Outcome =
    warn("not-here", "Nothing was texted: this conversation has ended. Open it again first.");
const REOPENED: Outcome = good("reopened", "Open again. The next text goes on here.");
const WAS_OPEN: Outcome = warn("was-open", "It was open already.");
const IN_ANOTHER: Outcome =
    warn("in-another", "A text is being answered in another conversation right now. Try again in a moment.");
const NOT_ACTIVE: Outcome =
    warn("not-active", "Only a conversation of somebody who may text can be opened again.");
const TAKEN: Outcome = good("taken", "Answered. What came of it is told below and to the user.");
const CLOSED: Outcome = warn("closed", "That question is closed: nothing was done.");
const NOT_ASKED: Outcome = warn("not-asked", "The question has not been sent yet. Try again in a moment.");
const ENDING: Outcome = good("ending", "It ends before its next effect. What was done is told.");
const OVER: Outcome = warn("over", "It was over already.");
const RESUMED: Outcome = good("resumed", "It goes on from where it failed.");
const NOT_RESUMED: Outcome = warn(
    "not-resumed",
    "It cannot go on: only the newest turn of an open conversation can, if it failed and nothing else runs.",
);

const ALL: [Outcome; 13] = [
    NO_NUMBER,
    NOT_HERE,
    REOPENED,
    WAS_OPEN,
    IN_ANOTHER,
    NOT_ACTIVE,
    TAKEN,
    CLOSED,
    NOT_ASKED,
    ENDING,
    OVER,
    RESUMED,
    NOT_RESUMED,
];

impl Outcome {
    pub(super) fn read(word: &str) -> Option<Self> {
        ALL.into_iter().find(|outcome| outcome.word == word)
    }

    fn in_conversation(self, id: ConversationId) -> Response {
        Redirect::to(&format!("/conversations/{id}?said={}#tail", self.word)).into_response()
    }
}

pub(in crate::web) async fn begin(State(console): State<Console>, _form: SignedForm<Press>) -> Shown {
    Ok(match console.engine.begin_trial().await? {
        Trial::Begun(id) => Redirect::to(&format!("/conversations/{id}#box")).into_response(),
        Trial::NoNumberFree => {
            Redirect::to(&format!("/conversations?said={}", NO_NUMBER.word)).into_response()
        }
    })
}

#[derive(Debug, Deserialize)]
pub(in crate::web) struct TypedText {
    text: String,
    key: String,
}

pub(in crate::web) async fn text(
    State(console): State<Console>,
    Id(id): Id,
    SignedForm(form): SignedForm<TypedText>,
) -> Shown {
    let id = known(&console, id).await?;
    let text = form.text.trim();
    if text.is_empty() || text.len() > 6_400 || form.key.len() > 64 {
        return Ok(Redirect::to(&format!("/conversations/{id}#box")).into_response());
    }
    Ok(match console.engine.type_in(id, text, &form.key).await? {
        Typed::Admitted => Redirect::to(&format!("/conversations/{id}#box")).into_response(),
        Typed::NotHere => NOT_HERE.in_conversation(id),
    })
}

pub(in crate::web) async fn reopen(
    State(console): State<Console>,
    Id(id): Id,
    _form: SignedForm<Press>,
) -> Shown {
    let id = known(&console, id).await?;
    let outcome = match console.engine.reopen(id, By::Console).await? {
        Reopened::Open => REOPENED,
        Reopened::WasOpen => WAS_OPEN,
        Reopened::Busy => IN_ANOTHER,
        Reopened::NotActive => NOT_ACTIVE,
    };
    Ok(outcome.in_conversation(id))
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
    State(console): State<Console>,
    Id(id): Id,
    SignedForm(form): SignedForm<Answer>,
) -> Shown {
    let id = known(&console, id).await?;
    let verdict = match form.answer {
        YesOrNo::Yes => Verdict::Approve,
        YesOrNo::No => Verdict::Reject,
    };
    let outcome = match console.engine.answer_question(form.question, verdict).await? {
        Answered::Taken => TAKEN,
        Answered::Closed => CLOSED,
        Answered::NotAskedYet => NOT_ASKED,
    };
    Ok(outcome.in_conversation(id))
}

pub(in crate::web) async fn cancel(
    State(console): State<Console>,
    Id(turn): Id,
    _form: SignedForm<Press>,
) -> Shown {
    let outcome = match console.engine.cancel_turn(TurnId(turn), By::Console).await? {
        Cancellation::Requested => ENDING,
        Cancellation::AlreadyOver => OVER,
        Cancellation::Unknown => return Err(Failure::Missing),
    };
    in_conversation_of(&console, TurnId(turn), outcome).await
}

pub(in crate::web) async fn resume(
    State(console): State<Console>,
    Id(turn): Id,
    _form: SignedForm<Press>,
) -> Shown {
    let outcome = match console.engine.resume_turn(TurnId(turn), By::Console).await? {
        Resumption::Resumed => RESUMED,
        Resumption::NotResumable(_) => NOT_RESUMED,
        Resumption::Unknown => return Err(Failure::Missing),
    };
    in_conversation_of(&console, TurnId(turn), outcome).await
}

async fn in_conversation_of(console: &Console, turn: TurnId, outcome: Outcome) -> Shown {
    let id = console.db.read(move |conn| turns::conversation(conn, turn)).await?;
    Ok(outcome.in_conversation(id))
}

async fn known(console: &Console, id: i64) -> Result<ConversationId, Failure> {
    let id = ConversationId(id);
    let exists: Result<bool, DbError> = console.db.read(move |conn| snapshot::exists(conn, id)).await;
    if exists? { Ok(id) } else { Err(Failure::Missing) }
}
