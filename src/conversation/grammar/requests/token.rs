//! Tokens of a message: its words as typed, with the normalized forms that patterns compare.

use super::spelling::is_misspelled;
use crate::conversation::text::normalization::normalize_title;

/// Maximum number of tokens of a request; a longer message is prose.
pub const MAX_TOKENS: usize = 40;

/// Word of a message, or a text in quotes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// Text as typed, without quotes and surrounding punctuation.
    pub raw: String,
    /// Normalized word, in one spelling for each abbreviation. Empty for a text in quotes, which no pattern matches.
    pub word: String,
    pub is_quoted: bool,
    /// True if the word occurs in a pattern, so that it is no misspelling of another one.
    pub is_known: bool,
    /// True if a comma, a semicolon or a line break follows.
    pub ends_item: bool,
    /// True if a period, an exclamation mark, a question mark or a line break follows.
    pub ends_sentence: bool,
}

const OPENING_QUOTES: [char; 5] = ['"', '\u{201C}', '\u{201E}', '\'', '\u{2018}'];
const CLOSING_QUOTES: [char; 5] = ['"', '\u{201D}', '\u{201C}', '\'', '\u{2019}'];

/// Splits a message into tokens. Words without a letter or digit are dropped.
pub fn tokenize(text: &str) -> Vec<Token> {
    let mut tokens: Vec<Token> = Vec::new();
    for line in text.lines() {
        for piece in split_quotes(line) {
            match piece {
                Piece::Quoted(inner) => tokens.extend(quoted_token(inner)),
                Piece::Plain(plain) => push_words(&mut tokens, plain),
            }
        }
        if let Some(last) = tokens.last_mut() {
            (last.ends_item, last.ends_sentence) = (true, true);
        }
    }
    if let Some(last) = tokens.last_mut() {
        (last.ends_item, last.ends_sentence) = (false, false);
    }
    tokens
}

enum Piece<'a> {
    Plain(&'a str),
    Quoted(&'a str),
}

/// Splits a line at texts in quotes. A quote opens only at the start of a word and closes only at the end of one.
fn split_quotes(line: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = line;
    while let Some((before, inner, after)) = find_quoted(rest) {
        pieces.extend([Piece::Plain(before), Piece::Quoted(inner)]);
        rest = after;
    }
    pieces.push(Piece::Plain(rest));
    pieces
}

fn find_quoted(text: &str) -> Option<(&str, &str, &str)> {
    let is_boundary = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric());
    let (open, quote) = text
        .char_indices()
        .find(|(index, c)| OPENING_QUOTES.contains(c) && is_boundary(text[..*index].chars().next_back()))?;
    let start = open + quote.len_utf8();
    let (length, closing) = text[start..].char_indices().find(|(index, c)| {
        let end = start + index + c.len_utf8();
        CLOSING_QUOTES.contains(c) && is_boundary(text[end..].chars().next())
    })?;
    let inner = &text[start..start + length];
    Some((&text[..open], inner, &text[start + length + closing.len_utf8()..]))
}

/// Cost of a misspelled word.
pub const MISSPELLING_COST: usize = 3;

impl Token {
    /// Returns the cost of reading the token as this word, if it is the word or a misspelling of it.
    pub fn spelling_cost(&self, word: &str) -> Option<usize> {
        if self.is_quoted {
            return None;
        }
        if self.word == word {
            return Some(0);
        }
        (!self.is_known && is_misspelled(&self.word, word)).then_some(MISSPELLING_COST)
    }

    /// Creates the token of a text in quotes.
    pub fn quoted(text: &str) -> Self {
        let raw = text.to_owned();
        Self {
            raw,
            word: String::new(),
            is_quoted: true,
            is_known: false,
            ends_item: false,
            ends_sentence: false,
        }
    }
}

fn quoted_token(inner: &str) -> Option<Token> {
    let raw = inner.trim();
    raw.contains(char::is_alphanumeric).then(|| Token::quoted(raw))
}

fn push_words(tokens: &mut Vec<Token>, plain: &str) {
    for chunk in plain.split_inclusive(|c: char| c.is_whitespace() || matches!(c, ',' | ';')) {
        let chunk = chunk.trim_end();
        let raw = chunk.trim_matches(|c: char| !c.is_alphanumeric());
        let ends_item = chunk.ends_with([',', ';']);
        let ends_sentence = chunk.ends_with(['.', '!', '?', ';']);
        if !raw.is_empty() {
            let word = canonical_word(raw);
            tokens.push(Token {
                raw: raw.to_owned(),
                word,
                is_quoted: false,
                is_known: false,
                ends_item,
                ends_sentence,
            });
        } else if matches!(chunk, "&" | "+") {
            let word = "and".to_owned();
            tokens.push(Token {
                raw: chunk.to_owned(),
                word,
                is_quoted: false,
                is_known: false,
                ends_item: false,
                ends_sentence: false,
            });
        } else if let Some(last) = tokens.last_mut() {
            last.ends_item |= ends_item;
            last.ends_sentence |= ends_sentence;
        }
    }
}

/// Returns the normalized word, with abbreviations of text messages written out.
fn canonical_word(raw: &str) -> String {
    let word = normalize_title(raw).replace(' ', "-");
    let written_out = match word.as_str() {
        "u" => "you",
        "ur" => "your",
        "r" => "are",
        "pls" | "plz" | "plss" | "plse" | "pleas" | "plese" => "please",
        "thx" | "thnx" | "tks" | "tnx" | "ty" | "tysm" => "thanks",
        "n" => "and",
        "abt" => "about",
        "tonite" | "2nite" => "tonight",
        "tmrw" | "tmr" | "tomoz" | "2moro" | "tomorow" => "tomorrow",
        "wk" => "week",
        "wks" => "weeks",
        "ep" | "epi" | "eps" => "episode",
        "szn" | "seas" => "season",
        "dl" | "d-l" => "download",
        "rec" => "recommend",
        "recs" | "reccs" => "recommendations",
        "cuz" | "bc" => "because",
        "vid" => "video",
        "flick" => "movie",
        "flicks" => "movies",
        _ => return word,
    };
    written_out.to_owned()
}

/// Returns the text of tokens as typed, in single spaces.
pub fn join_raw(tokens: &[Token]) -> String {
    tokens.iter().map(|token| token.raw.as_str()).collect::<Vec<_>>().join(" ")
}

/// Returns the normalized words of tokens, in single spaces.
pub fn join_words(tokens: &[Token]) -> String {
    tokens
        .iter()
        .map(|token| if token.is_quoted { normalize_title(&token.raw) } else { token.word.clone() })
        .collect::<Vec<_>>()
        .join(" ")
}

/// Returns the cost of reading the tokens as these words in single spaces.
pub fn phrase_cost(tokens: &[Token], phrase: &str) -> Option<usize> {
    let mut words = phrase.split(' ');
    let mut cost = 0;
    for token in tokens {
        cost += token.spelling_cost(words.next()?)?;
    }
    words.next().is_none().then_some(cost)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, words: &[&str]) {
        let tokens = tokenize(text);
        let found: Vec<&str> =
            tokens.iter().map(|t| if t.is_quoted { t.raw.as_str() } else { t.word.as_str() }).collect();
        assert_eq!(found, words, "{text:?}");
    }

    #[test]
    fn words_lose_case_accents_and_punctuation() {
        check("What's DOWNLOADING??", &["whats", "downloading"]);
        check("add Amélie & heat, pls :)", &["add", "amelie", "and", "heat", "please"]);
        check("  👍 ...", &[]);
    }

    #[test]
    fn quoted_text_is_one_token() {
        check("add \"The Movie It\" now", &["add", "The Movie It", "now"]);
        check("what's 'Up' about", &["whats", "Up", "about"]);
        check("don't stop rockin' me", &["dont", "stop", "rockin", "me"]);
    }

    #[test]
    fn commas_and_sentences_are_marked() {
        let marks = |text: &str| {
            tokenize(text).iter().map(|t| (t.ends_item, t.ends_sentence)).collect::<Vec<(bool, bool)>>()
        };
        assert_eq!(marks("dune, heat. up"), [(true, false), (false, true), (false, false)]);
        assert_eq!(marks("dune\nheat"), [(true, true), (false, false)]);
    }
}
