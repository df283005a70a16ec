//! Watch states of one title, in the answer about the title.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::{ViewerTitles, check_private, load_titles};
use crate::conversation::catalog_ids::CatalogIds;
use crate::conversation::routing::rooms::Audience;
use crate::conversation::transcript::{CallFailure, CallResult, MediaKind};
use crate::media_servers::WatchState;
use crate::tools::library::ArrInstances;
use crate::tools::media_details::format_date;
use crate::tools::{ToolContext, ToolEffect, ToolOutput};

/// Loads the watch states that an answer may mention: those of the person that `by` names, or of everybody whose states
/// the user may read.
pub(in crate::tools) async fn load_known(
    by: Option<&str>,
    library: &ArrInstances,
    context: &ToolContext,
) -> Result<Vec<ViewerTitles>, CallFailure> {
    let viewers = match (by, context.audience) {
        (None, Audience::Room | Audience::Agent) => return Ok(Vec::new()),
        (Some(_), _) if library.media_servers.is_empty() => return Ok(Vec::new()),
        (None, Audience::Author) => context.viewers.known(),
        (Some(_), _) => {
            check_private(context)?;
            context.viewers.choose(by, library)?
        }
    };
    Ok(load_titles(&viewers, library, context).await)
}

/// Adds what is known of the watching of a title to an answer about it.
pub(in crate::tools) fn add_title_states(
    mut result: CallResult,
    (kind, ids): (MediaKind, CatalogIds),
    viewers: Result<Vec<ViewerTitles>, CallFailure>,
    context: &ToolContext,
) -> ToolOutput {
    let viewers = match viewers {
        Ok(viewers) if viewers.is_empty() => return result.into(),
        Ok(viewers) => viewers,
        Err(failure) => {
            if let Some(sentence) = failure.for_user {
                result.for_user = format!("{} {sentence}", result.for_user);
            }
            result.for_model["watched"] = failure.for_model;
            return result.into();
        }
    };
    let mut states = Map::new();
    for ViewerTitles { name, watched } in &viewers {
        let state = watched.state(kind, &ids);
        if let Some(sentence) = format_sentence(name.as_deref(), kind, state, context) {
            result.for_user = format!("{} {sentence}", result.for_user);
        }
        let key = name.clone().unwrap_or_else(|| "you".to_owned());
        states.insert(key, json!(format_state(kind, state, context)));
    }
    result.for_model["watched"] = Value::Object(states);
    ToolOutput::with_effect(result, ToolEffect::MentionViewing)
}

/// Formats a state for the model, such as `finished on Nov 12, 2026`.
pub(super) fn format_state(kind: MediaKind, state: WatchState, context: &ToolContext) -> String {
    let on =
        |at: Option<Timestamp>| at.map(|at| format!(" on {}", format_day(at, context))).unwrap_or_default();
    match (state, kind) {
        (WatchState::Finished { at }, _) => format!("finished{}", on(at)),
        (WatchState::Started { percent: Some(percent), at }, MediaKind::Movie) => {
            format!("stopped at {percent}%{}", on(at))
        }
        (WatchState::Started { percent: Some(percent), at }, MediaKind::Series) => {
            format!("{percent}% of the episodes, last{}", on(at)).trim_end_matches(", last").to_owned()
        }
        (WatchState::Started { percent: None, at }, _) => format!("started{}", on(at)),
        (WatchState::Never, _) => "not started".to_owned(),
        (WatchState::NoFinishedPlay, _) => "no finished play known".to_owned(),
        (WatchState::Unknown, _) => "unknown".to_owned(),
    }
}

/// Formats a state as a sentence to the user; `None` if it is unknown.
fn format_sentence(
    name: Option<&str>,
    kind: MediaKind,
    state: WatchState,
    context: &ToolContext,
) -> Option<String> {
    let who = name.unwrap_or("You");
    let have = if name.is_some() { "has" } else { "have" };
    let on =
        |at: Option<Timestamp>| at.map(|at| format!(" on {}", format_day(at, context))).unwrap_or_default();
    Some(match (state, kind) {
        (WatchState::Finished { at }, MediaKind::Movie) => format!("{who} finished it{}.", on(at)),
        (WatchState::Finished { .. }, MediaKind::Series) => {
            format!("{who} {have} seen all episodes that are there.")
        }
        (WatchState::Started { percent: Some(percent), at }, MediaKind::Movie) => {
            format!("{who} stopped at {percent}%{}.", on(at))
        }
        (WatchState::Started { percent: Some(percent), .. }, MediaKind::Series) => {
            format!("{who} {have} seen {percent}% of the episodes that are there.")
        }
        (WatchState::Started { percent: None, at }, _) => format!("{who} started it{}.", on(at)),
        (WatchState::Never, _) => format!("{who} {have} not started it."),
        (WatchState::NoFinishedPlay, _) => {
            format!("I have no record that {} finished it.", name.unwrap_or("you"))
        }
        (WatchState::Unknown, _) => return None,
    })
}

pub(super) fn format_day(at: Timestamp, context: &ToolContext) -> String {
    format_date(at.to_zoned(context.zone.clone()).date())
}
