//! Detection of false claims in a model's text: claims of effects that the record does not show. A claim is a past or
//! passive form of a verb from [`claim_grammar`](super::claim_grammar), except in questions, conditions, negations and
//! statements about other sources.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

use super::claim_grammar::{
    COMMON_WORDS, ClaimGrammar, ClaimedEffect, EARLIER_TIME_WORDS, LANGUAGES, LIBRARY_WORDS, NOTHING_WORDS,
    OTHER_SOURCE_WORDS, PROGRAM_NAMES, VerbOrder, VerbStems, WordList, word_list,
};

/// Evidence for claims: the sentences and results of tools in the record.
#[derive(Debug, Clone, Default)]
pub(super) struct ClaimEvidence<'a> {
    /// Changes that this turn made.
    pub changed: Vec<String>,
    /// Requests that this turn made.
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
    clauses.iter().filter(|clause| !clause.is_question && !clause.is_about_other_source()).any(|clause| {
        let claims = find_claims(clause);
        if claims.is_empty() {
            return false;
        }
        let mut titles = clause.title_words();
        if titles.is_empty() {
            // "You deleted it yesterday" refers to the titles in the rest of the text.
            titles = clauses.iter().flat_map(ClaimClause::title_words).collect();
        }
        claims.iter().any(|claim| !evidence.supports(claim, &titles))
    })
}

/// Returns the text with straight quotes. Quotes around the whole text are removed, and unpaired quotes all become
/// spaces.
fn straighten_quotes(text: &str) -> String {
    let marks = ['\u{201c}', '\u{201d}', '\u{201e}', '\u{ab}', '\u{bb}'];
    let text = text.replace(marks, "\"");
    let text = text.trim();
    let inner = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(text);
    if inner.matches('"').count().is_multiple_of(2) { inner.to_owned() } else { inner.replace('"', " ") }
}

/// Returns whether the text asks for a reply as our confirmation prompts do, which only code may do.
pub(super) fn imitates_prompt(text: &str) -> bool {
    static VERBS: WordList =
        word_list("reply respond answer text send type responde antworte repondez reponds rispondi antwoord");
    static REPLIES: WordList = word_list("yes approve deny si oui ja sim");
    const MAX_WORDS_BETWEEN: usize = 3;
    straighten_quotes(text).split(['.', '!', '?', '\n']).map(tokenize_clause).any(|words| {
        words.iter().enumerate().any(|(index, verb)| {
            let mut next = words[index + 1..].iter().take(MAX_WORDS_BETWEEN + 1);
            verb.is_in(&VERBS) && next.any(|word| word.is_in(&REPLIES))
        })
    })
}

/// Claim that a title was deleted, added or requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct EffectClaim {
    effect: ClaimedEffect,
    /// True for `is deleted` and `was added`: states, which a read of the library can show too.
    is_state: bool,
    /// True if the claim names an earlier time.
    is_dated: bool,
}

/// Word of a clause.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ClaimToken {
    /// Lower-case form without accents.
    word: String,
    /// Lower-case form with its accents.
    spelling: String,
    is_capitalized: bool,
    /// True in parentheses: "(UK)" distinguishes titles and may be missing in the record.
    is_parenthesized: bool,
    is_quoted: bool,
}

impl ClaimToken {
    fn is_in(&self, list: &WordList) -> bool {
        !self.is_quoted && list.contains(&self.word)
    }

    fn is_one_of(&self, words: &[&str]) -> bool {
        !self.is_quoted && words.contains(&self.word.as_str())
    }
}

struct ClaimClause {
    tokens: Vec<ClaimToken>,
    is_question: bool,
}

impl ClaimClause {
    /// Returns the words that can be part of a title: quoted words, and capitalized words that are not in the grammar.
    fn title_words(&self) -> Vec<&str> {
        let may_be_title = |token: &&ClaimToken| {
            token.is_quoted || (token.is_capitalized && !token.is_parenthesized && !is_grammar_word(token))
        };
        self.tokens.iter().filter(may_be_title).map(|token| token.word.as_str()).collect()
    }

    fn is_about_other_source(&self) -> bool {
        self.tokens.iter().any(|token| token.is_in(&OTHER_SOURCE_WORDS))
            && !self.tokens.iter().any(|token| token.is_in(&LIBRARY_WORDS))
    }
}

fn is_grammar_word(token: &ClaimToken) -> bool {
    token.is_in(&COMMON_WORDS)
        || token.is_in(&PROGRAM_NAMES)
        || token.is_in(&LIBRARY_WORDS)
        || token.word.chars().all(|c| c.is_ascii_digit())
        || LANGUAGES.iter().any(|grammar| {
            is_function_word(grammar, token)
                || grammar.phrases.iter().any(|(_, verbs, _)| token.is_one_of(verbs))
                || verb_effect(grammar, token).is_some()
        })
}

/// Returns whether a token is one of the words that accompany the verbs.
fn is_function_word(grammar: &ClaimGrammar, token: &ClaimToken) -> bool {
    let ClaimGrammar {
        function_words,
        passive,
        perfect,
        person_words,
        just_words,
        negations,
        hypothetical,
        reporting,
        ..
    } = grammar;
    [function_words, passive, perfect, person_words, just_words, negations, hypothetical, reporting]
        .iter()
        .any(|list| token.is_in(list))
}

/// Splits a text into clauses at its punctuation. Only the last clause of a question counts as the question.
fn split_clauses(text: &str) -> Vec<ClaimClause> {
    let mut clauses = Vec::new();
    let mut start = 0;
    let mut is_quoted = false;
    let marks = text.char_indices().filter_map(|(offset, mark)| {
        is_quoted ^= mark == '"';
        let after = text[offset + mark.len_utf8()..].chars().next();
        let before_space = after.is_none_or(|next| next.is_whitespace() || next == '"');
        let ends_clause = match mark {
            '\n' | '?' | '!' | ';' | '\u{a1}' | '\u{bf}' | '\u{2013}' | '\u{2014}' => true,
            // "6. März" is one date.
            '.' => before_space && !ends_in_day(&text[..offset]),
            ',' | ':' => before_space,
            '-' => before_space && text[..offset].ends_with(' '),
            _ => false,
        };
        (ends_clause && !is_quoted).then_some((offset, mark))
    });
    for (offset, mark) in marks.collect::<Vec<_>>() {
        clauses.push(ClaimClause { tokens: tokenize_clause(&text[start..offset]), is_question: mark == '?' });
        start = offset + mark.len_utf8();
    }
    clauses.push(ClaimClause { tokens: tokenize_clause(&text[start..]), is_question: false });
    clauses
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
    let mut tokens = Vec::new();
    for (index, part) in text.split('"').enumerate() {
        let words = part
            .split(|c: char| !(c.is_alphanumeric() || is_combining_mark(c) || matches!(c, '(' | ')')))
            .filter(|word| !word.is_empty());
        tokens.extend(words.map(|word| {
            let bare = word.trim_matches(['(', ')']);
            ClaimToken {
                word: bare.nfkd().filter(|c| !is_combining_mark(*c)).flat_map(char::to_lowercase).collect(),
                spelling: bare.nfc().flat_map(char::to_lowercase).collect(),
                is_capitalized: bare.starts_with(|c: char| c.is_uppercase() || c.is_ascii_digit()),
                is_parenthesized: bare != word,
                is_quoted: index % 2 == 1,
            }
        }));
    }
    tokens
}

/// Returns the grammars of the languages that share the most words with a clause, with verbs counted twice; all
/// grammars if no language shares a word.
fn likely_grammars(clause: &ClaimClause) -> impl Iterator<Item = &'static ClaimGrammar> {
    let weight = |grammar: &ClaimGrammar, token: &ClaimToken| {
        usize::from(is_function_word(grammar, token)) + 2 * usize::from(verb_effect(grammar, token).is_some())
    };
    let scores =
        LANGUAGES.map(|grammar| clause.tokens.iter().map(|token| weight(grammar, token)).sum::<usize>());
    let best = scores.into_iter().max();
    LANGUAGES
        .into_iter()
        .zip(scores)
        .filter(move |(_, score)| Some(*score) == best)
        .map(|(grammar, _)| grammar)
}

fn find_claims(clause: &ClaimClause) -> Vec<EffectClaim> {
    let tokens = &clause.tokens;
    let contains_verb = |grammar: &&ClaimGrammar| {
        (0..tokens.len()).any(|index| find_verb_at(tokens, index, grammar).is_some())
    };
    // Most clauses contain no verb of any language, and need no search for their language.
    if !LANGUAGES.iter().any(contains_verb) {
        return Vec::new();
    }
    let positions =
        likely_grammars(clause).flat_map(|grammar| (0..tokens.len()).map(move |index| (grammar, index)));
    positions.filter_map(|(grammar, index)| find_claim_at(tokens, index, grammar)).collect()
}

fn find_claim_at(tokens: &[ClaimToken], index: usize, grammar: &ClaimGrammar) -> Option<EffectClaim> {
    let (effect, form) = find_verb_at(tokens, index, grammar)?;
    // The claim begins after a reporting verb: "I can confirm that".
    let start = tokens[..index]
        .iter()
        .rposition(|token| token.is_in(&grammar.reporting))
        .map_or(0, |verb_index| verb_index + 1);
    let before = &tokens[start..index];
    let negates = |token: &ClaimToken| token.is_in(&grammar.negations) || token.is_in(&grammar.hypothetical);
    let is_negated_after = tokens.get(index + 1).is_some_and(|token| token.is_in(&NOTHING_WORDS));
    if before.iter().any(negates) || is_negated_after {
        return None;
    }
    let is_state = match grammar.order {
        VerbOrder::Adjacent => adjacent_verb_state(before, form, grammar)?,
        VerbOrder::Before => free_verb_state(before, &[], form, grammar)?,
        VerbOrder::Anywhere => free_verb_state(before, &tokens[index + 1..], form, grammar)?,
    };
    // "May" is a month only if it is capitalized.
    let is_month_of_may = |token: &ClaimToken| token.is_capitalized && token.is_one_of(&["may"]);
    let is_dated = tokens.iter().any(|token| token.is_in(&EARLIER_TIME_WORDS) || is_month_of_may(token));
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
    /// Past tense of the third person, which is a claim only if one of our programs is the subject.
    ThirdPersonPast,
    /// Infinitive after "have just".
    InfinitiveAfterJust,
}

fn find_verb_at(
    tokens: &[ClaimToken],
    index: usize,
    grammar: &ClaimGrammar,
) -> Option<(ClaimedEffect, VerbForm)> {
    let token = &tokens[index];
    if token.is_quoted {
        return None;
    }
    if let Some(found) = verb_effect(grammar, token) {
        let follows_just = tokens[..index].iter().any(|before| before.is_in(&grammar.just_words));
        return match found {
            (_, VerbForm::InfinitiveAfterJust) if !follows_just => None,
            found => Some(found),
        };
    }
    let clause_contains = |words: &[&str]| tokens.iter().any(|other| other.is_one_of(words));
    let phrase =
        grammar.phrases.iter().find(|(_, verbs, words)| token.is_one_of(verbs) && clause_contains(words));
    phrase.map(|(effect, ..)| (*effect, VerbForm::Participle))
}

/// Returns the effect and the form of a verb, by its stem and ending. An ambiguous form counts as the participle.
fn verb_effect(grammar: &ClaimGrammar, token: &ClaimToken) -> Option<(ClaimedEffect, VerbForm)> {
    grammar.verbs.iter().find_map(|(effect, VerbStems { stems, full_forms })| {
        if full_forms.contains(&token.word) {
            return Some((*effect, VerbForm::Participle));
        }
        stems.iter().filter_map(|stem| token.word.strip_prefix(stem)).find_map(|ending| {
            let forms = [
                (&grammar.participle, VerbForm::Participle),
                (&grammar.progressive, VerbForm::Progressive),
                (&grammar.past, VerbForm::Past),
                (&grammar.third_person_past, VerbForm::ThirdPersonPast),
                (&grammar.infinitive, VerbForm::InfinitiveAfterJust),
            ];
            let ending = if ending.is_empty() { "-" } else { ending };
            let mut accented_ending = token.spelling.chars().rev().take(ending.len());
            if grammar.accented.contains(ending) && !accented_ending.any(|letter| letter == '\u{e9}') {
                return None;
            }
            forms.iter().find(|(endings, _)| endings.contains(ending)).map(|(_, form)| (*effect, *form))
        })
    })
}

/// Determines the subject of an English verb from the words directly before it. Returns `None` if the subject is
/// another party, else whether the form describes a state.
fn adjacent_verb_state(before: &[ClaimToken], form: VerbForm, grammar: &ClaimGrammar) -> Option<bool> {
    let without_subject = (form != VerbForm::Progressive).then_some(false);
    // "I added one and removed the other": both verbs have the same subject.
    if before.last().is_some_and(|token| token.is_one_of(&["and", "then"])) {
        return without_subject;
    }
    for token in before.iter().rev() {
        if token.is_in(&grammar.passive) {
            return Some(true);
        }
        if token.is_in(&grammar.person_words) || token.is_in(&PROGRAM_NAMES) {
            return Some(false);
        }
        if !(token.is_in(&grammar.perfect) || token.is_in(&grammar.function_words)) {
            return without_subject.filter(|_| is_headline(before));
        }
    }
    without_subject
}

/// Does the same for the other languages, in which a passive, a first person or one of our programs may be anywhere in
/// the clause.
fn free_verb_state(
    before: &[ClaimToken],
    after: &[ClaimToken],
    form: VerbForm,
    grammar: &ClaimGrammar,
) -> Option<bool> {
    let context = || before.iter().chain(after);
    let has_own_subject =
        context().any(|token| token.is_in(&grammar.person_words) || token.is_in(&PROGRAM_NAMES));
    let is_passive = context().any(|token| token.is_in(&grammar.passive));
    let has_perfect = context().any(|token| token.is_in(&grammar.perfect));
    let has_no_subject = before.iter().all(|token| token.is_in(&grammar.function_words))
        || (is_headline(before) && !has_perfect);
    match form {
        VerbForm::InfinitiveAfterJust => Some(false),
        _ if is_passive => Some(true),
        _ if has_own_subject => Some(false),
        VerbForm::Past => Some(false),
        VerbForm::ThirdPersonPast | VerbForm::Progressive => None,
        VerbForm::Participle => has_no_subject.then_some(false),
    }
}

/// Returns whether only a title precedes the verb, as in "Dune (2021) deleted".
fn is_headline(before: &[ClaimToken]) -> bool {
    before.iter().all(|token| token.is_capitalized || token.is_quoted)
}

impl ClaimEvidence<'_> {
    fn supports(&self, claim: &EffectClaim, titles: &[&str]) -> bool {
        let names_titles = |line: &str| {
            let words = tokenize_clause(line);
            titles.iter().all(|title| words.iter().any(|word| word.word == *title))
        };
        let in_turn = match claim.effect {
            ClaimedEffect::Removal => &[][..],
            ClaimedEffect::Change => &self.changed,
            ClaimedEffect::Request if self.requested.is_empty() => &self.changed,
            ClaimedEffect::Request => &self.requested,
        };
        let was_done_in_turn = in_turn.iter().any(|line| names_titles(line));
        let was_read = (claim.is_state || claim.is_dated)
            && self.read_results.iter().any(|line| names_titles(line) && result_shows_claim(line, claim));
        let may_be_earlier = !titles.is_empty() || claim.is_dated;
        was_done_in_turn
            || was_read
            || (may_be_earlier && self.last_earlier_effect(names_titles) == Some(claim.effect))
    }

    /// Returns the last effect on a title in earlier turns; `None` if that effect failed.
    fn last_earlier_effect(&self, names_titles: impl Fn(&str) -> bool) -> Option<ClaimedEffect> {
        let lines = self.earlier.iter().filter(|line| names_titles(line)).map(|line| tokenize_clause(line));
        let mut effects = lines.filter_map(|words| {
            let effect = words.iter().find_map(|token| verb_effect(LANGUAGES[0], token))?.0;
            let failed = words.iter().any(|token| token.is_in(&LANGUAGES[0].negations));
            Some((!failed).then_some(effect))
        });
        effects.next().flatten()
    }
}

/// Returns whether a tool result shows the claimed effect: a title in the library or on its way there, or a removal in
/// the history.
fn result_shows_claim(line: &str, claim: &EffectClaim) -> bool {
    const LIBRARY_KEYS: [&str; 6] =
        ["\"id\":", "\"in_library\":true", "\"on_disk\":", "\"percent\":", "\"added\":", "\"day\":"];
    match claim.effect {
        ClaimedEffect::Change => LIBRARY_KEYS.iter().any(|key| line.contains(key)),
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
    struct ClaimCase {
        language: String,
        #[serde(rename = "false")]
        is_false: bool,
        text: String,
        #[serde(default, rename = "did")]
        effects: Vec<String>,
        #[serde(default, rename = "found")]
        read_results: Vec<String>,
        #[serde(default)]
        earlier: Vec<String>,
    }

    impl ClaimCase {
        fn is_blocked(&self) -> bool {
            let evidence = ClaimEvidence {
                changed: self.effects.clone(),
                requested: self.effects.clone(),
                read_results: self.read_results.clone(),
                earlier: &self.earlier,
            };
            contains_false_claim(&self.text, &evidence)
        }
    }

    fn load_cases() -> Vec<ClaimCase> {
        serde_json::from_str(include_str!("../../../tests/data/claims.json")).unwrap()
    }

    #[test]
    fn no_false_claim_passes_in_any_language() {
        let passed: Vec<String> = load_cases()
            .iter()
            .filter(|case| case.is_false && !case.is_blocked())
            .map(|case| case.text.clone())
            .collect();
        assert_eq!(passed, Vec::<String>::new());
    }

    #[test]
    fn at_most_one_true_statement_per_language_is_blocked() {
        for language in ["en", "es", "fr", "de", "pt", "it", "nl"] {
            let cases = load_cases();
            let language_cases: Vec<&ClaimCase> =
                cases.iter().filter(|case| case.language == language).collect();
            let count = |is_false| language_cases.iter().filter(|case| case.is_false == is_false).count();
            assert!(count(true) >= 20 && count(false) >= 20, "{language}");
            let blocked: Vec<&str> = language_cases
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
