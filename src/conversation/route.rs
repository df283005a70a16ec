//! What one received text is, given who sent it and what is open: the order of PRODUCT rules before any model.

use jiff::{SignedDuration, Timestamp};

use super::consent::{self, Code, Language};
use super::deletion::Ending;
use super::reaction;
use super::transcript::{Brain, ChannelKind, InboundEvent, Received, Status, User, Via};
use super::words::{self, Command, OptWord};

/// What is known when a text is read.
#[derive(Debug, Clone, Copy)]
pub struct Situation<'a> {
    pub user: &'a User,
    pub question: Option<&'a OpenQuestion>,
    /// The last question that ended within a day, where none is open.
    pub ended: Option<&'a EndedQuestion>,
    /// Texts of both sides, as a reaction may quote them.
    pub recent: &'a [String],
    pub last_list: LastList,
    pub languages: &'a [Language],
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
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedQuestion {
    pub ending: Ending,
    pub names: Vec<String>,
    /// We have asked the user something else since, so a yes answers that.
    pub asked_since: bool,
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
    OptIn,
    /// The open question is claimed and carried out.
    Confirm,
    Deny,
    /// The question goes out once more: the answer was unclear, too early, or came by a way that does not count.
    RepeatQuestion,
    /// Unclear a second time: the question is closed and nothing goes.
    CloseQuestion,
    /// Found only long after it was sent: it is told that it was missed, and nothing is done.
    TooOld,
    /// A yes or no after the question ended: code says what became of it.
    LateAnswer,
    Clear,
    Commands,
    More,
    Turn(Brain),
}

/// Why a text gets no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Skip {
    Blocked,
    UnknownSender,
    OptedOut,
    /// The carrier answers HELP and INFO itself.
    CarrierHelp,
    Reaction,
    Empty,
}

impl Skip {
    pub fn reason(self) -> &'static str {
        match self {
            Self::Blocked => "blocked",
            Self::UnknownSender => "unknown_sender",
            Self::OptedOut => "opted_out",
            Self::CarrierHelp => "carrier_help",
            Self::Reaction => "reaction",
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
    /// The running turn is taken back, unless a question is open, which it answers.
    EndsTurnOrAnswers,
}

/// Whether the text is a person's word that nothing more may be sent to them.
pub fn opts_out(channel: ChannelKind, body: &str) -> bool {
    channel == ChannelKind::Twilio && words::opt_word(body) == Some(OptWord::Out)
}

pub fn urgency(received: &Received, languages: &[Language]) -> Urgency {
    let opt_word = words::opt_word(&received.body);
    let command = words::command(&received.body);
    if command == Some(Command::Clear) || opts_out(received.channel, &received.body) {
        return Urgency::EndsTurn;
    }
    if words::takes_back(&received.body) {
        return Urgency::EndsTurnOrAnswers;
    }
    let answer = consent::read(&received.body, None, languages);
    if answer != consent::Answer::Other || opt_word.is_some() || command.is_some() {
        Urgency::AtOnce
    } else {
        Urgency::MayWait
    }
}

pub fn route(situation: &Situation<'_>, event: &InboundEvent) -> Route {
    let by_carrier = event.channel == ChannelKind::Twilio;
    let opt_word = words::opt_word(&event.body);
    if by_carrier && opt_word == Some(OptWord::Out) {
        return Route::OptOut;
    }
    match situation.user.status {
        Status::Blocked => return Route::Skip(Skip::Blocked),
        Status::Pending => return Route::Skip(Skip::UnknownSender),
        Status::Active => {}
    }
    match opt_word {
        Some(OptWord::In) if by_carrier => return Route::OptIn,
        Some(OptWord::Help) if by_carrier => return Route::Skip(Skip::CarrierHelp),
        Some(OptWord::Help) => return Route::Commands,
        // YES lifts an opt-out at the carrier, and is an answer like any other.
        Some(OptWord::Yes) => {}
        Some(OptWord::In | OptWord::Out) | None if situation.user.opted_out => {
            return Route::Skip(Skip::OptedOut);
        }
        Some(OptWord::In | OptWord::Out) | None => {}
    }
    if event.body.trim().is_empty() && event.media.is_empty() {
        return Route::Skip(Skip::Empty);
    }
    if is_too_old(event) {
        return Route::TooOld;
    }
    match situation.question {
        Some(question) => with_open_question(situation, question, event),
        None => without_question(situation, event),
    }
}

/// A text that was fetched this long after it was sent is not acted on: much may have changed since.
const TOO_OLD: SignedDuration = SignedDuration::from_hours(1);

/// Whether the text was missed, and found too late to be acted on.
pub fn is_too_old(event: &InboundEvent) -> bool {
    event.via == Via::Recovery && event.received_at.duration_since(event.sent_at) > TOO_OLD
}

fn with_open_question(situation: &Situation<'_>, question: &OpenQuestion, event: &InboundEvent) -> Route {
    let unclear = if question.repeats == 0 { Route::RepeatQuestion } else { Route::CloseQuestion };
    if reaction::looks_like_reaction(&event.body) {
        return unclear;
    }
    match consent::read(&event.body, question.code, situation.languages) {
        consent::Answer::Yes if question.denied_since => Route::Deny,
        consent::Answer::Yes if counts(question, event) => Route::Confirm,
        consent::Answer::Yes | consent::Answer::Soft(_) => unclear,
        consent::Answer::No => Route::Deny,
        consent::Answer::Other => talk(situation, event),
    }
}

/// Only a yes that can have been said to this question, and came straight to us.
fn counts(question: &OpenQuestion, event: &InboundEvent) -> bool {
    let direct = match event.via {
        Via::Webhook | Via::Local => true,
        Via::Fallback | Via::Recovery => false,
    };
    direct && !question.disturbed && question.armed_at.is_some_and(|armed| event.received_at > armed)
}

fn without_question(situation: &Situation<'_>, event: &InboundEvent) -> Route {
    if let Some(reaction) = reaction::read(&event.body)
        && reaction::concerns(&reaction, situation.recent.iter().map(String::as_str))
    {
        return Route::Skip(Skip::Reaction);
    }
    if situation.ended.is_some_and(|ended| !ended.asked_since) {
        match consent::read(&event.body, None, situation.languages) {
            consent::Answer::Yes | consent::Answer::No => return Route::LateAnswer,
            consent::Answer::Soft(_) | consent::Answer::Other => {}
        }
    }
    talk(situation, event)
}

fn talk(situation: &Situation<'_>, event: &InboundEvent) -> Route {
    match words::command(&event.body) {
        Some(Command::Clear) => Route::Clear,
        Some(Command::Commands) => Route::Commands,
        Some(Command::More) => Route::More,
        Some(Command::Status | Command::Upcoming) => Route::Turn(Brain::Keyword),
        Some(Command::Number(_)) if situation.last_list == LastList::Code => Route::Turn(Brain::Keyword),
        Some(Command::Number(_)) | None => Route::Turn(Brain::Model),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
            sent_at: second(100),
            received_at: second(100),
        }
    }

    fn open() -> OpenQuestion {
        OpenQuestion {
            code: None,
            repeats: 0,
            armed_at: Some(second(50)),
            disturbed: false,
            denied_since: false,
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
        }
    }

    #[track_caller]
    fn check(user: &User, question: Option<&OpenQuestion>, event: &InboundEvent, expected: Route) {
        let situation = Situation { question, ..situation(user) };
        assert_eq!(route(&situation, event), expected, "{}", event.body);
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
    fn unknown_and_blocked_senders_and_the_opted_out_are_stored_only() {
        check(
            &User { status: Status::Pending, ..ann() },
            None,
            &text("add dune"),
            Route::Skip(Skip::UnknownSender),
        );
        check(
            &User { status: Status::Blocked, ..ann() },
            None,
            &text("add dune"),
            Route::Skip(Skip::Blocked),
        );
        let gone = User { opted_out: true, ..ann() };
        check(&gone, None, &text("add dune"), Route::Skip(Skip::OptedOut));
        check(&gone, None, &text("START"), Route::OptIn);
        check(&gone, None, &text("yes"), Route::Turn(Brain::Model));
        check(&ann(), None, &text("HELP"), Route::Skip(Skip::CarrierHelp));
    }

    #[test]
    fn a_yes_counts_only_if_it_can_have_been_said_to_the_question() {
        check(&ann(), Some(&open()), &text("Yes!"), Route::Confirm);
        let unsent = OpenQuestion { armed_at: None, ..open() };
        let early = OpenQuestion { armed_at: Some(second(100)), ..open() };
        let disturbed = OpenQuestion { disturbed: true, ..open() };
        for question in [unsent, early, disturbed] {
            check(&ann(), Some(&question), &text("yes"), Route::RepeatQuestion);
        }
        for via in [Via::Recovery, Via::Fallback] {
            check(&ann(), Some(&open()), &InboundEvent { via, ..text("yes") }, Route::RepeatQuestion);
        }
        check(&ann(), Some(&OpenQuestion { denied_since: true, ..open() }), &text("yes"), Route::Deny);
    }

    #[test]
    fn an_unclear_answer_repeats_the_question_once_and_then_closes_it() {
        for body in ["ok thanks", "\u{1f44d}", "Liked \u{201c}Delete Dune?\u{201d}"] {
            check(&ann(), Some(&open()), &text(body), Route::RepeatQuestion);
            check(&ann(), Some(&OpenQuestion { repeats: 1, ..open() }), &text(body), Route::CloseQuestion);
        }
    }

    #[test]
    fn anything_else_is_talk() {
        check(&ann(), Some(&open()), &text("yes but keep season 1"), Route::Turn(Brain::Model));
        check(&ann(), None, &text("whats downloading?"), Route::Turn(Brain::Model));
        check(&ann(), None, &text("status"), Route::Turn(Brain::Keyword));
        check(&ann(), None, &text("/clear"), Route::Clear);
        check(&ann(), None, &text("2"), Route::Turn(Brain::Model));
        let ann = ann();
        let listed = Situation { last_list: LastList::Code, ..situation(&ann) };
        assert_eq!(route(&listed, &text("2")), Route::Turn(Brain::Keyword));
    }

    #[test]
    fn a_late_yes_is_answered_by_code_unless_something_else_was_asked() {
        let ann = ann();
        let ended =
            EndedQuestion { ending: Ending::Expired, names: vec!["Dune (2021)".into()], asked_since: false };
        let late = Situation { ended: Some(&ended), ..situation(&ann) };
        assert_eq!(route(&late, &text("yes")), Route::LateAnswer);
        assert_eq!(route(&late, &text("add dune")), Route::Turn(Brain::Model));
        let asked = EndedQuestion { asked_since: true, ..ended };
        let newer = Situation { ended: Some(&asked), ..situation(&ann) };
        assert_eq!(route(&newer, &text("yes")), Route::Turn(Brain::Model));
    }
}
