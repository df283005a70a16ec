//! Most recently ended pending action of a user, to which a late yes or no may belong.

use diesel::prelude::*;
use jiff::{SignedDuration, Timestamp};

use super::pending_action::{self, CloseReason};
use crate::conversation::deletion::claimed_deletion::DeletionItemState;
use crate::conversation::deletion::deletion_messages::{self, ItemOutcome, PromptOutcome};
use crate::conversation::deletion::target::DeletionTarget;
use crate::conversation::routing::route::EndedPrompt;
use crate::conversation::stream_events::CallPhase;
use crate::conversation::text::message_format::{self, EmojiPolicy};
use crate::conversation::transcript::{CallRow, OutboxId, Responder, TurnId, UserId};
use crate::store::Conn;
use crate::store::codec::{from_json, ms, none_if_unreadable};
use crate::store::database::literal_sql::literal_sql;
use crate::store::queue::outbox::{self as messages, OutboundKind};
use crate::store::schema::{outbox, tool_call_items, tool_calls, turns};
use crate::store::turns::turn_lifecycle::{self as turn_rows, TurnKind};

/// Period in which a late yes or no is matched to an ended pending action.
const LATE_REPLY_PERIOD: SignedDuration = SignedDuration::from_hours(24);
/// Number of most recently ended calls among which the newest call is searched.
const ENDED_CALL_LIMIT: i64 = 20;
/// Number of newest accepted messages among which the last one that expects a reply is searched.
const ACCEPTED_MESSAGE_LIMIT: i64 = 20;

literal_sql! {
    /// Condition of the index of destructive calls.
    const IS_DESTRUCTIVE = "tool_calls.effect = 'destructive'";
}

/// Loads the user's last pending action if it ended within the last day, and its prompt was sent to the same room, or to
/// the private chat.
pub fn load_ended_prompt(
    conn: &mut Conn,
    user: UserId,
    room: Option<UserId>,
    now: Timestamp,
) -> QueryResult<Option<EndedPrompt>> {
    let Some(ended) = none_if_unreadable(load_last_ended_call(conn, user, now))?.flatten() else {
        return Ok(None);
    };
    let Some(items) = none_if_unreadable(pending_action::load_deletion_items(conn, ended.call))? else {
        return Ok(None);
    };
    if items.iter().any(|item| item.target.fingerprint.title.is_empty()) {
        // The titles are erased, so the reply could not name them.
        return Ok(None);
    }
    let outcomes: Vec<(DeletionTarget, ItemOutcome)> = items
        .iter()
        .filter_map(|item| match item.state {
            DeletionItemState::Ended(outcome) => Some((item.target.clone(), outcome)),
            DeletionItemState::Held | DeletionItemState::Running | DeletionItemState::Canceled => None,
        })
        .collect();
    let items: Vec<DeletionTarget> = items.into_iter().map(|item| item.target).collect();
    let names: Vec<String> = items.iter().map(deletion_messages::format_target_name).collect();
    let sent = load_answerable_messages(conn, (user, room))?;
    let last_message = sent.first();
    let prompt = sent.iter().find(|message| message.is_prompt_since(ended.prompt_turn));
    if room.is_some() && prompt.is_none() {
        return Ok(None);
    }
    Ok(Some(EndedPrompt {
        answer: deletion_messages::format_late_answer(ended.outcome, &items, &outcomes),
        message: prompt.map(|message| message.id),
        is_last_message: last_message.is_some_and(|message| message.is_about(ended.prompt_turn, &names)),
    }))
}

/// Destructive call whose pending action is no longer open.
struct EndedCall {
    call: CallRow,
    /// Turn that ended with the confirmation prompt of the call.
    prompt_turn: TurnId,
    outcome: PromptOutcome,
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = tool_calls)]
struct EndedCallRow {
    id: CallRow,
    turn_id: TurnId,
    state: CallPhase,
    error: Option<String>,
}

fn load_last_ended_call(conn: &mut Conn, user: UserId, now: Timestamp) -> QueryResult<Option<EndedCall>> {
    let rows: Vec<EndedCallRow> = tool_calls::table
        .inner_join(turns::table.on(turns::id.eq(tool_calls::turn_id)))
        .filter(turns::user_id.eq(user))
        .filter(IS_DESTRUCTIVE)
        .filter(tool_calls::finished_at.ge(ms(now - LATE_REPLY_PERIOD)))
        .filter(diesel::dsl::exists(
            tool_call_items::table.filter(tool_call_items::tool_call_id.eq(tool_calls::id)),
        ))
        .order(tool_calls::finished_at.desc())
        .limit(ENDED_CALL_LIMIT)
        .select(EndedCallRow::as_select())
        .load(conn)?;
    // The newest by id: after the clock was set back, an earlier call may have a later end.
    let Some(row) = rows.into_iter().max_by_key(|row| row.id) else { return Ok(None) };
    let outcome = match row.state {
        CallPhase::Complete => PromptOutcome::Done,
        CallPhase::Canceled => {
            match from_json::<CloseReason>("reason", row.error.as_deref().unwrap_or_default())? {
                CloseReason::Denied => PromptOutcome::Denied,
                CloseReason::Expired => PromptOutcome::Expired,
                CloseReason::Dropped | CloseReason::Replaced => PromptOutcome::Dropped,
            }
        }
        CallPhase::Created | CallPhase::Held | CallPhase::Running | CallPhase::Unknown | CallPhase::Error => {
            PromptOutcome::Failed
        }
    };
    Ok(Some(EndedCall { call: row.id, prompt_turn: row.turn_id, outcome }))
}

/// Outbound message to which a message of the user is most likely a reply.
struct LastMessage {
    id: OutboxId,
    body: String,
    kind: LastMessageKind,
}

enum LastMessageKind {
    /// Confirmation prompt, with the turn that sent it.
    Prompt(TurnId),
    Reply {
        turn: TurnId,
        kind: TurnKind,
        /// Responder of the turn.
        responder: Responder,
    },
    /// Notification that expects a reply, or a message that belongs to no turn.
    Other,
}

/// Loads the last accepted messages, newest first by the time of acceptance. Notifications that expect no reply are
/// skipped: no user replies yes or no to them.
fn load_answerable_messages(
    conn: &mut Conn,
    (user, room): (UserId, Option<UserId>),
) -> QueryResult<Vec<LastMessage>> {
    type LastMessageRow =
        (OutboxId, Option<Timestamp>, OutboundKind, String, Option<(TurnId, TurnKind, String)>);
    let rows: Vec<LastMessageRow> = outbox::table
        .left_join(turns::table)
        .filter(outbox::user_id.eq(user).and(outbox::accepted_at.is_not_null()))
        .filter(outbox::room_id.is(room))
        .order(outbox::id.desc())
        .limit(ACCEPTED_MESSAGE_LIMIT)
        .select((
            outbox::id,
            outbox::accepted_at,
            outbox::kind,
            outbox::body,
            (turns::id, turns::kind, turns::prompt).nullable(),
        ))
        .load(conn)?;
    let mut answerable: Vec<LastMessageRow> =
        rows.into_iter().filter(|(_, _, kind, body, _)| !messages::expects_no_reply(*kind, body)).collect();
    answerable.sort_by_key(|(id, at, ..)| std::cmp::Reverse((*at, *id)));
    let parse = |(id, _, kind, body, turn): LastMessageRow| {
        let kind = match (kind, turn) {
            (OutboundKind::ConfirmPrompt, Some((turn, ..))) => LastMessageKind::Prompt(turn),
            (OutboundKind::Reply, Some((turn, kind, plan))) => {
                LastMessageKind::Reply { turn, kind, responder: turn_rows::parse_plan_responder(&plan)? }
            }
            (OutboundKind::ConfirmPrompt | OutboundKind::Reply | OutboundKind::Notice, _) => {
                LastMessageKind::Other
            }
        };
        Ok(LastMessage { id, body, kind })
    };
    answerable.into_iter().map(parse).collect()
}

impl LastMessage {
    /// Returns whether the message is the confirmation prompt of `prompt_turn`, or a repeat of it.
    fn is_prompt_since(&self, prompt_turn: TurnId) -> bool {
        matches!(self.kind, LastMessageKind::Prompt(turn) if turn >= prompt_turn)
    }

    /// Returns whether the message is the confirmation prompt of `prompt_turn`, a repeat of the prompt, or a reply by
    /// code about the end of the pending action.
    fn is_about(&self, prompt_turn: TurnId, names: &[String]) -> bool {
        match self.kind {
            LastMessageKind::Prompt(turn) => turn >= prompt_turn,
            // A turn of these kinds only answers a yes or a no.
            LastMessageKind::Reply { turn, kind: TurnKind::Deny | TurnKind::Confirm, .. } => {
                turn >= prompt_turn
            }
            LastMessageKind::Reply {
                kind: TurnKind::Chat | TurnKind::Command,
                responder: Responder::Keyword,
                ..
            } => {
                let closing = deletion_messages::format_prompt_closed(names);
                let sent_forms = [EmojiPolicy::Keep, EmojiPolicy::Remove]
                    .map(|emoji| message_format::format_for_sms(&closing, emoji));
                sent_forms.iter().any(|closing| self.body.starts_with(closing))
                    && !message_format::asks_question(&self.body)
            }
            // A message from the model may expect a reply even without a question mark.
            LastMessageKind::Reply { responder: Responder::Model, .. } | LastMessageKind::Other => false,
        }
    }
}
