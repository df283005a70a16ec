//! Choice between the grammar and the model as the reader of a request in everyday words.

use crate::conversation::grammar::requests::parser::parse_line;
use crate::conversation::grammar::requests::request::Request;
use crate::conversation::grammar::title_reference::TitleReference;
use crate::conversation::text::normalization::normalize_title;
use crate::conversation::transcript::MediaKind;

/// Reader of the requests in everyday words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestReader {
    Model,
    /// The model, except for questions that the grammar is sure of.
    GrammarIfSure,
    /// The grammar, because no model responds.
    Grammar,
}

impl RequestReader {
    /// Returns the only request of the text, if the grammar is its reader.
    pub fn read_request(self, text: &str) -> Option<Request> {
        if self == Self::Model || text.trim().contains('\n') {
            return None;
        }
        let parsed = parse_line(text);
        let [request] = parsed.requests.as_slice() else { return None };
        let is_read = !parsed.is_known_title && (self == Self::Grammar || is_sure_question(request, text));
        is_read.then(|| request.clone())
    }
}

/// Words with which a message refers to the conversation.
const REFERRING_WORDS: [&str; 8] = ["it", "its", "that", "this", "them", "they", "those", "there"];

/// Returns whether the request only reads and stands alone, so that the grammar can answer it as well as a model.
fn is_sure_question(request: &Request, text: &str) -> bool {
    let text = normalize_title(text);
    let refers = text.split(' ').any(|word| REFERRING_WORDS.contains(&word));
    request.only_reads() && !matches!(request, Request::Search(_) | Request::Recommend(_)) && !refers
}

/// Returns whether the text repeats the removal that a prompt asks about, in words that do not count as a yes: "delete
/// the movie".
pub fn repeats_removal(text: &str, kind: Option<MediaKind>) -> bool {
    match parse_line(text).requests.as_slice() {
        [Request::RemovePronoun(phrase)] => match phrase.reference {
            Some(TitleReference::OneOf(named)) => kind == Some(named),
            Some(TitleReference::One | TitleReference::Several) | None => true,
        },
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_sure_questions_skip_the_model() {
        let reads = |text: &str| RequestReader::GrammarIfSure.read_request(text).is_some();
        for text in [
            "whats downloading",
            "do we have heat?",
            "when is severance back",
            "disk space",
            "what can you do",
        ] {
            assert!(reads(text), "{text:?}");
        }
        for text in [
            "is it done yet",
            "add heat",
            "delete heat",
            "heat",
            "recommend a movie",
            "get out",
            "thanks",
            "do we have heat\nadd dune",
            "is heat done and add dune",
        ] {
            assert!(!reads(text), "{text:?}");
        }
        assert_eq!(RequestReader::Model.read_request("whats downloading"), None);
        assert!(RequestReader::Grammar.read_request("add heat").is_some());
    }
}
