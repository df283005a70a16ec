//! How a stranger becomes a member: what is said to them and to the admins, and how little.

use jiff::{SignedDuration, Timestamp};

use super::consent::{self, Answer};
use super::first_request::FirstRequest;
use super::naming::Name;
use super::transcript::PhoneNumber;
use super::words;

/// Numbers that may wait to be let in; further ones are stored and not answered.
pub const PLACES: i64 = 20;
/// Texts to strangers within a day, all together.
pub const ANSWERS_A_DAY: i64 = 20;
/// After this a stranger for whom nothing is open has no place any more.
pub const LEAVE_AFTER: SignedDuration = SignedDuration::from_hours(7 * 24);
/// Times that the admins are asked about one number.
const MOST_ASKINGS: i64 = 3;
const DAY: SignedDuration = SignedDuration::from_hours(24);

/// The first answer to a number. The only text of ours that names a word by which people opt out.
pub const WELCOME: &str = "This is Dialarr, a private assistant for movies and shows. What is your name? \
    I will ask the admins to let you in. Text STOP to opt out.";
/// The second and last one.
pub const ASK_AGAIN: &str =
    "I did not get your name. Please reply with only your name, so that I can ask the admins to let you in.";

/// The first message to a new member: with the offer to add what they asked for before, if that is known.
pub fn admitted(name: Option<&str>, request: Option<&FirstRequest>) -> String {
    let hello = name.map_or_else(|| "Hello".to_owned(), |name| format!("Hello {name}"));
    match request {
        Some(request) => {
            format!("{hello}, you can text me now. Text COMMANDS for what I understand. {}", request.offer())
        }
        None => format!(
            "{hello}, you can text me now. Tell me what you would like to watch, for example: add Dune. \
             Text COMMANDS for more."
        ),
    }
}

/// What the admins are asked about a newcomer.
pub fn question(phone: &PhoneNumber, name: &str, code: &str) -> String {
    format!("New number {}, \"{name}\": reply APPROVE {code} or BLOCK {code}", phone.spaced())
}

/// The name that somebody gives as theirs: "Sam", "I'm Sam" or "my name is Sam Smith.". Up to three words of letters;
/// None where the text is anything else.
pub fn introduced(text: &str) -> Option<Name> {
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
    let talk = words.iter().any(|word| NO_NAMES.contains(&word.to_lowercase().as_str()))
        || words::command(core).is_some()
        || words::keyword(core).is_some()
        || words::opt_word(core).is_some()
        || consent::read(core, None, &[]) != Answer::Other;
    let fits = (1..=3).contains(&words.len()) && words.iter().all(is_word) && !talk;
    // A name that is too long is none.
    if fits { Name::parse(core).ok() } else { None }
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

/// Words that nobody is called: "who is this" is no name, and no name may tell an admin what to text.
const NO_NAMES: [&str; 60] = [
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

/// What is known of somebody who was not let in yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stranger {
    pub name: Option<String>,
    /// How often they were asked for it.
    pub asked: u32,
    /// Whether they have one of the places.
    pub waits: bool,
    pub answered_at: Option<Timestamp>,
    /// How often the admins were asked about them, and whether that is open.
    pub askings: i64,
    pub asking_is_open: bool,
}

/// What all strangers share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitingRoom {
    pub taken: i64,
    /// Texts to strangers within the last day.
    pub answers: i64,
}

/// What a stranger's text leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Move {
    Welcome,
    AskNameAgain,
    /// They told their name, and the admins are asked. They hear of the outcome, not of the asking.
    Introduce(Name),
    /// Their name is known and nobody has answered for them.
    AskAdminsAgain,
    /// It is stored, and that is all.
    Silent,
}

/// Bounded by itself: whatever a number sends, and however often, it gets two texts and the outcome.
pub fn next(stranger: &Stranger, room: WaitingRoom, text: &str, now: Timestamp) -> Move {
    if !stranger.waits && room.taken >= PLACES {
        return Move::Silent;
    }
    // An answer that is ahead of the clock is of one that was set back since.
    let is_old = |at: Timestamp| at > now || now.duration_since(at) >= DAY;
    let may_answer = stranger.answered_at.is_none_or(is_old) && room.answers < ANSWERS_A_DAY;
    match (&stranger.name, stranger.asked) {
        (Some(_), _) if stranger.asking_is_open || stranger.askings >= MOST_ASKINGS => Move::Silent,
        (Some(_), _) => Move::AskAdminsAgain,
        (None, 0) if may_answer => Move::Welcome,
        (None, 0) => Move::Silent,
        (None, asked) => match introduced(text) {
            Some(name) => Move::Introduce(name),
            None if asked == 1 && may_answer => Move::AskNameAgain,
            None => Move::Silent,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hour(n: i64) -> Timestamp {
        Timestamp::from_second(3600 * n).unwrap()
    }

    fn stranger() -> Stranger {
        Stranger { name: None, asked: 0, waits: false, answered_at: None, askings: 0, asking_is_open: false }
    }

    const EMPTY: WaitingRoom = WaitingRoom { taken: 0, answers: 0 };

    #[track_caller]
    fn check(stranger: &Stranger, room: WaitingRoom, text: &str, at: i64, expected: &Move) {
        assert_eq!(&next(stranger, room, text, hour(at)), expected, "{text:?}");
    }

    fn sam() -> Move {
        Move::Introduce(Name::parse("Sam").unwrap())
    }

    #[test]
    fn a_name_is_up_to_three_words_of_letters() {
        for (text, name) in [
            ("Sam", "Sam"),
            (" sam smith. ", "sam smith"),
            ("I'm Sam!", "Sam"),
            ("i\u{2019}m Sam", "Sam"),
            ("My name is Ana-María O'Neil", "Ana-María O'Neil"),
            ("Hi, I'm Sam", "Sam"),
        ] {
            assert_eq!(introduced(text), Some(Name::parse(name).unwrap()), "{text}");
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
            assert_eq!(introduced(text), None, "{text}");
        }
    }

    #[test]
    fn a_stranger_is_welcomed_once_and_asked_for_the_name_at_most_twice() {
        check(&stranger(), EMPTY, "add dune", 0, &Move::Welcome);
        let welcomed = Stranger { asked: 1, waits: true, answered_at: Some(hour(0)), ..stranger() };
        check(&welcomed, EMPTY, "Sam", 0, &sam());
        check(&welcomed, EMPTY, "add dune", 1, &Move::Silent);
        check(&welcomed, EMPTY, "add dune", 24, &Move::AskNameAgain);
        let asked_again = Stranger { asked: 2, answered_at: Some(hour(24)), ..welcomed };
        check(&asked_again, EMPTY, "add dune", 480, &Move::Silent);
        check(&asked_again, EMPTY, "I am Sam", 481, &sam());
    }

    #[test]
    fn the_admins_are_asked_again_only_when_nobody_answered_and_at_most_three_times() {
        let named = Stranger { name: Some("Sam".into()), asked: 1, askings: 1, ..stranger() };
        check(&Stranger { asking_is_open: true, ..named.clone() }, EMPTY, "hello?", 1, &Move::Silent);
        check(&named, EMPTY, "hello?", 30, &Move::AskAdminsAgain);
        check(&Stranger { askings: 3, ..named }, EMPTY, "hello?", 99, &Move::Silent);
    }

    #[test]
    fn strangers_together_have_few_places_and_few_answers() {
        check(&stranger(), WaitingRoom { taken: 20, answers: 0 }, "hi", 0, &Move::Silent);
        check(&stranger(), WaitingRoom { taken: 0, answers: 20 }, "hi", 0, &Move::Silent);
        let waiting = Stranger { asked: 1, waits: true, answered_at: Some(hour(0)), ..stranger() };
        check(&waiting, WaitingRoom { taken: 20, answers: 19 }, "what now?", 30, &Move::AskNameAgain);
        check(&waiting, WaitingRoom { taken: 20, answers: 20 }, "Sam", 30, &sam());
    }

    #[test]
    fn what_is_said_to_strangers_fits_into_one_cheap_text() {
        for text in [WELCOME, ASK_AGAIN, &admitted(Some("Sam"), None)] {
            assert!(text.is_ascii() && text.len() <= 160, "{} {text}", text.len());
        }
        let phone = PhoneNumber::parse("+15550100123").unwrap();
        assert_eq!(
            question(&phone, "Sam", "4821"),
            "New number +1 555 010 0123, \"Sam\": reply APPROVE 4821 or BLOCK 4821"
        );
    }
}
