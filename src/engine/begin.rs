//! The start of work on a user's next text: what it is and what it changes is decided and stored in one transaction.

use jiff::Timestamp;

use super::ending::WayBack;
use super::{Engine, Settings};
use crate::conversation::consent::{self, Code};
use crate::conversation::deletion;
use crate::conversation::route::{self, EndedQuestion, LastList, OpenQuestion, Route, Situation};
use crate::conversation::text;
use crate::conversation::transcript::{
    Brain, ConversationId, EventId, InboundEvent, Status, TurnId, User, UserId,
};
use crate::conversation::turn::Excuse;
use crate::conversation::words;
use crate::failpoint;
use crate::store::conversations::{self, EndReason};
use crate::store::ledger::{self, Outcome};
use crate::store::pending::{self, Claim, Closing};
use crate::store::turns::{self, End, Kind, Live, NewTurn, Plan};
use crate::store::{Conn, QueryResult, history, outbox, users};

/// Texts that one turn takes up at most.
const TEXTS_PER_TURN: i64 = 20;

pub(super) enum Begun {
    /// A turn has begun and is to be run.
    Turn(Live),
    /// Code has dealt with it already.
    Answered,
}

impl Engine {
    pub(super) async fn begin(&self, user: UserId) -> anyhow::Result<Begun> {
        let now = self.now();
        let settings = self.0.parts.settings.clone();
        let brain = self.brain(now);
        let begun = self
            .0
            .parts
            .db
            .write(move |conn| Beginning { conn, settings: &settings, now, model: brain }.begin(user))
            .await?;
        failpoint::reached("turn.begun");
        self.0.parts.outbox.ring();
        Ok(begun)
    }

    /// Who answers a turn that begins at this moment.
    fn brain(&self, now: Timestamp) -> Brain {
        let off = self.0.model_off_until.lock().is_ok_and(|until| until.is_some_and(|until| now < until));
        if self.0.parts.model.is_none() || off { Brain::Keyword } else { Brain::Model }
    }
}

/// A text whose work cannot even begin is given up after `tries`, with one honest answer to an active user.
pub(super) fn count_failed_beginning(
    conn: &mut Conn,
    user: UserId,
    tries: i64,
    now: Timestamp,
) -> QueryResult<()> {
    let Some((event, failures)) = ledger::count_failure(conn, user, now)? else { return Ok(()) };
    if failures < tries {
        return Ok(());
    }
    ledger::give_up(conn, event.id, now)?;
    let user = users::get(conn, user)?;
    if user.status == Status::Active && !user.opted_out {
        let text = WayBack::without_turn(&user, &event).reply(Excuse::WentWrong.text().to_owned());
        outbox::queue(conn, &text, now)?;
    }
    Ok(())
}

struct Beginning<'a> {
    conn: &'a mut Conn,
    settings: &'a Settings,
    now: Timestamp,
    /// Who answers what the model is meant for.
    model: Brain,
}

impl Beginning<'_> {
    fn begin(mut self, user: UserId) -> QueryResult<Begun> {
        pending::expire(self.conn, user, self.now)?;
        let waiting = ledger::waiting(self.conn, user, TEXTS_PER_TURN)?;
        let Some(first) = waiting.first() else { return Ok(Begun::Answered) };
        let mut user = users::get(self.conn, user)?;
        if waiting[1..].iter().any(route::opts_out) {
            // Whatever it asks, nothing may be sent any more.
            ledger::skip(self.conn, first.id, route::Skip::OptedOut.reason(), self.now)?;
            return Ok(Begun::Answered);
        }
        if user.opted_out && route::lifts_opt_out(first) {
            users::opt_in(self.conn, user.id, self.now)?;
            user.opted_out = false;
        }
        let scene = self.scene(&user, &waiting)?;
        let route = route::route(&scene.situation(&user, self.settings), first);
        self.follow(route, &user, &scene, &waiting)
    }

    /// Everything that decides what a text is.
    fn scene(&mut self, user: &User, waiting: &[InboundEvent]) -> QueryResult<Scene> {
        let pending = pending::open(self.conn, user.id)?;
        let ended = match pending {
            Some(_) => None,
            None => pending::last_ended(self.conn, user.id, self.now)?,
        };
        let last_list = match conversations::open(self.conn, user.id)? {
            Some(open) => history::last_list(self.conn, open.id)?,
            None => LastList::ModelOrNone,
        };
        let languages = &self.settings.languages;
        let is_no = |event: &InboundEvent| {
            !route::opts_out(event) && consent::read(&event.body, None, languages) == consent::Answer::No
        };
        let denied_at = waiting.iter().skip(1).position(is_no).map(|at| at + 1);
        let question = pending.as_ref().map(|open| OpenQuestion {
            code: open.code.as_deref().and_then(|code| code.parse().ok()).and_then(Code::new),
            repeats: open.repeats,
            armed_at: open.armed_at,
            disturbed: open.disturbed,
            denied_since: denied_at.is_some(),
        });
        let recent = history::recent_texts(self.conn, user.id)?;
        Ok(Scene { pending, question, ended, denied_at, recent, last_list })
    }

    fn follow(
        &mut self,
        route: Route,
        user: &User,
        scene: &Scene,
        waiting: &[InboundEvent],
    ) -> QueryResult<Begun> {
        let first = &waiting[..1];
        match route {
            Route::Skip(skip) => {
                ledger::skip(self.conn, first[0].id, skip.reason(), self.now)?;
                Ok(Begun::Answered)
            }
            Route::OptOut => self.opt_out(user, first[0].id),
            Route::OptIn => {
                ledger::skip(self.conn, first[0].id, "opted_in", self.now)?;
                Ok(Begun::Answered)
            }
            Route::Confirm => self.confirm(user, scene, first),
            Route::Deny => {
                pending::close(self.conn, user.id, Closing::Denied, self.now)?;
                let through_the_no = scene.denied_at.filter(|_| scene.pending.is_some()).unwrap_or(0);
                self.answer(user, Kind::Deny, &waiting[..=through_the_no], "OK, kept.")
            }
            Route::RepeatQuestion => self.repeat(user, scene, first),
            Route::CloseQuestion => {
                pending::close(self.conn, user.id, Closing::Dropped, self.now)?;
                let text =
                    format!("I did not get a clear yes. {} Ask again if you want it gone.", scene.kept());
                self.answer(user, Kind::Deny, first, &text)
            }
            Route::LateAnswer => {
                let text = scene.ended.as_ref().map(|ended| ended.answer.clone());
                self.answer(user, Kind::Command, first, text.as_deref().unwrap_or("Nothing is open."))
            }
            Route::TooOld => self.missed(user, waiting),
            Route::Clear => self.clear(user, scene, first),
            Route::Commands => self.answer_dropping(user, scene, first, words::COMMANDS_TEXT),
            Route::More => self.more(user, scene, first),
            Route::OnlyMedia => self.answer(user, Kind::Command, first, words::ONLY_TEXT),
            Route::Turn(brain) => self.turn(user, scene, waiting, brain),
        }
    }

    fn opt_out(&mut self, user: &User, event: EventId) -> QueryResult<Begun> {
        users::opt_out(self.conn, user.id, self.now)?;
        pending::close(self.conn, user.id, Closing::Denied, self.now)?;
        outbox::suppress_all(self.conn, user.id, self.now)?;
        ledger::skip(self.conn, event, "opt_out", self.now)?;
        Ok(Begun::Answered)
    }

    fn confirm(&mut self, user: &User, scene: &Scene, events: &[InboundEvent]) -> QueryResult<Begun> {
        let live = self.open_turn(user, Kind::Confirm, &Plan::by(Brain::Keyword), events)?;
        match pending::claim(self.conn, user.id, events[0].id, live.id, self.now)? {
            Claim::Claimed => Ok(Begun::Turn(live)),
            Claim::Lost => {
                let text = format!("That question is closed. {}", scene.kept());
                self.end_by_code(live.id, &WayBack::back(user.clone(), live.id, events), &text)
            }
        }
    }

    fn repeat(&mut self, user: &User, scene: &Scene, events: &[InboundEvent]) -> QueryResult<Begun> {
        let question = scene.pending.as_ref().map(|open| open.question.clone()).unwrap_or_default();
        let live = self.open_turn(user, Kind::Deny, &Plan::by(Brain::Keyword), events)?;
        let text = WayBack::back(user.clone(), live.id, events).question(&question);
        pending::repeat(self.conn, user.id, &text, self.now)?;
        let end =
            End { turn: live.id, outcome: Outcome::Replied, answer: Some(&text.body), texts: Vec::new() };
        turns::finish(self.conn, &end, self.now)?;
        Ok(Begun::Answered)
    }

    /// One text for all that were missed for too long.
    fn missed(&mut self, user: &User, waiting: &[InboundEvent]) -> QueryResult<Begun> {
        let count = waiting.iter().take_while(|event| route::is_too_old(event)).count();
        let texts = if count == 1 { "your text".to_owned() } else { format!("{count} of your texts") };
        let text = format!("I was offline and missed {texts}. Please send again what you still need.");
        self.answer(user, Kind::Command, &waiting[..count], &text)
    }

    fn clear(&mut self, user: &User, scene: &Scene, events: &[InboundEvent]) -> QueryResult<Begun> {
        pending::close(self.conn, user.id, Closing::Dropped, self.now)?;
        let text = match scene.pending {
            Some(_) => format!("OK, we start over. {}", scene.kept()),
            None => "OK, we start over.".to_owned(),
        };
        self.answer(user, Kind::Command, events, &text)?;
        if let Some(open) = conversations::open(self.conn, user.id)? {
            conversations::end(self.conn, open.id, EndReason::Cleared, self.now)?;
        }
        Ok(Begun::Answered)
    }

    /// Answers what has nothing to do with an open question, which it closes.
    fn answer_dropping(
        &mut self,
        user: &User,
        scene: &Scene,
        events: &[InboundEvent],
        text: &str,
    ) -> QueryResult<Begun> {
        pending::close(self.conn, user.id, Closing::Dropped, self.now)?;
        let text = match scene.pending {
            Some(_) => format!("{} {text}", scene.kept()),
            None => text.to_owned(),
        };
        self.answer(user, Kind::Command, events, &text)
    }

    fn more(&mut self, user: &User, scene: &Scene, events: &[InboundEvent]) -> QueryResult<Begun> {
        let said = match conversations::open(self.conn, user.id)? {
            Some(open) => history::last_answer(self.conn, open.id)?,
            None => None,
        };
        let Some(rest) = said.and_then(|answer| text::first_page(&answer).rest) else {
            return self.answer_dropping(user, scene, events, "There is nothing more.");
        };
        pending::close(self.conn, user.id, Closing::Dropped, self.now)?;
        let live = self.open_turn(user, Kind::Command, &Plan::by(Brain::Keyword), events)?;
        let back = WayBack::back(user.clone(), live.id, events).keeping_emoji();
        self.end_by_code(live.id, &back, &rest)
    }

    /// Begins a chat turn with every waiting text that belongs to it.
    fn turn(
        &mut self,
        user: &User,
        scene: &Scene,
        waiting: &[InboundEvent],
        brain: Brain,
    ) -> QueryResult<Begun> {
        let plain = Scene { pending: None, question: None, ended: None, ..scene.clone() };
        let situation = plain.situation(user, self.settings);
        let together = match brain {
            Brain::Model => {
                1 + waiting[1..]
                    .iter()
                    .take_while(|event| route::route(&situation, event) == Route::Turn(Brain::Model))
                    .count()
            }
            Brain::Keyword => 1,
        };
        let mut plan = Plan::by(if brain == Brain::Model { self.model } else { Brain::Keyword });
        if scene.pending.is_some() {
            pending::close(self.conn, user.id, Closing::Dropped, self.now)?;
            plan.notes.push(format!("the open question was dropped, nothing was deleted: {}", scene.kept()));
            plan.preface = Some(scene.kept());
        }
        Ok(Begun::Turn(self.open_turn(user, Kind::Chat, &plan, &waiting[..together])?))
    }

    fn answer(&mut self, user: &User, kind: Kind, events: &[InboundEvent], text: &str) -> QueryResult<Begun> {
        let live = self.open_turn(user, kind, &Plan::by(Brain::Keyword), events)?;
        self.end_by_code(live.id, &WayBack::back(user.clone(), live.id, events), text)
    }

    fn end_by_code(&mut self, turn: TurnId, back: &WayBack, text: &str) -> QueryResult<Begun> {
        let (whole, page) = back.page(text);
        let end =
            End { turn, outcome: Outcome::Replied, answer: Some(&whole), texts: vec![back.reply(page.text)] };
        turns::finish(self.conn, &end, self.now)?;
        Ok(Begun::Answered)
    }

    fn open_turn(
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

    /// The open conversation, or a new one after a silence.
    fn conversation(&mut self, user: UserId) -> QueryResult<ConversationId> {
        if let Some(open) = conversations::open(self.conn, user)? {
            if open.last_activity_at + self.settings.idle > self.now {
                return Ok(open.id);
            }
            conversations::end(self.conn, open.id, EndReason::Idle, self.now)?;
        }
        let name = self.now.to_zoned(self.settings.zone.clone()).strftime("%b %-d, %Y %H:%M").to_string();
        conversations::begin(self.conn, user, &name, self.now)
    }
}

#[derive(Clone)]
struct Scene {
    pending: Option<pending::Open>,
    question: Option<OpenQuestion>,
    ended: Option<EndedQuestion>,
    /// Which waiting text is a no, behind the first.
    denied_at: Option<usize>,
    recent: Vec<String>,
    last_list: LastList,
}

impl Scene {
    fn situation<'a>(&'a self, user: &'a User, settings: &'a Settings) -> Situation<'a> {
        Situation {
            user,
            question: self.question.as_ref(),
            ended: self.ended.as_ref(),
            recent: &self.recent,
            last_list: self.last_list,
            languages: &settings.languages,
        }
    }

    /// What the open question was about stays.
    fn kept(&self) -> String {
        self.pending.as_ref().map(|open| deletion::kept(&open.names)).unwrap_or_default()
    }
}
