//! What one received text is, given who sent it and what is open: the order of PRODUCT rules before any model.

use jiff::{SignedDuration, Timestamp};

use super::consent::{self, Code, Language, Soft};
use super::first_request::FirstRequest;
use super::inbound_message::{InboundEvent, Received, Via};
use super::orders;
use super::origin::Origin;
use super::quiet::Wish;
use super::reaction::{self, Quoted};
use super::reference::TitleReference;
use super::text;
use super::transcript::{Brain, ChannelKind, EventId, MediaKind, OptWord, OutboxId, Role, Status, User};
use super::triage::{self, Opinion, Routing, Wants};
use super::verification::FieldAuthority;
use super::way::Way;
use super::words::{self, Command, Keyword, KeywordVerb};

/// What is known when a text is read.
#[derive(Debug, Clone, Copy)]
pub struct Situation<'a> {
    pub user: &'a User,
    pub question: Option<&'a OpenQuestion>,
    /// The last question that ended within a day, where none is open.
    pub ended: Option<&'a EndedQuestion>,
    /// Texts of both sides, newest first on each, as a reaction may quote them.
    pub recent: &'a [Recent],
    pub last_list: LastList,
    pub languages: &'a [Language],
    /// The text would be the first of its conversation.
    pub first: bool,
    /// More texts came before it than are worked on in that time.
    pub over_limit: bool,
    pub routing: Routing,
    /// What a new member asked for before they were one, if that is kept.
    pub first_request: Option<&'a FirstRequest>,
    /// When the assistant was last paused until, if it ever was.
    pub resumed_at: Option<Timestamp>,
}

/// A text that was said lately.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recent {
    pub said: Said,
    pub body: String,
    /// A notification that asks nothing, so that no text of the user is an answer to it.
    pub asks_nothing: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Said {
    ByUs(OutboxId),
    ByThem(EventId),
}

/// A pending action as far as an answer to it matters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenQuestion {
    pub code: Option<Code>,
    /// Times it was repeated.
    pub repeats: u32,
    /// When it was accepted for sending; before that nobody can have answered it.
    pub armed_at: Option<Timestamp>,
    /// Something else was sent to the user after it.
    pub disturbed: bool,
    /// A no stands behind this text already.
    pub denied_since: bool,
    /// How it was asked.
    pub way: Way,
    /// The kind of its titles, where all are of one.
    pub kind: Option<MediaKind>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedQuestion {
    /// What became of it, for someone who answers late.
    pub answer: String,
    /// The question, or what code said of its end, is the last message that was sent: a yes or no is a reply to it.
    pub is_last_message: bool,
}

/// Who wrote the list that a bare number may pick from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LastList {
    Code,
    ModelOrNone,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
    /// Stored, and nothing else happens.
    Skip(Skip),
    /// Any question is denied, and nothing is sent until the person opts in.
    OptOut,
    /// Only lifts an opt-out.
    OptIn,
    /// It becomes part of the conversation, and nothing is answered.
    Remember,
    /// The open question is claimed and carried out.
    Confirm,
    Deny,
    /// The question goes out once more: the answer was unclear, too early, or came by a way that does not count.
    RepeatQuestion,
    /// A yes with another code than the question's. What follows depends on how many there were.
    WrongCode,
    /// Unclear a second time: the question is closed and nothing goes.
    CloseQuestion,
    /// Taken up only long after it was sent: that is told, and nothing is done.
    TooOld(TooOld),
    /// A yes to the offer to add what a newcomer asked for in their first text.
    AcceptOffer,
    /// A no to it.
    DeclineOffer,
    /// A yes or no after the question ended: code says what became of it.
    LateAnswer,
    /// Somebody who was not let in yet.
    Stranger,
    /// An admin's order, as [`orders::read`] reads it.
    Order,
    /// An admin's yes or no to what only a code can answer.
    WhatWaits,
    Clear,
    /// What was said with them is erased.
    ForgetAll,
    /// They are told what is known of them.
    WhatIsKnown,
    /// The fact of this number is forgotten.
    ForgetFact(u8),
    Commands,
    More,
    /// Whether and when they want to be told what is ready.
    Notices(Wish),
    /// Too many texts within a short time.
    TooFast,
    /// An order that the carrier's record does not confirm: nothing is done, and its sender is asked to send it again.
    Unverified,
    /// Media without words, which nobody here can read.
    OnlyMedia,
    Turn(Brain),
}

/// Why a text is taken up too late to be acted on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TooOld {
    /// It did not reach us when it was sent.
    Missed,
    /// The assistant was paused.
    Paused,
}

/// Why a text gets no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Skip {
    Blocked,
    OptedOut,
    /// The carrier answers HELP and INFO itself.
    CarrierHelp,
    /// An opt-out or opt-in word that the carrier's record does not confirm.
    Unverified,
    Reaction,
    /// Thanks or a bare emoji, when nothing is open.
    SmallTalk,
    Empty,
}

impl Skip {
    pub fn reason(self) -> &'static str {
        match self {
            Self::Blocked => "blocked",
            Self::OptedOut => "opted_out",
            Self::CarrierHelp => "carrier_help",
            Self::Unverified => "unverified",
            Self::Reaction => "reaction",
            Self::SmallTalk => "small_talk",
            Self::Empty => "empty",
        }
    }
}

/// What a text means for texts that are waiting and for a turn that runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Urgency {
    /// A further text may follow that belongs to it.
    MayWait,
    /// Answers, commands and numbers stand alone.
    AtOnce,
    /// The running turn is taken back.
    EndsTurn,
    /// The person opts out: the running turn is taken back, and nothing more is sent.
    OptsOut,
    /// The running turn is taken back, unless a question is open, which it answers.
    EndsTurnOrAnswers,
}

/// Whether the text opts its sender out at the carrier.
pub fn opts_out(event: &InboundEvent) -> bool {
    event.authority.may_act() && event.channel == ChannelKind::Twilio && opt_word(event) == Some(OptWord::Out)
}

/// Whether an ambiguous text would opt its sender out or in, if the carrier's record agreed.
pub fn would_change_opt_out(event: &InboundEvent) -> bool {
    verified(event).is_some_and(|event| opts_out(&event) || lifts_opt_out(&event))
}

/// Whether an ambiguous text would act, if the carrier's record agreed.
pub fn would_act(situation: &Situation<'_>, event: &InboundEvent) -> bool {
    verified(event).is_some_and(|event| needs_authority(decide_route(situation, &event)))
}

/// Whether a text does something in its sender's name that needs certain fields. An addition by its own text does not: it
/// counts towards a quota and can be undone.
fn needs_authority(route: Route) -> bool {
    match route {
        Route::Confirm | Route::OptOut | Route::OptIn | Route::Order | Route::ForgetAll => true,
        Route::AcceptOffer | Route::DeclineOffer | Route::WhatWaits => true,
        Route::ForgetFact(_) | Route::Notices(_) => true,
        // It counts against its sender.
        Route::WrongCode => true,
        Route::Skip(_)
        | Route::Remember
        | Route::Deny
        | Route::RepeatQuestion
        | Route::CloseQuestion
        | Route::TooOld(_)
        | Route::LateAnswer
        | Route::Stranger
        | Route::Clear
        | Route::WhatIsKnown
        | Route::Commands
        | Route::More
        | Route::TooFast
        | Route::Unverified
        | Route::OnlyMedia
        | Route::Turn(_) => false,
    }
}

/// An ambiguous text as it is once the carrier's record agrees with it.
fn verified(event: &InboundEvent) -> Option<InboundEvent> {
    (event.authority == FieldAuthority::Ambiguous)
        .then(|| InboundEvent { authority: FieldAuthority::Verified, ..event.clone() })
}

/// The carrier's own word for a text counts for more than ours: it knows the words of other languages.
fn opt_word(event: &InboundEvent) -> Option<OptWord> {
    event.carrier_word.or_else(|| words::opt_word(&event.body))
}

pub fn urgency(received: &Received, languages: &[Language]) -> Urgency {
    let opt_word = received.carrier_word.or_else(|| words::opt_word(&received.body));
    let command = words::command(&received.body);
    if received.channel == ChannelKind::Twilio && opt_word == Some(OptWord::Out) {
        return Urgency::OptsOut;
    }
    if command == Some(Command::Clear) {
        return Urgency::EndsTurn;
    }
    if words::takes_back(&received.body) {
        return Urgency::EndsTurnOrAnswers;
    }
    let answer = consent::read(&received.body, None, languages);
    let stands_alone = opt_word.is_some() || command.is_some() || orders::read(&received.body).is_some();
    if answer != consent::Answer::Other || stands_alone { Urgency::AtOnce } else { Urgency::MayWait }
}

/// Whether a text by an opted-out person turns texting on again. YES does, and is an answer besides.
pub fn lifts_opt_out(event: &InboundEvent) -> bool {
    event.authority.may_act()
        && event.channel == ChannelKind::Twilio
        && matches!(opt_word(event), Some(OptWord::In | OptWord::Yes))
}

pub fn route(situation: &Situation<'_>, event: &InboundEvent) -> Route {
    let route = decide_route(situation, event);
    if needs_authority(route) && !event.authority.may_act() { Route::Unverified } else { route }
}

fn decide_route(situation: &Situation<'_>, event: &InboundEvent) -> Route {
    let by_carrier = event.channel == ChannelKind::Twilio;
    let opt_word = opt_word(event);
    if by_carrier && opt_word == Some(OptWord::Out) {
        return if event.authority.may_act() { Route::OptOut } else { Route::Skip(Skip::Unverified) };
    }
    if situation.user.status == Status::Blocked {
        return Route::Skip(Skip::Blocked);
    }
    if event.wants == Wants::NoAnswer {
        return Route::Remember;
    }
    match opt_word {
        Some(OptWord::In) if by_carrier && !event.authority.may_act() => {
            return Route::Skip(Skip::Unverified);
        }
        Some(OptWord::In) if by_carrier => return Route::OptIn,
        Some(OptWord::Help) if by_carrier => return Route::Skip(Skip::CarrierHelp),
        Some(OptWord::Help) if situation.user.status == Status::Active => return Route::Commands,
        Some(_) | None if situation.user.opted_out => return Route::Skip(Skip::OptedOut),
        Some(OptWord::In | OptWord::Out | OptWord::Yes | OptWord::Help) | None => {}
    }
    let wordless = event.body.trim().is_empty();
    if wordless && event.media.is_empty() {
        return Route::Skip(Skip::Empty);
    }
    if situation.user.status == Status::Pending {
        return Route::Stranger;
    }
    if let Some(why) = too_old(event, situation.resumed_at) {
        return Route::TooOld(why);
    }
    let is_button = event.origin == Origin::Button;
    if is_button && situation.user.rights.role == Role::Admin && orders::read(&event.body).is_some() {
        // The operator decides; whatever the admin is asked or texts meanwhile has nothing to do with it.
        return Route::Order;
    }
    match situation.question {
        Some(question) => with_open_question(situation, question, event),
        None if wordless && situation.over_limit => Route::TooFast,
        None if wordless => Route::OnlyMedia,
        None => without_question(situation, event),
    }
}

/// A text that was fetched this long after it was sent is not acted on: much may have changed since.
const TOO_OLD: SignedDuration = SignedDuration::from_hours(1);

/// Whether the text is too old to be acted on, and why.
pub fn too_old(event: &InboundEvent, resumed_at: Option<Timestamp>) -> Option<TooOld> {
    let missed = event.via == Via::Recovery && event.received_at.duration_since(event.sent_at) > TOO_OLD;
    let waited = resumed_at.is_some_and(|resumed| resumed.duration_since(event.received_at) > TOO_OLD);
    match (missed, waited) {
        (true, _) => Some(TooOld::Missed),
        (false, true) => Some(TooOld::Paused),
        (false, false) => None,
    }
}

fn with_open_question(situation: &Situation<'_>, question: &OpenQuestion, event: &InboundEvent) -> Route {
    let unclear = if question.repeats == 0 { Route::RepeatQuestion } else { Route::CloseQuestion };
    if reaction::looks_like_reaction(&event.body) || event.body.trim().is_empty() {
        return unclear;
    }
    match consent::read(&event.body, question.code, situation.languages) {
        consent::Answer::Yes if question.denied_since => Route::Deny,
        consent::Answer::Yes if counts(question, event) => Route::Confirm,
        consent::Answer::Soft(Soft::WrongCode) if event.authority.may_act() => Route::WrongCode,
        consent::Answer::Yes | consent::Answer::Soft(_) => unclear,
        consent::Answer::No => Route::Deny,
        consent::Answer::Other if repeats_request(question, event) => unclear,
        consent::Answer::Other => talk(situation, event),
    }
}

/// "delete it" asks for what the question is about once more, which is no yes.
fn repeats_request(question: &OpenQuestion, event: &InboundEvent) -> bool {
    match words::keyword(&event.body) {
        Some(Keyword::Reference(KeywordVerb::Remove, TitleReference::OneOf(kind))) => {
            question.kind == Some(kind)
        }
        Some(Keyword::Reference(KeywordVerb::Remove, TitleReference::One | TitleReference::Several)) => true,
        Some(_) | None => false,
    }
}

/// Only a yes that can have been said to this question, and came straight to us: whoever is texted has not read what a
/// program was asked in their name.
fn counts(question: &OpenQuestion, event: &InboundEvent) -> bool {
    let direct = match event.via {
        Via::Webhook | Via::Local => true,
        Via::Fallback | Via::Recovery => false,
    };
    let heard = event.to.way() == question.way;
    // The operator answers this question by its button in the console, whatever was sent after it.
    let undisturbed = !question.disturbed || event.origin == Origin::Button;
    direct
        && event.authority.may_act()
        && heard
        && undisturbed
        && question.armed_at.is_some_and(|armed| event.received_at > armed)
}

fn without_question(situation: &Situation<'_>, event: &InboundEvent) -> Route {
    if reacts_to(situation, event) != Quoted::Nothing {
        return Route::Skip(Skip::Reaction);
    }
    if situation.over_limit {
        return Route::TooFast;
    }
    let answers = consent::read(&event.body, None, situation.languages) != consent::Answer::Other;
    if answers && situation.user.rights.role == Role::Admin && was_asked_for_a_code(situation) {
        return Route::WhatWaits;
    }
    if situation
        .first_request
        .zip(last_of_ours(situation))
        .is_some_and(|(kept, text)| kept.is_offered_in(text))
    {
        match consent::read(&event.body, None, situation.languages) {
            consent::Answer::Yes => return Route::AcceptOffer,
            consent::Answer::No => return Route::DeclineOffer,
            consent::Answer::Soft(_) | consent::Answer::Other => {}
        }
    }
    // A button belongs to one question, whatever was sent since.
    let is_button = event.origin == Origin::Button;
    if situation.ended.is_some_and(|ended| is_button || ended.is_last_message) {
        match consent::read(&event.body, None, situation.languages) {
            consent::Answer::Yes | consent::Answer::No => return Route::LateAnswer,
            consent::Answer::Soft(_) | consent::Answer::Other => {}
        }
    }
    talk(situation, event)
}

/// Which of the recent texts the text is a reaction to.
pub fn reacts_to(situation: &Situation<'_>, event: &InboundEvent) -> Quoted {
    reaction::read(&event.body).map_or(Quoted::Nothing, |reaction| {
        reaction::quoted(&reaction, situation.recent.iter().map(|recent| recent.body.as_str()))
    })
}

/// Whether the model is to be asked if a text wants an answer, because its words do not tell.
pub fn wants_triage(situation: &Situation<'_>, event: &InboundEvent) -> bool {
    situation.routing == Routing::Ai
        && may_stay_unanswered(situation)
        && triage::opinion(&event.body) == Opinion::None
}

/// Whether the last thing we said asks an admin for an answer with a code.
fn was_asked_for_a_code(situation: &Situation<'_>) -> bool {
    last_of_ours(situation).is_some_and(|text| text.contains("eply APPROVE "))
}

/// The last of our messages that a text may answer.
fn last_of_ours<'a>(situation: &Situation<'a>) -> Option<&'a str> {
    let answerable = |recent: &&Recent| matches!(recent.said, Said::ByUs(_)) && !recent.asks_nothing;
    let ours = situation.recent.iter().find(answerable);
    ours.map(|recent| recent.body.as_str())
}

/// Nothing is open: no question of ours, and more than a greeting has been said.
fn may_stay_unanswered(situation: &Situation<'_>) -> bool {
    let offers = |line: &str| line.starts_with("Reply ") && line != text::MORE_OFFER;
    let asked = last_of_ours(situation).is_some_and(|text| text::asks(text) || text.lines().any(offers));
    situation.question.is_none() && !situation.first && !asked
}

fn talk(situation: &Situation<'_>, event: &InboundEvent) -> Route {
    if situation.over_limit {
        return Route::TooFast;
    }
    if situation.user.rights.role == Role::Admin && orders::read(&event.body).is_some() {
        return Route::Order;
    }
    let small_talk = triage::opinion(&event.body) == Opinion::SmallTalk;
    if small_talk && situation.routing != Routing::Off && may_stay_unanswered(situation) {
        return Route::Skip(Skip::SmallTalk);
    }
    match words::command(&event.body) {
        Some(Command::Clear) => Route::Clear,
        Some(Command::ForgetAll) => Route::ForgetAll,
        Some(Command::WhatIsKnown) => Route::WhatIsKnown,
        Some(Command::ForgetFact(number)) => Route::ForgetFact(number),
        Some(Command::Commands) => Route::Commands,
        Some(Command::More) => Route::More,
        Some(Command::Notices(wish)) => Route::Notices(wish),
        Some(Command::Status | Command::Upcoming) => Route::Turn(Brain::Keyword),
        Some(Command::Number(_)) if situation.last_list == LastList::Code => Route::Turn(Brain::Keyword),
        Some(Command::Number(_)) | None => Route::Turn(Brain::Model),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::inbound_message::Media;
    use crate::conversation::transcript::{Address, EventId, PhoneNumber, Rights, Role, UserId};

    fn second(n: i64) -> Timestamp {
        Timestamp::from_second(n).unwrap()
    }

    fn ann() -> User {
        User {
            id: UserId(1),
            phone: PhoneNumber::parse("+15550100002").unwrap(),
            name: None,
            status: Status::Active,
            rights: Rights { role: Role::Member, add: true, delete: true, four_k: false },
            opted_out: false,
            test: false,
        }
    }

    fn text(body: &str) -> InboundEvent {
        InboundEvent {
            id: EventId(1),
            channel: ChannelKind::Twilio,
            to: Address::new("+15550100000"),
            body: body.into(),
            media: Vec::new(),
            via: Via::Webhook,
            authority: FieldAuthority::Certain,
            carrier_word: None,
            sent_at: second(100),
            received_at: second(100),
            wants: Wants::AnAnswer,
            origin: Origin::Sender,
        }
    }

    fn open() -> OpenQuestion {
        OpenQuestion {
            code: None,
            repeats: 0,
            armed_at: Some(second(50)),
            disturbed: false,
            denied_since: false,
            way: Way::Carrier,
            kind: Some(MediaKind::Movie),
        }
    }

    fn situation(user: &User) -> Situation<'_> {
        Situation {
            user,
            question: None,
            ended: None,
            recent: &[],
            last_list: LastList::ModelOrNone,
            languages: &[],
            first: false,
            over_limit: false,
            routing: Routing::Heuristic,
            resumed_at: None,
            first_request: None,
        }
    }

    #[track_caller]
    fn check(user: &User, question: Option<&OpenQuestion>, event: &InboundEvent, expected: Route) {
        let situation = Situation { question, ..situation(user) };
        assert_eq!(route(&situation, event), expected, "{}", event.body);
    }

    #[test]
    fn what_wants_no_answer_is_remembered_whatever_it_says() {
        for body in ["yes", "no", "cancel", "/clear", "add dune", "thanks"] {
            let event = InboundEvent { wants: Wants::NoAnswer, channel: ChannelKind::Console, ..text(body) };
            check(&ann(), Some(&open()), &event, Route::Remember);
            check(&ann(), None, &event, Route::Remember);
        }
        let blocked = User { status: Status::Blocked, ..ann() };
        let event = InboundEvent { wants: Wants::NoAnswer, ..text("hello") };
        check(&blocked, None, &event, Route::Skip(Skip::Blocked));
    }

    #[test]
    fn opt_out_words_win_over_everything_and_are_only_a_no_in_the_terminal() {
        for status in [Status::Active, Status::Pending, Status::Blocked] {
            check(&User { status, ..ann() }, Some(&open()), &text("STOP"), Route::OptOut);
        }
        let local = InboundEvent { channel: ChannelKind::Local, ..text("cancel") };
        check(&ann(), Some(&open()), &local, Route::Deny);
        let help = InboundEvent { channel: ChannelKind::Local, ..text("help") };
        check(&ann(), None, &help, Route::Commands);
    }

    #[test]
    fn strangers_join_and_the_blocked_and_opted_out_are_stored_only() {
        let stranger = User { status: Status::Pending, ..ann() };
        for body in ["add dune", "yes", "commands", "/clear", "approve 4821"] {
            check(&stranger, None, &text(body), Route::Stranger);
        }
        check(&stranger, None, &text("START"), Route::OptIn);
        check(&stranger, None, &text("HELP"), Route::Skip(Skip::CarrierHelp));
        let gone = User { opted_out: true, ..stranger };
        check(&gone, None, &text("add dune"), Route::Skip(Skip::OptedOut));
        check(
            &User { status: Status::Blocked, ..ann() },
            None,
            &text("add dune"),
            Route::Skip(Skip::Blocked),
        );
        let gone = User { opted_out: true, ..ann() };
        check(&gone, None, &text("add dune"), Route::Skip(Skip::OptedOut));
        check(&gone, None, &text("START"), Route::OptIn);
        check(&gone, None, &text("yes please"), Route::Skip(Skip::OptedOut));
        let lifted = ["START", "unstop", "Yes", "yes please", "hi"].map(|body| lifts_opt_out(&text(body)));
        assert_eq!(lifted, [true, true, true, false, false]);
        check(&ann(), None, &text("HELP"), Route::Skip(Skip::CarrierHelp));
    }

    #[test]
    fn a_yes_counts_only_if_it_can_have_been_said_to_the_question() {
        check(&ann(), Some(&open()), &text("Yes!"), Route::Confirm);
        let unsent = OpenQuestion { armed_at: None, ..open() };
        let early = OpenQuestion { armed_at: Some(second(100)), ..open() };
        let disturbed = OpenQuestion { disturbed: true, ..open() };
        let elsewhere = OpenQuestion { way: Way::Console, ..open() };
        for question in [unsent, early, disturbed, elsewhere] {
            check(&ann(), Some(&question), &text("yes"), Route::RepeatQuestion);
        }
        for via in [Via::Recovery, Via::Fallback] {
            check(&ann(), Some(&open()), &InboundEvent { via, ..text("yes") }, Route::RepeatQuestion);
        }
        check(&ann(), Some(&OpenQuestion { denied_since: true, ..open() }), &text("yes"), Route::Deny);
        let disturbed = OpenQuestion { disturbed: true, ..open() };
        let button = InboundEvent { origin: Origin::Button, via: Via::Local, ..text("yes") };
        check(&ann(), Some(&disturbed), &button, Route::Confirm);
    }

    #[test]
    fn ambiguous_texts_act_only_once_they_are_verified() {
        let (ann, question) = (ann(), open());
        let admin = User { rights: Rights { role: Role::Admin, ..ann.rights }, ..ann.clone() };
        let asked = Situation { question: Some(&question), ..situation(&ann) };
        let cases = [
            (asked, "yes", Route::Confirm, Route::RepeatQuestion),
            (situation(&admin), "approve 4821", Route::Order, Route::Unverified),
            (situation(&ann), "STOP", Route::OptOut, Route::Skip(Skip::Unverified)),
            (situation(&ann), "START", Route::OptIn, Route::Skip(Skip::Unverified)),
            (situation(&ann), "forget all", Route::ForgetAll, Route::Unverified),
        ];
        for (situation, body, verified, unverified) in cases {
            let with = |authority| InboundEvent { authority, ..text(body) };
            assert!(would_act(&situation, &with(FieldAuthority::Ambiguous)), "{body}");
            assert!(!would_act(&situation, &with(FieldAuthority::Unverified)), "{body}");
            assert_eq!(route(&situation, &with(FieldAuthority::Verified)), verified, "{body}");
            for authority in [FieldAuthority::Ambiguous, FieldAuthority::Unverified] {
                assert_eq!(route(&situation, &with(authority)), unverified, "{body}");
            }
        }
        let talk = InboundEvent { authority: FieldAuthority::Ambiguous, ..text("add Toy Story") };
        assert!(!would_act(&asked, &talk));
    }

    #[test]
    fn an_unclear_answer_repeats_the_question_once_and_then_closes_it() {
        for body in ["ok thanks", "\u{1f44d}", "Liked \u{201c}Delete Dune?\u{201d}"] {
            check(&ann(), Some(&open()), &text(body), Route::RepeatQuestion);
            check(&ann(), Some(&OpenQuestion { repeats: 1, ..open() }), &text(body), Route::CloseQuestion);
        }
    }

    #[test]
    fn only_a_yes_with_another_code_is_a_wrong_code() {
        let coded = OpenQuestion { code: Code::parse("4821"), ..open() };
        for (body, expected) in [
            ("yes 4821", Route::Confirm),
            ("yes 4822", Route::WrongCode),
            ("48", Route::WrongCode),
            ("yes", Route::RepeatQuestion),
            ("no", Route::Deny),
        ] {
            check(&ann(), Some(&coded), &text(body), expected);
        }
        check(&ann(), Some(&open()), &text("yes 4822"), Route::Turn(Brain::Model));
    }

    #[test]
    fn reference_to_the_open_question_repeats_it_and_is_no_yes() {
        for body in ["delete it", "Get rid of it!", "remove them", "delete the movie", "delete all"] {
            check(&ann(), Some(&open()), &text(body), Route::RepeatQuestion);
            check(&ann(), Some(&OpenQuestion { repeats: 1, ..open() }), &text(body), Route::CloseQuestion);
            check(&ann(), None, &text(body), Route::Turn(Brain::Model));
        }
        for body in ["delete the show", "delete It (2017)", "delete the movie it", "add it"] {
            check(&ann(), Some(&open()), &text(body), Route::Turn(Brain::Model));
        }
    }

    #[test]
    fn anything_else_is_talk() {
        check(&ann(), Some(&open()), &text("yes but keep season 1"), Route::Turn(Brain::Model));
        check(&ann(), None, &text("whats downloading?"), Route::Turn(Brain::Model));
        check(&ann(), None, &text("status"), Route::Turn(Brain::Keyword));
        check(&ann(), None, &text("/clear"), Route::Clear);
        check(&ann(), Some(&open()), &text("what do you know?"), Route::WhatIsKnown);
        check(&ann(), Some(&open()), &text("forget 3"), Route::ForgetFact(3));
        check(&ann(), None, &text("2"), Route::Turn(Brain::Model));
        let ann = ann();
        let listed = Situation { last_list: LastList::Code, ..situation(&ann) };
        assert_eq!(route(&listed, &text("2")), Route::Turn(Brain::Keyword));
    }

    #[test]
    fn media_without_words_is_no_answer_and_no_talk() {
        let media = vec![Media { url: "https://x.example/1".into(), content_type: "image/jpeg".into() }];
        let picture = InboundEvent { media, ..text(" ") };
        check(&ann(), None, &picture, Route::OnlyMedia);
        check(&ann(), Some(&open()), &picture, Route::RepeatQuestion);
        check(&ann(), None, &InboundEvent { body: "status".into(), ..picture }, Route::Turn(Brain::Keyword));
        check(&ann(), None, &text(" "), Route::Skip(Skip::Empty));
    }

    #[test]
    fn the_carriers_own_word_for_a_text_counts() {
        let word = |carrier_word| InboundEvent { carrier_word: Some(carrier_word), ..text("arret") };
        check(&ann(), Some(&open()), &word(OptWord::Out), Route::OptOut);
        check(&ann(), None, &word(OptWord::In), Route::OptIn);
        check(&ann(), None, &word(OptWord::Help), Route::Skip(Skip::CarrierHelp));
    }

    #[test]
    fn only_admins_give_orders() {
        let admin = User { rights: Rights { role: Role::Admin, ..ann().rights }, ..ann() };
        for body in ["approve 4821", "users", "pause", "quota Sam +5"] {
            check(&admin, None, &text(body), Route::Order);
            check(&ann(), None, &text(body), Route::Turn(Brain::Model));
        }
    }

    #[test]
    fn small_talk_stays_unanswered_when_nothing_is_open() {
        let ann = ann();
        let said = |body: &str| {
            [Recent { said: Said::ByUs(OutboxId(1)), body: body.to_owned(), asks_nothing: false }]
        };
        let (told, asked, listed) = (
            said("Added Dune (2021)."),
            said("Which one?\n1. Dune\n2. Dune"),
            said("1. A\n2. B\nReply 1 or 2."),
        );
        let quiet = Situation { recent: &told, ..situation(&ann) };
        for body in ["thanks!", "\u{1f44d}", "ok cool"] {
            assert_eq!(route(&quiet, &text(body)), Route::Skip(Skip::SmallTalk), "{body}");
        }
        let answered = [
            Situation { routing: Routing::Off, ..quiet },
            Situation { first: true, ..quiet },
            Situation { recent: &asked, ..quiet },
            Situation { recent: &listed, ..quiet },
        ];
        for situation in answered {
            assert_eq!(route(&situation, &text("thanks!")), Route::Turn(Brain::Model));
        }
        assert!(!wants_triage(&quiet, &text("we loved it")));
        let ai = Situation { routing: Routing::Ai, ..quiet };
        assert!(wants_triage(&ai, &text("we loved it")));
        assert!(!wants_triage(&ai, &text("add dune")));
        assert!(!wants_triage(&Situation { first: true, ..ai }, &text("we loved it")));
    }

    #[test]
    fn beyond_the_limit_only_answers_to_a_question_are_read() {
        let ann = ann();
        let fast = Situation { over_limit: true, ..situation(&ann) };
        for body in ["add dune", "status", "/clear", "thanks"] {
            assert_eq!(route(&fast, &text(body)), Route::TooFast, "{body}");
        }
        assert_eq!(route(&fast, &text("STOP")), Route::OptOut);
        let question = open();
        let asked = Situation { question: Some(&question), ..fast };
        assert_eq!(route(&asked, &text("no")), Route::Deny);
        assert_eq!(route(&asked, &text("yes")), Route::Confirm);
        assert_eq!(route(&asked, &text("add dune")), Route::TooFast);
    }

    #[test]
    fn late_yes_is_answered_by_code_only_right_after_its_question() {
        let ann = ann();
        let ended = EndedQuestion { answer: "Expired.".into(), is_last_message: true };
        let late = Situation { ended: Some(&ended), ..situation(&ann) };
        assert_eq!(route(&late, &text("yes")), Route::LateAnswer);
        assert_eq!(route(&late, &text("add dune")), Route::Turn(Brain::Model));
        let asked = EndedQuestion { is_last_message: false, ..ended };
        let newer = Situation { ended: Some(&asked), ..situation(&ann) };
        assert_eq!(route(&newer, &text("yes")), Route::Turn(Brain::Model));
    }
}
