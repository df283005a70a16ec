//! Check whether a model's text is sent, requested again, or replaced.

use super::claims::{self, ClaimEvidence};
use super::{FallbackReply, RetryHint};
use crate::conversation::transcript::{ModelStep, Responder, StopReason};

/// Result of the check of a response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ResponseVerdict {
    Send(String),
    Retry(RetryHint),
    Fallback(FallbackReply),
}

/// Checks the response of a step without tool calls.
pub(super) fn check_response(step: &ModelStep, evidence: &ClaimEvidence<'_>) -> ResponseVerdict {
    let text = step.text.trim();
    match step.stop {
        StopReason::Refused => return ResponseVerdict::Fallback(FallbackReply::Refused),
        StopReason::Filtered => return ResponseVerdict::Fallback(FallbackReply::Filtered),
        StopReason::Length if text.is_empty() => return ResponseVerdict::Retry(RetryHint::CutOff),
        StopReason::Length | StopReason::Done | StopReason::Other(_) => {}
    }
    if text.is_empty() {
        ResponseVerdict::Retry(RetryHint::Empty)
    } else if is_call_as_text(text) {
        ResponseVerdict::Retry(RetryHint::CallAsText)
    } else if step.responder == Responder::Keyword {
        // Code wrote this text, so there is nothing to check.
        ResponseVerdict::Send(text.to_owned())
    } else if claims::imitates_prompt(text) {
        ResponseVerdict::Retry(RetryHint::PromptAsText)
    } else if claims::contains_false_claim(text, evidence) {
        ResponseVerdict::Retry(RetryHint::FalseClaim)
    } else if step.stop == StopReason::Length {
        ResponseVerdict::Send(trim_to_last_sentence(text).to_owned())
    } else {
        ResponseVerdict::Send(text.to_owned())
    }
}

/// Returns whether the text is a tool call in writing, which small models produce instead of an actual call.
fn is_call_as_text(text: &str) -> bool {
    let compact: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    compact.contains("<tool_call>")
        || compact.contains("<|tool_call")
        || compact.contains("<function=")
        || compact.contains("\"arguments\":")
        || (compact.contains("\"name\":\"") && compact.contains("\"parameters\":"))
}

/// Cuts a truncated text after its last complete sentence; a text without one is returned unchanged.
fn trim_to_last_sentence(text: &str) -> &str {
    match text.rfind(['.', '!', '?', '\n']) {
        Some(end) if end > 0 => text[..=end].trim_end(),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, stop: StopReason, evidence: &ClaimEvidence<'_>, expected: &ResponseVerdict) {
        let step = ModelStep { text: text.to_owned(), stop, calls: Vec::new(), responder: Responder::Model };
        assert_eq!(&check_response(&step, evidence), expected, "{text}");
    }

    #[track_caller]
    fn check_without_evidence(text: &str, stop: StopReason, expected: &ResponseVerdict) {
        check(text, stop, &ClaimEvidence::default(), expected);
    }

    fn sends(text: &str) -> ResponseVerdict {
        ResponseVerdict::Send(text.to_owned())
    }

    #[test]
    fn plain_responses_are_sent() {
        for text in ["Paddington is 62% done.", "You already have it.", "I haven't added it. Shall I?"] {
            check_without_evidence(text, StopReason::Done, &sends(text));
        }
        let read_results = vec![r#"{"title":"Dune","id":7,"added":"2024-05-03"}"#.to_owned()];
        let text = "Dune was added in May.";
        check(
            text,
            StopReason::Done,
            &ClaimEvidence { read_results, ..ClaimEvidence::default() },
            &sends(text),
        );
    }

    #[test]
    fn unusable_responses_are_retried() {
        check_without_evidence("  ", StopReason::Done, &ResponseVerdict::Retry(RetryHint::Empty));
        check_without_evidence("", StopReason::Length, &ResponseVerdict::Retry(RetryHint::CutOff));
        for text in [
            "{\"name\":\"check_status\",\"arguments\":{}}",
            "<tool_call>{}</tool_call>",
            "{ \"name\" : \"x\", \"parameters\": {} }",
        ] {
            check_without_evidence(text, StopReason::Done, &ResponseVerdict::Retry(RetryHint::CallAsText));
        }
        let prompt = "Delete Dune (2021) and its file, 21.4 GB? Reply YES or NO.";
        check_without_evidence(prompt, StopReason::Done, &ResponseVerdict::Retry(RetryHint::PromptAsText));
    }

    #[test]
    fn claim_needs_a_change_and_may_not_be_a_deletion() {
        let added =
            ClaimEvidence { changed: vec!["Added Dune (2021).".to_owned()], ..ClaimEvidence::default() };
        let retry = ResponseVerdict::Retry(RetryHint::FalseClaim);
        for text in ["Added Dune.", "OK, added it!", "I've added Dune for you.", "I have just queued it"] {
            check_without_evidence(text, StopReason::Done, &retry);
            check(text, StopReason::Done, &added, &sends(text));
        }
        for text in ["Deleted Dune.", "I've removed it.", "Added Heat."] {
            check(text, StopReason::Done, &added, &retry);
        }
    }

    #[test]
    fn requested_change_cannot_be_claimed_as_done() {
        let requested =
            ClaimEvidence { requested: vec!["Dune is queued.".to_owned()], ..ClaimEvidence::default() };
        check("Added Dune.", StopReason::Done, &requested, &ResponseVerdict::Retry(RetryHint::FalseClaim));
        check("I've queued it.", StopReason::Done, &requested, &sends("I've queued it."));
    }

    #[test]
    fn truncated_text_keeps_its_complete_sentences() {
        check_without_evidence("One. Two. Thr", StopReason::Length, &sends("One. Two."));
        check_without_evidence("No end", StopReason::Length, &sends("No end"));
    }

    #[test]
    fn refusals_and_filters_have_fallback_replies() {
        check_without_evidence("x", StopReason::Refused, &ResponseVerdict::Fallback(FallbackReply::Refused));
        check_without_evidence("", StopReason::Filtered, &ResponseVerdict::Fallback(FallbackReply::Filtered));
    }
}
