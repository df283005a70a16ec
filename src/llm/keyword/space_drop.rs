//! Titles that a user drops by their numbers in the last list of `my_space`.

use serde::Deserialize;

use super::found_title::FoundTitle;
use super::past_calls::past_results;
use crate::conversation::model_request::EncodedMessage;

const NO_SPACE_LIST_REPLY: &str = "Text MY SPACE first, and then DROP and a number. To delete a title by its name, text REMOVE and the name.";

/// Titles that numbers stand for.
#[derive(Debug)]
pub(super) enum DroppedTitles {
    Chosen(Vec<FoundTitle>),
    /// Question to the user, because a number stands for no title.
    Unclear(String),
}

/// Title of the list, with its number.
#[derive(Debug, Deserialize)]
struct NumberedTitle {
    number: usize,
    #[serde(flatten)]
    title: FoundTitle,
}

/// Returns the titles with these numbers in the last list of `my_space`. After a search, its numbers are those of
/// another list.
pub(super) fn choose_dropped_titles(earlier: &[EncodedMessage], numbers: &[u8]) -> DroppedTitles {
    let lists = ["my_space", "search_media", "find_in_library"];
    let last_list = past_results(earlier).rfind(|result| lists.contains(&result.name));
    let content = last_list.filter(|list| list.name == "my_space").map(|list| list.content);
    let listed = content.and_then(parse_numbered).filter(|listed| !listed.is_empty());
    let Some(listed) = listed else { return DroppedTitles::Unclear(NO_SPACE_LIST_REPLY.to_owned()) };
    let find = |number: &u8| listed.iter().find(|title| title.number == usize::from(*number));
    let chosen: Option<Vec<FoundTitle>> =
        numbers.iter().map(|number| find(number).map(|title| title.title.clone())).collect();
    chosen.map_or_else(|| DroppedTitles::Unclear(format_question(&listed)), DroppedTitles::Chosen)
}

fn parse_numbered(content: &str) -> Option<Vec<NumberedTitle>> {
    #[derive(Deserialize)]
    struct SpaceResults {
        results: Vec<NumberedTitle>,
    }
    // A result that cannot be parsed is treated as an error of the tool: there is no list.
    serde_json::from_str::<SpaceResults>(content).map(|parsed| parsed.results).ok()
}

fn format_question(listed: &[NumberedTitle]) -> String {
    let titles = listed.iter().map(|title| format!("{}. {}", title.number, title.title.label()));
    format!("Which one? Text DROP and its number.\n{}", titles.collect::<Vec<_>>().join("\n"))
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, Value, json};

    use super::*;
    use crate::conversation::model_request::{ModelMessage, PromptCall};
    use crate::conversation::transcript::CallId;

    fn list() -> Value {
        json!({ "results": [
            { "number": 1, "type": "series", "id": 4, "instance": "sonarr", "title": "Dark", "year": 2017 },
            { "number": 2, "type": "movie", "id": 8, "instance": "radarr", "title": "Heat", "year": 1995 },
        ] })
    }

    /// Builds the messages of a call and its result.
    fn called(name: &str, content: &Value) -> Vec<EncodedMessage> {
        let id = CallId::from_stored(name);
        let call = PromptCall { id: id.clone(), name: name.to_owned(), arguments: Map::new() };
        vec![
            ModelMessage::Assistant { text: String::new(), calls: vec![call] }.into(),
            ModelMessage::ToolResult { call: id, content: content.to_string(), summary: None }.into(),
        ]
    }

    #[track_caller]
    fn check(earlier: &[EncodedMessage], numbers: &[u8], expected: &str) {
        let found = match choose_dropped_titles(earlier, numbers) {
            DroppedTitles::Chosen(titles) => {
                titles.iter().map(FoundTitle::label).collect::<Vec<_>>().join(", ")
            }
            DroppedTitles::Unclear(question) => question,
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn numbers_stand_for_the_titles_of_the_last_list() {
        let earlier = called("my_space", &list());
        check(&earlier, &[2], "Heat (1995)");
        check(&earlier, &[2, 1], "Heat (1995), Dark (2017)");
    }

    #[test]
    fn number_outside_the_list_asks_which_title_is_meant() {
        let question = "Which one? Text DROP and its number.\n1. Dark (2017)\n2. Heat (1995)";
        check(&called("my_space", &list()), &[1, 3], question);
    }

    #[test]
    fn numbers_without_a_list_drop_nothing() {
        check(&[], &[1], NO_SPACE_LIST_REPLY);
        check(&called("my_space", &json!({ "results": [] })), &[1], NO_SPACE_LIST_REPLY);
        check(&called("my_space", &json!({ "error": "radarr_unreachable" })), &[1], NO_SPACE_LIST_REPLY);
        let searched = [called("my_space", &list()), called("search_media", &list())].concat();
        check(&searched, &[1], NO_SPACE_LIST_REPLY);
    }
}
