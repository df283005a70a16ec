//! Text before a confirmation prompt in the same message. The prompt ends the turn, so this text reports the rest of
//! the request in place of the model.

use super::Turn;
use super::model_action::{REACT, SEND_POSTER};
use crate::conversation::people::facts::{FORGET, REMEMBER};
use crate::conversation::transcript::{CallFailure, CallState, EffectLevel, FailureCode, ToolCall};

/// Maximum length of the text before a prompt, in bytes. The prompt must not be truncated, and both must fit one
/// message.
const MAX_PREAMBLE_BYTES: usize = 600;
/// Space reserved for the sentence that counts the omitted results, and for spaces.
const OMITTED_COUNT_BYTES: usize = 40;
/// Sentence for calls that failed without a sentence of their own for the user.
const GENERIC_FAILURE: &str = "I could not do everything else you asked for. Please text that again.";

impl Turn {
    /// Returns the sentences about the results of the turn, in the order of its log: one for each successful write and
    /// for each call that failed and was not repeated in a later step.
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
                | CallState::AwaitingConfirmation
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
    let is_optional_call = [REACT, SEND_POSTER, REMEMBER, FORGET].contains(&call.name.as_str());
    let never_ran = matches!(
        failure.code,
        FailureCode::BadArguments | FailureCode::UnknownId | FailureCode::UnknownTool | FailureCode::Limit
    );
    match &failure.for_user {
        Some(sentence) => Some(sentence),
        None if never_ran && !is_optional_call => Some(GENERIC_FAILURE),
        None => None,
    }
}

/// Joins the sentences before a prompt about `prompted_titles` titles: the closing of an earlier prompt, then as many
/// results as fit, then the number of deletions that follow this prompt.
pub fn format_prompt_preamble(
    closing: Option<&str>,
    results: &[&str],
    prompted_titles: usize,
    remaining_deletions: usize,
) -> String {
    let remaining = (remaining_deletions > 0).then(|| match prompted_titles {
        1 => format!("This one first; {remaining_deletions} more to go."),
        _ => format!("These {prompted_titles} first; {remaining_deletions} more to go."),
    });
    let required =
        closing.map_or(0, str::len) + remaining.as_ref().map_or(0, String::len) + OMITTED_COUNT_BYTES;
    let mut bytes_left = MAX_PREAMBLE_BYTES.saturating_sub(required);
    let shown = results.iter().take_while(|sentence| match bytes_left.checked_sub(sentence.len() + 1) {
        Some(rest) => {
            bytes_left = rest;
            true
        }
        None => false,
    });
    let mut sentences: Vec<String> = closing.into_iter().map(str::to_owned).collect();
    sentences.extend(shown.map(|sentence| (*sentence).to_owned()));
    let omitted = results.len() + usize::from(closing.is_some()) - sentences.len();
    match omitted {
        0 => {}
        1 => sentences.push("1 more result does not fit here.".to_owned()),
        _ => sentences.push(format!("{omitted} more results do not fit here.")),
    }
    sentences.extend(remaining);
    sentences.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn preamble_orders_its_sentences_and_counts_omitted_results() {
        assert_eq!(format_prompt_preamble(None, &[], 1, 0), "");
        assert_eq!(
            format_prompt_preamble(Some("OK, Heat (1995) is kept."), &["Added Dune (2021)."], 5, 1),
            "OK, Heat (1995) is kept. Added Dune (2021). These 5 first; 1 more to go."
        );
        assert_eq!(format_prompt_preamble(None, &[], 1, 2), "This one first; 2 more to go.");
        let long = "Added something with a very long name indeed, and it is not out yet.".repeat(3);
        let preamble = format_prompt_preamble(Some("OK, Heat (1995) is kept."), &[long.as_str(); 9], 1, 3);
        assert!(preamble.len() <= MAX_PREAMBLE_BYTES, "{}", preamble.len());
        assert!(preamble.starts_with("OK, Heat (1995) is kept. Added"), "{preamble}");
        assert!(
            preamble.ends_with("7 more results do not fit here. This one first; 3 more to go."),
            "{preamble}"
        );
    }
}
