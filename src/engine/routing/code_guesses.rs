//! Counts of wrong codes in messages. After five wrong codes in a day, their sender can neither delete nor approve by
//! message.

use super::turn_start::{TurnStart, TurnStartOutcome};
use super::user_context::UserContext;
use crate::conversation::people::naming::display_name;
use crate::conversation::routing::inbound_message::InboundEvent;
use crate::conversation::transcript::User;
use crate::engine::reply_address::ReplyAddress;
use crate::store::QueryResult;
use crate::store::confirmation::code_misses::{self, MissOutcome};
use crate::store::people::users;
use crate::store::queue::outbox;
use crate::store::turns::daily_budget::Day;
use crate::store::turns::turn_lifecycle::TurnKind;

/// Reply to the wrong code that suspends its sender.
pub(super) const SUSPENDED_NOW: &str = "Too many wrong codes. I won't delete or approve anything by text until tomorrow. The \
                                        console still works. If this was not you, someone may be using your number.";
/// Reply to a yes, and to every command with a code, while the sender is suspended.
pub(super) const SUSPENDED: &str = "Too many wrong codes. I won't delete or approve anything by text until tomorrow. The \
                                    console still works.";

impl TurnStart<'_> {
    /// Returns whether this message may neither confirm nor approve, because its sender is suspended.
    pub(super) fn is_suspended(&mut self, user: &User, event: &InboundEvent) -> QueryResult<bool> {
        if !event.can_guess_codes() {
            return Ok(false);
        }
        let misses = code_misses::load_code_misses(self.conn, user.id)?;
        Ok(misses.is_suspended_on(&Day::from_timestamp(self.now, &self.settings.zone)))
    }

    /// Answers a yes while confirming is suspended. The confirmation prompt stays open: the operator can confirm it in
    /// the console.
    pub(super) fn refuse_suspended(
        &mut self,
        user: &User,
        events: &[InboundEvent],
    ) -> QueryResult<TurnStartOutcome> {
        self.answer_by_code(user, TurnKind::Deny, events, SUSPENDED)
    }

    /// Handles a yes with a wrong code: the confirmation prompt is repeated once and then closed.
    pub(super) fn handle_wrong_code(
        &mut self,
        user: &User,
        context: &UserContext,
        events: &[InboundEvent],
    ) -> QueryResult<TurnStartOutcome> {
        let repeats = context.pending.as_ref().map_or(0, |open| open.repeats);
        match (self.count_wrong_code(user, &events[0])?, repeats) {
            (MissOutcome::Suspended, _) => self.answer_by_code(user, TurnKind::Deny, events, SUSPENDED_NOW),
            (MissOutcome::Counted, 0) => self.repeat_prompt(user, context, events),
            (MissOutcome::Counted, _) => self.close_unclear_prompt(user, context, events),
        }
    }

    /// Counts a wrong code. If it suspends the sender, the other admins are notified.
    pub(super) fn count_wrong_code(&mut self, user: &User, event: &InboundEvent) -> QueryResult<MissOutcome> {
        if !event.can_guess_codes() {
            return Ok(MissOutcome::Counted);
        }
        let today = Day::from_timestamp(self.now, &self.settings.zone);
        let outcome = code_misses::count_miss(self.conn, user.id, &today, self.now)?;
        if outcome == MissOutcome::Suspended {
            self.notify_other_admins(user)?;
        }
        Ok(outcome)
    }

    fn notify_other_admins(&mut self, user: &User) -> QueryResult<()> {
        let name = display_name(user);
        let body = format!(
            "Too many wrong codes from {name}'s number. {name} can't delete or approve by text until tomorrow. The \
             number may be forged. You can lift this in the console."
        );
        let key = format!("codes:{}:{}", user.id, self.now.as_millisecond());
        for admin in users::load_admins(self.conn)?.into_iter().filter(|admin| admin.id != user.id) {
            let address = ReplyAddress::load_for_user(self.conn, &admin, &self.settings.senders)?;
            outbox::queue_message_once(self.conn, &address.notification_message(&key, &body), self.now)?;
        }
        Ok(())
    }
}
