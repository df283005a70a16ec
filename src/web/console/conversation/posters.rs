//! Posters of the titles that a turn was about: those that it added, showed or was asked to delete.

use serde_json::Value;

use crate::conversation::transcript::{MediaRef, ToolArguments};
use crate::store::conversation::record::steps::ToolCallRecord;
use crate::store::skip_unreadable;
use crate::web::posters::poster_path;

/// Maximum number of titles of a result whose posters are shown. A longer list is only an overview.
const MAX_RESULT_TITLES: usize = 3;
/// Maximum number of posters of a turn.
const MAX_POSTERS: usize = 4;

/// Returns the paths of the posters of a turn, without duplicates.
pub(super) fn poster_paths<'a>(calls: impl Iterator<Item = &'a ToolCallRecord>) -> Vec<String> {
    let mut paths: Vec<String> = Vec::new();
    for (instance, id) in calls.flat_map(call_titles) {
        let path = poster_path(&instance, id);
        if paths.len() < MAX_POSTERS && !paths.contains(&path) {
            paths.push(path);
        }
    }
    paths
}

/// Returns the titles of a call, by instance and id. A call that cannot be parsed has none.
fn call_titles(call: &ToolCallRecord) -> Vec<(String, i64)> {
    let shown = skip_unreadable(call.result()).flatten().map(|result| result.shown).unwrap_or_default();
    let mut titles: Vec<(String, i64)> = shown.into_iter().filter_map(library_title).collect();
    if titles.len() > MAX_RESULT_TITLES {
        titles.clear();
    }
    if let Some(ToolArguments::Object(arguments)) = skip_unreadable(call.arguments()) {
        let items = arguments.get("items").and_then(Value::as_array);
        titles.extend(items.into_iter().flatten().filter_map(deletion_title));
    }
    titles
}

fn library_title(shown: MediaRef) -> Option<(String, i64)> {
    match shown {
        MediaRef::Item { instance, id, .. } => Some((instance, id)),
        MediaRef::Tmdb(_) | MediaRef::Tvdb(_) | MediaRef::Download { .. } => None,
    }
}

/// Returns the title of an item that a call deletes. An item without an instance is in the only one of its kind.
fn deletion_title(item: &Value) -> Option<(String, i64)> {
    let default = match item["type"].as_str()? {
        "movie" => "radarr",
        "series" => "sonarr",
        _ => return None,
    };
    Some((item["instance"].as_str().unwrap_or(default).to_owned(), item["id"].as_i64()?))
}
