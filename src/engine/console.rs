//! Operator actions in conversations: beginning a test conversation, reopening an ended one, and answering a
//! confirmation prompt in its user's name.

use jiff::Timestamp;
use serde_json::json;

use super::{AdmitError, Engine};
use crate::conversation::inbound_message::{Received, Via};
use crate::conversation::lifecycle;
use crate::conversation::origin::Origin;
use crate::conversation::transcript::{
    Address, ChannelKind, ConversationId, PhoneNumber, Status, User, UserId,
};
use crate::conversation::verification::FieldAuthority;
use crate::store::asked::{self, Asked};
use crate::store::audit::{self, By, Entry, Subject};
use crate::store::conversations::{self, EndReason, Stretch};
use crate::store::db::DbError;
use crate::store::ledger::{self, Admission, Pace};
use crate::store::pending::{self, Closing};
use crate::store::{Conn, QueryResult, testing, turns, users};

/// An answer of the operator is processed at once.
const AT_ONCE: Pace = Pace { quiet_ms: 0, at_most_ms: 0 };

/// Outcome of beginning a test conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trial {
    Begun(ConversationId),
    /// Every number that no real phone has is in use.
    NoNumberFree,
}

/// Outcome of a message typed in the console.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Typed {
    Admitted,
    /// The conversation is not the open one of a test user, so no message may be sent in it.
    NotHere,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reopened {
    Open,
    WasOpen,
    /// A message of the user is being answered in another conversation.
    Busy,
    /// The user is blocked or not approved.
    NotActive,
}

/// Operator's answer to a confirmation prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Approve,
    Reject,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answered {
    /// The answer is stored as the user's own, and counts as such.
    Taken,
    /// The prompt is closed, or another one is open.
    Closed,
    /// The prompt was not sent yet.
    NotAskedYet,
}

impl Engine {
    /// Begins an empty conversation of a test user who is not in one.
    pub async fn begin_trial(&self) -> Result<Trial, DbError> {
        let (now, zone) = (self.now(), self.0.parts.settings.zone.clone());
        let begin = move |conn: &mut Conn| {
            let Some(user) = testing::free_user(conn, now)? else { return Ok(Trial::NoNumberFree) };
            let entry = Entry {
                by: By::Console,
                kind: "test_conversation",
                subject: Subject::User(user),
                detail: json!({}),
            };
            audit::record(conn, &entry, now)?;
            conversations::begin(conn, user, &lifecycle::name(now, &zone), now).map(Trial::Begun)
        };
        self.0.parts.db.write(begin).await
    }

    /// Sends a message as the test user of a conversation, on the same path as every message. `key` makes a repeat
    /// harmless.
    pub async fn type_in(&self, id: ConversationId, body: &str, key: &str) -> Result<Typed, DbError> {
        let now = self.now();
        let open = move |conn: &mut Conn| {
            let stretch = conversations::stretch(conn, id)?;
            let user = users::get(conn, stretch.user)?;
            if !user.test || stretch.is_ended {
                return Ok(None);
            }
            // A message typed here is meant for this conversation, however long it was silent.
            conversations::touch(conn, id, now)?;
            Ok(Some(user.phone))
        };
        let Some(phone) = self.0.parts.db.write(open).await? else { return Ok(Typed::NotHere) };
        let text = typed(phone, Address::console(), body, now);
        let admitted = self.admit(Received { external_id: Origin::Typed.id(key), ..text }).await;
        Ok(match admitted.map_err(|AdmitError(error)| error)? {
            Admission::New { .. } | Admission::Duplicate => Typed::Admitted,
            Admission::Nobody => Typed::NotHere,
        })
    }

    /// Reopens a conversation; another one that the user has open ends.
    pub async fn reopen(&self, id: ConversationId, by: By) -> Result<Reopened, DbError> {
        let now = self.now();
        self.0.parts.db.write(move |conn| reopen(conn, id, by, now)).await
    }

    /// Answers the open confirmation prompt `asked` as if its user had texted the answer: it is claimed, checked and
    /// carried out in the same way, and the user gets the result.
    pub async fn answer_question(&self, asked: i64, verdict: Verdict) -> Result<Answered, DbError> {
        let now = self.now();
        let answer = move |conn: &mut Conn| answer(conn, asked, verdict, now);
        let (answered, user) = self.0.parts.db.write(answer).await?;
        if let Some(user) = user {
            self.wake(user);
        }
        Ok(answered)
    }
}

fn reopen(conn: &mut Conn, id: ConversationId, by: By, now: Timestamp) -> QueryResult<Reopened> {
    let Stretch { user, is_ended } = conversations::stretch(conn, id)?;
    if !is_ended {
        return Ok(Reopened::WasOpen);
    }
    if users::get(conn, user)?.status != Status::Active {
        return Ok(Reopened::NotActive);
    }
    if turns::live(conn, user)?.is_some() {
        return Ok(Reopened::Busy);
    }
    let entry =
        Entry { by, kind: "reopen", subject: Subject::User(user), detail: json!({ "conversation": id.0 }) };
    audit::record(conn, &entry, now)?;
    if let Some(other) = conversations::open(conn, user)? {
        // As with every requested end of a conversation, its confirmation prompt is not answered elsewhere.
        pending::close(conn, user, Closing::Dropped, now)?;
        conversations::end(conn, other.id, EndReason::Operator, now)?;
    }
    conversations::reopen(conn, id, now)?;
    Ok(Reopened::Open)
}

/// Checks and admits the answer in one transaction. If the prompt is replaced before the answer is processed, the
/// answer does not count: it came before the other prompt was sent.
fn answer(
    conn: &mut Conn,
    question: i64,
    verdict: Verdict,
    now: Timestamp,
) -> QueryResult<(Answered, Option<UserId>)> {
    let Some(open) = asked::find(conn, question, now)? else { return Ok((Answered::Closed, None)) };
    let Asked { user, call, code, from, repeats, is_armed } = open;
    if !is_armed {
        return Ok((Answered::NotAskedYet, None));
    }
    let (kind, body) = match (verdict, code) {
        (Verdict::Approve, Some(code)) => ("approve_question", format!("YES {code}")),
        (Verdict::Approve, None) => ("approve_question", "YES".to_owned()),
        (Verdict::Reject, _) => ("reject_question", "NO".to_owned()),
    };
    let User { id: user, phone, .. } = users::get(conn, user)?;
    let text = Received {
        // If a button is pressed twice, only the first press counts.
        external_id: Origin::Button.id(&format!("answer-{question}-{repeats}")),
        ..typed(phone, from, &body, now)
    };
    match ledger::admit(conn, &text, AT_ONCE)? {
        Admission::Nobody => Ok((Answered::Closed, None)),
        Admission::Duplicate => Ok((Answered::Taken, None)),
        Admission::New { .. } => {
            let entry = Entry {
                by: By::Console,
                kind,
                subject: Subject::Call(call),
                detail: json!({ "user": user.0 }),
            };
            audit::record(conn, &entry, now)?;
            Ok((Answered::Taken, Some(user)))
        }
    }
}

fn typed(phone: PhoneNumber, to: Address, body: &str, now: Timestamp) -> Received {
    Received {
        channel: ChannelKind::Console,
        external_id: String::new(),
        from: phone,
        to,
        body: body.to_owned(),
        media: Vec::new(),
        via: Via::Local,
        authority: FieldAuthority::Certain,
        carrier_word: None,
        provider_at: now,
        received_at: now,
    }
}
