//! What a scripted model says.

use dialarr::conversation::transcript::Arguments;
use dialarr::llm::scripted::Line;
use serde_json::{Value, json};

pub(crate) fn says(text: &str) -> Line {
    Line::Says(text.to_owned())
}

pub(crate) fn calls(tool: &str, arguments: Value) -> Line {
    Line::Calls(vec![(tool.to_owned(), Arguments::parse(arguments))])
}

/// The two steps in which a model asks for a movie's deletion.
pub(crate) fn removes_movie(title: &str, id: i64) -> [Line; 2] {
    let items = json!({ "items": [{ "type": "movie", "id": id }], "delete_files": true });
    [calls("find_in_library", json!({ "query": title })), calls("remove_media", items)]
}
