//! Answer to our question of which seasons of a series to add.

use serde_json::{Map, Value};

use super::arguments::more_arguments;
use super::past_calls::{PastResult, last_turn, past_results};
use crate::conversation::grammar::requests::seasons::parse_season_answer;
use crate::conversation::model_request::EncodedMessage;

/// Returns the call that was refused because no seasons were named, with those of the user's line, if our last message
/// asked for them.
pub(super) fn answered_call(
    earlier: &[EncodedMessage],
    line: &str,
) -> Option<(&'static str, Map<String, Value>)> {
    let mut questions = past_results(last_turn(earlier)).filter(asks_for_seasons);
    // Between two series, the answer would be ambiguous.
    let (Some(refused), None) = (questions.next(), questions.next()) else { return None };
    let seasons = parse_season_answer(line)?;
    let mut arguments = refused.arguments.clone();
    match refused.name {
        "add_series" => {
            arguments.insert("seasons".to_owned(), seasons.to_json());
            Some(("add_series", arguments))
        }
        "get_more" => Some(("get_more", more_arguments(arguments, &seasons))),
        _ => None,
    }
}

fn asks_for_seasons(result: &PastResult<'_>) -> bool {
    serde_json::from_str(result.content).is_ok_and(|content: Map<String, Value>| {
        content.get("error").is_some_and(|code| code == "which_seasons")
    })
}
