//! Phrases with their meaning, and the judgment of a reading.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::parser::parse_line;
use super::request::Request;
use crate::conversation::text::normalization::{normalize_title, strip_article};

/// Text with its meaning.
#[derive(Debug, Deserialize)]
pub struct LabeledPhrase {
    pub text: String,
    #[serde(flatten)]
    label: Label,
    /// Further right readings.
    #[serde(default)]
    accept: Vec<Label>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
struct Label {
    intent: String,
    #[serde(default)]
    args: Map<String, Value>,
}

/// Judgment of a reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Judgment {
    Right,
    /// Wrong, but nothing happens that was not meant.
    Harmless,
    /// An action, a deletion or a yes that was not meant.
    Harmful,
}

impl LabeledPhrase {
    /// Judges the first reading of the text, and describes it.
    pub fn judge(&self) -> (Judgment, String) {
        let requests = parse_line(&self.text).first_reading();
        let found = Label::from_requests(&requests);
        let mut labels = std::iter::once(&self.label).chain(&self.accept);
        let judgment = if labels.any(|label| label.comparable() == found.comparable()) {
            Judgment::Right
        } else if requests.iter().all(|request| self.permits(request)) {
            Judgment::Harmless
        } else {
            Judgment::Harmful
        };
        (judgment, found.describe())
    }

    /// Returns whether the request does nothing that the text did not mean: it changes nothing, or it is a kind of
    /// change that a label names. A removal must also name the titles of the label.
    fn permits(&self, request: &Request) -> bool {
        let (intent, arguments) = request.intent();
        let mut labels = std::iter::once(&self.label).chain(&self.accept).flat_map(Label::parts);
        !request.acts()
            || labels.any(|label| {
                let is_same_removal = label.titles() == comparable(&arguments["titles"]);
                label.intent == intent && (!request.is_removal() || is_same_removal)
            })
    }
}

impl Label {
    fn from_requests(requests: &[Request]) -> Self {
        let label = |(intent, args): (&str, Value)| Self {
            intent: intent.to_owned(),
            args: args.as_object().cloned().unwrap_or_default(),
        };
        match requests {
            [] => label(("unknown", json!({}))),
            [only] => label(only.intent()),
            several => {
                let parts = several.iter().map(|request| {
                    let (intent, args) = request.intent();
                    json!({ "intent": intent, "args": args })
                });
                label(("compound", json!({ "parts": parts.collect::<Vec<Value>>() })))
            }
        }
    }

    /// Returns the label itself, or the parts of a compound.
    fn parts(&self) -> Vec<Self> {
        let parts = self.args.get("parts").and_then(Value::as_array);
        let parsed = parts.map(|parts| {
            // A part that is no label permits nothing.
            parts.iter().filter_map(|part| serde_json::from_value(part.clone()).ok()).collect()
        });
        parsed.unwrap_or_else(|| vec![self.clone()])
    }

    fn titles(&self) -> Value {
        self.args.get("titles").map(comparable).unwrap_or_default()
    }

    fn comparable(&self) -> (&str, Value) {
        (&self.intent, comparable(&Value::Object(self.args.clone())))
    }

    fn describe(&self) -> String {
        format!("{} {}", self.intent, Value::Object(self.args.clone()))
    }
}

/// Returns the form in which arguments are compared: titles without case, accents, punctuation and article. A genre is a
/// mood, and the first season is season 1.
fn comparable(value: &Value) -> Value {
    match value {
        Value::String(text) => json!(strip_article(&normalize_title(text))),
        Value::Array(items) if *items == [json!(1)] => json!("first"),
        Value::Array(items) => items.iter().map(comparable).collect(),
        Value::Object(fields) => fields
            .iter()
            .map(|(key, value)| {
                let key = if key == "genre" { "mood" } else { key };
                (key.to_owned(), comparable(value))
            })
            .collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, intent: &str, args: &Value, expected: Judgment) {
        let phrase: LabeledPhrase =
            serde_json::from_value(json!({ "text": text, "intent": intent, "args": args })).unwrap();
        assert_eq!(phrase.judge().0, expected, "{text:?}");
    }

    #[test]
    fn action_that_was_not_meant_is_harmful() {
        check("delete heat", "remove", &json!({ "titles": ["Heat"] }), Judgment::Right);
        check("delete heat", "unknown", &json!({}), Judgment::Harmful);
        check("delete heat", "remove", &json!({ "titles": ["ronin"] }), Judgment::Harmful);
        check("add heat", "have", &json!({ "title": "heat" }), Judgment::Harmful);
        check("do we have heat", "search", &json!({ "title": "heat" }), Judgment::Harmless);
        check("delete it", "unknown", &json!({}), Judgment::Harmless);
    }

    #[test]
    fn accepted_readings_and_other_spellings_are_right() {
        let accept = json!([{ "intent": "have", "args": { "title": "The Matrix" } }]);
        let phrase =
            json!({ "text": "do we have matrix?", "intent": "unknown", "args": {}, "accept": accept });
        let phrase: LabeledPhrase = serde_json::from_value(phrase).unwrap();
        assert_eq!(phrase.judge().0, Judgment::Right);
    }
}
