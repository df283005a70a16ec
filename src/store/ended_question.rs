//! The last pending action of a user to end, and whether a late yes or no belongs to it.

use diesel::prelude::*;
use jiff::{SignedDuration, Timestamp};

use super::Conn;
use super::codec::{from_json, if_readable, ms};
use super::outbox::{self as messages, TextKind};
use super::pending::{self, Closing};
use super::schema::{outbox, tool_call_items, tool_calls, turns};
use super::turns::{self as turn_rows, Kind};
use super::written::Written;
use crate::conversation::claimed_deletion::DeletionItemState;
use crate::conversation::deletion::{self, Ending, ItemOutcome};
use crate::conversation::frozen::FrozenItem;
use crate::conversation::route::EndedQuestion;
use crate::conversation::text::{self, Emoji};
use crate::conversation::transcript::{Brain, CallRow, TurnId, UserId};

/// Period for which an ended pending action still explains a yes.
const REMEMBERED: SignedDuration = SignedDuration::from_hours(24);
/// Number of ended pending actions, by the time of their end, among which the newest is searched for.
const QUESTIONS_SEARCHED: i64 = 20;
/// Number of accepted messages, newest first, among which the last one that is no mere notification is searched for.
const MESSAGES_SEARCHED: i64 = 20;

/// Loads the user's last pending action, if it ended within a day.
pub fn load_ended_question(
    conn: &mut Conn,
    user: UserId,
    now: Timestamp,
) -> QueryResult<Option<EndedQuestion>> {
    let Some(ended) = if_readable(last_ended_call(conn, user, now))?.flatten() else { return Ok(None) };
    let Some(items) = if_readable(pending::items(conn, ended.call))? else { return Ok(None) };
    if items.iter().any(|item| item.item.fingerprint.title.is_empty()) {
        // Its titles are erased, so there is nothing to state about it.
        return Ok(None);
    }
    let outcomes: Vec<(FrozenItem, ItemOutcome)> = items
        .iter()
        .filter_map(|item| match item.state {
            DeletionItemState::Ended(outcome) => Some((item.item.clone(), outcome)),
            DeletionItemState::Held | DeletionItemState::Running | DeletionItemState::Canceled => None,
        })
        .collect();
    let items: Vec<FrozenItem> = items.into_iter().map(|item| item.item).collect();
    let names: Vec<String> = items.iter().map(deletion::name).collect();
    let last = last_message(conn, user)?;
    Ok(Some(EndedQuestion {
        answer: deletion::late_answer(ended.ending, &items, &outcomes),
        is_last_message: last.is_some_and(|last| last.is_about(ended.asked_in, &names)),
    }))
}

/// A destructive call whose pending action is not open any more.
struct EndedCall {
    call: CallRow,
    /// The turn that ended with its confirmation prompt.
    asked_in: TurnId,
    ending: Ending,
}

fn last_ended_call(conn: &mut Conn, user: UserId, now: Timestamp) -> QueryResult<Option<EndedCall>> {
    type EndedCallRow = (i64, i64, String, Option<String>);
    let rows: Vec<EndedCallRow> = tool_calls::table
        .inner_join(turns::table.on(turns::id.eq(tool_calls::turn_id)))
        .filter(turns::user_id.eq(user.0))
        .filter(Written("tool_calls.effect = 'destructive'"))
        .filter(tool_calls::finished_at.ge(ms(now - REMEMBERED)))
        .filter(diesel::dsl::exists(
            tool_call_items::table.filter(tool_call_items::tool_call_id.eq(tool_calls::id)),
        ))
        .order(tool_calls::finished_at.desc())
        .limit(QUESTIONS_SEARCHED)
        .select((tool_calls::id, tool_calls::turn_id, tool_calls::state, tool_calls::error))
        .load(conn)?;
    // Ordered by the time of the call: the time of an end may be ahead of a clock that was set back.
    let newest = rows.into_iter().max_by_key(|(call, ..)| *call);
    let Some((call, turn, state, error)) = newest else { return Ok(None) };
    let ending = match state.as_str() {
        "complete" => Ending::Done,
        "canceled" => match from_json::<Closing>("reason", error.as_deref().unwrap_or_default())? {
            Closing::Denied => Ending::Denied,
            Closing::Expired => Ending::Expired,
            Closing::Dropped | Closing::Replaced => Ending::Dropped,
        },
        _ => Ending::Failed,
    };
    Ok(Some(EndedCall { call: CallRow(call), asked_in: TurnId(turn), ending }))
}

/// The message that a message of the user is most likely a reply to.
struct LastMessage {
    body: String,
    sort: MessageSort,
}

enum MessageSort {
    /// A confirmation prompt, with the turn that sent it.
    Prompt(TurnId),
    Reply {
        turn: TurnId,
        kind: Kind,
        /// The responder that was to write it.
        brain: Brain,
    },
    /// A notification that asks something, or a reply that belongs to no turn.
    Other,
}

/// Loads the newest accepted message, by the time at which it was accepted. A notification that asks nothing is
/// skipped: no user replies yes or no to it.
fn last_message(conn: &mut Conn, user: UserId) -> QueryResult<Option<LastMessage>> {
    type MessageRow = (i64, Option<i64>, String, String, Option<(i64, String, String)>);
    let rows: Vec<MessageRow> = outbox::table
        .left_join(turns::table)
        .filter(outbox::user_id.eq(user.0).and(outbox::accepted_at.is_not_null()))
        .order(outbox::id.desc())
        .limit(MESSAGES_SEARCHED)
        .select((
            outbox::id,
            outbox::accepted_at,
            outbox::kind,
            outbox::body,
            (turns::id, turns::kind, turns::prompt).nullable(),
        ))
        .load(conn)?;
    let answerable = rows.into_iter().filter(|(_, _, kind, body, _)| !messages::asks_nothing(kind, body));
    let newest = answerable.max_by_key(|(id, at, ..)| (*at, *id));
    let Some((_, _, kind, body, turn)) = newest else { return Ok(None) };
    let sort = match (messages::kind(&kind)?, turn) {
        (TextKind::ConfirmPrompt, Some((turn, ..))) => MessageSort::Prompt(TurnId(turn)),
        (TextKind::Reply, Some((turn, kind, plan))) => MessageSort::Reply {
            turn: TurnId(turn),
            kind: turn_rows::kind(&kind)?,
            brain: turn_rows::brain_of_plan(&plan)?,
        },
        (TextKind::ConfirmPrompt | TextKind::Reply | TextKind::Notice, _) => MessageSort::Other,
    };
    Ok(Some(LastMessage { body, sort }))
}

impl LastMessage {
    /// Returns whether the message is the confirmation prompt of turn `asked_in`, its repeat, or a reply by code about
    /// its end.
    fn is_about(&self, asked_in: TurnId, names: &[String]) -> bool {
        match self.sort {
            MessageSort::Prompt(turn) => turn >= asked_in,
            // These turns only answer a yes or a no.
            MessageSort::Reply { turn, kind: Kind::Deny | Kind::Confirm, .. } => turn >= asked_in,
            MessageSort::Reply { kind: Kind::Chat | Kind::Command, brain: Brain::Keyword, .. } => {
                let closing = deletion::closing(names);
                let sent = [Emoji::Keep, Emoji::Remove].map(|emoji| text::for_sms(&closing, emoji));
                sent.iter().any(|closing| self.body.starts_with(closing)) && !text::asks(&self.body)
            }
            // Text of the model may call for a reply even without a question mark.
            MessageSort::Reply { brain: Brain::Model, .. } | MessageSort::Other => false,
        }
    }
}
