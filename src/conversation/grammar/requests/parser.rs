//! Parser of the lines of a message.

use super::compound;
use super::known_titles::is_known_title;
use super::request::Request;
use super::single_request::{mark_known_words, strip_courtesies};
use super::title_phrase::TitlePhrase;
use super::token::{MAX_TOKENS, Token, join_raw, tokenize};
use crate::conversation::grammar::make_room_step;

/// Requests of one line of a message.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ParsedLine {
    /// Requests in the order of the text. Empty if the line is not understood.
    pub requests: Vec<Request>,
    /// Other reading of the same line, which holds if a title of this name exists.
    pub title_reading: Option<Request>,
    /// True if the line is a well-known title, so that its reading as a title counts first.
    pub is_known_title: bool,
}

impl ParsedLine {
    /// Returns the more likely reading.
    pub fn first_reading(&self) -> Vec<Request> {
        match &self.title_reading {
            Some(title) if self.requests.is_empty() || self.is_known_title => vec![title.clone()],
            Some(_) | None => self.requests.clone(),
        }
    }
}

/// Parses one line.
pub fn parse_line(line: &str) -> ParsedLine {
    if let Some(step) = make_room_step::parse_make_room_step(line) {
        return ParsedLine { requests: vec![Request::MakeRoom(step)], ..ParsedLine::default() };
    }
    let mut tokens = tokenize(line);
    if tokens.is_empty() || tokens.len() > MAX_TOKENS {
        return ParsedLine::default();
    }
    mark_known_words(&mut tokens);
    let reading = compound::parse_sequence(&tokens).map(|sequence| sequence.requests);
    let title_reading = title_reading(&tokens, reading.as_deref());
    let (words, _) = strip_courtesies(&tokens);
    let is_known_title = title_reading.is_some() && words.len() > 1 && is_known_title(&join_raw(words));
    ParsedLine { requests: reading.unwrap_or_default(), title_reading, is_known_title }
}

/// Maximum number of words of a message that may be nothing but a title.
const MAX_TITLE_WORDS: usize = 8;

/// Returns the reading of the whole line as a title, if that is plausible.
fn title_reading(tokens: &[Token], requests: Option<&[Request]>) -> Option<Request> {
    let (words, is_polite) = strip_courtesies(tokens);
    let phrase = TitlePhrase::parse(words);
    if words.len() > MAX_TITLE_WORDS || phrase.reference.is_some() {
        return None;
    }
    let is_known = is_known_title(&join_raw(words));
    let is_title = match requests {
        None => is_known || !words.iter().any(is_prose_word),
        Some([]) => is_known,
        Some([Request::Pick(_)]) => false,
        Some([only]) => only.title().is_some() || is_known,
        Some(_) => false,
    };
    let adds_seasons = is_polite && phrase.seasons.is_some();
    is_title.then_some(if adds_seasons { Request::Add(phrase) } else { Request::Search(phrase) })
}

/// Words of sentences that are rare in titles.
const PROSE_WORDS: &str = " i im ive ill you your youre u we were he hes she shes they my me is are was am do does did dont \
    can cant will wont what whats who why how when where not be being been have has had going its thats there just \
    lol haha ok okay yes please hate want getting should would could lets ";

/// Maximum number of consonants in a row; more of them are typed at random.
const MAX_CONSONANTS: usize = 4;

fn is_prose_word(token: &Token) -> bool {
    let is_vowel = |c: char| matches!(c, 'a' | 'e' | 'i' | 'o' | 'u' | 'y') || !c.is_ascii_alphabetic();
    let is_random = token.word.split(is_vowel).any(|run| run.len() > MAX_CONSONANTS);
    !token.is_quoted && (is_random || PROSE_WORDS.contains(&format!(" {} ", token.word)))
}
