//! Requesters of a title in tool results, and the offer to notify the user as well.

use serde_json::{Value, json};

use super::ToolContext;
use crate::conversation::title_requests::{self, RequestedTitle, Requester, TitleRequest};
use crate::conversation::transcript::{CallResult, MediaKind, MediaRef};

/// Adds the requesters of the title to a result about one title.
pub(super) fn add_requesters(result: &mut CallResult, requested: &RequestedTitle, context: &ToolContext) {
    let requests = context.requests_for_title(&requested.instance, requested.kind, requested.catalog_id);
    let texts = (
        title_requests::format_requesters(&requests, &context.zone),
        title_requests::format_requesters_sentence(&requests, &context.zone),
    );
    if let (Some(names), Some(sentence)) = texts {
        result.for_model["asked_by"] = json!(names);
        result.for_user = format!("{} {sentence}", result.for_user);
    }
}

/// Offers a notification to a user who has not requested a title that is monitored but not ready.
pub(super) fn offer_notification(result: &mut CallResult, requested: &RequestedTitle, context: &ToolContext) {
    let requests = context.requests_for_title(&requested.instance, requested.kind, requested.catalog_id);
    if requests.iter().all(|request| request.requester != Requester::You) {
        result.for_model["hint"] = json!("offer to tell them when it is ready: tell_me_when_ready");
        result.for_user =
            format!("{} Text TELL ME and I will let you know when it is ready.", result.for_user);
    }
}

/// Returns the requesters of the content of a download, by its name, such as `Dune (2021)` or `Dark S01E02`.
pub(super) fn download_requesters(name: &str, context: &ToolContext) -> Option<String> {
    let is_content = |request: &&TitleRequest| {
        let RequestedTitle { kind, title, .. } = &request.wanted;
        match kind {
            MediaKind::Movie => request.wanted.format_name() == name,
            MediaKind::Series => {
                let rest = name.strip_prefix(title.as_str()).filter(|_| !title.is_empty());
                rest.is_some_and(|rest| rest.starts_with(" S") || rest.starts_with(" season "))
            }
        }
    };
    let requests: Vec<&TitleRequest> = context.title_requests.iter().filter(is_content).collect();
    title_requests::format_requesters(&requests, &context.zone)
}

/// Adds the requesters to each title of a list. The shown ids of a title in the library are its catalog id followed by
/// its library id.
pub(super) fn add_requesters_to_list(mut result: CallResult, context: &ToolContext) -> CallResult {
    let Some(Value::Array(entries)) = result.for_model.get_mut("results") else { return result };
    for pair in result.shown.windows(2) {
        let [catalog, MediaRef::Item { instance, kind, id }] = pair else { continue };
        let catalog_id = match (catalog, kind) {
            (MediaRef::Tmdb(tmdb), MediaKind::Movie) => *tmdb,
            (MediaRef::Tvdb(tvdb), MediaKind::Series) => *tvdb,
            _ => continue,
        };
        let requests = context.requests_for_title(instance, *kind, catalog_id);
        let Some(names) = title_requests::format_requesters(&requests, &context.zone) else { continue };
        let (id, instance) = (json!(id), json!(instance));
        let entry = entries
            .iter_mut()
            .find(|entry| entry["id"] == id && entry["instance"] == instance && entry["type"] == json!(kind));
        if let Some(entry) = entry {
            entry["asked_by"] = json!(names);
        }
    }
    result
}
