//! Start of work on a user's next message: its route and its effects are decided and stored in one transaction.

use jiff::Timestamp;

use super::telling::reschedule_notices;
use super::{Engine, Settings};
use crate::conversation::consent;
use crate::conversation::deletion;
use crate::conversation::first_request::{self, FirstRequest};
use crate::conversation::inbound_message::InboundEvent;
use crate::conversation::lifecycle::{self, Place};
use crate::conversation::origin::Origin;
use crate::conversation::quiet;
use crate::conversation::rate::TextAllowance;
use crate::conversation::reaction::{self, Quoted};
use crate::conversation::route::{self, EndedQuestion, LastList, OpenQuestion, Recent, Route, Situation};
use crate::conversation::transcript::{Brain, EventId, TurnId, User, UserId};
use crate::conversation::words;
use crate::failpoint;
use crate::store::ledger;
use crate::store::pending::{self, Closing};
use crate::store::reactions::{self, Received};
use crate::store::turns::{Kind, Live, Plan, Triage};
use crate::store::users::{self, OptChange};
use crate::store::{
    Conn, QueryResult, conversations, ended_question, history, household, joining, notices, turns,
};

/// Maximum number of messages that one turn claims.
const TEXTS_PER_TURN: i64 = 20;

pub(super) enum Begun {
    /// A turn was created and has to be run.
    Turn(Live),
    /// Code has handled the message already.
    Answered,
    /// As `Answered`, and the waiting messages of all users may be processed again.
    Resumed,
    /// The assistant is paused: the messages wait.
    Held,
    /// The message could have been signed as another one: the carrier's record decides before it may act.
    Unverified(EventId),
}

impl Engine {
    /// Begins work on the user's next message. Also returns the turn that was created, if there is one.
    pub(super) async fn begin(&self, user: UserId) -> anyhow::Result<(Begun, Option<TurnId>)> {
        let now = self.now();
        let settings = self.0.parts.settings.clone();
        let brain = self.brain(now);
        let begin = move |conn: &mut _| {
            let before = turns::newest(conn)?;
            let begun = Beginning { conn, settings: &settings, now, model: brain }.begin(user)?;
            Ok((begun, before, turns::newest(conn)?))
        };
        let (begun, before, newest) = self.0.parts.db.write(begin).await?;
        failpoint::reached("turn.begun");
        self.0.parts.outbox.ring();
        Ok((begun, (newest > before).then_some(newest)))
    }

    /// Responder of a turn that begins at this moment.
    fn brain(&self, now: Timestamp) -> Brain {
        let off = self.0.model_off_until.lock().is_ok_and(|until| until.is_some_and(|until| now < until));
        if self.0.parts.model.is_none() || off { Brain::Keyword } else { Brain::Model }
    }
}

pub(super) struct Beginning<'a> {
    pub(super) conn: &'a mut Conn,
    pub(super) settings: &'a Settings,
    pub(super) now: Timestamp,
    /// Responder for messages that are meant for the model.
    pub(super) model: Brain,
}

impl Beginning<'_> {
    fn begin(mut self, user: UserId) -> QueryResult<Begun> {
        pending::expire(self.conn, user, self.now)?;
        let waiting = ledger::due(self.conn, user, TEXTS_PER_TURN, self.now)?;
        let Some(first) = waiting.first() else { return Ok(Begun::Answered) };
        if let Some(event) = waiting.iter().find(|event| route::would_change_opt_out(event)) {
            return Ok(Begun::Unverified(event.id));
        }
        let mut user = users::get(self.conn, user)?;
        if waiting[1..].iter().any(route::opts_out) {
            // Regardless of the first message's request, nothing may be sent any more.
            return self.skip(first, route::Skip::OptedOut.reason());
        }
        // This also runs for a user who has not opted out according to our records: messages can overtake each other,
        // and an earlier opt-out may still arrive.
        if route::lifts_opt_out(first) {
            let change = users::opt_in(self.conn, user.id, first.sent_at, self.now)?;
            user.opted_out &= change == OptChange::Overtaken;
        }
        if self.is_held(&user, first)? {
            return Ok(Begun::Held);
        }
        let scene = self.scene(&user, &waiting)?;
        let situation = scene.situation(&user, self.settings, 0);
        if route::would_act(&situation, first) {
            return Ok(Begun::Unverified(first.id));
        }
        let route = route::route(&situation, first);
        if !matches!(route, Route::OptOut | Route::Stranger | Route::Skip(route::Skip::Blocked)) {
            self.keep_reaction(&user, &scene, &situation, first)?;
        }
        self.follow(route, &user, &scene, &waiting)
    }

    /// Loads everything that decides the route of a message.
    fn scene(&mut self, user: &User, waiting: &[InboundEvent]) -> QueryResult<Scene> {
        let pending = pending::open(self.conn, user.id)?;
        let ended = match pending {
            Some(_) => None,
            None => ended_question::load_ended_question(self.conn, user.id, self.now)?,
        };
        let open = conversations::open(self.conn, user.id)?;
        let place = lifecycle::place(open, self.settings.idle, self.now);
        let last_list = match open {
            Some(open) => history::last_list(self.conn, open.id)?,
            None => LastList::ModelOrNone,
        };
        let languages = &self.settings.languages;
        let is_no = |event: &InboundEvent| {
            !route::opts_out(event) && consent::read(&event.body, None, languages) == consent::Answer::No
        };
        let denied_at = waiting.iter().skip(1).position(is_no).map(|at| at + 1);
        let question = pending.as_ref().map(|open| OpenQuestion {
            code: open.code,
            repeats: open.repeats,
            armed_at: open.armed_at,
            disturbed: open.disturbed,
            denied_since: denied_at.is_some(),
            way: open.way,
            kind: open.kind(),
        });
        let quotes = waiting.iter().any(|event| reaction::read(&event.body).is_some());
        let recent = match quotes {
            true => history::quotable_texts(self.conn, user.id)?,
            false => history::last_texts(self.conn, user.id)?,
        };
        let offered = recent.iter().any(|recent| first_request::may_be_offer(&recent.body));
        let first_request = match offered {
            true => joining::first_request(self.conn, user.id, self.now)?,
            false => None,
        };
        let over_limit = self.over_limit(user.id, waiting)?;
        let resumed_at = household::resumed_at(self.conn)?;
        Ok(Scene {
            pending,
            question,
            ended,
            denied_at,
            recent,
            last_list,
            place,
            over_limit,
            first_request,
            resumed_at,
        })
    }

    /// Marks the waiting messages that exceed the rate limit. Button presses of the operator do not count.
    fn over_limit(&mut self, user: UserId, waiting: &[InboundEvent]) -> QueryResult<Vec<bool>> {
        let mut over = vec![false; waiting.len()];
        let (Some(rate), Some(first)) = (self.settings.rate, waiting.first()) else { return Ok(over) };
        let languages = &self.settings.languages;
        let before = ledger::counted_before(self.conn, user, first, rate.most)?;
        for allowance in TextAllowance::ALL {
            let draws_on_it = |body: &str| TextAllowance::for_text(body, languages) == allowance;
            let counted = before.iter().filter(|(_, body)| draws_on_it(body)).map(|(at, _)| *at).collect();
            let places: Vec<usize> = (0..waiting.len())
                .filter(|at| waiting[*at].origin != Origin::Button && draws_on_it(&waiting[*at].body))
                .collect();
            let texts: Vec<Timestamp> = places.iter().map(|at| waiting[*at].sent_at).collect();
            for (place, excess) in places.into_iter().zip(rate.excess(counted, &texts)) {
                over[place] = excess;
            }
        }
        Ok(over)
    }

    /// Stores a reaction on the message that it quotes, independently of the route of the reaction.
    fn keep_reaction(
        &mut self,
        user: &User,
        scene: &Scene,
        situation: &Situation<'_>,
        event: &InboundEvent,
    ) -> QueryResult<()> {
        let quoted = route::reacts_to(situation, event);
        let on = match quoted {
            Quoted::Text(place) => scene.recent.get(place).map(|recent| recent.said),
            Quoted::Media | Quoted::Nothing => None,
        };
        let asked = situation.question.is_some() && reaction::looks_like_reaction(&event.body);
        if quoted == Quoted::Nothing && !asked {
            return Ok(());
        }
        let read = reaction::read(&event.body);
        let (emoji, removal) = read.map_or((None, false), |reaction| (reaction.emoji, reaction.removal));
        let received = Received { user: user.id, said_in: event.id, on, emoji, removal };
        reactions::receive(self.conn, &received, self.now)
    }

    fn follow(
        &mut self,
        route: Route,
        user: &User,
        scene: &Scene,
        waiting: &[InboundEvent],
    ) -> QueryResult<Begun> {
        let first = &waiting[..1];
        let wants_a_yes = matches!(route, Route::Confirm | Route::RepeatQuestion | Route::WrongCode);
        if wants_a_yes && self.is_suspended(user, &first[0])? {
            return self.refuse_suspended(user, first);
        }
        match route {
            Route::Skip(skip) => self.skip(&first[0], skip.reason()),
            Route::OptOut => self.opt_out(user, &first[0]),
            Route::OptIn => self.skip(&first[0], "opted_in"),
            Route::Remember => self.remember(user, first),
            Route::Stranger => self.receive_stranger(user, &first[0]),
            Route::Confirm => self.confirm(user, scene, first),
            Route::Deny => self.deny(user, scene, waiting),
            Route::RepeatQuestion => self.repeat(user, scene, first),
            Route::WrongCode => self.wrong_code(user, scene, first),
            Route::CloseQuestion => self.close_unclear(user, scene, first),
            Route::AcceptOffer => self.accept_offer(user, scene, first),
            Route::DeclineOffer => {
                joining::erase_first_request(self.conn, user.id)?;
                self.answer(user, Kind::Command, first, "OK, I won't add it.")
            }
            Route::LateAnswer => {
                let text = scene.ended.as_ref().map(|ended| ended.answer.clone());
                self.answer(user, Kind::Deny, first, text.as_deref().unwrap_or("Nothing is open."))
            }
            Route::TooOld(why) => self.too_old(user, scene, why),
            Route::TooFast => self.too_fast(user, scene, waiting),
            Route::Order => self.order(user, scene, first),
            Route::WhatWaits => {
                let text = self.waiting_list(user)?;
                self.answer_dropping(user, scene, first, &text)
            }
            Route::Clear => self.clear(user, scene, first),
            Route::ForgetAll => self.forget_all(user, scene, first),
            Route::WhatIsKnown => self.what_is_known(user, scene, first),
            Route::ForgetFact(number) => self.forget_fact(user, scene, first, number.into()),
            Route::Commands => {
                self.answer_dropping(user, scene, first, &words::commands_text(user.rights.role))
            }
            Route::More => self.more(user, scene, first),
            Route::Notices(wish) => {
                notices::wish(self.conn, user.id, wish, self.now)?;
                reschedule_notices(self.conn, self.settings, Some(user.id), self.now)?;
                self.answer_dropping(user, scene, first, &quiet::granted(wish))
            }
            Route::Unverified => self.answer(user, Kind::Command, first, words::UNVERIFIED),
            Route::OnlyMedia => self.answer(user, Kind::Command, first, words::ONLY_TEXT),
            Route::Turn(brain) => self.turn(user, scene, waiting, brain),
        }
    }

    /// Answers the yes and no messages up to the last no. Other messages between them get an answer of their own.
    fn deny(&mut self, user: &User, scene: &Scene, waiting: &[InboundEvent]) -> QueryResult<Begun> {
        pending::close(self.conn, user.id, Closing::Denied, self.now)?;
        let denied_at = scene.denied_at.filter(|_| scene.pending.is_some()).unwrap_or(0);
        let code = scene.question.as_ref().and_then(|question| question.code);
        let answers = |event: &InboundEvent| {
            let read = consent::read(&event.body, code, &self.settings.languages);
            matches!(read, consent::Answer::Yes | consent::Answer::No) && event.origin == waiting[0].origin
        };
        let (first, later) = (&waiting[..1], &waiting[1..=denied_at]);
        let denied: Vec<InboundEvent> =
            first.iter().chain(later.iter().filter(|event| answers(event))).cloned().collect();
        let text = match consent::is_wish_to_keep(&waiting[denied_at].body) {
            true => scene.closing(),
            false => "OK, kept.".to_owned(),
        };
        self.answer(user, Kind::Deny, &denied, &text)
    }

    /// Begins a turn that uses the keyword grammar to add the title the user requested before they became a member.
    fn accept_offer(&mut self, user: &User, scene: &Scene, events: &[InboundEvent]) -> QueryResult<Begun> {
        joining::erase_first_request(self.conn, user.id)?;
        let request = scene.first_request.as_ref().map(FirstRequest::as_text);
        let plan = Plan { request, ..Plan::by(Brain::Keyword) };
        Ok(Begun::Turn(self.open_turn(user, Kind::Chat, &plan, events)?))
    }

    /// Begins a chat turn with every waiting message that belongs to it.
    fn turn(
        &mut self,
        user: &User,
        scene: &Scene,
        waiting: &[InboundEvent],
        brain: Brain,
    ) -> QueryResult<Begun> {
        let plain =
            Scene { pending: None, question: None, ended: None, first_request: None, ..scene.clone() };
        let belongs = |at: usize| {
            let situation = plain.situation(user, self.settings, at);
            let is_theirs = waiting[at].origin != Origin::Button;
            is_theirs && route::route(&situation, &waiting[at]) == Route::Turn(Brain::Model)
        };
        let together = match brain {
            Brain::Model => 1 + (1..waiting.len()).take_while(|at| belongs(*at)).count(),
            Brain::Keyword => 1,
        };
        let mut plan = Plan::by(if brain == Brain::Model { self.model } else { Brain::Keyword });
        let unclear = route::wants_triage(&scene.situation(user, self.settings, 0), &waiting[0]);
        if plan.brain == Brain::Model && together == 1 && unclear {
            plan.triage = Triage::Open;
        }
        if scene.pending.is_some() {
            pending::close(self.conn, user.id, Closing::Dropped, self.now)?;
            let closing = scene.closing();
            plan.notes.push(format!(
                "their text closed the open question, nothing was deleted; your answer is sent behind this: {closing}"
            ));
            plan.preface = Some(closing);
        }
        Ok(Begun::Turn(self.open_turn(user, Kind::Chat, &plan, &waiting[..together])?))
    }
}

#[derive(Clone)]
pub(super) struct Scene {
    pub(super) pending: Option<pending::Open>,
    question: Option<OpenQuestion>,
    ended: Option<EndedQuestion>,
    /// Index of the waiting message after the first that is a no.
    denied_at: Option<usize>,
    recent: Vec<Recent>,
    last_list: LastList,
    place: Place,
    /// One flag for each waiting message.
    pub(super) over_limit: Vec<bool>,
    first_request: Option<FirstRequest>,
    pub(super) resumed_at: Option<Timestamp>,
}

impl Scene {
    /// Routing context of the waiting message at index `at`.
    fn situation<'a>(&'a self, user: &'a User, settings: &'a Settings, at: usize) -> Situation<'a> {
        Situation {
            user,
            question: self.question.as_ref(),
            ended: self.ended.as_ref(),
            recent: &self.recent,
            last_list: self.last_list,
            languages: &settings.languages,
            first: !matches!(self.place, Place::In(_)),
            over_limit: self.over_limit.get(at).copied().unwrap_or(false),
            routing: settings.routing,
            first_request: self.first_request.as_ref(),
            resumed_at: self.resumed_at,
        }
    }

    /// Sentence that reports that the open confirmation prompt is closed.
    pub(super) fn closing(&self) -> String {
        self.pending.as_ref().map(|open| deletion::closing(&open.names)).unwrap_or_default()
    }

    /// Sentence that reports that the titles of the open confirmation prompt are kept.
    pub(super) fn kept(&self) -> String {
        self.pending.as_ref().map(|open| deletion::kept(&open.names)).unwrap_or_default()
    }
}
