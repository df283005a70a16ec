//! Whether a model's text may be sent, must be asked for again, or is replaced.

use super::claims::{self, Evidence};
use super::{Excuse, Nudge};
use crate::conversation::transcript::{Brain, ModelStep, Stop};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    Say(String),
    AskAgain(Nudge),
    Excuse(Excuse),
}

/// Judges a step that has no calls.
pub(super) fn of(step: &ModelStep, evidence: &Evidence<'_>) -> Verdict {
    let text = step.text.trim();
    match step.stop {
        Stop::Refused => return Verdict::Excuse(Excuse::Refused),
        Stop::Filtered => return Verdict::Excuse(Excuse::Filtered),
        Stop::Length if text.is_empty() => return Verdict::AskAgain(Nudge::CutOff),
        Stop::Length | Stop::Done | Stop::Other(_) => {}
    }
    if text.is_empty() {
        Verdict::AskAgain(Nudge::Empty)
    } else if is_call_as_text(text) {
        Verdict::AskAgain(Nudge::CallAsText)
    } else if step.brain == Brain::Keyword {
        // Code wrote it.
        Verdict::Say(text.to_owned())
    } else if claims::imitates_prompt(text) {
        Verdict::AskAgain(Nudge::PromptAsText)
    } else if claims::claims_falsely(text, evidence) {
        Verdict::AskAgain(Nudge::FalseClaim)
    } else if step.stop == Stop::Length {
        Verdict::Say(up_to_last_sentence(text).to_owned())
    } else {
        Verdict::Say(text.to_owned())
    }
}

/// Small models write a call out in place of making it.
fn is_call_as_text(text: &str) -> bool {
    let squeezed: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    squeezed.contains("<tool_call>")
        || squeezed.contains("<|tool_call")
        || squeezed.contains("<function=")
        || squeezed.contains("\"arguments\":")
        || (squeezed.contains("\"name\":\"") && squeezed.contains("\"parameters\":"))
}

/// A text that was cut off ends with its last whole sentence; one without any is kept as it is.
fn up_to_last_sentence(text: &str) -> &str {
    match text.rfind(['.', '!', '?', '\n']) {
        Some(end) if end > 0 => text[..=end].trim_end(),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, stop: Stop, evidence: &Evidence<'_>, expected: &Verdict) {
        let step = ModelStep { text: text.to_owned(), stop, calls: Vec::new(), brain: Brain::Model };
        assert_eq!(&of(&step, evidence), expected, "{text}");
    }

    #[track_caller]
    fn check_without_evidence(text: &str, stop: Stop, expected: &Verdict) {
        check(text, stop, &Evidence::default(), expected);
    }

    fn say(text: &str) -> Verdict {
        Verdict::Say(text.to_owned())
    }

    #[test]
    fn plain_answers_are_said() {
        for text in ["Paddington is 62% done.", "You already have it.", "I haven't added it. Shall I?"] {
            check_without_evidence(text, Stop::Done, &say(text));
        }
        let read = vec![r#"{"title":"Dune","id":7,"added":"2024-05-03"}"#.to_owned()];
        let text = "Dune was added in May.";
        check(text, Stop::Done, &Evidence { read, ..Evidence::default() }, &say(text));
    }

    #[test]
    fn what_cannot_be_said_is_asked_for_again() {
        check_without_evidence("  ", Stop::Done, &Verdict::AskAgain(Nudge::Empty));
        check_without_evidence("", Stop::Length, &Verdict::AskAgain(Nudge::CutOff));
        for text in [
            "{\"name\":\"check_status\",\"arguments\":{}}",
            "<tool_call>{}</tool_call>",
            "{ \"name\" : \"x\", \"parameters\": {} }",
        ] {
            check_without_evidence(text, Stop::Done, &Verdict::AskAgain(Nudge::CallAsText));
        }
        let prompt = "Delete Dune (2021) and its file, 21.4 GB? Reply YES or NO.";
        check_without_evidence(prompt, Stop::Done, &Verdict::AskAgain(Nudge::PromptAsText));
    }

    #[test]
    fn a_claim_needs_a_change_and_a_deletion_is_never_the_models_to_claim() {
        let added = Evidence { changed: vec!["Added Dune (2021).".to_owned()], ..Evidence::default() };
        let again = Verdict::AskAgain(Nudge::FalseClaim);
        for text in ["Added Dune.", "OK, added it!", "I've added Dune for you.", "I have just queued it"] {
            check_without_evidence(text, Stop::Done, &again);
            check(text, Stop::Done, &added, &say(text));
        }
        for text in ["Deleted Dune.", "I've removed it.", "Added Heat."] {
            check(text, Stop::Done, &added, &again);
        }
    }

    #[test]
    fn what_was_only_promised_may_not_be_claimed_as_done() {
        let promised = Evidence { requested: vec!["Dune is queued.".to_owned()], ..Evidence::default() };
        check("Added Dune.", Stop::Done, &promised, &Verdict::AskAgain(Nudge::FalseClaim));
        check("I've queued it.", Stop::Done, &promised, &say("I've queued it."));
    }

    #[test]
    fn a_cut_off_text_keeps_its_whole_sentences() {
        check_without_evidence("One. Two. Thr", Stop::Length, &say("One. Two."));
        check_without_evidence("No end", Stop::Length, &say("No end"));
    }

    #[test]
    fn refusals_and_filters_have_their_own_words() {
        check_without_evidence("x", Stop::Refused, &Verdict::Excuse(Excuse::Refused));
        check_without_evidence("", Stop::Filtered, &Verdict::Excuse(Excuse::Filtered));
    }
}
