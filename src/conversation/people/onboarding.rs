//! Onboarding of newcomers as members: the next step for a newcomer's message, and the messages to newcomers and
//! admins.

use jiff::{SignedDuration, Timestamp};

use super::first_request::FirstRequest;
use super::naming::UserName;
use crate::conversation::grammar::confirmation_reply::{self, ConfirmationReply};
use crate::conversation::grammar::keyword_grammar;
use crate::conversation::grammar::requests::parser::parse_line;
use crate::conversation::transcript::UserAddress;

/// Maximum number of newcomers that may wait for approval. Messages from other new numbers are stored without a reply.
pub const MAX_WAITING_NEWCOMERS: i64 = 20;
/// Maximum number of messages to all newcomers within a day.
pub const MAX_DAILY_REPLIES: i64 = 20;
/// Time after which a newcomer without an open join request loses their slot.
pub const DISMISS_AFTER: SignedDuration = SignedDuration::from_hours(7 * 24);
/// Maximum number of join requests for one number.
const MAX_ADMIN_REQUESTS: i64 = 3;
const DAY: SignedDuration = SignedDuration::from_hours(24);

/// First reply to a new number. This is our only message that names an opt-out keyword.
pub const WELCOME: &str = "This is Dialarr, a private assistant for movies and shows. What is your name? \
    I will ask the admins to let you in. Text STOP to opt out.";
/// Second and last reply to a new number.
pub const ASK_NAME_AGAIN: &str =
    "I did not get your name. Please reply with only your name, so that I can ask the admins to let you in.";

/// Formats the first message to a new member, with the offer to add the title of their first request, if there is one.
pub fn format_welcome(name: Option<&str>, request: Option<&FirstRequest>) -> String {
    let greeting = name.map_or_else(|| "Hello".to_owned(), |name| format!("Hello {name}"));
    match request {
        Some(request) => {
            format!(
                "{greeting}, you can text me now. Text COMMANDS for a list of commands. {}",
                request.format_offer()
            )
        }
        None => format!(
            "{greeting}, you can text me now. Tell me what you would like to watch, for example: add Dune. \
             Text COMMANDS for more."
        ),
    }
}

/// Formats the join request to the admins.
pub fn format_join_request(address: Option<&UserAddress>, name: &str, code: &str) -> String {
    if address.is_some_and(UserAddress::is_group) {
        return format!("New group \"{name}\": reply APPROVE {code} or BLOCK {code}");
    }
    let from = match address {
        Some(UserAddress::Account(_)) => "account",
        Some(UserAddress::Phone(_)) | None => "number",
    };
    let address = address.map(UserAddress::format_grouped).unwrap_or_default();
    format!("New {from} {address}, \"{name}\": reply APPROVE {code} or BLOCK {code}")
}

/// Parses the name in an introduction such as "Sam", "I'm Sam" or "my name is Sam Smith.": up to three words of
/// letters. Returns `None` for any other message.
pub fn parse_introduction(text: &str) -> Option<UserName> {
    let text = text.trim().replace(['\u{2019}', '\u{2018}'], "'");
    let name = INTRODUCTIONS
        .iter()
        .find_map(|introduction| {
            let start = text.get(..introduction.len())?;
            start.eq_ignore_ascii_case(introduction).then(|| &text[introduction.len()..])
        })
        .unwrap_or(&text);
    let name = name.trim().trim_end_matches(['.', '!', ',']).trim_end();
    let words: Vec<&str> = name.split_whitespace().collect();
    let is_name_word = |word: &&str| {
        word.chars().all(|c| c.is_alphabetic() || matches!(c, '\'' | '-'))
            && word.starts_with(char::is_alphabetic)
    };
    let is_ordinary_message = words.iter().any(|word| REJECTED_NAMES.contains(&word.to_lowercase().as_str()))
        || keyword_grammar::parse_command(name).is_some()
        || !parse_line(name).requests.is_empty()
        || keyword_grammar::parse_opt_keyword(name).is_some()
        || confirmation_reply::parse_confirmation_reply(name, None, &[]) != ConfirmationReply::Unrelated;
    let is_introduction =
        (1..=3).contains(&words.len()) && words.iter().all(is_name_word) && !is_ordinary_message;
    // A name that is too long is rejected.
    if is_introduction { UserName::parse(name).ok() } else { None }
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

/// Words that are not part of a name: "who is this" is not a name, and a name must not contain instructions to an
/// admin.
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

/// State of a newcomer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Newcomer {
    pub name: Option<String>,
    /// Number of times that the newcomer was asked for their name.
    pub name_requests: u32,
    /// True if the newcomer has one of the slots.
    pub has_slot: bool,
    /// Time of the last reply.
    pub answered_at: Option<Timestamp>,
    /// Number of join requests to the admins.
    pub admin_requests: i64,
    /// True if the last join request is open.
    pub admin_request_is_open: bool,
}

/// Usage of the limits that all newcomers share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitingRoom {
    pub taken_slots: i64,
    /// Number of messages to newcomers within the last day.
    pub recent_answers: i64,
}

/// Next step of the onboarding, after a newcomer's message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OnboardingStep {
    Welcome,
    AskNameAgain,
    /// Ask the admins to approve the newcomer, who gave this name. The newcomer is notified only of the decision.
    AskAdmins(UserName),
    /// Ask the admins again: the name is known and no admin has decided.
    AskAdminsAgain,
    /// Store the message without any reply.
    NoReply,
}

/// Chooses the next step after a newcomer's message. A number gets at most two replies and the decision, regardless of
/// its messages.
pub fn next_onboarding_step(
    newcomer: &Newcomer,
    room: WaitingRoom,
    text: &str,
    now: Timestamp,
) -> OnboardingStep {
    if !newcomer.has_slot && room.taken_slots >= MAX_WAITING_NEWCOMERS {
        return OnboardingStep::NoReply;
    }
    // A reply time in the future dates from before the clock was set back.
    let is_old = |time: Timestamp| time > now || now.duration_since(time) >= DAY;
    let may_answer = newcomer.answered_at.is_none_or(is_old) && room.recent_answers < MAX_DAILY_REPLIES;
    match (&newcomer.name, newcomer.name_requests) {
        (Some(_), _) if newcomer.admin_request_is_open || newcomer.admin_requests >= MAX_ADMIN_REQUESTS => {
            OnboardingStep::NoReply
        }
        (Some(_), _) => OnboardingStep::AskAdminsAgain,
        (None, 0) if may_answer => OnboardingStep::Welcome,
        (None, 0) => OnboardingStep::NoReply,
        (None, name_requests) => match parse_introduction(text) {
            Some(name) => OnboardingStep::AskAdmins(name),
            None if name_requests == 1 && may_answer => OnboardingStep::AskNameAgain,
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

    fn newcomer() -> Newcomer {
        Newcomer {
            name: None,
            name_requests: 0,
            has_slot: false,
            answered_at: None,
            admin_requests: 0,
            admin_request_is_open: false,
        }
    }

    const EMPTY_ROOM: WaitingRoom = WaitingRoom { taken_slots: 0, recent_answers: 0 };

    #[track_caller]
    fn check(newcomer: &Newcomer, room: WaitingRoom, text: &str, hours: i64, expected: &OnboardingStep) {
        assert_eq!(&next_onboarding_step(newcomer, room, text, hour(hours)), expected, "{text:?}");
    }

    fn ask_admins_about_sam() -> OnboardingStep {
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
        check(&newcomer(), EMPTY_ROOM, "add dune", 0, &OnboardingStep::Welcome);
        let welcomed =
            Newcomer { name_requests: 1, has_slot: true, answered_at: Some(hour(0)), ..newcomer() };
        check(&welcomed, EMPTY_ROOM, "Sam", 0, &ask_admins_about_sam());
        check(&welcomed, EMPTY_ROOM, "add dune", 1, &OnboardingStep::NoReply);
        check(&welcomed, EMPTY_ROOM, "add dune", 24, &OnboardingStep::AskNameAgain);
        let asked_again = Newcomer { name_requests: 2, answered_at: Some(hour(24)), ..welcomed };
        check(&asked_again, EMPTY_ROOM, "add dune", 480, &OnboardingStep::NoReply);
        check(&asked_again, EMPTY_ROOM, "I am Sam", 481, &ask_admins_about_sam());
    }

    #[test]
    fn admins_are_asked_up_to_three_times_but_not_while_a_request_is_open() {
        let named = Newcomer { name: Some("Sam".into()), name_requests: 1, admin_requests: 1, ..newcomer() };
        check(
            &Newcomer { admin_request_is_open: true, ..named.clone() },
            EMPTY_ROOM,
            "hello?",
            1,
            &OnboardingStep::NoReply,
        );
        check(&named, EMPTY_ROOM, "hello?", 30, &OnboardingStep::AskAdminsAgain);
        check(&Newcomer { admin_requests: 3, ..named }, EMPTY_ROOM, "hello?", 99, &OnboardingStep::NoReply);
    }

    #[test]
    fn newcomers_share_limited_slots_and_replies() {
        check(
            &newcomer(),
            WaitingRoom { taken_slots: 20, recent_answers: 0 },
            "hi",
            0,
            &OnboardingStep::NoReply,
        );
        check(
            &newcomer(),
            WaitingRoom { taken_slots: 0, recent_answers: 20 },
            "hi",
            0,
            &OnboardingStep::NoReply,
        );
        let waiting = Newcomer { name_requests: 1, has_slot: true, answered_at: Some(hour(0)), ..newcomer() };
        check(
            &waiting,
            WaitingRoom { taken_slots: 20, recent_answers: 19 },
            "what now?",
            30,
            &OnboardingStep::AskNameAgain,
        );
        check(
            &waiting,
            WaitingRoom { taken_slots: 20, recent_answers: 20 },
            "Sam",
            30,
            &ask_admins_about_sam(),
        );
    }

    #[test]
    fn texts_to_newcomers_fit_one_segment() {
        for text in [WELCOME, ASK_NAME_AGAIN, &format_welcome(Some("Sam"), None)] {
            assert!(text.is_ascii() && text.len() <= 160, "{} {text}", text.len());
        }
        let phone = UserAddress::parse("+15550100123");
        assert_eq!(
            format_join_request(phone.as_ref(), "Sam", "4821"),
            "New number +1 555 010 0123, \"Sam\": reply APPROVE 4821 or BLOCK 4821"
        );
    }
}
