//! Part of a message before the confirmation prompt at its end: the prompt ends the turn, so the model's own text about
//! the rest of the request is never sent.

use super::Turn;
use super::model_action::{REACT, SEND_POSTER};
use crate::conversation::people::facts::{FORGET, REMEMBER};
use crate::conversation::transcript::{CallFailure, CallState, EffectLevel, FailureCode, ToolCall};

/// Maximum length of the text before a prompt, in bytes. The prompt must be read whole, and both fit one message.
const MAX_PREAMBLE_BYTES: usize = 600;
/// Space for the sentence that counts the omitted parts, and for spaces.
const COUNT_SENTENCE_BYTES: usize = 40;
/// Replacement for calls that failed without a sentence for users.
const NOT_DONE: &str = "I could not do everything else you asked for. Please text that again.";

impl Turn {
    /// Returns the successes and failures of the turn, in the order of its log: a sentence for each successful write,
    /// and for each call that failed and was not tried again in a later step.
    pub fn preamble_sentences(&self) -> Vec<&str> {
        let mut sentences: Vec<&str> = Vec::new();
        for call in self.calls().filter(|call| call.effect_level != EffectLevel::Read) {
            let sentence = match &call.state {
                CallState::Done(result) if call.effect_level == EffectLevel::Write => {
                    Some(result.for_user.as_str())
                }
                CallState::Failed(failure) if !self.is_retried_later(call) => failure_sentence(call, failure),
                CallState::Created
                | CallState::Running
                | CallState::Held
                | CallState::Done(_)
                | CallState::Failed(_)
                | CallState::Canceled(_) => None,
            };
            sentences
                .extend(sentence.filter(|sentence| !sentence.is_empty() && !sentences.contains(sentence)));
        }
        sentences
    }

    /// Returns the deletions that the last response requests in addition to `call` and that have no result yet.
    pub fn other_deletions<'a>(&'a self, call: &'a ToolCall) -> impl Iterator<Item = &'a ToolCall> {
        let last = self.steps.last().into_iter().flat_map(|step| &step.calls);
        last.filter(|other| {
            other.row != call.row
                && other.effect_level == EffectLevel::Destructive
                && other.state == CallState::Created
        })
    }

    fn is_retried_later(&self, call: &ToolCall) -> bool {
        self.calls().any(|later| later.step > call.step && later.name == call.name)
    }
}

fn failure_sentence<'a>(call: &ToolCall, failure: &'a CallFailure) -> Option<&'a str> {
    let is_aside = [REACT, SEND_POSTER, REMEMBER, FORGET].contains(&call.name.as_str());
    let never_ran = matches!(
        failure.code,
        FailureCode::BadArguments | FailureCode::UnknownId | FailureCode::UnknownTool | FailureCode::Limit
    );
    match &failure.for_user {
        Some(sentence) => Some(sentence),
        None if never_ran && !is_aside => Some(NOT_DONE),
        None => None,
    }
}

/// Joins the sentences before a prompt: the closing of an earlier prompt, then as many of the sentences as fit, then
/// the number of deletions that follow this prompt, which is about `asked` titles.
pub fn format_prompt_preamble(closing: Option<&str>, results: &[&str], asked: usize, more: usize) -> String {
    let after = (more > 0).then(|| match asked {
        1 => format!("First this one, and {more} more after this."),
        _ => format!("First these {asked}, and {more} more after these."),
    });
    let required = closing.map_or(0, str::len) + after.as_ref().map_or(0, String::len) + COUNT_SENTENCE_BYTES;
    let mut left = MAX_PREAMBLE_BYTES.saturating_sub(required);
    let shown = results.iter().take_while(|sentence| match left.checked_sub(sentence.len() + 1) {
        Some(rest) => {
            left = rest;
            true
        }
        None => false,
    });
    let mut sentences: Vec<String> = closing.into_iter().map(str::to_owned).collect();
    sentences.extend(shown.map(|sentence| (*sentence).to_owned()));
    let hidden = results.len() + usize::from(closing.is_some()) - sentences.len();
    if hidden > 0 {
        sentences.push(format!("{hidden} more results do not fit here."));
    }
    sentences.extend(after);
    sentences.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn preamble_sentences_are_ordered_and_the_rest_is_counted() {
        assert_eq!(format_prompt_preamble(None, &[], 1, 0), "");
        assert_eq!(
            format_prompt_preamble(Some("OK, Heat (1995) is kept."), &["Added Dune (2021)."], 5, 1),
            "OK, Heat (1995) is kept. Added Dune (2021). First these 5, and 1 more after these."
        );
        assert_eq!(format_prompt_preamble(None, &[], 1, 2), "First this one, and 2 more after this.");
        let long = "Added something with a very long name indeed, and it is not out yet.".repeat(3);
        let many = format_prompt_preamble(Some("OK, Heat (1995) is kept."), &[long.as_str(); 9], 1, 3);
        assert!(many.len() <= MAX_PREAMBLE_BYTES, "{}", many.len());
        assert!(many.starts_with("OK, Heat (1995) is kept. Added"), "{many}");
        assert!(
            many.ends_with("7 more results do not fit here. First this one, and 3 more after this."),
            "{many}"
        );
    }
}
