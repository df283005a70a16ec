//! Parser of one request: the reading of the words that leaves the fewest of them unexplained.

use std::sync::LazyLock;

use super::discovery_request::build_discovery_request;
use super::form::Form;
use super::known_titles::is_known_title;
use super::pattern::{Match, Pattern, Slot, Vocabulary};
use super::patterns::{LEADING, TRAILING, macros, sections};
use super::quiet_phrase::parse_quiet_hours;
use super::recommendation::Recommendation;
use super::request::{QuietChoice, Request};
use super::title_phrase::TitlePhrase;
use super::token::{Token, join_raw, join_words};
use super::watching_request::build_watching_request;
use super::watching_slots::parse_kind;
use crate::conversation::text::normalization::strip_article;
use crate::conversation::transcript::MediaKind;

/// Reading of some tokens as one or several requests.
#[derive(Debug, Clone)]
pub struct Reading {
    pub requests: Vec<Request>,
    /// Number of words that the patterns do not explain, weighted.
    pub cost: usize,
}

/// Parses all of the tokens as one request. A text that only resembles a request has a reading without requests.
pub fn parse_single(tokens: &[Token]) -> Option<Reading> {
    let table = &*TABLE;
    let mut best: Option<(usize, Option<Request>)> = None;
    for start in leading_ends(tokens, table) {
        for end in trailing_starts(tokens, start, table) {
            let words = &tokens[start..end];
            let stripped = usize::from(start > 0) + usize::from(end < tokens.len());
            for (form, pattern) in &table.patterns {
                let Some(found) = pattern.find_match(words) else { continue };
                let cost = found.cost + stripped;
                if best.as_ref().is_some_and(|(best, _)| *best <= cost)
                    || starts_with_function_word(&found, words)
                {
                    continue;
                }
                match build_request(*form, &found, words) {
                    Built::Request(request) => best = Some((cost, Some(request))),
                    Built::NoRequest => best = Some((cost, None)),
                    Built::Mismatch => {}
                }
            }
        }
    }
    best.map(|(cost, request)| Reading { requests: request.into_iter().collect(), cost })
}

struct Table {
    patterns: Vec<(Form, Pattern)>,
    leading: Vec<Pattern>,
    trailing: Vec<Pattern>,
    vocabulary: Vocabulary,
}

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let macros = macros();
    let compile = |text: &&'static str| Pattern::new(text, &macros);
    let patterns: Vec<(Form, Pattern)> = sections()
        .flat_map(|section| section.patterns.iter().map(|text| (section.form, compile(text))))
        .collect();
    let mut vocabulary = Vocabulary::default();
    patterns.iter().for_each(|(_, pattern)| pattern.collect_words(&mut vocabulary));
    let leading: Vec<Pattern> = LEADING.iter().map(compile).collect();
    let trailing: Vec<Pattern> = TRAILING.iter().map(compile).collect();
    leading.iter().chain(&trailing).for_each(|pattern| pattern.collect_words(&mut vocabulary));
    Table { patterns, leading, trailing, vocabulary }
});

/// Marks the words that occur in a pattern.
pub fn mark_known_words(tokens: &mut [Token]) {
    for token in tokens {
        token.is_known = TABLE.vocabulary.contains(&token.word);
    }
}

/// Maximum number of words of a courtesy.
const MAX_COURTESY_WORDS: usize = 6;

/// Returns the positions at which a request may start, behind any number of courtesies.
fn leading_ends(tokens: &[Token], table: &Table) -> Vec<usize> {
    let mut ends = vec![0];
    let mut next = 0;
    while let Some(&start) = ends.get(next) {
        next += 1;
        if is_known_title(&join_raw(&tokens[start..])) {
            continue;
        }
        for end in start + 1..tokens.len().min(start + MAX_COURTESY_WORDS + 1) {
            if !ends.contains(&end) && is_courtesy(&tokens[start..end], &table.leading) {
                ends.push(end);
            }
        }
    }
    ends
}

/// Returns the positions at which a request may end, before any number of courtesies.
fn trailing_starts(tokens: &[Token], first: usize, table: &Table) -> Vec<usize> {
    let mut starts = vec![tokens.len()];
    let mut next = 0;
    while let Some(&end) = starts.get(next) {
        next += 1;
        let longest = end.saturating_sub(MAX_COURTESY_WORDS).max(first + 1);
        for start in longest..end {
            // "If you can" belongs to the title in "catch me if you can".
            let is_in_title = (first..start).any(|from| is_known_title(&join_raw(&tokens[from..end])));
            if !starts.contains(&start) && !is_in_title && is_courtesy(&tokens[start..end], &table.trailing) {
                starts.push(start);
            }
        }
    }
    starts
}

fn is_courtesy(words: &[Token], patterns: &[Pattern]) -> bool {
    patterns.iter().any(|pattern| pattern.find_match(words).is_some_and(|found| found.cost == 0))
}

/// Words that begin a sentence rather than a title that begins a message.
const FUNCTION_WORDS: &str = " i we you he she they it its this that these those my your our dont do does did not never no \
    is are was were be can could will would should shall may might if why who what when where how which and or but so \
    because then please just im ive id youre were theres there have has had got get let lets go to for of in on at with \
    about nobody everyone someone somebody anything nothing everything cant wont isnt arent didnt doesnt think hope guess \
    know a add remove delete any some tell text show give need want ask see hear ";

/// Returns whether a title at the start of the words begins like a sentence.
fn starts_with_function_word(found: &Match, words: &[Token]) -> bool {
    let Some((Slot::Title, range)) = found.slots.first() else { return false };
    let title = &words[range.clone()];
    if title
        .first()
        .is_some_and(|first| matches!(first.word.as_str(), "and" | "then" | "or" | "plus" | "also"))
    {
        return true;
    }
    range.start == 0
        && title.first().is_some_and(|first| {
            !first.is_quoted && FUNCTION_WORDS.contains(&format!(" {} ", first.word))
        })
        && !is_known_title(&join_raw(title))
        // "Is it done" has patterns of its own.
        && !(title.len() > 1 && title[0].word == "a")
}

enum Built {
    Request(Request),
    NoRequest,
    /// The slots do not fit the form.
    Mismatch,
}

fn build_request(form: Form, found: &Match, words: &[Token]) -> Built {
    if form == Form::NoRequest {
        return Built::NoRequest;
    }
    match form_request(form, found, words) {
        Some(request) => Built::Request(request),
        None => Built::Mismatch,
    }
}

fn form_request(form: Form, found: &Match, words: &[Token]) -> Option<Request> {
    let title = found.slot(Slot::Title, words).map(TitlePhrase::parse);
    if form == Form::Remove || form == Form::RemoveKeepingFiles {
        return Some(removal(title?, form == Form::RemoveKeepingFiles));
    }
    let title = title.map(TitlePhrase::with_written_pronoun);
    let named_title = || title.clone().filter(|phrase| phrase.reference.is_none());
    let text = found.slot(Slot::Text, words).or_else(|| found.slot(Slot::Mood, words));
    let period = found.period(words);
    let positions = || found.slot(Slot::Numbers, words).and_then(super::numbers::parse_positions);
    Some(match form {
        Form::Add => Request::Add(title?),
        Form::Have => Request::Have(title?),
        Form::Search => Request::Search(title?),
        Form::Status => Request::Status(named_title()),
        Form::Why => Request::Why(title?),
        Form::Upcoming => Request::Upcoming { title: named_title(), period },
        Form::Recent => Request::Recent(period),
        Form::Space => Request::Space,
        Form::OwnSpace => Request::OwnSpace,
        Form::Missing => Request::Missing(named_title()),
        Form::Follow => Request::Follow(named_title()),
        Form::Unfollow => Request::Unfollow(title?),
        Form::Recommend => recommendation(text, None, RecommendationSource::Catalog),
        Form::RecommendMovie => recommendation(text, Some(MediaKind::Movie), RecommendationSource::Catalog),
        Form::RecommendSeries => recommendation(text, Some(MediaKind::Series), RecommendationSource::Catalog),
        Form::RecommendFromLibrary => {
            let kind = found.slot(Slot::Kind, words).and_then(parse_kind);
            recommendation(text, kind, RecommendationSource::Library)
        }
        Form::Details => {
            let viewer = found.slot(Slot::Person, words).map(|name| join_raw(name).to_lowercase());
            Request::Details { title: title?, viewer }
        }
        Form::More => Request::More,
        Form::Pick => Request::Pick(positions()?),
        Form::Drop => Request::Drop(positions()?),
        Form::ShowPreferences => Request::ShowPreferences,
        Form::Forget => Request::Forget(join_raw(text?)),
        Form::ForgetEverything => Request::Forget("everything".to_owned()),
        Form::Quiet => Request::Quiet(parse_quiet_hours(text?)?),
        Form::QuietOff => Request::Quiet(QuietChoice::Off),
        Form::Users => Request::Users,
        Form::Help => Request::Help,
        Form::Greeting => Request::Greeting,
        Form::Thanks => Request::Thanks,
        Form::Undo => Request::Undo,
        Form::Watching(form) => build_watching_request(form, found, words)?,
        Form::Discovery(form) => build_discovery_request(form, found, words)?,
        Form::Remove | Form::RemoveKeepingFiles | Form::NoRequest => return None,
    })
}

/// Words that begin the name of an unknown number of titles.
const QUANTITIES: &str = " lot all everything every each any anything some stuff things whatever these those them both most half anyone ";

/// Pronouns for persons. Alone they are never a title.
const PERSONS: &str = " me us you him her we ";

/// Builds the removal of a title. A pronoun or a quantity is never a title.
fn removal(title: TitlePhrase, keep_files: bool) -> Request {
    let words = title.title.to_lowercase();
    let first = strip_article(&words).split(' ').next().unwrap_or_default();
    let is_person = PERSONS.contains(&format!(" {words} ")) && title.year.is_none() && title.kind.is_none();
    let is_quoted = title.full_words.iter().any(|token| token.is_quoted);
    let is_list = first == "both" && title.full_words.iter().any(|token| token.word == "and");
    let is_quantity = QUANTITIES.contains(&format!(" {first} ")) && !is_list && !is_known_title(&words);
    if title.reference.is_some() || ((is_quantity || is_person) && !is_quoted) {
        return Request::RemovePronoun(title);
    }
    Request::Remove { titles: vec![title], keep_files }
}

/// Words that say nothing about the mood.
const EMPTY_MOODS: &str = " a an some good great nice really decent new the ";

/// Titles among which a recommendation is chosen.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RecommendationSource {
    Catalog,
    Library,
}

fn recommendation(text: Option<&[Token]>, kind: Option<MediaKind>, source: RecommendationSource) -> Request {
    let is_empty = |token: &&Token| EMPTY_MOODS.contains(&format!(" {} ", token.word));
    let words = text.unwrap_or_default();
    let leading = words.iter().take_while(is_empty).count();
    let mood = join_words(&words[leading..]);
    let mood = (!mood.is_empty()).then_some(mood);
    let in_library = source == RecommendationSource::Library;
    Request::Recommend(Recommendation { mood, kind, in_library, ..Recommendation::default() })
}

/// Returns the tokens between courtesies, and whether there were some after them.
pub fn strip_courtesies(tokens: &[Token]) -> (&[Token], bool) {
    let table = &*TABLE;
    let start = leading_ends(tokens, table).into_iter().max().unwrap_or_default();
    let end = trailing_starts(tokens, start, table).into_iter().min().unwrap_or(tokens.len());
    (&tokens[start..end], end < tokens.len())
}
