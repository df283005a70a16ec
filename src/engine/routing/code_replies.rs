//! Replies from code, without a model, in the transaction that claims the messages.

use serde_json::json;

use super::turn_start::{TurnStart, TurnStartOutcome};
use super::user_context::UserContext;
use crate::conversation::lifecycle::{self, ConversationSlot};
use crate::conversation::people::admin_commands;
use crate::conversation::routing::inbound_message::InboundEvent;
use crate::conversation::routing::message_origin::MessageOrigin;
use crate::conversation::routing::staleness::{self, StaleReason};
use crate::conversation::text::message_format::split_first_page;
use crate::conversation::transcript::{ConversationId, EventId, Responder, TurnId, User, UserId, UserStatus};
use crate::engine::reply_address::{self, ReplyAddress};
use crate::store::audit::{self, Actor, AuditSubject, NewAuditEntry};
use crate::store::confirmation::pending_action::{self, ActionClaimOutcome, CloseReason};
use crate::store::conversation::conversations::{self, EndReason};
use crate::store::conversation::history;
use crate::store::people::addresses::{self, OptOutcome, OptTarget};
use crate::store::people::age_limits;
use crate::store::queue::inbound_messages::{self, MessageOutcome};
use crate::store::queue::limited_messages;
use crate::store::queue::opt_out_confirmation;
use crate::store::queue::outbox::{self, NewOutboundMessage};
use crate::store::queue::suppression;
use crate::store::turns::finished_turns::{self, TurnEnd};
use crate::store::turns::turn_lifecycle::{self, ActiveTurn, NewTurn, TurnKind, TurnPlan};
use crate::store::{QueryResult, privacy};

/// Maximum number of outdated messages that one transaction finishes.
const MAX_STALE_MESSAGES: i64 = 5_000;

/// Confirmations on channels where no carrier confirms.
const OPTED_OUT: &str = "OK, you get no more texts from me. Text START if you change your mind.";
const OPTED_IN: &str = "Welcome back. You get my texts again. Text HELP for what I can do.";

const ERASED_REPLY: &str = "OK, I erased our messages. I still have your number and permissions.";

impl TurnStart<'_> {
    pub(super) fn skip_message(
        &mut self,
        event: &InboundEvent,
        reason: &'static str,
    ) -> QueryResult<TurnStartOutcome> {
        inbound_messages::finish_message(self.conn, event.id, MessageOutcome::Skipped(reason), self.now)?;
        Ok(TurnStartOutcome::Answered)
    }

    pub(super) fn opt_out(&mut self, user: &User, event: &InboundEvent) -> QueryResult<TurnStartOutcome> {
        let target = OptTarget { user: user.id, address: event.address_id() };
        if addresses::opt_out(self.conn, target, event.sent_at, self.now)? == OptOutcome::Changed {
            suppression::suppress_messages_to(self.conn, target, self.now)?;
        }
        // An opt-out denies the open confirmation prompt, regardless of how late it is processed.
        pending_action::close_pending_action(self.conn, user.id, CloseReason::Denied, self.now)?;
        self.confirm_opt_out(user, event)?;
        self.skip_message(event, "opt_out")
    }

    /// Confirms an opt-out once, if no carrier does. A blocked user gets no reply.
    fn confirm_opt_out(&mut self, user: &User, event: &InboundEvent) -> QueryResult<()> {
        // Without words, the channel reported that the person has blocked us.
        let was_written = !event.body.is_empty();
        if !was_written || !event.channel.needs_own_opt_out_replies() || user.status == UserStatus::Blocked {
            return Ok(());
        }
        let Some(key) = opt_out_confirmation::opt_out_confirmation_key(self.conn, user.id, event.id)? else {
            return Ok(());
        };
        let reply = ReplyAddress::from_message(user, event).reply_message(OPTED_OUT.to_owned());
        outbox::queue_message(self.conn, &NewOutboundMessage { key, ..reply }, self.now).map(drop)
    }

    /// Opts a user in again, with a reply if no carrier sends one.
    pub(super) fn opt_in(&mut self, user: &User, events: &[InboundEvent]) -> QueryResult<TurnStartOutcome> {
        let needs_reply = events[0].channel.needs_own_opt_out_replies() && !events[0].body.is_empty();
        if needs_reply && user.status == UserStatus::Pending {
            return self.receive_newcomer(user, &events[0]);
        }
        if needs_reply && user.status == UserStatus::Active {
            return self.answer_by_code(user, TurnKind::Command, events, OPTED_IN);
        }
        self.skip_message(&events[0], "opted_in")
    }

    /// Stores a turn without a reply, so that later turns include the message in their history.
    pub(super) fn store_without_reply(
        &mut self,
        user: &User,
        events: &[InboundEvent],
    ) -> QueryResult<TurnStartOutcome> {
        let active_turn =
            self.open_turn(user, TurnKind::Command, &TurnPlan::for_responder(Responder::Keyword), events)?;
        let end = TurnEnd::without_message(active_turn.id, MessageOutcome::NoAnswerNeeded);
        finished_turns::finish_turn(self.conn, &end, self.now)?;
        Ok(TurnStartOutcome::Answered)
    }

    pub(super) fn confirm_deletion(
        &mut self,
        user: &User,
        context: &UserContext,
        events: &[InboundEvent],
    ) -> QueryResult<TurnStartOutcome> {
        let active_turn =
            self.open_turn(user, TurnKind::Confirm, &TurnPlan::for_responder(Responder::Keyword), events)?;
        match pending_action::claim_pending_action(
            self.conn,
            user.id,
            events[0].id,
            active_turn.id,
            self.now,
        )? {
            ActionClaimOutcome::Claimed => Ok(TurnStartOutcome::Turn(active_turn)),
            ActionClaimOutcome::NotClaimable => {
                let text = format!("That question is closed. {}", context.kept_sentence());
                self.end_turn_by_code(
                    active_turn.id,
                    &ReplyAddress::from_turn(user.clone(), active_turn.id, events),
                    &text,
                )
            }
        }
    }

    pub(super) fn repeat_prompt(
        &mut self,
        user: &User,
        context: &UserContext,
        events: &[InboundEvent],
    ) -> QueryResult<TurnStartOutcome> {
        let prompt = context.pending.as_ref().map(|open| open.summary.clone()).unwrap_or_default();
        let active_turn =
            self.open_turn(user, TurnKind::Deny, &TurnPlan::for_responder(Responder::Keyword), events)?;
        let message = ReplyAddress::from_turn(user.clone(), active_turn.id, events).prompt_message(&prompt);
        pending_action::repeat_prompt(self.conn, user.id, &message, self.now)?;
        let end = TurnEnd {
            answer: Some(message.body),
            ..TurnEnd::without_message(active_turn.id, MessageOutcome::Replied)
        };
        finished_turns::finish_turn(self.conn, &end, self.now)?;
        Ok(TurnStartOutcome::Answered)
    }

    /// Closes a confirmation prompt after its second unclear answer.
    pub(super) fn close_unclear_prompt(
        &mut self,
        user: &User,
        context: &UserContext,
        events: &[InboundEvent],
    ) -> QueryResult<TurnStartOutcome> {
        pending_action::close_pending_action(self.conn, user.id, CloseReason::Dropped, self.now)?;
        let text = format!(
            "I did not get a clear yes. {} Ask again if you still want to delete it.",
            context.kept_sentence()
        );
        self.answer_by_code(user, TurnKind::Deny, events, &text)
    }

    /// Sends one reply to all waiting messages that are stale for the same reason.
    pub(super) fn reply_stale(
        &mut self,
        user: &User,
        context: &UserContext,
        reason: StaleReason,
    ) -> QueryResult<TurnStartOutcome> {
        let has_same_reason =
            |event: &&InboundEvent| staleness::stale_reason(event, context.resumed_at) == Some(reason);
        let waiting = inbound_messages::load_due_messages(self.conn, user.id, MAX_STALE_MESSAGES, self.now)?;
        let count = waiting.iter().take_while(has_same_reason).count().max(1);
        let texts = if count == 1 { "your text".to_owned() } else { format!("{count} of your texts") };
        let text = match reason {
            StaleReason::Missed => {
                format!("I was offline and missed {texts}. Please resend anything you still need.")
            }
            StaleReason::Paused => {
                format!(
                    "I was paused for more than an hour after {texts}. Please resend anything you still need."
                )
            }
        };
        self.answer_by_code(user, TurnKind::Command, &waiting[..count], &text)
    }

    /// Skips the messages beyond the rate limit and notifies their sender once. The messages remain stored.
    pub(super) fn reply_rate_limited(
        &mut self,
        user: &User,
        context: &UserContext,
        waiting: &[InboundEvent],
    ) -> QueryResult<TurnStartOutcome> {
        let Some(rate) = self.settings.rate_limit else {
            return self.skip_message(&waiting[0], "rate_limited");
        };
        let count = context.over_limit.iter().take_while(|over| **over).count().max(1);
        let limited = &waiting[..count];
        for event in limited {
            limited_messages::mark_over_limit(self.conn, event.id)?;
        }
        let since = limited[0].sent_at - rate.period;
        if limited_messages::was_notified_of_limit(self.conn, user.id, &limited[0], since)? {
            for event in limited {
                self.skip_message(event, "rate_limited")?;
            }
            return Ok(TurnStartOutcome::Answered);
        }
        for event in &limited[1..] {
            self.skip_message(event, "rate_limited")?;
        }
        self.answer_and_drop_prompt(user, context, &limited[..1], &admin_commands::format_rate_limited(rate))
    }

    pub(super) fn clear_conversation(
        &mut self,
        user: &User,
        context: &UserContext,
        events: &[InboundEvent],
    ) -> QueryResult<TurnStartOutcome> {
        self.answer_and_drop_prompt(user, context, events, "OK, we start over.")?;
        let owner = events[0].conversation_owner(user.id);
        if let Some(open) = conversations::load_open_conversation(self.conn, owner)? {
            conversations::end_conversation(self.conn, open.id, EndReason::Cleared, self.now)?;
        }
        Ok(TurnStartOutcome::Answered)
    }

    /// Erases the messages of both sides. The user's record remains, with the permissions and the added titles.
    pub(super) fn forget_all(
        &mut self,
        user: &User,
        context: &UserContext,
        events: &[InboundEvent],
    ) -> QueryResult<TurnStartOutcome> {
        let entry = NewAuditEntry {
            actor: Actor::User(user.id),
            kind: "forget_all",
            subject: AuditSubject::User(user.id),
            detail: json!({}),
        };
        audit::record_change(self.conn, &entry, self.now)?;
        // The reply is stored first, so that its own text is erased with the others.
        self.answer_and_drop_prompt(user, context, events, ERASED_REPLY)?;
        privacy::erase_user_content(self.conn, user.id, self.now)?;
        Ok(TurnStartOutcome::Answered)
    }

    /// Answers messages that are unrelated to an open confirmation prompt, and closes that prompt.
    pub(super) fn answer_and_drop_prompt(
        &mut self,
        user: &User,
        context: &UserContext,
        events: &[InboundEvent],
        text: &str,
    ) -> QueryResult<TurnStartOutcome> {
        let text = match self.drop_prompt(user, context, events)? {
            Some(closing) => reply_address::prepend_sentence(&closing, text),
            None => text.to_owned(),
        };
        self.answer_by_code(user, TurnKind::Command, events, &text)
    }

    /// Closes an open confirmation prompt because its user sent an unrelated message, and returns the sentence that
    /// reports the closing. Messages from the operator's buttons leave the prompt open: the user has not changed the
    /// subject.
    pub(super) fn drop_prompt(
        &mut self,
        user: &User,
        context: &UserContext,
        events: &[InboundEvent],
    ) -> QueryResult<Option<String>> {
        if context.pending.is_none() || events.iter().all(|event| event.origin == MessageOrigin::Button) {
            return Ok(None);
        }
        pending_action::close_pending_action(self.conn, user.id, CloseReason::Dropped, self.now)?;
        Ok(Some(context.closing_sentence()))
    }

    pub(super) fn send_next_page(
        &mut self,
        user: &User,
        context: &UserContext,
        events: &[InboundEvent],
    ) -> QueryResult<TurnStartOutcome> {
        let owner = events[0].conversation_owner(user.id);
        let reader = match events[0].room {
            Some(room) => age_limits::load_room_limit(self.conn, room)?,
            None => age_limits::load_user_limit(self.conn, user)?,
        };
        let last_answer = match conversations::load_open_conversation(self.conn, owner)? {
            // An open confirmation prompt was the last reply, and prompts are never split.
            Some(open) if context.pending.is_none() => {
                history::load_last_answer(self.conn, open.id, reader.changed_after)?
            }
            Some(_) | None => None,
        };
        let page_length = events[0].to.channel().profile().content.page_length;
        let remainder = last_answer.and_then(|answer| split_first_page(&answer, page_length).rest);
        let Some(remainder) = remainder else {
            return self.answer_and_drop_prompt(user, context, events, "There is nothing more.");
        };
        let active_turn =
            self.open_turn(user, TurnKind::Command, &TurnPlan::for_responder(Responder::Keyword), events)?;
        let address = ReplyAddress::from_turn(user.clone(), active_turn.id, events).with_emoji();
        self.end_turn_by_code(active_turn.id, &address, &remainder)
    }

    pub(super) fn answer_by_code(
        &mut self,
        user: &User,
        kind: TurnKind,
        events: &[InboundEvent],
        text: &str,
    ) -> QueryResult<TurnStartOutcome> {
        let active_turn = self.open_turn(user, kind, &TurnPlan::for_responder(Responder::Keyword), events)?;
        self.end_turn_by_code(
            active_turn.id,
            &ReplyAddress::from_turn(user.clone(), active_turn.id, events),
            text,
        )
    }

    fn end_turn_by_code(
        &mut self,
        turn: TurnId,
        address: &ReplyAddress,
        text: &str,
    ) -> QueryResult<TurnStartOutcome> {
        finished_turns::finish_turn(
            self.conn,
            &address.turn_end(turn, MessageOutcome::Replied, text),
            self.now,
        )?;
        Ok(TurnStartOutcome::Answered)
    }

    pub(super) fn open_turn(
        &mut self,
        user: &User,
        kind: TurnKind,
        plan: &TurnPlan,
        events: &[InboundEvent],
    ) -> QueryResult<ActiveTurn> {
        let owner = events.first().map_or(user.id, |event| event.conversation_owner(user.id));
        let open = conversations::load_open_conversation(self.conn, owner)?;
        let slot = lifecycle::choose_slot(open, self.settings.idle_timeout, self.now);
        self.open_turn_in_slot((user, slot), kind, plan, events)
    }

    /// Like [`Self::open_turn`], with the slot of the conversation as it was loaded in this transaction.
    pub(super) fn open_turn_in_slot(
        &mut self,
        (user, slot): (&User, ConversationSlot),
        kind: TurnKind,
        plan: &TurnPlan,
        events: &[InboundEvent],
    ) -> QueryResult<ActiveTurn> {
        let room = events.first().and_then(|event| event.room);
        let conversation = self.open_conversation(room.unwrap_or(user.id), slot, events)?;
        let id = turn_lifecycle::create_turn(
            self.conn,
            NewTurn { user: user.id, conversation, kind, plan },
            self.now,
        )?;
        self.created_turn = Some(id);
        let ids: Vec<EventId> = events.iter().map(|event| event.id).collect();
        inbound_messages::assign_to_turn(self.conn, &ids, id, self.now)?;
        Ok(ActiveTurn { id, kind, conversation, room, agent: None })
    }

    /// Returns the open conversation, or starts a new one after the idle timeout, named by the first words of the message.
    fn open_conversation(
        &mut self,
        owner: UserId,
        slot: ConversationSlot,
        events: &[InboundEvent],
    ) -> QueryResult<ConversationId> {
        match slot {
            ConversationSlot::Continue(id) => return Ok(id),
            ConversationSlot::AfterEnd(id, ended_at) => {
                conversations::end_conversation(self.conn, id, EndReason::Idle, ended_at)?
            }
            ConversationSlot::New => {}
        }
        let topic = events.first().and_then(|event| lifecycle::format_topic(&event.body));
        let name = topic.unwrap_or_else(|| lifecycle::format_start_name(self.now, &self.settings.zone));
        conversations::start_conversation(self.conn, owner, &name, self.now)
    }
}
