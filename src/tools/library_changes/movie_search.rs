//! Repeated search for a movie that is in the library.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::get_more_results::SearchStatus;
use super::read_back::{output_with_count, read_back};
use crate::arr::Movie;
use crate::arr::changes::MovieChange;
use crate::arr::radarr::Radarr;
use crate::conversation::transcript::CallResult;
use crate::tools::add_movie::record_movie_request;
use crate::tools::addition::ONE_MOVIE;
use crate::tools::approval;
use crate::tools::formatting::{clean_title, format_media_title};
use crate::tools::library::{Instance, unknown_title};
use crate::tools::{RecoveryOutcome, ToolContext, ToolError, ToolOutput};

/// Age below which a search counts as recent. A recent search is not repeated for a call whose response was lost.
const LATELY: SignedDuration = SignedDuration::from_mins(10);
const LOOKED_FOR: MovieChange = MovieChange { monitored: Some(true), profile: None, availability: None };

/// Searches for a movie again. A movie that was not monitored is monitored from now on, which counts as an addition.
pub async fn search_again(
    instance: &Instance<Radarr>,
    id: i64,
    context: &ToolContext,
) -> Result<ToolOutput, ToolError> {
    let mut held = fetch_shown_movie(instance, id).await?;
    let count = (!held.monitored && !held.has_file).then_some(ONE_MOVIE);
    if let Some(count) = count {
        approval::check_quota(context, count)?;
        held = write_movie(instance, id, LOOKED_FOR, |after| after.monitored).await?;
    }
    let search = match instance.client.search_movie(id).await {
        Ok(()) => SearchStatus::Started,
        Err(error) if count.is_none() => return Err(instance.write_error(&error)),
        Err(error) => {
            tracing::warn!(instance = instance.name, id, %error, "failed to start a search");
            SearchStatus::NotStarted
        }
    };
    let ran = output_with_count(search_result(instance, &held, search), count);
    Ok(if held.has_file { ran } else { record_movie_request(ran, instance, &held) })
}

/// Determines the outcome of an interrupted search. The earlier monitoring state is no longer known, so the search does
/// not count towards the quota.
pub async fn recover_search(
    instance: &Instance<Radarr>,
    id: i64,
    context: &ToolContext,
) -> Result<RecoveryOutcome, ToolError> {
    Ok(match instance.client.fetch_movie(id).await {
        Ok(Some(held)) if searched_recently(&held, context.now) => {
            RecoveryOutcome::Done(search_result(instance, &held, SearchStatus::Started).into())
        }
        Ok(_) => RecoveryOutcome::NotDone,
        Err(error) => {
            tracing::warn!(instance = instance.name, id, %error, "failed to check a search");
            RecoveryOutcome::Unknown
        }
    })
}

fn searched_recently(held: &Movie, now: Timestamp) -> bool {
    let wanted = held.monitored || held.has_file;
    wanted && is_recent(held.last_search, now)
}

pub(super) fn is_recent(search: Option<Timestamp>, now: Timestamp) -> bool {
    search.is_some_and(|at| now.duration_since(at) <= LATELY)
}

fn search_result(instance: &Instance<Radarr>, held: &Movie, search: SearchStatus) -> CallResult {
    let name = format_media_title(&held.title, held.year);
    let for_user = match search {
        SearchStatus::Started if held.has_file => format!("Looking for a better copy of {name} now."),
        SearchStatus::Started if !held.available => {
            format!("Looking for {name} now. It is not out yet, so there may be nothing to find.")
        }
        SearchStatus::Started => format!("Looking for {name} now."),
        SearchStatus::NotStarted | SearchStatus::NothingReleased => format!(
            "{name} will be fetched from now on, but {} did not begin to look at once.",
            instance.display_name()
        ),
    };
    let for_model = movie_status_json(held, search.status_code());
    CallResult { for_model, for_user, shown: instance.shown_ids(held) }
}

pub(super) fn movie_status_json(held: &Movie, status: &str) -> Value {
    json!({ "status": status, "type": "movie", "title": clean_title(&held.title), "year": held.year,
        "on_disk": held.has_file, "looked_for": held.monitored && !held.has_file, "released": held.available })
}

/// Fetches a movie that an earlier result has shown.
pub(super) async fn fetch_shown_movie(instance: &Instance<Radarr>, id: i64) -> Result<Movie, ToolError> {
    let held = instance.client.fetch_movie(id).await.map_err(|error| instance.request_error(&error))?;
    held.ok_or_else(|| unknown_title(id).into())
}

/// Changes a movie and returns it as it is afterwards.
pub(super) async fn write_movie(
    instance: &Instance<Radarr>,
    id: i64,
    change: MovieChange,
    is_reached: impl FnOnce(&Movie) -> bool,
) -> Result<Movie, ToolError> {
    let written = instance.client.edit_movie(id, change).await.map_err(|error| instance.write_error(&error));
    read_back(instance, id, written, instance.client.fetch_movie(id), is_reached).await
}
