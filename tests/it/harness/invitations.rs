//! Check that a message which nobody asked for invites no word that confirms or denies a prompt: whoever follows it could
//! answer a prompt that was asked in the meantime.

use dialarr::conversation::grammar::confirmation_reply::{
    ConfirmationReply, ReplyLanguage, parse_confirmation_reply,
};

/// Verbs before the words of a suggested reply.
const VERBS: [&str; 10] =
    ["reply", "text", "say", "answer", "send", "type", "write", "press", "tap", "respond"];
/// Words between such a verb and the suggested reply.
const FILLERS: [&str; 9] = ["with", "back", "me", "just", "only", "either", "the", "word", "a"];
/// Maximum number of words of a suggested reply.
const MAX_WORDS: usize = 3;
/// Maximum number of words between a verb and the start of a suggested reply: `Reply VOTE 1, VOTE 2 or YES`.
const REACH: usize = 8;
/// End of the offer to add the first request of a newcomer, which is a question. Nothing was prompted before it.
const FIRST_REQUEST_OFFER: &str = "Reply YES to add it.";

/// Answer to a proposal to make room. It also closes a prompt, without a deletion.
const KEEP_ALL: &str = "keep all";

/// Returns the words of a suggested reply that would confirm or deny a prompt. Titles in quotes suggest nothing.
pub(crate) fn invited_confirmation(body: &str) -> Option<String> {
    let body = body.trim_end().strip_suffix(FIRST_REQUEST_OFFER).unwrap_or(body);
    let unquoted: String = body.split('"').step_by(2).collect::<Vec<_>>().join(" , ");
    unquoted.split(['.', '!', '?', ';', '\n']).find_map(invitation_in_sentence)
}

fn invitation_in_sentence(sentence: &str) -> Option<String> {
    let is_separator = |c: char| !(c.is_alphanumeric() || c == '\'' || c == '\u{2019}');
    let words: Vec<String> =
        sentence.split(is_separator).filter(|word| !word.is_empty()).map(str::to_lowercase).collect();
    let verbs = words.iter().enumerate().filter(|(_, word)| VERBS.contains(&word.as_str()));
    let starts = verbs.flat_map(|(verb, _)| {
        let first = words[verb + 1..].iter().take_while(|word| FILLERS.contains(&word.as_str())).count();
        let alternatives = (verb + 1..words.len().min(verb + REACH)).filter(|at| words[*at] == "or");
        std::iter::once(verb + 1 + first).chain(alternatives.map(|or| or + 1)).collect::<Vec<_>>()
    });
    let phrases = starts.flat_map(|start| {
        let longest = words.len().saturating_sub(start).min(MAX_WORDS);
        // What follows belongs to the words: KEEP 3 and KEEP ALL, which answer a proposal to make room, are no KEEP.
        let is_whole =
            |count: &usize| words.get(start + count).is_none_or(|next| !is_number(next) && next != "all");
        (1..=longest).filter(is_whole).map(|count| words[start..start + count].join(" ")).collect::<Vec<_>>()
    });
    phrases.into_iter().filter(|phrase| phrase != KEEP_ALL).find(|phrase| {
        parse_confirmation_reply(phrase, None, &ReplyLanguage::ALL) != ConfirmationReply::Unrelated
    })
}

fn is_number(word: &str) -> bool {
    word.chars().all(|c| c.is_ascii_digit())
}
