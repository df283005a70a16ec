//! Replies to a confirmation prompt with their meaning, and the judgment of a reading.

use serde::Deserialize;

use super::confirmation_reply::{ConfirmationCode, ConfirmationReply, ReplyLanguage, parse_prompt_reply};
use super::reaction::looks_like_reaction;
use super::requests::labels::Judgment;

/// Reply with its meaning.
#[derive(Debug, Deserialize)]
pub struct LabeledReply {
    pub text: String,
    code: Option<CodeEntry>,
    #[serde(default)]
    langs: Vec<String>,
    /// Titles of the prompt, with which a yes may name them.
    #[serde(default)]
    titles: Vec<String>,
    kind: String,
    /// Further right readings.
    #[serde(default)]
    accept: Vec<AcceptedKind>,
}

/// Required code. A number stands for at least two digits.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum CodeEntry {
    Number(u16),
    Digits(String),
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum AcceptedKind {
    Name(String),
    Label { kind: String },
}

impl LabeledReply {
    /// Judges the reading of the reply, and names it. A yes that was not meant is harmful.
    pub fn judge(&self) -> (Judgment, &'static str) {
        let found = self.kind();
        let accepted = self.accept.iter().map(|accepted| match accepted {
            AcceptedKind::Name(kind) | AcceptedKind::Label { kind } => kind.as_str(),
        });
        let judgment = match found {
            _ if std::iter::once(self.kind.as_str()).chain(accepted).any(|kind| kind == found) => {
                Judgment::Right
            }
            "CONFIRM" => Judgment::Harmful,
            _ => Judgment::Harmless,
        };
        (judgment, found)
    }

    fn kind(&self) -> &'static str {
        let code = self.code.as_ref().and_then(|code| match code {
            CodeEntry::Number(number) => ConfirmationCode::parse(&format!("{number:02}")),
            CodeEntry::Digits(digits) => ConfirmationCode::parse(digits),
        });
        let languages: Vec<_> = self.langs.iter().filter_map(|code| ReplyLanguage::parse(code)).collect();
        match parse_prompt_reply(&self.text, &self.titles, code, &languages) {
            _ if looks_like_reaction(&self.text) => "REACTION",
            ConfirmationReply::Yes => "CONFIRM",
            ConfirmationReply::No => "DENY",
            ConfirmationReply::UnclearYes(_) => "SOFT",
            ConfirmationReply::Unrelated => "OTHER",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recorded_replies_are_parsed() {
        for file in [
            include_str!("../../../tests/data/confirm_cases.json"),
            include_str!("../../../tests/data/more_confirm_cases.json"),
        ] {
            let cases: Vec<LabeledReply> = serde_json::from_str(file).unwrap();
            for case in cases {
                assert_eq!(case.judge().0, Judgment::Right, "{:?} {}", case.text, case.judge().1);
            }
        }
    }

    #[test]
    fn yes_that_was_not_meant_is_harmful() {
        let judge = |reply: &str| serde_json::from_str::<LabeledReply>(reply).unwrap().judge().0;
        assert_eq!(judge(r#"{ "text": "yes", "kind": "OTHER" }"#), Judgment::Harmful);
        assert_eq!(judge(r#"{ "text": "hm", "kind": "SOFT" }"#), Judgment::Harmless);
        assert_eq!(judge(r#"{ "text": "hm", "kind": "SOFT", "accept": ["OTHER"] }"#), Judgment::Right);
        assert_eq!(judge(r#"{ "text": "yes 0047", "code": "0047", "kind": "CONFIRM" }"#), Judgment::Right);
    }
}
