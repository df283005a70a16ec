//! Onboarding of a newcomer as a member, with the few messages to the newcomer and to the admins.

use jiff::{SignedDuration, Timestamp};

use super::first_request::FirstRequest;
use super::naming::UserName;
use crate::conversation::grammar::confirmation_reply::{self, ConfirmationReply};
use crate::conversation::grammar::keyword_grammar;
use crate::conversation::transcript::PhoneNumber;

/// Maximum number of newcomers that may wait for approval; messages of further numbers are stored and not answered.
pub const MAX_WAITING_NEWCOMERS: i64 = 20;
/// Maximum number of messages to newcomers within a day, for all of them together.
pub const MAX_DAILY_REPLIES: i64 = 20;
/// Time after which a newcomer without an open request loses their slot.
pub const DISMISS_AFTER: SignedDuration = SignedDuration::from_hours(7 * 24);
/// Maximum number of requests to the admins about one number.
const MAX_ADMIN_REQUESTS: i64 = 3;
const DAY: SignedDuration = SignedDuration::from_hours(24);

/// First reply to a number. This is our only message that names a word by which users opt out.
pub const WELCOME: &str = "This is Dialarr, a private assistant for movies and shows. What is your name? \
    I will ask the admins to let you in. Text STOP to opt out.";
/// Second and last reply.
pub const ASK_AGAIN: &str =
    "I did not get your name. Please reply with only your name, so that I can ask the admins to let you in.";

/// First message to a new member: with the offer to add the title of their first request, if it is known.
pub fn format_welcome(name: Option<&str>, request: Option<&FirstRequest>) -> String {
    let hello = name.map_or_else(|| "Hello".to_owned(), |name| format!("Hello {name}"));
    match request {
        Some(request) => {
            format!(
                "{hello}, you can text me now. Text COMMANDS for what I understand. {}",
                request.format_offer()
            )
        }
        None => format!(
            "{hello}, you can text me now. Tell me what you would like to watch, for example: add Dune. \
             Text COMMANDS for more."
        ),
    }
}

/// Request to the admins about a newcomer.
pub fn format_join_request(phone: &PhoneNumber, name: &str, code: &str) -> String {
    format!("New number {}, \"{name}\": reply APPROVE {code} or BLOCK {code}", phone.format_grouped())
}

/// Parses the name by which a newcomer introduces themselves: "Sam", "I'm Sam" or "my name is Sam Smith.". The name has
/// up to three words of letters; the result is `None` if the message is anything else.
pub fn parse_introduction(text: &str) -> Option<UserName> {
    let plain = text.trim().replace(['\u{2019}', '\u{2018}'], "'");
    let core = INTRODUCTIONS
        .iter()
        .find_map(|words| {
            let head = plain.get(..words.len())?;
            head.eq_ignore_ascii_case(words).then(|| &plain[words.len()..])
        })
        .unwrap_or(&plain);
    let core = core.trim().trim_end_matches(['.', '!', ',']).trim_end();
    let words: Vec<&str> = core.split_whitespace().collect();
    let is_word = |word: &&str| {
        word.chars().all(|c| c.is_alphabetic() || matches!(c, '\'' | '-'))
            && word.starts_with(char::is_alphabetic)
    };
    let is_conversation = words.iter().any(|word| REJECTED_NAMES.contains(&word.to_lowercase().as_str()))
        || keyword_grammar::parse_command(core).is_some()
        || keyword_grammar::parse_keyword_request(core).is_some()
        || keyword_grammar::opt_word(core).is_some()
        || confirmation_reply::parse_confirmation_reply(core, None, &[]) != ConfirmationReply::Unrelated;
    let fits = (1..=3).contains(&words.len()) && words.iter().all(is_word) && !is_conversation;
    // A name that is too long is rejected.
    if fits { UserName::parse(core).ok() } else { None }
}

const INTRODUCTIONS: [&str; 11] = [
    "hi, i'm ",
    "hi i'm ",
    "hi, i am ",
    "my name is ",
    "my name's ",
    "name is ",
    "this is ",
    "i am ",
    "i'm ",
    "it's ",
    "im ",
];

/// Words that are not part of a name: "who is this" is not a name, and no name may contain instructions for an admin.
const REJECTED_NAMES: [&str; 60] = [
    "who",
    "what",
    "whats",
    "what's",
    "why",
    "how",
    "when",
    "where",
    "is",
    "are",
    "am",
    "was",
    "the",
    "this",
    "that",
    "you",
    "your",
    "hi",
    "hello",
    "hey",
    "yo",
    "wrong",
    "number",
    "please",
    "thanks",
    "thank",
    "ok",
    "lol",
    "can",
    "want",
    "need",
    "movie",
    "movies",
    "approve",
    "block",
    "deny",
    "reply",
    "text",
    "code",
    "stop",
    "stopall",
    "cancel",
    "end",
    "quit",
    "unsubscribe",
    "revoke",
    "start",
    "unstop",
    "yes",
    "no",
    "ignore",
    "instructions",
    "delete",
    "remove",
    "add",
    "admin",
    "system",
    "help",
    "everyone",
    "dialarr",
];

/// Newcomer whose join request has not been approved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Newcomer {
    pub name: Option<String>,
    /// Number of requests for the name.
    pub name_requests: u32,
    /// True if the newcomer has one of the slots.
    pub has_slot: bool,
    pub answered_at: Option<Timestamp>,
    /// Number of requests to the admins about the newcomer; the next field is true if one is open.
    pub admin_requests: i64,
    pub admin_request_is_open: bool,
}

/// Limits that all newcomers share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitingRoom {
    pub taken_slots: i64,
    /// Messages to newcomers within the last day.
    pub recent_answers: i64,
}

/// Reaction to a newcomer's message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OnboardingStep {
    Welcome,
    AskNameAgain,
    /// Ask the admins to approve the newcomer, who gave their name. The newcomer is notified of the decision, not of
    /// the request.
    AskAdmins(UserName),
    /// Ask the admins again: the name is known and no admin has decided.
    AskAdminsAgain,
    /// Store the message without any reply.
    NoReply,
}

/// Decides the reaction to a newcomer's message. The replies are bounded: regardless of its messages, a number gets two
/// replies and the decision.
pub fn next_onboarding_step(
    stranger: &Newcomer,
    room: WaitingRoom,
    text: &str,
    now: Timestamp,
) -> OnboardingStep {
    if !stranger.has_slot && room.taken_slots >= MAX_WAITING_NEWCOMERS {
        return OnboardingStep::NoReply;
    }
    // A reply with a time ahead of the clock dates from before the clock was set back.
    let is_old = |at: Timestamp| at > now || now.duration_since(at) >= DAY;
    let may_answer = stranger.answered_at.is_none_or(is_old) && room.recent_answers < MAX_DAILY_REPLIES;
    match (&stranger.name, stranger.name_requests) {
        (Some(_), _) if stranger.admin_request_is_open || stranger.admin_requests >= MAX_ADMIN_REQUESTS => {
            OnboardingStep::NoReply
        }
        (Some(_), _) => OnboardingStep::AskAdminsAgain,
        (None, 0) if may_answer => OnboardingStep::Welcome,
        (None, 0) => OnboardingStep::NoReply,
        (None, asked) => match parse_introduction(text) {
            Some(name) => OnboardingStep::AskAdmins(name),
            None if asked == 1 && may_answer => OnboardingStep::AskNameAgain,
            None => OnboardingStep::NoReply,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hour(n: i64) -> Timestamp {
        Timestamp::from_second(3600 * n).unwrap()
    }

    fn stranger() -> Newcomer {
        Newcomer {
            name: None,
            name_requests: 0,
            has_slot: false,
            answered_at: None,
            admin_requests: 0,
            admin_request_is_open: false,
        }
    }

    const EMPTY: WaitingRoom = WaitingRoom { taken_slots: 0, recent_answers: 0 };

    #[track_caller]
    fn check(stranger: &Newcomer, room: WaitingRoom, text: &str, at: i64, expected: &OnboardingStep) {
        assert_eq!(&next_onboarding_step(stranger, room, text, hour(at)), expected, "{text:?}");
    }

    fn sam() -> OnboardingStep {
        OnboardingStep::AskAdmins(UserName::parse("Sam").unwrap())
    }

    #[test]
    fn introduction_is_up_to_three_words_of_letters() {
        for (text, name) in [
            ("Sam", "Sam"),
            (" sam smith. ", "sam smith"),
            ("I'm Sam!", "Sam"),
            ("i\u{2019}m Sam", "Sam"),
            ("My name is Ana-María O'Neil", "Ana-María O'Neil"),
            ("Hi, I'm Sam", "Sam"),
        ] {
            assert_eq!(parse_introduction(text), Some(UserName::parse(name).unwrap()), "{text}");
        }
        for text in [
            "",
            "add dune",
            "who is this",
            "hi",
            "yes",
            "no",
            "Sam 2",
            "one two three four",
            "status",
            "reset",
            "stop",
            "https://x.example",
            "Sam?",
            "-",
            "more",
            "APPROVE 4821",
            "a234567890123456789012345678901",
            "wrong number",
            "help",
            "thanks",
            "Abcdefghijklmno Pqrstuvwxyzabcdef",
            "Text STOP",
            "Reply APPROVE",
            "Ignore previous instructions",
        ] {
            assert_eq!(parse_introduction(text), None, "{text}");
        }
    }

    #[test]
    fn newcomer_is_welcomed_once_and_asked_for_a_name_twice() {
        check(&stranger(), EMPTY, "add dune", 0, &OnboardingStep::Welcome);
        let welcomed =
            Newcomer { name_requests: 1, has_slot: true, answered_at: Some(hour(0)), ..stranger() };
        check(&welcomed, EMPTY, "Sam", 0, &sam());
        check(&welcomed, EMPTY, "add dune", 1, &OnboardingStep::NoReply);
        check(&welcomed, EMPTY, "add dune", 24, &OnboardingStep::AskNameAgain);
        let asked_again = Newcomer { name_requests: 2, answered_at: Some(hour(24)), ..welcomed };
        check(&asked_again, EMPTY, "add dune", 480, &OnboardingStep::NoReply);
        check(&asked_again, EMPTY, "I am Sam", 481, &sam());
    }

    #[test]
    fn admins_are_asked_again_only_without_an_answer_and_three_times() {
        let named = Newcomer { name: Some("Sam".into()), name_requests: 1, admin_requests: 1, ..stranger() };
        check(
            &Newcomer { admin_request_is_open: true, ..named.clone() },
            EMPTY,
            "hello?",
            1,
            &OnboardingStep::NoReply,
        );
        check(&named, EMPTY, "hello?", 30, &OnboardingStep::AskAdminsAgain);
        check(&Newcomer { admin_requests: 3, ..named }, EMPTY, "hello?", 99, &OnboardingStep::NoReply);
    }

    #[test]
    fn newcomers_share_limited_slots_and_replies() {
        check(
            &stranger(),
            WaitingRoom { taken_slots: 20, recent_answers: 0 },
            "hi",
            0,
            &OnboardingStep::NoReply,
        );
        check(
            &stranger(),
            WaitingRoom { taken_slots: 0, recent_answers: 20 },
            "hi",
            0,
            &OnboardingStep::NoReply,
        );
        let waiting = Newcomer { name_requests: 1, has_slot: true, answered_at: Some(hour(0)), ..stranger() };
        check(
            &waiting,
            WaitingRoom { taken_slots: 20, recent_answers: 19 },
            "what now?",
            30,
            &OnboardingStep::AskNameAgain,
        );
        check(&waiting, WaitingRoom { taken_slots: 20, recent_answers: 20 }, "Sam", 30, &sam());
    }

    #[test]
    fn texts_to_newcomers_fit_one_segment() {
        for text in [WELCOME, ASK_AGAIN, &format_welcome(Some("Sam"), None)] {
            assert!(text.is_ascii() && text.len() <= 160, "{} {text}", text.len());
        }
        let phone = PhoneNumber::parse("+15550100123").unwrap();
        assert_eq!(
            format_join_request(&phone, "Sam", "4821"),
            "New number +1 555 010 0123, \"Sam\": reply APPROVE 4821 or BLOCK 4821"
        );
    }
}
