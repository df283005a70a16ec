//! Pending actions, at most one per user: creation, repeats of the prompt, the single claim by a yes, and closing.

use diesel::prelude::*;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::deletion_items::{self, DeletionItemPhase};
use super::prompt_message::PromptMessage;
use crate::conversation::agents::MAX_QUESTION_AGE;
use crate::conversation::channel::Channel;
use crate::conversation::deletion::claimed_deletion::{ClaimedDeletion, DeletionItem, DeletionItemState};
use crate::conversation::deletion::deletion_messages::{self, ItemOutcome};
use crate::conversation::deletion::target::DeletionTarget;
use crate::conversation::grammar::confirmation_reply::ConfirmationCode;
use crate::conversation::stream_events::{CallPhase, PromptState, StreamEventKind};
use crate::conversation::transcript::{
    AddressId, CallFailure, CallResult, CallRow, ConversationId, EventId, FailureCode, MediaKind, OutboxId,
    TurnId, UserId,
};
use crate::store::codec::{
    call_failure_json, call_result_json, convert_integer, from_json, ms, parse_fingerprint, parse_scope,
    to_json,
};
use crate::store::column_types::StoredEnum;
use crate::store::database::statement_cache::cached_update;
use crate::store::library::space_proposals;
use crate::store::queue::inbound_messages::MessageOutcome;
use crate::store::queue::outbox::{self, NewOutboundMessage};
use crate::store::schema::{outbox as outbox_rows, pending_actions, tool_call_items, tool_calls};
use crate::store::stream::recording::{EventOwner, record_event};
use crate::store::turns::calls::{self, ChangedCall};
use crate::store::turns::finished_turns::{self, TurnEnd};
use crate::store::turns::turn_lifecycle as turn_rows;
use crate::store::{Conn, agent_calls};

/// Deletion to hold until it is confirmed.
#[derive(Debug, Clone)]
pub struct NewPendingAction {
    pub turn: TurnId,
    pub user: UserId,
    pub conversation: ConversationId,
    pub items: Vec<DeletionTarget>,
    /// Exact text of the confirmation prompt.
    pub summary: String,
    pub code: Option<String>,
    /// Message that contains the confirmation prompt.
    pub prompt: NewOutboundMessage,
    /// Message to the room of the turn, if the prompt is sent to the private chat of the person who is asked.
    pub announcement: Option<NewOutboundMessage>,
    /// True if the turn runs the call of an agent, which replaces no question of the person.
    pub asked_by_agent: bool,
}

/// Outcome of holding a deletion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HoldOutcome {
    Held,
    /// Cancellation of the turn was requested: no confirmation prompt is sent, and the caller must still end the turn.
    Canceled,
}

/// Holds a deletion and ends the turn: the call is held, the confirmation prompt is queued, and the turn is finished.
pub fn hold_deletion(
    conn: &mut Conn,
    call: CallRow,
    action: &NewPendingAction,
    now: Timestamp,
) -> QueryResult<HoldOutcome> {
    if turn_rows::is_cancel_requested(conn, action.turn)? {
        return Ok(HoldOutcome::Canceled);
    }
    close_pending_action(conn, action.user, CloseReason::Replaced, now)?;
    let held = diesel::update(tool_calls::table.find(call).filter(tool_calls::state.eq(CallPhase::Created)))
        .set((tool_calls::state.eq(CallPhase::Held), tool_calls::updated_at.eq(ms(now))))
        .returning(ChangedCall::as_returning())
        .get_results(conn)?;
    calls::record_changed_calls(conn, held, now)?;
    deletion_items::insert_items(conn, call, &action.items)?;
    let prompt = outbox::queue_message(conn, &action.prompt, now)?;
    if action.asked_by_agent {
        outbox::set_deadline(conn, prompt, now + MAX_QUESTION_AGE)?;
    }
    let asked: ChangedPrompt = diesel::insert_into(pending_actions::table)
        .values((
            pending_actions::user_id.eq(action.user),
            pending_actions::tool_call_id.eq(call),
            pending_actions::conversation_id.eq(action.conversation),
            pending_actions::summary.eq(&action.summary),
            pending_actions::code.eq(&action.code),
            pending_actions::prompt_outbox_id.eq(prompt),
            pending_actions::created_at.eq(ms(now)),
        ))
        .returning(ChangedPrompt::as_returning())
        .get_result(conn)?;
    asked.record_state(conn, PromptState::Sending, now)?;
    // A prompt in a private chat is no part of the conversation in the room.
    let shown = action.announcement.as_ref().unwrap_or(&action.prompt);
    let end = TurnEnd {
        turn: action.turn,
        outcome: MessageOutcome::Replied,
        answer: Some(shown.body.clone()),
        messages: action.announcement.iter().cloned().collect(),
    };
    finished_turns::finish_turn(conn, &end, now)?;
    Ok(HoldOutcome::Held)
}

/// Columns of a pending action whose state changed.
#[derive(Debug, Clone, Copy, Queryable, Selectable)]
#[diesel(table_name = pending_actions)]
struct ChangedPrompt {
    id: i64,
    tool_call_id: CallRow,
    conversation_id: ConversationId,
    expires_at: Option<Timestamp>,
}

impl ChangedPrompt {
    fn is_expired(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|at| at <= now)
    }

    /// Records the event of the change.
    fn record_state(self, conn: &mut Conn, state: PromptState, now: Timestamp) -> QueryResult<()> {
        let turn = tool_calls::table.find(self.tool_call_id).select(tool_calls::turn_id).first(conn)?;
        let owner = EventOwner { turn: Some(turn), conversation: Some(self.conversation_id) };
        record_event(conn, owner, now, StreamEventKind::Prompt(self.id, state))
    }
}

/// Open pending action of a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingAction {
    pub call: CallRow,
    pub summary: String,
    pub code: Option<ConfirmationCode>,
    /// Message that asks it.
    pub prompt: OutboxId,
    pub repeats: u32,
    pub armed_at: Option<Timestamp>,
    /// Time of the confirmation prompt by the clock of its channel, if that also dates the user's messages.
    pub dated_at: Option<Timestamp>,
    /// True if another message was sent to the user after the confirmation prompt.
    pub was_followed: bool,
    /// Channel on which the confirmation prompt was sent.
    pub channel: Channel,
    /// Address of the user to which it was sent; `None` if it is only shown.
    pub address: Option<AddressId>,
    /// Room to which it was sent; `None` for a private chat.
    pub room: Option<UserId>,
    /// Names of the items, such as `Dune (2021)`, one per item.
    pub names: Vec<String>,
    pub items: Vec<(MediaKind, i64)>,
}

impl PendingAction {
    /// Returns the media kind of the titles, if all have the same kind.
    pub fn common_kind(&self) -> Option<MediaKind> {
        let (first, _) = *self.items.first()?;
        self.items.iter().all(|(kind, _)| *kind == first).then_some(first)
    }
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = pending_actions)]
struct PendingActionRow {
    tool_call_id: CallRow,
    summary: String,
    /// An unreadable code is an error, so that it does not allow a bare yes.
    code: Option<ConfirmationCode>,
    repeats: i64,
    prompt_outbox_id: OutboxId,
    armed_at: Option<Timestamp>,
}

pub fn load_pending_action(conn: &mut Conn, user: UserId) -> QueryResult<Option<PendingAction>> {
    let row: Option<PendingActionRow> = pending_actions::table
        .filter(pending_actions::user_id.eq(user))
        .select(PendingActionRow::as_select())
        .first(conn)
        .optional()?;
    let Some(row) = row else { return Ok(None) };
    // After a repeat, only a reply to the repeat counts.
    let prompt = PromptMessage::load(conn, row.prompt_outbox_id)?;
    let was_followed = prompt.was_followed(conn, user)?;
    let items = load_deletion_items(conn, row.tool_call_id)?;
    Ok(Some(PendingAction {
        call: row.tool_call_id,
        summary: row.summary,
        code: row.code,
        prompt: row.prompt_outbox_id,
        repeats: convert_integer(row.repeats)?,
        armed_at: row
            .armed_at
            .zip(prompt.accepted_at)
            .filter(|_| prompt.is_readable())
            .map(|(armed, accepted)| armed.max(accepted)),
        dated_at: prompt.dated_at(),
        was_followed,
        channel: prompt.channel(),
        address: prompt.address_id,
        room: prompt.room,
        names: items.iter().map(|item| deletion_messages::format_target_name(&item.target)).collect(),
        items: items.iter().map(|item| (item.target.kind, item.target.id)).collect(),
    }))
}

/// Arms the pending action of a confirmation prompt. The action expires `confirm_for` after a prompt of its turn was
/// first accepted. A repeated prompt does not change the expiry, but only a reply after the repeat counts.
pub(in crate::store) fn arm_pending_action(
    conn: &mut Conn,
    prompt: OutboxId,
    confirm_for: SignedDuration,
    now: Timestamp,
) -> QueryResult<()> {
    let prompting_turn: Option<TurnId> =
        outbox_rows::table.find(prompt).select(outbox_rows::turn_id).first(conn)?;
    let calls =
        tool_calls::table.filter(tool_calls::turn_id.nullable().eq(prompting_turn)).select(tool_calls::id);
    let is_of_turn = pending_actions::tool_call_id.eq_any(calls);
    let has_this_prompt = pending_actions::prompt_outbox_id.eq(prompt);
    let without_expiry = pending_actions::table.filter(pending_actions::expires_at.is_null());
    let mut armed: Vec<ChangedPrompt> = diesel::update(without_expiry.filter(has_this_prompt.or(is_of_turn)))
        .set((pending_actions::armed_at.eq(ms(now)), pending_actions::expires_at.eq(ms(now + confirm_for))))
        .returning(ChangedPrompt::as_returning())
        .get_results(conn)?;
    let has_other_time = pending_actions::armed_at.is_null().or(pending_actions::armed_at.ne(ms(now)));
    let repeated: Vec<ChangedPrompt> =
        cached_update(pending_actions::table.filter(has_this_prompt.and(has_other_time)))
            .set(pending_actions::armed_at.eq(ms(now)))
            .returning(ChangedPrompt::as_returning())
            .get_results(conn)?;
    armed.extend(repeated);
    armed.into_iter().try_for_each(|prompt| prompt.record_state(conn, PromptState::Open, now))
}

/// Closes the user's pending action if it has expired, with the time of expiry as the end. Returns whether it had.
pub fn expire_pending_action(conn: &mut Conn, user: UserId, now: Timestamp) -> QueryResult<bool> {
    let expired: Option<Option<Timestamp>> = pending_actions::table
        .filter(pending_actions::user_id.eq(user).and(pending_actions::expires_at.le(ms(now))))
        .select(pending_actions::expires_at)
        .first(conn)
        .optional()?;
    match expired.flatten() {
        Some(at) => close_pending_action(conn, user, CloseReason::Expired, at).map(|()| true),
        None => Ok(false),
    }
}

/// Closes the user's pending action if it has expired, or if its prompt could not be sent.
pub fn close_unanswerable_action(conn: &mut Conn, user: UserId, now: Timestamp) -> QueryResult<()> {
    if expire_pending_action(conn, user, now)? {
        return Ok(());
    }
    let unsent: Option<i64> = pending_actions::table
        .inner_join(outbox_rows::table.on(outbox_rows::id.eq(pending_actions::prompt_outbox_id)))
        .filter(pending_actions::user_id.eq(user).and(pending_actions::expires_at.is_null()))
        .filter(agent_calls::IS_LOST)
        .select(pending_actions::id)
        .first(conn)
        .optional()?;
    match unsent {
        Some(_) => close_pending_action(conn, user, CloseReason::Expired, now),
        None => Ok(()),
    }
}

/// Sends the confirmation prompt once more. The repeat replaces the first prompt, and the expiry does not change.
pub fn repeat_prompt(
    conn: &mut Conn,
    user: UserId,
    repeat: &NewOutboundMessage,
    now: Timestamp,
) -> QueryResult<()> {
    let prompt = outbox::queue_message(conn, repeat, now)?;
    diesel::update(pending_actions::table.filter(pending_actions::user_id.eq(user)))
        .set((
            pending_actions::repeats.eq(pending_actions::repeats + 1),
            pending_actions::prompt_outbox_id.eq(prompt),
        ))
        .execute(conn)
        .map(drop)
}

/// Reason why a pending action is closed without being executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CloseReason {
    Denied,
    Expired,
    /// The user changed the subject, or the titles are on a server that was replaced.
    Dropped,
    Replaced,
}

/// Closes the user's pending action, if one is open. No part of the action will run.
pub fn close_pending_action(
    conn: &mut Conn,
    user: UserId,
    reason: CloseReason,
    now: Timestamp,
) -> QueryResult<()> {
    let closed: Option<ChangedPrompt> =
        diesel::delete(pending_actions::table.filter(pending_actions::user_id.eq(user)))
            .returning(ChangedPrompt::as_returning())
            .get_result(conn)
            .optional()?;
    let Some(closed) = closed else { return Ok(()) };
    closed.record_state(conn, PromptState::Closed, now)?;
    let reason = match reason {
        CloseReason::Dropped | CloseReason::Replaced if closed.is_expired(now) => CloseReason::Expired,
        reason => reason,
    };
    let call = closed.tool_call_id;
    diesel::update(tool_call_items::table.filter(tool_call_items::tool_call_id.eq(call)))
        .set(tool_call_items::state.eq(DeletionItemPhase::Canceled))
        .execute(conn)?;
    let canceled = diesel::update(tool_calls::table.find(call).filter(tool_calls::state.eq(CallPhase::Held)))
        .set((
            tool_calls::state.eq(CallPhase::Canceled),
            tool_calls::error.eq(to_json(&reason)?),
            tool_calls::finished_at.eq(ms(now)),
            tool_calls::updated_at.eq(ms(now)),
        ))
        .returning(ChangedCall::as_returning())
        .get_results(conn)?;
    calls::record_changed_calls(conn, canceled, now)?;
    match reason {
        CloseReason::Denied => space_proposals::keep_denied_titles(conn, call),
        CloseReason::Expired | CloseReason::Dropped | CloseReason::Replaced => Ok(()),
    }
}

/// Outcome of claiming a pending action with a yes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ActionClaimOutcome {
    /// The pending action is claimed by this yes alone; `turn` will execute it.
    Claimed,
    /// The pending action is closed, not armed, or expired.
    NotClaimable,
}

/// Removes the pending action and assigns its call to `turn`. The removal is atomic: only one of two concurrent yes
/// replies claims the action.
pub fn claim_pending_action(
    conn: &mut Conn,
    user: UserId,
    confirmed_by: EventId,
    turn: TurnId,
    now: Timestamp,
) -> QueryResult<ActionClaimOutcome> {
    let prompt = outbox_rows::id.eq(pending_actions::prompt_outbox_id);
    let accepted = outbox_rows::table.filter(prompt.and(outbox_rows::accepted_at.is_not_null()));
    let open = pending_actions::table
        .filter(pending_actions::user_id.eq(user))
        .filter(diesel::dsl::exists(accepted))
        .filter(pending_actions::armed_at.is_not_null().and(pending_actions::expires_at.gt(ms(now))));
    let claimed: Option<ChangedPrompt> =
        diesel::delete(open).returning(ChangedPrompt::as_returning()).get_result(conn).optional()?;
    let Some(claimed) = claimed else { return Ok(ActionClaimOutcome::NotClaimable) };
    claimed.record_state(conn, PromptState::Closed, now)?;
    let call = claimed.tool_call_id;
    let created = diesel::update(tool_calls::table.find(call).filter(tool_calls::state.eq(CallPhase::Held)))
        .set((
            tool_calls::state.eq(CallPhase::Created),
            tool_calls::confirmed_by.eq(confirmed_by),
            tool_calls::run_turn_id.eq(turn),
            tool_calls::updated_at.eq(ms(now)),
        ))
        .returning(ChangedCall::as_returning())
        .get_results(conn)?;
    calls::record_changed_calls(conn, created, now)?;
    Ok(ActionClaimOutcome::Claimed)
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = tool_call_items)]
struct DeletionItemRow {
    ord: i64,
    instance: String,
    kind: MediaKind,
    item_id: i64,
    delete_files: bool,
    extent: Option<String>,
    fingerprint: String,
    state: DeletionItemPhase,
    result: Option<String>,
    attempts: i64,
    started_at: Option<Timestamp>,
}

impl DeletionItemRow {
    fn into_deletion_item(self) -> QueryResult<DeletionItem> {
        let state = match self.state {
            DeletionItemPhase::Pending => DeletionItemState::Held,
            DeletionItemPhase::Running | DeletionItemPhase::Unknown => DeletionItemState::Running,
            DeletionItemPhase::Canceled => DeletionItemState::Canceled,
            DeletionItemPhase::Complete | DeletionItemPhase::Error => {
                let outcome: String = from_json("outcome", &self.result.unwrap_or_default())?;
                DeletionItemState::Ended(ItemOutcome::from_text(&outcome)?)
            }
        };
        let target = DeletionTarget {
            instance: self.instance,
            kind: self.kind,
            id: self.item_id,
            delete_files: self.delete_files,
            scope: parse_scope(self.extent.as_deref())?,
            fingerprint: parse_fingerprint(&self.fingerprint)?,
        };
        let attempts = convert_integer(self.attempts)?;
        Ok(DeletionItem { ord: self.ord, target, state, attempts, started_at: self.started_at })
    }
}

pub(in crate::store) fn load_deletion_items(
    conn: &mut Conn,
    call: CallRow,
) -> QueryResult<Vec<DeletionItem>> {
    let rows = tool_call_items::table
        .filter(tool_call_items::tool_call_id.eq(call))
        .order(tool_call_items::ord)
        .select(DeletionItemRow::as_select())
        .load(conn)?;
    rows.into_iter().map(DeletionItemRow::into_deletion_item).collect()
}

/// Loads the deletion that `turn` executes. No other function creates a [`ClaimedDeletion`]: it exists only for a call
/// that references the message that confirmed it.
pub fn load_claimed_deletion(conn: &mut Conn, turn: TurnId) -> QueryResult<Option<ClaimedDeletion>> {
    let agent = (agent_calls::key_of_call(), agent_calls::key_name_of_call(), agent_calls::client_of_call());
    let row: Option<(CallRow, String, agent_calls::AgentColumns)> = tool_calls::table
        .filter(tool_calls::run_turn_id.eq(turn).and(tool_calls::confirmed_by.is_not_null()))
        .select((tool_calls::id, tool_calls::tool_name, agent))
        .first(conn)
        .optional()?;
    let Some((call, tool, agent)) = row else { return Ok(None) };
    let (items, agent) = (load_deletion_items(conn, call)?, agent_calls::agent_from_columns(agent));
    Ok(Some(ClaimedDeletion::from_confirmed_call((call, tool), items, agent)))
}

/// Finishes the call of a claimed deletion: as complete if all items are gone, otherwise as failed. `report` is the
/// result text for the user.
pub fn finish_claimed_deletion(
    conn: &mut Conn,
    claimed: &ClaimedDeletion,
    report: &str,
    now: Timestamp,
) -> QueryResult<()> {
    let is_gone = |item: &DeletionItem| {
        matches!(item.state, DeletionItemState::Ended(ItemOutcome::Deleted | ItemOutcome::AlreadyGone))
    };
    if !claimed.items().iter().all(is_gone) {
        return fail_claimed_call(conn, claimed.call(), report, now);
    }
    let for_model = serde_json::json!({ "status": "deleted", "reply_to_user": report });
    let result = CallResult { for_model, for_user: report.to_owned(), shown: Vec::new() };
    let finished = diesel::update(tool_calls::table.find(claimed.call()))
        .set((
            tool_calls::state.eq(CallPhase::Complete),
            tool_calls::response.eq(call_result_json(&result)?),
            tool_calls::finished_at.eq(ms(now)),
            tool_calls::updated_at.eq(ms(now)),
        ))
        .returning(ChangedCall::as_returning())
        .get_results(conn)?;
    calls::record_changed_calls(conn, finished, now)
}

fn fail_claimed_call(conn: &mut Conn, call: CallRow, report: &str, now: Timestamp) -> QueryResult<()> {
    let for_model = serde_json::json!({ "reply_to_user": report });
    let failure = CallFailure { code: FailureCode::NotDeleted, for_model, for_user: Some(report.to_owned()) };
    let failed = diesel::update(tool_calls::table.find(call))
        .set((
            tool_calls::state.eq(CallPhase::Error),
            tool_calls::error.eq(call_failure_json(&failure)?),
            tool_calls::finished_at.eq(ms(now)),
            tool_calls::updated_at.eq(ms(now)),
        ))
        .returning(ChangedCall::as_returning())
        .get_results(conn)?;
    calls::record_changed_calls(conn, failed, now)
}

/// Fails the claimed call of a turn that cannot continue, and returns the call. The states of its items do not change.
pub fn abandon_claimed_deletion(
    conn: &mut Conn,
    turn: TurnId,
    report: &str,
    now: Timestamp,
) -> QueryResult<Option<CallRow>> {
    let call: Option<CallRow> = tool_calls::table
        .filter(tool_calls::run_turn_id.eq(turn).and(tool_calls::confirmed_by.is_not_null()))
        .select(tool_calls::id)
        .first(conn)
        .optional()?;
    let Some(call) = call else { return Ok(None) };
    fail_claimed_call(conn, call, report, now)?;
    Ok(Some(call))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::transcript::{Address, PhoneNumber, Responder};
    use crate::store::conversation::conversations;
    use crate::store::people::users::{self, FirstContactRole};
    use crate::store::queue::outbox::OutboundKind;
    use crate::store::scratch;
    use crate::store::turns::model_steps;
    use crate::store::turns::turn_lifecycle::{NewTurn, TurnKind, TurnPlan};

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    #[test]
    fn canceled_turn_holds_no_deletion() {
        let mut conn = scratch();
        let conn = &mut conn;
        let phone = PhoneNumber::parse("+15550100001").unwrap();
        let user = users::ensure_user(conn, &phone, FirstContactRole::Member, NOW).unwrap();
        let conversation = conversations::start_conversation(conn, user, "Nov 20", NOW).unwrap();
        let plan = TurnPlan::for_responder(Responder::Model);
        let new_turn = NewTurn { user, conversation, kind: TurnKind::Chat, plan: &plan };
        let turn = turn_rows::create_turn(conn, new_turn, NOW).unwrap();
        let call = model_steps::add_call(conn, turn, "remove_media", NOW).unwrap();
        let prompt_text = "Delete Dune (2021)?".to_owned();
        let prompt = NewOutboundMessage {
            key: "prompt".to_owned(),
            user,
            address: None,
            turn: Some(turn),
            kind: OutboundKind::ConfirmPrompt,
            to: Address::new("+15550100001"),
            from: Address::new("+15550100000"),
            body: prompt_text.clone(),
            media: None,
            reacts_to: None,
            quotes: None,
            room: None,
            vote: None,
            segments: 1,
        };
        let action = NewPendingAction {
            turn,
            user,
            conversation,
            items: Vec::new(),
            summary: prompt_text,
            code: None,
            prompt,
            announcement: None,
            asked_by_agent: false,
        };

        turn_rows::request_cancel(conn, user, NOW).unwrap();
        assert_eq!(hold_deletion(conn, call, &action, NOW).unwrap(), HoldOutcome::Canceled);

        assert_eq!(load_pending_action(conn, user).unwrap(), None);
        assert_eq!(outbox_rows::table.count().get_result::<i64>(conn).unwrap(), 0);
        assert_eq!(turn_rows::load_active_turn(conn, user).unwrap().map(|active| active.id), Some(turn));
    }
}
