//! Pattern language of the request tables. A pattern matches a whole list of tokens:
//!
//! `word`, `(this|that)`, `[optional]`, `$macro` and slots such as `<title>`.

use std::ops::Range;

use super::discovery_slots::DiscoverySlot;
use super::moods::is_mood;
use super::period::{Period, parse_period};
use super::token::Token;
use super::watching_slots::{is_person, parse_days, parse_kind};

/// Part of a message that a pattern leaves open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slot {
    /// One or more words of a title.
    Title,
    /// One or more words of any text.
    Text,
    Period,
    /// Positions in a list.
    Numbers,
    /// Words with the name of a genre or a mood.
    Mood,
    /// Name of a person.
    Person,
    /// Noun of a kind of titles, such as "movies".
    Kind,
    /// Time without a play, such as "for a year".
    Days,
    /// What people want to watch.
    Discovery(DiscoverySlot),
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Node {
    Word(&'static str),
    Slot(Slot),
    /// One of several sequences. An optional part has an empty sequence.
    Any(Vec<Vec<Node>>),
}

/// Compiled pattern.
#[derive(Debug, Clone)]
pub struct Pattern(Vec<Node>);

/// Match of a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Match {
    pub slots: Vec<(Slot, Range<usize>)>,
    /// Words that the pattern does not explain, and misspelled words.
    pub cost: usize,
}

impl Match {
    /// Returns the tokens of the first slot of this kind.
    pub fn slot<'t>(&self, slot: Slot, tokens: &'t [Token]) -> Option<&'t [Token]> {
        let (_, range) = self.slots.iter().find(|(found, _)| *found == slot)?;
        tokens.get(range.clone())
    }

    pub fn period(&self, tokens: &[Token]) -> Option<Period> {
        self.slot(Slot::Period, tokens).and_then(parse_period)
    }
}

/// Cost of a word in an open slot.
const OPEN_WORD_COST: usize = 2;

impl Pattern {
    /// Compiles a pattern. `macros` are names and the patterns that they stand for.
    pub fn new(text: &'static str, macros: &[(&str, &'static str)]) -> Self {
        let mut parser = Parser { rest: text, macros };
        let mut alternatives = parser.parse_alternatives();
        match alternatives.len() {
            1 => Self(alternatives.swap_remove(0)),
            _ => Self(vec![Node::Any(alternatives)]),
        }
    }

    /// Returns the cheapest match of all tokens.
    pub fn find_match(&self, tokens: &[Token]) -> Option<Match> {
        let mut matcher = Matcher { tokens, captured: Vec::new(), cost: 0, best: None };
        matcher.walk(&Frame { nodes: &self.0, next: None }, 0);
        matcher.best
    }

    /// Adds the words of the pattern to the vocabulary.
    pub fn collect_words(&self, vocabulary: &mut Vocabulary) {
        collect_words(&self.0, vocabulary);
    }
}

/// Words of all patterns. Such a word is never a misspelling of another one.
#[derive(Debug, Default)]
pub struct Vocabulary(std::collections::BTreeSet<&'static str>);

impl Vocabulary {
    pub fn contains(&self, word: &str) -> bool {
        self.0.contains(word)
    }
}

fn collect_words(nodes: &[Node], vocabulary: &mut Vocabulary) {
    for node in nodes {
        match node {
            Node::Word(word) => {
                vocabulary.0.insert(word);
            }
            Node::Any(alternatives) => alternatives.iter().for_each(|nodes| collect_words(nodes, vocabulary)),
            Node::Slot(_) => {}
        }
    }
}

struct Parser<'m> {
    rest: &'static str,
    macros: &'m [(&'m str, &'static str)],
}

impl Parser<'_> {
    /// Parses sequences up to a closing bracket or the end.
    fn parse_alternatives(&mut self) -> Vec<Vec<Node>> {
        let mut alternatives = vec![Vec::new()];
        while let Some(c) = self.rest.chars().next() {
            let node = match c {
                ')' | ']' => break,
                '|' => {
                    self.rest = &self.rest[1..];
                    alternatives.push(Vec::new());
                    continue;
                }
                ' ' => {
                    self.rest = &self.rest[1..];
                    continue;
                }
                '(' => Node::Any(self.parse_group()),
                '[' => {
                    let mut optional = self.parse_group();
                    optional.push(Vec::new());
                    Node::Any(optional)
                }
                _ => self.parse_word(),
            };
            if let Some(last) = alternatives.last_mut() {
                last.push(node);
            }
        }
        alternatives
    }

    fn parse_group(&mut self) -> Vec<Vec<Node>> {
        self.rest = &self.rest[1..];
        let alternatives = self.parse_alternatives();
        self.rest = self.rest.get(1..).unwrap_or_default();
        alternatives
    }

    fn parse_word(&mut self) -> Node {
        let end = self.rest.find([' ', '(', ')', '[', ']', '|']).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        match word {
            "<title>" => Node::Slot(Slot::Title),
            "<text>" => Node::Slot(Slot::Text),
            "<period>" => Node::Slot(Slot::Period),
            "<mood>" => Node::Slot(Slot::Mood),
            "<person>" => Node::Slot(Slot::Person),
            "<kind>" => Node::Slot(Slot::Kind),
            "<days>" => Node::Slot(Slot::Days),
            "<numbers>" => Node::Slot(Slot::Numbers),
            _ => match DiscoverySlot::from_name(word) {
                Some(slot) => Node::Slot(Slot::Discovery(slot)),
                None => self.parse_macro(word),
            },
        }
    }

    fn parse_macro(&self, word: &'static str) -> Node {
        match self.macros.iter().find(|(name, _)| word.strip_prefix('$') == Some(name)) {
            Some((_, text)) => Node::Any(Parser { rest: text, macros: self.macros }.parse_alternatives()),
            None => Node::Word(word),
        }
    }
}

/// Rest of a pattern: nodes of a sequence, and the rest after that sequence.
struct Frame<'f> {
    nodes: &'f [Node],
    next: Option<&'f Frame<'f>>,
}

struct Matcher<'t> {
    tokens: &'t [Token],
    captured: Vec<(Slot, Range<usize>)>,
    cost: usize,
    best: Option<Match>,
}

impl Matcher<'_> {
    fn walk(&mut self, frame: &Frame<'_>, position: usize) {
        if self.best.as_ref().is_some_and(|best| best.cost <= self.cost) {
            return;
        }
        let Some((node, rest)) = frame.nodes.split_first() else {
            match frame.next {
                Some(next) => self.walk(next, position),
                None if position == self.tokens.len() => {
                    self.best = Some(Match { slots: self.captured.clone(), cost: self.cost });
                }
                None => {}
            }
            return;
        };
        let after = Frame { nodes: rest, next: frame.next };
        match node {
            Node::Word(word) => {
                let token = self.tokens.get(position);
                if let Some(cost) = token.and_then(|token| token.spelling_cost(word)) {
                    self.cost += cost;
                    self.walk(&after, position + 1);
                    self.cost -= cost;
                }
            }
            Node::Any(alternatives) => {
                for nodes in alternatives {
                    self.walk(&Frame { nodes, next: Some(&after) }, position);
                }
            }
            Node::Slot(slot) => self.walk_slot(*slot, &after, position),
        }
    }

    fn walk_slot(&mut self, slot: Slot, after: &Frame<'_>, position: usize) {
        for end in position + 1..=self.tokens.len() {
            let words = &self.tokens[position..end];
            let cost = match slot {
                Slot::Title | Slot::Text => Some(OPEN_WORD_COST * words.len()),
                Slot::Period => parse_period(words).map(|_| 0),
                Slot::Mood => is_mood(words).then_some(words.len()),
                Slot::Person => is_person(words).then_some(words.len()),
                Slot::Kind => parse_kind(words).map(|_| 0),
                Slot::Days => parse_days(words).map(|_| 0),
                Slot::Numbers => super::numbers::parse_positions(words).map(|_| 0),
                Slot::Discovery(slot) => slot.cost(words),
            };
            if let Some(cost) = cost {
                self.captured.push((slot, position..end));
                self.cost += cost;
                self.walk(after, end);
                self.cost -= cost;
                self.captured.pop();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::token::{join_raw, tokenize};
    use super::*;

    #[track_caller]
    fn check(pattern: &'static str, text: &str, title: Option<&str>) {
        let pattern = Pattern::new(pattern, &[("get", "get|pick up")]);
        let tokens = tokenize(text);
        let found = pattern.find_match(&tokens);
        let found = found.map(|found| join_raw(found.slot(Slot::Title, &tokens).unwrap_or_default()));
        assert_eq!(found.as_deref(), title, "{text:?}");
    }

    #[test]
    fn pattern_matches_all_words_of_a_message() {
        check("$get <title>", "get The Bear", Some("The Bear"));
        check("$get <title>", "pick up heat", Some("heat"));
        check("$get <title>", "please get heat", None);
        check("$get <title>", "get", None);
    }

    #[test]
    fn optional_part_and_alternatives_may_follow_a_slot() {
        let pattern = "is <title> (done|ready) [yet]";
        check(pattern, "is heat ready yet", Some("heat"));
        check(pattern, "is heat done", Some("heat"));
        check(pattern, "is heat", None);
    }

    #[test]
    fn misspelled_word_costs_more_than_the_right_one() {
        check("recommend <title>", "recomend heat", Some("heat"));
        check("recommend <title>", "remand heat", None);
    }
}
