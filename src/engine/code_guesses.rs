//! Wrong codes in messages: they are counted, and after five in a day their sender can neither delete nor approve by
//! message.

use super::begin::{Beginning, Begun, Scene};
use super::ending::WayBack;
use crate::conversation::inbound_message::InboundEvent;
use crate::conversation::naming::called;
use crate::conversation::transcript::User;
use crate::store::code_misses::{self, MissOutcome};
use crate::store::spend::Day;
use crate::store::turns::Kind;
use crate::store::{QueryResult, outbox, users};

/// Answer to the wrong code that suspends its sender.
pub(super) const SUSPENDED_NOW: &str = "Too many wrong codes: I delete and approve nothing by text until tomorrow. The \
                                        console still can. If this was not you, someone may be using your number.";
/// Answer to a yes and to every command with a code while the sender is suspended.
pub(super) const SUSPENDED: &str = "Too many wrong codes: I delete and approve nothing by text until tomorrow. The \
                                    console still can.";

impl Beginning<'_> {
    /// Returns whether this message may neither confirm nor approve.
    pub(super) fn is_suspended(&mut self, user: &User, event: &InboundEvent) -> QueryResult<bool> {
        if !event.can_guess_codes() {
            return Ok(false);
        }
        let misses = code_misses::load(self.conn, user.id)?;
        Ok(misses.suspend_on(&Day::of(self.now, &self.settings.zone)))
    }

    /// Answers a yes while confirming is suspended. The confirmation prompt stays open: the operator can confirm it in
    /// the console.
    pub(super) fn refuse_suspended(&mut self, user: &User, events: &[InboundEvent]) -> QueryResult<Begun> {
        self.answer(user, Kind::Deny, events, SUSPENDED)
    }

    /// Handles a yes with a wrong code: the confirmation prompt is repeated once and then closed.
    pub(super) fn wrong_code(
        &mut self,
        user: &User,
        scene: &Scene,
        events: &[InboundEvent],
    ) -> QueryResult<Begun> {
        let repeats = scene.pending.as_ref().map_or(0, |open| open.repeats);
        match (self.count_guess(user, &events[0])?, repeats) {
            (MissOutcome::Suspended, _) => self.answer(user, Kind::Deny, events, SUSPENDED_NOW),
            (MissOutcome::Counted, 0) => self.repeat(user, scene, events),
            (MissOutcome::Counted, _) => self.close_unclear(user, scene, events),
        }
    }

    /// Counts a wrong code. The other admins are notified of the one that suspends its sender.
    pub(super) fn count_guess(&mut self, user: &User, event: &InboundEvent) -> QueryResult<MissOutcome> {
        if !event.can_guess_codes() {
            return Ok(MissOutcome::Counted);
        }
        let today = Day::of(self.now, &self.settings.zone);
        let outcome = code_misses::count_miss(self.conn, user.id, &today, self.now)?;
        if outcome == MissOutcome::Suspended {
            self.notify_other_admins(user)?;
        }
        Ok(outcome)
    }

    fn notify_other_admins(&mut self, user: &User) -> QueryResult<()> {
        let name = called(user);
        let body = format!(
            "Too many wrong codes from {name}'s number. {name} can't delete or approve by text until tomorrow. The \
             number may be forged. The console can lift this."
        );
        let key = format!("codes:{}:{}", user.id, self.now.as_millisecond());
        for admin in users::admins(self.conn)?.into_iter().filter(|admin| admin.id != user.id) {
            let way = WayBack::to_user(self.conn, &admin, self.settings.number.as_ref())?;
            outbox::queue_once(self.conn, &way.notice(&key, &body), self.now)?;
        }
        Ok(())
    }
}
