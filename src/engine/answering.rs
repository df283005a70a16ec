//! Answers that code gives without a model, in the transaction that claims the messages.

use serde_json::json;

use super::begin::{Beginning, Begun, Scene};
use super::ending::{self, WayBack};
use crate::conversation::inbound_message::InboundEvent;
use crate::conversation::lifecycle::{self, Place};
use crate::conversation::origin::Origin;
use crate::conversation::route::TooOld;
use crate::conversation::transcript::{Brain, ConversationId, EventId, TurnId, User, UserId};
use crate::conversation::{orders, route, text};
use crate::store::audit::{self, By, Entry, Subject};
use crate::store::conversations::{self, EndReason};
use crate::store::ledger::{self, Outcome};
use crate::store::pending::{self, Claim, Closing};
use crate::store::turns::{self, End, Kind, Live, NewTurn, Plan};
use crate::store::users::{self, OptChange};
use crate::store::{QueryResult, history, outbox, privacy};

/// Maximum number of outdated messages that are ended together.
const OLD_TOGETHER: i64 = 5_000;

const FORGOTTEN: &str = "OK, I forgot what we said. I still know your number and what you may do.";

impl Beginning<'_> {
    pub(super) fn skip(&mut self, event: &InboundEvent, reason: &'static str) -> QueryResult<Begun> {
        ledger::end(self.conn, event.id, Outcome::Skipped(reason), self.now)?;
        Ok(Begun::Answered)
    }

    pub(super) fn opt_out(&mut self, user: &User, event: &InboundEvent) -> QueryResult<Begun> {
        if users::opt_out(self.conn, user.id, event.sent_at, self.now)? == OptChange::Done {
            outbox::suppress_all(self.conn, user.id, self.now)?;
        }
        // An opt-out denies the open confirmation prompt, however late it is processed.
        pending::close(self.conn, user.id, Closing::Denied, self.now)?;
        self.skip(event, "opt_out")
    }

    /// Stores a turn without an answer, so that later turns include the message in their history.
    pub(super) fn remember(&mut self, user: &User, events: &[InboundEvent]) -> QueryResult<Begun> {
        let live = self.open_turn(user, Kind::Command, &Plan::by(Brain::Keyword), events)?;
        let end = End::without_a_text(live.id, Outcome::Remembered);
        turns::finish(self.conn, &end, self.now)?;
        Ok(Begun::Answered)
    }

    pub(super) fn confirm(
        &mut self,
        user: &User,
        scene: &Scene,
        events: &[InboundEvent],
    ) -> QueryResult<Begun> {
        let live = self.open_turn(user, Kind::Confirm, &Plan::by(Brain::Keyword), events)?;
        match pending::claim(self.conn, user.id, events[0].id, live.id, self.now)? {
            Claim::Claimed => Ok(Begun::Turn(live)),
            Claim::Lost => {
                let text = format!("That question is closed. {}", scene.kept());
                self.end_by_code(live.id, &WayBack::back(user.clone(), live.id, events), &text)
            }
        }
    }

    pub(super) fn repeat(
        &mut self,
        user: &User,
        scene: &Scene,
        events: &[InboundEvent],
    ) -> QueryResult<Begun> {
        let question = scene.pending.as_ref().map(|open| open.question.clone()).unwrap_or_default();
        let live = self.open_turn(user, Kind::Deny, &Plan::by(Brain::Keyword), events)?;
        let text = WayBack::back(user.clone(), live.id, events).question(&question);
        pending::repeat(self.conn, user.id, &text, self.now)?;
        let asked = End::without_a_text(live.id, Outcome::Replied);
        let end = End { answer: Some(text.body), ..asked };
        turns::finish(self.conn, &end, self.now)?;
        Ok(Begun::Answered)
    }

    /// Closes a confirmation prompt that was answered unclearly for the second time.
    pub(super) fn close_unclear(
        &mut self,
        user: &User,
        scene: &Scene,
        events: &[InboundEvent],
    ) -> QueryResult<Begun> {
        pending::close(self.conn, user.id, Closing::Dropped, self.now)?;
        let text = format!("I did not get a clear yes. {} Ask again if you want it gone.", scene.kept());
        self.answer(user, Kind::Deny, events, &text)
    }

    /// Sends one answer for all waiting messages that are too old for the same reason.
    pub(super) fn too_old(&mut self, user: &User, scene: &Scene, why: TooOld) -> QueryResult<Begun> {
        let same = |event: &&InboundEvent| route::too_old(event, scene.resumed_at) == Some(why);
        let waiting = ledger::due(self.conn, user.id, OLD_TOGETHER, self.now)?;
        let count = waiting.iter().take_while(same).count().max(1);
        let texts = if count == 1 { "your text".to_owned() } else { format!("{count} of your texts") };
        let text = match why {
            TooOld::Missed => {
                format!("I was offline and missed {texts}. Please send again what you still need.")
            }
            TooOld::Paused => {
                format!(
                    "I was paused for more than an hour after {texts}. Please send again what you still need."
                )
            }
        };
        self.answer(user, Kind::Command, &waiting[..count], &text)
    }

    /// Skips the messages beyond the rate limit, which stay stored, and notifies their sender once.
    pub(super) fn too_fast(
        &mut self,
        user: &User,
        scene: &Scene,
        waiting: &[InboundEvent],
    ) -> QueryResult<Begun> {
        let Some(rate) = self.settings.rate else { return self.skip(&waiting[0], "rate_limited") };
        let count = scene.over_limit.iter().take_while(|over| **over).count().max(1);
        let many = &waiting[..count];
        for event in many {
            ledger::mark_over_limit(self.conn, event.id)?;
        }
        let since = many[0].sent_at - rate.within;
        if ledger::told_of_limit(self.conn, user.id, &many[0], since)? {
            for event in many {
                self.skip(event, "rate_limited")?;
            }
            return Ok(Begun::Answered);
        }
        for event in &many[1..] {
            self.skip(event, "rate_limited")?;
        }
        self.answer_dropping(user, scene, &many[..1], &orders::too_fast(rate))
    }

    pub(super) fn clear(
        &mut self,
        user: &User,
        scene: &Scene,
        events: &[InboundEvent],
    ) -> QueryResult<Begun> {
        self.answer_dropping(user, scene, events, "OK, we start over.")?;
        if let Some(open) = conversations::open(self.conn, user.id)? {
            conversations::end(self.conn, open.id, EndReason::Cleared, self.now)?;
        }
        Ok(Begun::Answered)
    }

    /// Erases the messages of both sides. The user's record stays, with their rights and the titles they have added.
    pub(super) fn forget_all(
        &mut self,
        user: &User,
        scene: &Scene,
        events: &[InboundEvent],
    ) -> QueryResult<Begun> {
        let by = By::User(user.id);
        let entry = Entry { by, kind: "forget_all", subject: Subject::User(user.id), detail: json!({}) };
        audit::record(self.conn, &entry, self.now)?;
        // The answer is stored first, so that its own text is erased with the others.
        self.answer_dropping(user, scene, events, FORGOTTEN)?;
        privacy::erase_talk(self.conn, user.id, self.now)?;
        Ok(Begun::Answered)
    }

    /// Answers messages that have nothing to do with an open confirmation prompt, and closes that prompt.
    pub(super) fn answer_dropping(
        &mut self,
        user: &User,
        scene: &Scene,
        events: &[InboundEvent],
        text: &str,
    ) -> QueryResult<Begun> {
        let text = match self.drop_question(user, scene, events)? {
            Some(closing) => ending::behind(&closing, text),
            None => text.to_owned(),
        };
        self.answer(user, Kind::Command, events, &text)
    }

    /// Closes an open confirmation prompt after its user sent an unrelated message, and returns the sentence that
    /// reports it. A button press of the operator leaves the prompt open: the user has not changed the subject.
    pub(super) fn drop_question(
        &mut self,
        user: &User,
        scene: &Scene,
        events: &[InboundEvent],
    ) -> QueryResult<Option<String>> {
        if scene.pending.is_none() || events.iter().all(|event| event.origin == Origin::Button) {
            return Ok(None);
        }
        pending::close(self.conn, user.id, Closing::Dropped, self.now)?;
        Ok(Some(scene.closing()))
    }

    pub(super) fn more(&mut self, user: &User, scene: &Scene, events: &[InboundEvent]) -> QueryResult<Begun> {
        let said = match conversations::open(self.conn, user.id)? {
            // An open confirmation prompt was the last answer, and it was sent whole.
            Some(open) if scene.pending.is_none() => history::last_answer(self.conn, open.id)?,
            Some(_) | None => None,
        };
        let Some(rest) = said.and_then(|answer| text::first_page(&answer).rest) else {
            return self.answer_dropping(user, scene, events, "There is nothing more.");
        };
        let live = self.open_turn(user, Kind::Command, &Plan::by(Brain::Keyword), events)?;
        let back = WayBack::back(user.clone(), live.id, events).keeping_emoji();
        self.end_by_code(live.id, &back, &rest)
    }

    pub(super) fn answer(
        &mut self,
        user: &User,
        kind: Kind,
        events: &[InboundEvent],
        text: &str,
    ) -> QueryResult<Begun> {
        let live = self.open_turn(user, kind, &Plan::by(Brain::Keyword), events)?;
        self.end_by_code(live.id, &WayBack::back(user.clone(), live.id, events), text)
    }

    fn end_by_code(&mut self, turn: TurnId, back: &WayBack, text: &str) -> QueryResult<Begun> {
        turns::finish(self.conn, &back.end(turn, Outcome::Replied, text), self.now)?;
        Ok(Begun::Answered)
    }

    pub(super) fn open_turn(
        &mut self,
        user: &User,
        kind: Kind,
        plan: &Plan,
        events: &[InboundEvent],
    ) -> QueryResult<Live> {
        let conversation = self.conversation(user.id)?;
        let id = turns::create(self.conn, NewTurn { user: user.id, conversation, kind, plan }, self.now)?;
        let ids: Vec<EventId> = events.iter().map(|event| event.id).collect();
        ledger::take(self.conn, &ids, id, self.now)?;
        Ok(Live { id, kind, conversation })
    }

    /// Returns the open conversation, or begins a new one after a period of silence.
    fn conversation(&mut self, user: UserId) -> QueryResult<ConversationId> {
        let open = conversations::open(self.conn, user)?;
        match lifecycle::place(open, self.settings.idle, self.now) {
            Place::In(id) => return Ok(id),
            Place::AfterEnd(id, at) => conversations::end(self.conn, id, EndReason::Idle, at)?,
            Place::New => {}
        }
        let name = lifecycle::name(self.now, &self.settings.zone);
        conversations::begin(self.conn, user, &name, self.now)
    }
}
