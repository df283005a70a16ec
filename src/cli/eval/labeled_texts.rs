//! Files of texts with their meaning: phrases for the grammar of requests, and replies to a confirmation prompt.

use serde::Deserialize;

use crate::conversation::grammar::labeled_reply::LabeledReply;
use crate::conversation::grammar::requests::labels::{Judgment, LabeledPhrase};

/// File of labeled texts.
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum LabeledFile {
    Phrases { phrases: Vec<LabeledPhrase> },
    Replies(Vec<LabeledReply>),
}

/// Counts of judged texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct JudgmentCounts {
    pub(super) right: usize,
    pub(super) harmless: usize,
    pub(super) harmful: usize,
}

impl LabeledFile {
    /// Judges all texts, and describes each that is read wrong.
    pub(super) fn judge(&self, mut report: impl FnMut(String)) -> JudgmentCounts {
        let mut counts = JudgmentCounts::default();
        let mut count = |text: &str, (judgment, found): (Judgment, String)| match judgment {
            Judgment::Right => counts.right += 1,
            Judgment::Harmless => {
                counts.harmless += 1;
                report(format!("harmless  {text:?}: {found}"));
            }
            Judgment::Harmful => {
                counts.harmful += 1;
                report(format!("HARMFUL   {text:?}: {found}"));
            }
        };
        match self {
            Self::Phrases { phrases } => {
                phrases.iter().for_each(|phrase| count(&phrase.text, phrase.judge()));
            }
            Self::Replies(replies) => replies.iter().for_each(|reply| {
                let (judgment, found) = reply.judge();
                count(&reply.text, (judgment, found.to_owned()));
            }),
        }
        counts
    }
}

impl JudgmentCounts {
    fn total(self) -> usize {
        self.right + self.harmless + self.harmful
    }

    pub(super) fn add(&mut self, other: Self) {
        self.right += other.right;
        self.harmless += other.harmless;
        self.harmful += other.harmful;
    }

    /// Returns the totals for the terminal. `None` if no text was judged.
    pub(super) fn totals_text(self) -> Option<String> {
        let Self { right, harmless, harmful } = self;
        (self.total() > 0).then(|| {
            format!("{right} of {} texts right, {harmless} harmless, {harmful} harmful", self.total())
        })
    }

    /// Returns whether enough texts are right and none is harmful. Without a bound, all have to be right.
    pub(super) fn is_acceptable(self, at_least: Option<usize>) -> bool {
        self.harmful == 0 && self.right >= at_least.unwrap_or(self.total())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_texts_are_reported_and_a_harmful_one_always_fails() {
        let file = r#"{ "phrases": [
            { "text": "add heat", "intent": "add", "args": { "title": "heat" } },
            { "text": "do we have heat", "intent": "search", "args": { "title": "heat" } }
        ] }"#;
        let mut lines = Vec::new();
        let labeled: LabeledFile = serde_json::from_str(file).unwrap();
        let counts = labeled.judge(|line| lines.push(line));
        assert_eq!(counts, JudgmentCounts { right: 1, harmless: 1, harmful: 0 });
        assert_eq!(lines, ["harmless  \"do we have heat\": have {\"title\":\"heat\"}"]);
        assert!(counts.is_acceptable(Some(1)) && !counts.is_acceptable(None));

        let replies: LabeledFile = serde_json::from_str(r#"[{ "text": "yes", "kind": "OTHER" }]"#).unwrap();
        let harmful = replies.judge(|_| ());
        assert_eq!(harmful, JudgmentCounts { right: 0, harmless: 0, harmful: 1 });
        assert!(!harmful.is_acceptable(Some(0)));
    }

    #[test]
    fn scenario_file_is_no_file_of_labeled_texts() {
        let scenarios = include_str!("../../../evals/finding.json");
        assert!(serde_json::from_str::<LabeledFile>(scenarios).is_err());
    }
}
