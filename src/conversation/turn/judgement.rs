//! Whether a model's text may be sent, must be asked for again, or is replaced.

use super::{Excuse, Nudge};
use crate::conversation::transcript::{ModelStep, Stop};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    Say(String),
    AskAgain(Nudge),
    Excuse(Excuse),
}

/// What tools have changed in a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Changed {
    Nothing,
    /// Only what is known of the person.
    Noted,
    /// It was only promised: an addition is tried later, or a title is followed.
    Promised,
    Something,
}

/// Judges a step that has no calls.
pub(super) fn of(step: &ModelStep, changed: Changed) -> Verdict {
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
    } else if claims_removal(text) || claims_addition(text, changed) {
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

/// A chat turn never deletes anything: only a yes does, and code reports it.
fn claims_removal(text: &str) -> bool {
    claims(text, &["deleted", "removed", "erased"])
}

fn claims_addition(text: &str, changed: Changed) -> bool {
    match changed {
        Changed::Nothing | Changed::Noted => claims(text, &["added", "queued", "requested", "grabbed"]),
        Changed::Promised => claims(text, &["added", "grabbed"]),
        Changed::Something => false,
    }
}

/// Whether the text opens with the verb, or says that "I" did it. "Dune was added in May" is no claim.
fn claims(text: &str, verbs: &[&str]) -> bool {
    let words: Vec<String> = text
        .split_whitespace()
        .map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase().replace('\u{2019}', "'"))
        .filter(|word| !word.is_empty())
        .collect();
    let is_verb = |word: &String| verbs.contains(&word.as_str());
    let opening =
        words.iter().find(|word| !matches!(word.as_str(), "ok" | "okay" | "done" | "sure" | "great" | "yes"));
    let said_by_me = words.iter().enumerate().any(|(at, word)| {
        is_verb(word)
            && words[..at]
                .iter()
                .rev()
                .take(3)
                .any(|before| matches!(before.as_str(), "i" | "i've" | "i'll" | "we've" | "we"))
            && !words[..at]
                .iter()
                .rev()
                .take(3)
                .any(|before| matches!(before.as_str(), "not" | "haven't" | "can't" | "never" | "if"))
    });
    opening.is_some_and(is_verb) || said_by_me
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
    use crate::conversation::transcript::Brain;

    #[track_caller]
    fn check(text: &str, stop: Stop, changed: Changed, expected: &Verdict) {
        let step = ModelStep { text: text.to_owned(), stop, calls: Vec::new(), brain: Brain::Model };
        assert_eq!(&of(&step, changed), expected, "{text}");
    }

    fn say(text: &str) -> Verdict {
        Verdict::Say(text.to_owned())
    }

    #[test]
    fn plain_answers_are_said() {
        for text in [
            "Paddington is 62% done.",
            "Dune was added in May.",
            "You already have it.",
            "I haven't added it. Shall I?",
        ] {
            check(text, Stop::Done, Changed::Nothing, &say(text));
        }
    }

    #[test]
    fn what_cannot_be_said_is_asked_for_again() {
        check("  ", Stop::Done, Changed::Nothing, &Verdict::AskAgain(Nudge::Empty));
        check("", Stop::Length, Changed::Nothing, &Verdict::AskAgain(Nudge::CutOff));
        for text in [
            "{\"name\":\"check_status\",\"arguments\":{}}",
            "<tool_call>{}</tool_call>",
            "{ \"name\" : \"x\", \"parameters\": {} }",
        ] {
            check(text, Stop::Done, Changed::Nothing, &Verdict::AskAgain(Nudge::CallAsText));
        }
    }

    #[test]
    fn a_claim_needs_a_change_and_a_deletion_is_never_the_models_to_claim() {
        for text in ["Added Dune.", "OK, added it!", "I've added Dune for you.", "I have just queued it"] {
            for changed in [Changed::Nothing, Changed::Noted] {
                check(text, Stop::Done, changed, &Verdict::AskAgain(Nudge::FalseClaim));
            }
            check(text, Stop::Done, Changed::Something, &say(text));
        }
        for text in ["Deleted Dune.", "I've removed it."] {
            check(text, Stop::Done, Changed::Something, &Verdict::AskAgain(Nudge::FalseClaim));
        }
    }

    #[test]
    fn what_was_only_promised_may_not_be_claimed_as_done() {
        let promised = Changed::Promised;
        check("Added Dune.", Stop::Done, promised, &Verdict::AskAgain(Nudge::FalseClaim));
        check("I've queued it.", Stop::Done, promised, &say("I've queued it."));
    }

    #[test]
    fn a_cut_off_text_keeps_its_whole_sentences() {
        check("One. Two. Thr", Stop::Length, Changed::Nothing, &say("One. Two."));
        check("No end", Stop::Length, Changed::Nothing, &say("No end"));
    }

    #[test]
    fn refusals_and_filters_have_their_own_words() {
        check("x", Stop::Refused, Changed::Nothing, &Verdict::Excuse(Excuse::Refused));
        check("", Stop::Filtered, Changed::Nothing, &Verdict::Excuse(Excuse::Filtered));
    }
}
