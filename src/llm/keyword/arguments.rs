//! Tool calls of the keyword responder: the tool of each request, and its arguments.

use serde_json::{Map, Value, json};

use super::found_title::{FoundTitle, json_object};
use crate::conversation::grammar::requests::description::{Description, genre_of};
use crate::conversation::grammar::requests::period::Period;
use crate::conversation::grammar::requests::recommendation::Recommendation;
use crate::conversation::grammar::requests::request::{Request, tonight_arguments};
use crate::conversation::grammar::requests::seasons::RequestedSeasons;
use crate::conversation::grammar::requests::title_phrase::TitlePhrase;
use crate::conversation::transcript::{MediaKind, ToolSpec};
use crate::conversation::votes::tonight::TONIGHT;

type Call = (&'static str, Map<String, Value>);

/// Returns the search for the title of a request: in the catalog to add it, in the library for anything else.
pub(super) fn search_call(request: &Request, phrase: &TitlePhrase) -> Call {
    let name = match request {
        Request::Add(_) | Request::Search(_) => "search_media",
        _ => "find_in_library",
    };
    let mut arguments = json_object([("query", json!(phrase.query()))]);
    if let Some(kind) = phrase.kind {
        arguments.insert("type".to_owned(), json!(kind));
    }
    (name, arguments)
}

/// Returns the arguments that ask the parents for a title which the search did not show.
pub(super) fn ask_parents_arguments(phrase: &TitlePhrase) -> Map<String, Value> {
    let mut arguments = json_object([("title", json!(phrase.query()))]);
    if let Some(kind) = phrase.kind {
        arguments.insert("type".to_owned(), json!(kind));
    }
    if let Some(RequestedSeasons::Listed(seasons)) = &phrase.seasons {
        arguments.insert("seasons".to_owned(), json!(seasons));
    }
    arguments
}

/// Returns the call for a request that names no title.
pub(super) fn call_without_title(request: &Request, tools: &[ToolSpec]) -> Option<Call> {
    Some(match request {
        Request::Status(None) => ("check_status", Map::new()),
        Request::Upcoming { title: None, period } => {
            ("upcoming", json_object([("days", json!(period_days(*period)))]))
        }
        Request::Recent(period) => ("recently_added", json_object([("days", json!(period_days(*period)))])),
        Request::Space => ("server_status", Map::new()),
        Request::OwnSpace => ("my_space", Map::new()),
        Request::MakeRoom(step) => ("make_room", json_object([("step", json!(step))])),
        Request::Missing(None) => ("find_in_library", json_object([("only", json!("missing"))])),
        Request::Recommend(recommendation) => ("recommend", recommendation_arguments(recommendation, tools)),
        Request::RecentlyWatched { by } => ("recently_watched", optional_argument("by", by.as_deref())),
        Request::WatchedTitles(titles) => ("find_in_library", titles.arguments()),
        Request::Tonight { people, minutes, kind } => (TONIGHT, tonight_arguments(people, *minutes, *kind)),
        Request::LinkAccount { name, is_seerr } => {
            ("link_account", with_seerr(optional_argument("name", name.as_deref()), *is_seerr))
        }
        Request::UnlinkAccount { is_seerr } => {
            ("link_account", with_seerr(json_object([("unlink", json!(true))]), *is_seerr))
        }
        Request::Forget(what) => ("forget", json_object([("what", json!(what))])),
        _ => return None,
    })
}

/// Returns the tool of a request about watching, and the argument without which it would answer something else.
pub(super) fn viewing_argument(request: &Request) -> Option<(&'static str, &'static str)> {
    match request {
        Request::WatchedTitles(_) => Some(("find_in_library", "watched")),
        Request::Recommend(Recommendation { in_library: true, .. }) => Some(("recommend", "in_library")),
        _ => None,
    }
}

/// Returns whether a tool of this name is offered with the argument.
pub(super) fn offers_argument(tools: &[ToolSpec], name: &str, argument: &str) -> bool {
    let tool = tools.iter().find(|tool| tool.name == name);
    let schema = tool.and_then(|tool| serde_json::from_str::<Value>(tool.parameters.text()).ok());
    schema.is_some_and(|schema| schema["properties"].get(argument).is_some())
}

fn optional_argument(name: &str, value: Option<&str>) -> Map<String, Value> {
    value.map(|value| (name.to_owned(), json!(value))).into_iter().collect()
}

/// Adds that a call is about the user's account at a Seerr.
fn with_seerr(mut arguments: Map<String, Value>, is_seerr: bool) -> Map<String, Value> {
    if is_seerr {
        arguments.insert("seerr".to_owned(), json!(true));
    }
    arguments
}

fn period_days(period: Option<Period>) -> u32 {
    match period {
        Some(Period::Today) => 1,
        Some(Period::Yesterday) => 2,
        Some(Period::Week) | None => 7,
        Some(Period::Month) => 30,
    }
}

/// Length of a short movie, in minutes.
const SHORT_MOVIE: u32 = 100;

fn recommendation_arguments(recommendation: &Recommendation, tools: &[ToolSpec]) -> Map<String, Value> {
    let mut arguments = recommendation.filters();
    let Some(text) = &recommendation.mood else { return arguments };
    let described = if recommendation.in_library || !offers_argument(tools, "recommend", "mood") {
        Description { genre: Some(genre_of(text).to_owned()), ..Description::default() }
    } else {
        Description::from_text(text)
    };
    arguments.extend(described.mood.map(|mood| ("mood".to_owned(), json!(mood.name()))));
    arguments.extend(described.genre.map(|genre| ("genre".to_owned(), json!(genre))));
    if described.is_short && recommendation.kind != Some(MediaKind::Series) {
        arguments.entry("max_minutes").or_insert_with(|| json!(SHORT_MOVIE));
    }
    arguments
}

/// Returns the call for a request about a title of the library.
pub(super) fn title_call(request: &Request, title: &FoundTitle) -> Option<Call> {
    match request {
        Request::Have(phrase) | Request::Details { title: phrase, .. } => {
            let mut arguments = title.library_reference()?;
            if let Request::Details { viewer: Some(viewer), .. } = request {
                arguments.insert("watched_by".to_owned(), json!(viewer));
            }
            if let Some(season) = season_of(phrase).filter(|_| title.is_series()) {
                arguments.insert("season".to_owned(), json!(season));
            }
            Some(("media_details", arguments))
        }
        Request::Upcoming { .. } => Some(("media_details", title.library_reference()?)),
        Request::Status(_) | Request::Why(_) | Request::Missing(_) => {
            Some(("why_missing", title.library_reference()?))
        }
        Request::Follow(phrase) => {
            let season = phrase.as_ref().and_then(season_of);
            Some(("tell_me_when_ready", follow_arguments(title, season, false)?))
        }
        Request::Unfollow(phrase) => {
            Some(("tell_me_when_ready", follow_arguments(title, season_of(phrase), true)?))
        }
        Request::RemovePronoun(_) | Request::Remove { .. } | Request::Drop(_) => {
            Some(("remove_media", removal_arguments(std::slice::from_ref(title), request)?))
        }
        _ => None,
    }
}

fn season_of(phrase: &TitlePhrase) -> Option<u32> {
    phrase.seasons.as_ref().and_then(RequestedSeasons::only)
}

fn follow_arguments(title: &FoundTitle, season: Option<u32>, stop: bool) -> Option<Map<String, Value>> {
    let mut arguments = title.library_reference().or_else(|| title.title_identifiers())?;
    if let Some(season) = season.filter(|_| title.is_series()) {
        arguments.insert("season".to_owned(), json!(season));
    }
    if stop {
        arguments.insert("stop".to_owned(), json!(true));
    }
    Some(arguments)
}

/// Returns the arguments that delete the titles, or the named seasons of a series. Returns `None` for a part that no
/// call deletes, such as an episode or the latest season, so that nothing more than the named part is deleted.
pub(super) fn removal_arguments(titles: &[FoundTitle], request: &Request) -> Option<Map<String, Value>> {
    let (phrases, keep_files): (&[TitlePhrase], bool) = match request {
        Request::Remove { titles, keep_files } => (titles, *keep_files),
        _ => (&[], false),
    };
    let mut items = Vec::new();
    for (index, title) in titles.iter().enumerate() {
        let reference = title.library_reference()?;
        match phrases.get(index).map(|phrase| (&phrase.seasons, phrase.episode)) {
            Some((_, Some(_))) | Some((Some(RequestedSeasons::Latest), _)) => return None,
            Some((Some(seasons @ (RequestedSeasons::First | RequestedSeasons::Listed(_))), None)) => {
                if !title.is_series() {
                    return None;
                }
                items.extend(seasons.numbers().into_iter().map(|season| {
                    let mut item = reference.clone();
                    item.insert("season".to_owned(), json!(season));
                    Value::Object(item)
                }));
            }
            Some((Some(RequestedSeasons::All) | None, None)) | None => items.push(Value::Object(reference)),
        }
    }
    Some(json_object([("items", json!(items)), ("delete_files", json!(!keep_files))]))
}

/// Returns the call that adds the title.
pub(super) fn addition_call(title: &FoundTitle, phrase: &TitlePhrase) -> Option<Call> {
    let (key, id) = title.catalog_id()?;
    let mut arguments = json_object([(key, json!(id))]);
    if phrase.four_k {
        arguments.insert("quality".to_owned(), json!("4K"));
    }
    if !title.is_series() {
        return Some(("add_movie", arguments));
    }
    if let Some(seasons) = &phrase.seasons {
        arguments.insert("seasons".to_owned(), seasons.to_json());
    }
    Some(("add_series", arguments))
}

/// Returns the arguments that get more of a series in the library.
pub(super) fn more_arguments(
    mut reference: Map<String, Value>,
    seasons: &RequestedSeasons,
) -> Map<String, Value> {
    let selectors = match seasons {
        RequestedSeasons::All => vec!["all".to_owned()],
        RequestedSeasons::First => vec!["first".to_owned()],
        RequestedSeasons::Latest => vec!["latest".to_owned()],
        RequestedSeasons::Listed(numbers) => numbers.iter().map(u32::to_string).collect(),
    };
    reference.insert("seasons".to_owned(), json!(selectors));
    reference
}

/// Returns the request without seasons that turned out to be a part of the title.
pub(super) fn without_description(request: &Request) -> Request {
    match request {
        Request::Add(phrase) => Request::Add(TitlePhrase { seasons: None, ..phrase.clone() }),
        other => other.clone(),
    }
}
