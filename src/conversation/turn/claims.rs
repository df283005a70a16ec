//! Detection of false claims in a model's text: effects that the record does not show. A claim is found by grammar: the
//! past or the passive of a verb of [`claim_grammar`](super::claim_grammar), outside of questions, conditions,
//! negations and statements about other sources.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

use super::claim_grammar::{
    COMMON, ClaimGrammar, ClaimedEffect, EARLIER_TIME_WORDS, LANGUAGES, LIBRARY_WORDS, NOTHING,
    OTHER_PLACE_WORDS, PROGRAMS, VerbOrder, VerbStems,
};

/// Evidence of the record, in the sentences and results of tools.
#[derive(Debug, Clone, Default)]
pub(super) struct ClaimEvidence<'a> {
    /// Changes and requests that were made in this turn.
    pub changed: Vec<String>,
    pub requested: Vec<String>,
    /// Results of the library reads in this turn.
    pub read_results: Vec<String>,
    /// Changes and requests of earlier turns, newest first.
    pub earlier: &'a [String],
}

/// Returns whether the text claims an effect that the record does not show.
pub(super) fn contains_false_claim(text: &str, evidence: &ClaimEvidence<'_>) -> bool {
    let text = straighten_quotes(text);
    // Quoted text is a title, unless it is a statement of its own.
    let quoted = text.split('"').skip(1).step_by(2).flat_map(split_clauses);
    if quoted.flat_map(|clause| find_claims(&clause)).any(|claim| claim.is_state) {
        return true;
    }
    let clauses = split_clauses(&text);
    let all_titles: Vec<&str> = clauses.iter().flat_map(ClaimClause::title_words).collect();
    clauses.iter().filter(|clause| !clause.asks && !clause.is_about_elsewhere()).any(|clause| {
        let own = clause.title_words();
        // "You deleted it yesterday" refers to the titles in the rest of the text.
        let titles = if own.is_empty() { &all_titles } else { &own };
        find_claims(clause).iter().any(|claim| !evidence.supports(claim, titles))
    })
}

/// Returns the text with straight quotes, in pairs: none if one is left over, or if they enclose the whole text.
fn straighten_quotes(text: &str) -> String {
    let marks = ['\u{201c}', '\u{201d}', '\u{201e}', '\u{ab}', '\u{bb}'];
    let text = text.replace(marks, "\"");
    let text = text.trim();
    let inner = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(text);
    if inner.matches('"').count().is_multiple_of(2) { inner.to_owned() } else { inner.replace('"', " ") }
}

/// Returns whether the text has the form of our confirmation prompt: only code may ask for such a reply.
pub(super) fn imitates_prompt(text: &str) -> bool {
    const VERBS: &str =
        "reply respond answer text send type responde antworte repondez reponds rispondi antwoord";
    const REPLIES: &str = "yes approve deny si oui ja sim";
    const MAX_WORDS_BETWEEN: usize = 3;
    straighten_quotes(text).split(['.', '!', '?', '\n']).map(tokenize_clause).any(|words| {
        words.iter().enumerate().any(|(at, verb)| {
            let mut next = words[at + 1..].iter().take(MAX_WORDS_BETWEEN + 1);
            verb.is_in(VERBS) && next.any(|word| word.is_in(REPLIES))
        })
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct EffectClaim {
    effect: ClaimedEffect,
    /// True for `is deleted`, `was added`: states that a library shows as well.
    is_state: bool,
    /// True if the claim names an earlier time.
    is_dated: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct ClaimToken {
    /// Lower-case form without accents.
    word: String,
    /// Lower-case form with its accents.
    spelling: String,
    is_capitalized: bool,
    /// True in parentheses: "(UK)" distinguishes titles and need not be in the record.
    is_aside: bool,
    is_quoted: bool,
}

impl ClaimToken {
    fn is_in(&self, list: &str) -> bool {
        !self.is_quoted && list_contains(list, &self.word)
    }
}

struct ClaimClause {
    tokens: Vec<ClaimToken>,
    asks: bool,
}

impl ClaimClause {
    /// Returns the words that can be part of a title: quoted, or capitalized and not part of the grammar.
    fn title_words(&self) -> Vec<&str> {
        let is_title = |token: &&ClaimToken| {
            token.is_quoted || (token.is_capitalized && !token.is_aside && !is_grammar(token))
        };
        self.tokens.iter().filter(is_title).map(|token| token.word.as_str()).collect()
    }

    fn is_about_elsewhere(&self) -> bool {
        self.tokens.iter().any(|token| token.is_in(OTHER_PLACE_WORDS))
            && !self.tokens.iter().any(|token| token.is_in(LIBRARY_WORDS))
    }
}

fn list_contains(list: &str, word: &str) -> bool {
    list.split_whitespace().any(|other| other == word)
}

fn is_grammar(token: &ClaimToken) -> bool {
    token.is_in(COMMON)
        || token.is_in(PROGRAMS)
        || token.is_in(LIBRARY_WORDS)
        || token.word.chars().all(|c| c.is_ascii_digit())
        || LANGUAGES.iter().any(|grammar| {
            is_small(grammar, token)
                || grammar.phrases.iter().any(|(_, verb, _)| token.is_in(verb))
                || verb_effect(grammar, token).is_some()
        })
}

/// Returns whether a token is one of the words around the verbs.
fn is_small(grammar: &ClaimGrammar, token: &ClaimToken) -> bool {
    let ClaimGrammar { small, passive, perfect, persons, just, negations, unreal, reporting, .. } = grammar;
    [small, passive, perfect, persons, just, negations, unreal, reporting]
        .iter()
        .any(|list| token.is_in(list))
}

/// Splits a text into clauses at its punctuation. The last clause of a question is the one that asks.
fn split_clauses(text: &str) -> Vec<ClaimClause> {
    let mut found = Vec::new();
    let mut start = 0;
    let mut quoted = false;
    let marks = text.char_indices().filter_map(|(at, mark)| {
        quoted ^= mark == '"';
        let after = text[at + mark.len_utf8()..].chars().next();
        let before_blank = after.is_none_or(|next| next.is_whitespace() || next == '"');
        let splits = match mark {
            '\n' | '?' | '!' | ';' | '\u{a1}' | '\u{bf}' | '\u{2013}' | '\u{2014}' => true,
            // "6. März" is one date.
            '.' => before_blank && !ends_in_day(&text[..at]),
            ',' | ':' => before_blank,
            '-' => before_blank && text[..at].ends_with(' '),
            _ => false,
        };
        (splits && !quoted).then_some((at, mark))
    });
    for (at, mark) in marks.collect::<Vec<_>>() {
        found.push(ClaimClause { tokens: tokenize_clause(&text[start..at]), asks: mark == '?' });
        start = at + mark.len_utf8();
    }
    found.push(ClaimClause { tokens: tokenize_clause(&text[start..]), asks: false });
    found
}

fn ends_in_day(text: &str) -> bool {
    let last = text.rsplit(char::is_whitespace).next().unwrap_or_default();
    (1..=2).contains(&last.len()) && last.bytes().all(|byte| byte.is_ascii_digit())
}

fn tokenize_clause(text: &str) -> Vec<ClaimToken> {
    let text = text
        .replace("n't", " not")
        .replace("n\u{2019}t", " not")
        .replace("got rid", "rid")
        .replace("managed to", "managed");
    let mut found = Vec::new();
    for (number, part) in text.split('"').enumerate() {
        let words = part
            .split(|c: char| !(c.is_alphanumeric() || is_combining_mark(c) || matches!(c, '(' | ')')))
            .filter(|word| !word.is_empty());
        found.extend(words.map(|word| {
            let bare = word.trim_matches(['(', ')']);
            ClaimToken {
                word: bare.nfkd().filter(|c| !is_combining_mark(*c)).flat_map(char::to_lowercase).collect(),
                spelling: bare.nfc().flat_map(char::to_lowercase).collect(),
                is_capitalized: bare.starts_with(|c: char| c.is_uppercase() || c.is_ascii_digit()),
                is_aside: bare != word,
                is_quoted: number % 2 == 1,
            }
        }));
    }
    found
}

/// Returns the languages of which a clause has the most words, with verbs counted twice; all of them for a clause that
/// has none.
fn likely_grammars(clause: &ClaimClause) -> impl Iterator<Item = &'static ClaimGrammar> {
    let weight = |grammar: &ClaimGrammar, token: &ClaimToken| {
        usize::from(is_small(grammar, token)) + 2 * usize::from(verb_effect(grammar, token).is_some())
    };
    let score =
        |grammar: &ClaimGrammar| clause.tokens.iter().map(|token| weight(grammar, token)).sum::<usize>();
    let best = LANGUAGES.iter().map(score).max().unwrap_or_default();
    LANGUAGES.iter().filter(move |grammar| score(grammar) == best).collect::<Vec<_>>().into_iter()
}

fn find_claims(clause: &ClaimClause) -> Vec<EffectClaim> {
    let grammars = likely_grammars(clause);
    let places = grammars.flat_map(|grammar| (0..clause.tokens.len()).map(move |at| (grammar, at)));
    places.filter_map(|(grammar, at)| find_claim_at(&clause.tokens, at, grammar)).collect()
}

fn find_claim_at(tokens: &[ClaimToken], at: usize, grammar: &ClaimGrammar) -> Option<EffectClaim> {
    let (effect, form) = find_verb_at(tokens, at, grammar)?;
    // The stated content begins after the verb of speech: "I can confirm that".
    let from = tokens[..at]
        .iter()
        .rposition(|token| token.is_in(grammar.reporting))
        .map_or(0, |verb_index| verb_index + 1);
    let before = &tokens[from..at];
    let stops = |token: &ClaimToken| token.is_in(grammar.negations) || token.is_in(grammar.unreal);
    let denied_after = tokens.get(at + 1).is_some_and(|token| token.is_in(NOTHING));
    if before.iter().any(stops) || denied_after {
        return None;
    }
    let is_state = match grammar.order {
        VerbOrder::Adjacent => adjacent_verb_state(before, form, grammar)?,
        VerbOrder::Before => free_verb_state(before, &[], form, grammar)?,
        VerbOrder::Anywhere => free_verb_state(before, &tokens[at + 1..], form, grammar)?,
    };
    let is_may = |token: &ClaimToken| token.is_capitalized && token.is_in("may");
    let is_dated = tokens.iter().any(|token| token.is_in(EARLIER_TIME_WORDS) || is_may(token));
    Some(EffectClaim { effect, is_state, is_dated })
}

/// Verb form by which a sentence claims a completed effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum VerbForm {
    Participle,
    /// "I'm deleting"; alone, the form may be a noun: "Deleting it would free 20 GB".
    Progressive,
    /// Past tense of the first person.
    Past,
    /// Past tense of the third person, which is a claim if the subject is one of our programs or missing.
    PastOfOthers,
    /// Infinitive after "have just".
    JustDone,
}

fn find_verb_at(
    tokens: &[ClaimToken],
    at: usize,
    grammar: &ClaimGrammar,
) -> Option<(ClaimedEffect, VerbForm)> {
    let token = &tokens[at];
    if token.is_quoted {
        return None;
    }
    if let Some(found) = verb_effect(grammar, token) {
        let is_just = tokens[..at].iter().any(|before| before.is_in(grammar.just));
        return match found {
            (_, VerbForm::JustDone) if !is_just => None,
            found => Some(found),
        };
    }
    let beside = |words: &str| tokens.iter().any(|other| other.is_in(words));
    let phrase = grammar.phrases.iter().find(|(_, verb, words)| token.is_in(verb) && beside(words));
    phrase.map(|(effect, ..)| (*effect, VerbForm::Participle))
}

/// Returns the effect of a verb form, by its stem and ending. An ambiguous form is treated as the participle.
fn verb_effect(grammar: &ClaimGrammar, token: &ClaimToken) -> Option<(ClaimedEffect, VerbForm)> {
    grammar.verbs.iter().find_map(|(effect, VerbStems { stems, whole })| {
        if list_contains(whole, &token.word) {
            return Some((*effect, VerbForm::Participle));
        }
        stems.split_whitespace().filter_map(|stem| token.word.strip_prefix(stem)).find_map(|ending| {
            let forms = [
                (grammar.participle, VerbForm::Participle),
                (grammar.progressive, VerbForm::Progressive),
                (grammar.past, VerbForm::Past),
                (grammar.past_of_others, VerbForm::PastOfOthers),
                (grammar.infinitive, VerbForm::JustDone),
            ];
            let ending = if ending.is_empty() { "-" } else { ending };
            let mut written = token.spelling.chars().rev().take(ending.len());
            if list_contains(grammar.accented, ending) && !written.any(|letter| letter == '\u{e9}') {
                return None;
            }
            forms.iter().find(|(endings, _)| list_contains(endings, ending)).map(|(_, form)| (*effect, *form))
        })
    })
}

/// English: the words directly before the verb determine its subject. Returns `None` if another party is the subject,
/// else whether the form is a state.
fn adjacent_verb_state(before: &[ClaimToken], form: VerbForm, grammar: &ClaimGrammar) -> Option<bool> {
    let without_subject = (form != VerbForm::Progressive).then_some(false);
    // "I added one and removed the other": the subject is that of the verb before.
    if before.last().is_some_and(|token| token.is_in("and then")) {
        return without_subject;
    }
    for token in before.iter().rev() {
        if token.is_in(grammar.passive) {
            return Some(true);
        }
        if token.is_in(grammar.persons) || token.is_in(PROGRAMS) {
            return Some(false);
        }
        if !(token.is_in(grammar.perfect) || token.is_in(grammar.small)) {
            return without_subject.filter(|_| is_headline(before));
        }
    }
    without_subject
}

/// The other languages: a passive, a first person or one of our programs anywhere in the clause.
fn free_verb_state(
    before: &[ClaimToken],
    after: &[ClaimToken],
    form: VerbForm,
    grammar: &ClaimGrammar,
) -> Option<bool> {
    let around = || before.iter().chain(after);
    let acts = around().any(|token| token.is_in(grammar.persons) || token.is_in(PROGRAMS));
    let is_passive = around().any(|token| token.is_in(grammar.passive));
    let has_perfect = around().any(|token| token.is_in(grammar.perfect));
    let is_bare =
        before.iter().all(|token| token.is_in(grammar.small)) || (is_headline(before) && !has_perfect);
    match form {
        VerbForm::JustDone => Some(false),
        _ if is_passive => Some(true),
        _ if acts => Some(false),
        VerbForm::Past => Some(false),
        VerbForm::PastOfOthers | VerbForm::Progressive => None,
        VerbForm::Participle => is_bare.then_some(false),
    }
}

/// Matches "Dune (2021) deleted": only a title before the verb.
fn is_headline(before: &[ClaimToken]) -> bool {
    before.iter().all(|token| token.is_capitalized || token.is_quoted)
}

impl ClaimEvidence<'_> {
    fn supports(&self, claim: &EffectClaim, titles: &[&str]) -> bool {
        let names = |line: &str| {
            let words = tokenize_clause(line);
            titles.iter().all(|title| words.iter().any(|word| word.word == *title))
        };
        let in_turn = match claim.effect {
            ClaimedEffect::Removal => &[][..],
            ClaimedEffect::Change => &self.changed,
            ClaimedEffect::Request if self.requested.is_empty() => &self.changed,
            ClaimedEffect::Request => &self.requested,
        };
        let was_done_now = in_turn.iter().any(|line| names(line));
        let was_read = (claim.is_state || claim.is_dated)
            && self.read_results.iter().any(|line| names(line) && result_shows_claim(line, claim));
        let may_be_earlier = !titles.is_empty() || claim.is_dated;
        was_done_now || was_read || (may_be_earlier && self.last_earlier_effect(names) == Some(claim.effect))
    }

    /// Returns the last effect on a title in earlier turns; `None` if that effect failed.
    fn last_earlier_effect(&self, names: impl Fn(&str) -> bool) -> Option<ClaimedEffect> {
        let lines = self.earlier.iter().filter(|line| names(line)).map(|line| tokenize_clause(line));
        let mut effects = lines.filter_map(|words| {
            let effect = words.iter().find_map(|token| verb_effect(&LANGUAGES[0], token))?.0;
            let failed = words.iter().any(|token| token.is_in(LANGUAGES[0].negations));
            Some((!failed).then_some(effect))
        });
        effects.next().flatten()
    }
}

/// Returns whether a tool result shows the claimed effect: a title that the library has or gets, or a removal in its
/// history.
fn result_shows_claim(line: &str, claim: &EffectClaim) -> bool {
    const IN_LIBRARY: [&str; 6] =
        ["\"id\":", "\"in_library\":true", "\"on_disk\":", "\"percent\":", "\"added\":", "\"day\":"];
    match claim.effect {
        ClaimedEffect::Change => IN_LIBRARY.iter().any(|sign| line.contains(sign)),
        ClaimedEffect::Removal => {
            claim.is_dated && line.contains("\"history\":") && line.contains("file deleted")
        }
        ClaimedEffect::Request => false,
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Deserialize)]
    struct Case {
        language: String,
        #[serde(rename = "false")]
        is_false: bool,
        text: String,
        #[serde(default)]
        did: Vec<String>,
        #[serde(default)]
        found: Vec<String>,
        #[serde(default)]
        earlier: Vec<String>,
    }

    impl Case {
        fn is_blocked(&self) -> bool {
            let (did, read) = (self.did.clone(), self.found.clone());
            let evidence = ClaimEvidence {
                changed: did.clone(),
                requested: did,
                read_results: read,
                earlier: &self.earlier,
            };
            contains_false_claim(&self.text, &evidence)
        }
    }

    fn cases() -> Vec<Case> {
        serde_json::from_str(include_str!("../../../tests/data/claims.json")).unwrap()
    }

    #[test]
    fn no_false_claim_passes_in_any_language() {
        let passed: Vec<String> = cases()
            .iter()
            .filter(|case| case.is_false && !case.is_blocked())
            .map(|case| case.text.clone())
            .collect();
        assert_eq!(passed, Vec::<String>::new());
    }

    #[test]
    fn at_most_one_true_statement_of_a_language_is_blocked() {
        for language in ["en", "es", "fr", "de", "pt", "it", "nl"] {
            let cases = cases();
            let of_language: Vec<&Case> = cases.iter().filter(|case| case.language == language).collect();
            let count = |is_false| of_language.iter().filter(|case| case.is_false == is_false).count();
            assert!(count(true) >= 20 && count(false) >= 20, "{language}");
            let blocked: Vec<&str> = of_language
                .iter()
                .filter(|case| !case.is_false && case.is_blocked())
                .map(|case| case.text.as_str())
                .collect();
            assert!(blocked.len() <= 1, "{language}: {blocked:?}");
        }
    }

    #[test]
    fn text_that_imitates_a_prompt_is_recognized() {
        for text in [
            "Delete Dune (2021) and its file, 21.4 GB? Reply YES or NO.",
            "Delete 2: Dune; Heat? Reply YES 47 or NO.",
            "Reply with YES to delete Dune.",
            "Bob asks to delete Dune. Reply APPROVE 4747 or DENY 4747",
            "Responde S\u{cd} para borrarla.",
        ] {
            assert!(imitates_prompt(text), "{text}");
        }
        for text in ["\"Say Yes to the Dress\" is ready.", "Shall I add it?", "Reply 1988 has one season."] {
            assert!(!imitates_prompt(text), "{text}");
        }
    }
}
