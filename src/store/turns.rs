//! Turns: one live turn per user, each with the data needed to continue after a crash.

use std::sync::Arc;

use diesel::prelude::*;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::codec::{brain, brain_word, from_json, ms, number, time, to_json, unreadable};
use super::kept::Keep;
use super::ledger::{self, Outcome};
use super::memory::responses;
use super::outbox::{self, NewText};
use super::schema::{tool_calls, turns};
use super::{Conn, calls, conversations, steps};
use crate::conversation::inbound_message::InboundEvent;
use crate::conversation::transcript::{Brain, CallRow, ConversationId, TurnId, UserId};
use crate::conversation::turn::{TURN_TIME, Turn};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Chat,
    /// Carries out a deletion that a yes has claimed.
    Confirm,
    Deny,
    /// Answered by code at once.
    Command,
}

/// Plan of a turn's answer, decided when the turn begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    pub brain: Brain,
    /// Notes for the model on events around the messages.
    pub notes: Vec<String>,
    /// Sent ahead of the answer, in the same message: `OK, Dune (2021) is kept.`
    pub preface: Option<String>,
    /// Triage status, which decides if the model is asked first whether the message wants an answer.
    pub triage: Triage,
    /// The subject of the turn in place of its message, which only agrees to it.
    pub request: Option<String>,
}

/// Triage status of a turn's message: whether it wants an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Triage {
    /// The model is still to be asked.
    Open,
    /// The message wants an answer, or no triage was done.
    Respond,
    Skip,
}

impl Plan {
    pub fn by(brain: Brain) -> Self {
        Self { brain, notes: Vec::new(), preface: None, triage: Triage::Respond, request: None }
    }
}

#[derive(Debug, Clone, Copy)]
pub struct NewTurn<'a> {
    pub user: UserId,
    pub conversation: ConversationId,
    pub kind: Kind,
    pub plan: &'a Plan,
}

#[derive(Serialize, Deserialize)]
struct StoredPlan {
    brain: String,
    #[serde(default)]
    notes: Vec<String>,
    preface: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    request: Option<String>,
}

/// Expression that reduces a stored plan to its responder.
pub(super) const PLAN_WITHOUT_WORDS: &str = "json_object('brain', turns.prompt ->> '$.brain')";

pub fn create(conn: &mut Conn, new: NewTurn<'_>, now: Timestamp) -> QueryResult<TurnId> {
    let plan = to_json(&StoredPlan {
        brain: brain_word(new.plan.brain).to_owned(),
        notes: new.plan.notes.clone(),
        preface: new.plan.preface.clone(),
        request: new.plan.request.clone(),
    })?;
    conversations::touch(conn, new.conversation, now)?;
    diesel::insert_into(turns::table)
        .values((
            turns::user_id.eq(new.user.0),
            turns::conversation_id.eq(new.conversation.0),
            turns::kind.eq(kind_word(new.kind)),
            turns::state.eq("CREATED"),
            turns::prompt.eq(plan),
            turns::triage.eq(triage_word(new.plan.triage)),
            turns::deadline_at.eq(ms(now + TURN_TIME)),
            turns::created_at.eq(ms(now)),
            turns::updated_at.eq(ms(now)),
        ))
        .returning(turns::id)
        .get_result(conn)
        .map(TurnId)
}

fn triage_word(triage: Triage) -> &'static str {
    match triage {
        Triage::Open => "open",
        Triage::Respond => "respond",
        Triage::Skip => "skip",
    }
}

pub fn set_triage(conn: &mut Conn, id: TurnId, triage: Triage, now: Timestamp) -> QueryResult<()> {
    diesel::update(turns::table.find(id.0).filter(turns::finished_at.is_null()))
        .set((turns::triage.eq(triage_word(triage)), turns::updated_at.eq(ms(now))))
        .kept()
        .execute(conn)
        .map(drop)
}

fn kind_word(kind: Kind) -> &'static str {
    match kind {
        Kind::Chat => "chat",
        Kind::Confirm => "confirm",
        Kind::Deny => "deny",
        Kind::Command => "command",
    }
}

/// Parses the responder of a stored plan.
pub(super) fn brain_of_plan(plan: &str) -> QueryResult<Brain> {
    let StoredPlan { brain: word, .. } = from_json("plan", plan)?;
    brain(&word)
}

/// The turn of a user that is not finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Live {
    pub id: TurnId,
    pub kind: Kind,
    pub conversation: ConversationId,
}

pub fn live(conn: &mut Conn, user: UserId) -> QueryResult<Option<Live>> {
    let row: Option<(i64, String, i64)> = turns::table
        .filter(turns::user_id.eq(user.0).and(turns::finished_at.is_null()))
        .select((turns::id, turns::kind, turns::conversation_id))
        .first(conn)
        .optional()?;
    row.map(read).transpose()
}

/// Loads the turn in which a call was made, live or not.
pub fn of_call(conn: &mut Conn, call: CallRow) -> QueryResult<Live> {
    let turn = tool_calls::table.find(call.0).select(tool_calls::turn_id).first::<i64>(conn)?;
    let row: (i64, String, i64) =
        turns::table.find(turn).select((turns::id, turns::kind, turns::conversation_id)).first(conn)?;
    read(row)
}

/// Returns the conversation that a turn is part of.
pub fn conversation(conn: &mut Conn, turn: TurnId) -> QueryResult<ConversationId> {
    turns::table.find(turn.0).select(turns::conversation_id).first(conn).map(ConversationId)
}

fn read((id, kind, conversation): (i64, String, i64)) -> QueryResult<Live> {
    Ok(Live { id: TurnId(id), kind: self::kind(&kind)?, conversation: ConversationId(conversation) })
}

pub(super) fn kind(word: &str) -> QueryResult<Kind> {
    match word {
        "chat" => Ok(Kind::Chat),
        "confirm" => Ok(Kind::Confirm),
        "deny" => Ok(Kind::Deny),
        "command" => Ok(Kind::Command),
        _ => Err(unreadable("turn kind")),
    }
}

/// Returns the newest turn; 0 if there is none.
pub fn newest(conn: &mut Conn) -> QueryResult<TurnId> {
    let newest: Option<i64> = turns::table.select(diesel::dsl::max(turns::id)).first(conn)?;
    Ok(TurnId(newest.unwrap_or(0)))
}

/// Selects the turns of a conversation from one of them on.
#[diesel::dsl::auto_type(no_type_alias)]
pub(super) fn ids_from(conversation: ConversationId, from: TurnId) -> _ {
    let (conversation, from): (i64, i64) = (conversation.0, from.0);
    let wanted = turns::conversation_id.eq(conversation).and(turns::id.ge(from));
    turns::table.filter(wanted).select(turns::id)
}

/// Log of a turn, with its plan and its messages.
#[derive(Debug, Clone)]
pub struct Loaded {
    pub turn: Turn,
    pub plan: Plan,
    pub events: Vec<InboundEvent>,
    /// Number of the run of the turn, from 1: the operator can resume a failed turn.
    pub run: u32,
}

pub fn load(conn: &mut Conn, live: Live) -> QueryResult<Loaded> {
    let id = live.id;
    type Row = (String, i64, i64, i64, Option<i64>, Option<String>, i64);
    let (prompt, deadline, attempts, work_failures, cancel, triage, runs): Row = turns::table
        .find(id.0)
        .select((
            turns::prompt,
            turns::deadline_at,
            turns::attempts,
            turns::work_failures,
            turns::cancel_requested_at,
            turns::triage,
            turns::runs,
        ))
        .first(conn)?;
    let StoredPlan { brain: word, notes, preface, request } = from_json("plan", &prompt)?;
    let triage = match triage.as_deref() {
        Some("open") => Triage::Open,
        Some("skip") => Triage::Skip,
        Some("respond") | None => Triage::Respond,
        Some(_) => return Err(unreadable("triage")),
    };
    let plan = Plan { brain: brain(&word)?, notes, preface, triage, request };
    let events = ledger::of_turn(conn, id)?;
    let steps =
        steps::of_turns(conn, live.conversation, id)?.remove(&id).unwrap_or_else(|| Ok(Vec::new()))?;
    let failures = steps::failures(conn, id, steps.len())?;
    let turn = Turn {
        id,
        brain: plan.brain,
        texts: match &plan.request {
            Some(request) => vec![request.clone()],
            None => events.iter().map(|event| event.body.clone()).collect(),
        },
        steps,
        failures,
        deadline: time(deadline)?,
        resumes: number(attempts)?,
        work_failures: number(work_failures)?,
        cancel_requested: cancel.is_some(),
        record: Arc::default(),
    };
    Ok(Loaded { turn, plan, events, run: number(runs)? })
}

/// End of a turn.
#[derive(Debug, Clone)]
pub struct End {
    pub turn: TurnId,
    pub outcome: Outcome,
    /// The whole answer; `texts` are the messages that are sent of it.
    pub answer: Option<String>,
    pub texts: Vec<NewText>,
}

impl End {
    pub fn without_a_text(turn: TurnId, outcome: Outcome) -> Self {
        Self { turn, outcome, answer: None, texts: Vec::new() }
    }
}

/// Ends a turn, its messages and its answer in one transaction: there is no moment in which only some of them have
/// ended.
pub fn finish(conn: &mut Conn, end: &End, now: Timestamp) -> QueryResult<()> {
    let state = match end.outcome {
        Outcome::Replied | Outcome::Reacted | Outcome::Remembered => "COMPLETED",
        Outcome::FailedNotified => "FAILED",
        Outcome::Skipped(_) => "CANCELED",
    };
    let finished = diesel::update(turns::table.find(end.turn.0).filter(turns::finished_at.is_null()))
        .set((
            turns::state.eq(state),
            turns::response_text.eq(&end.answer),
            turns::finished_at.eq(ms(now)),
            turns::updated_at.eq(ms(now)),
        ))
        .kept()
        .execute(conn)?;
    if finished == 0 {
        return Ok(());
    }
    for text in &end.texts {
        outbox::queue(conn, text, now)?;
    }
    calls::cancel_unstarted(conn, end.turn, now)?;
    if let (Outcome::Replied, Some(answer)) = (end.outcome, &end.answer) {
        responses::remember_turn(conn, end.turn, answer, now)?;
    }
    ledger::end_of_turn(conn, end.turn, end.outcome, now)
}

/// Asks a running turn to end between two effects.
pub fn request_cancel(conn: &mut Conn, user: UserId, now: Timestamp) -> QueryResult<()> {
    diesel::update(turns::table.filter(turns::user_id.eq(user.0).and(turns::finished_at.is_null())))
        .set((turns::cancel_requested_at.eq(ms(now)), turns::updated_at.eq(ms(now))))
        .kept()
        .execute(conn)
        .map(drop)
}

/// Outcome of a request to end one turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cancel {
    /// The user of the turn has to be woken.
    Requested(UserId),
    AlreadyOver,
    Unknown,
}

/// Like [`request_cancel`], for one turn.
pub fn cancel(conn: &mut Conn, id: TurnId, now: Timestamp) -> QueryResult<Cancel> {
    let row: Option<(i64, Option<i64>)> =
        turns::table.find(id.0).select((turns::user_id, turns::finished_at)).first(conn).optional()?;
    match row {
        None => Ok(Cancel::Unknown),
        Some((_, Some(_))) => Ok(Cancel::AlreadyOver),
        Some((user, None)) => {
            request_cancel(conn, UserId(user), now)?;
            Ok(Cancel::Requested(UserId(user)))
        }
    }
}

pub fn cancel_requested(conn: &mut Conn, id: TurnId) -> QueryResult<bool> {
    let at: Option<i64> = turns::table.find(id.0).select(turns::cancel_requested_at).first(conn)?;
    Ok(at.is_some())
}

/// A turn whose work failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FailedTurn {
    pub failures: u32,
    /// Number of the run of the turn, from 1.
    pub run: u32,
}

/// Counts a resume after a panic or an internal failure.
pub fn count_resume(conn: &mut Conn, id: TurnId, now: Timestamp) -> QueryResult<FailedTurn> {
    let (failures, run): (i64, i64) = diesel::update(turns::table.find(id.0))
        .set((
            turns::attempts.eq(turns::attempts + 1),
            turns::work_failures.eq(turns::work_failures + 1),
            turns::updated_at.eq(ms(now)),
        ))
        .returning((turns::work_failures, turns::runs))
        .kept()
        .get_result(conn)?;
    Ok(FailedTurn { failures: number(failures)?, run: number(run)? })
}

pub(super) fn set_state(conn: &mut Conn, id: TurnId, state: &str, now: Timestamp) -> QueryResult<()> {
    diesel::update(turns::table.find(id.0).filter(turns::finished_at.is_null()))
        .set((turns::state.eq(state), turns::updated_at.eq(ms(now))))
        .kept()
        .execute(conn)
        .map(drop)
}
