//! Repeated search for a movie in the library.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::get_more_results::SearchStatus;
use super::read_back::{output_with_count, read_back};
use crate::arr::Movie;
use crate::arr::changes::MovieChange;
use crate::arr::radarr::Radarr;
use crate::conversation::transcript::CallResult;
use crate::seerr::Seerr;
use crate::tools::add_movie::record_movie_request;
use crate::tools::addition::ONE_MOVIE;
use crate::tools::approval;
use crate::tools::formatting::{clean_title, format_media_title};
use crate::tools::library::{Instance, unknown_title};
use crate::tools::seerr::SeerrChoices;
use crate::tools::seerr::movies::{recover_movie, request_movie};
use crate::tools::{RecoveryOutcome, ToolContext, ToolError, ToolOutput};

/// A search younger than this is assumed to be that of the interrupted call, so it is not repeated.
const RECENT_SEARCH_AGE: SignedDuration = SignedDuration::from_mins(10);
const MONITOR_CHANGE: MovieChange = MovieChange { monitored: Some(true), profile: None, availability: None };

/// Searches for a movie again. An unmonitored movie without a file is monitored from now on, which counts as an addition.
pub async fn search_again(
    instance: &Instance<Radarr>,
    id: i64,
    context: &ToolContext,
    requests: Option<&Seerr>,
) -> Result<ToolOutput, ToolError> {
    let mut movie = fetch_shown_movie(instance, id).await?;
    let count = (!movie.monitored && !movie.has_file).then_some(ONE_MOVIE);
    if let (Some(seerr), Some(_)) = (requests, count) {
        return request_movie(seerr, (instance, &movie), SeerrChoices::of_instance(instance.four_k), context)
            .await;
    }
    if let Some(count) = count {
        approval::check_quota(context, count)?;
        movie = write_movie(instance, id, MONITOR_CHANGE, |after| after.monitored).await?;
    }
    let search = match instance.client.search_movie(id).await {
        Ok(()) => SearchStatus::Started,
        Err(error) if count.is_none() => return Err(instance.write_error(&error)),
        Err(error) => {
            tracing::warn!(instance = instance.name, id, %error, "failed to start a search");
            SearchStatus::NotStarted
        }
    };
    let output = output_with_count(search_result(instance, &movie, search), count);
    Ok(if movie.has_file { output } else { record_movie_request(output, instance, &movie) })
}

/// Determines the outcome of an interrupted search. Whether the movie was monitored before is no longer known, so the
/// search does not count towards the quota.
pub async fn recover_search(
    instance: &Instance<Radarr>,
    id: i64,
    context: &ToolContext,
    requests: Option<&Seerr>,
) -> Result<RecoveryOutcome, ToolError> {
    Ok(match instance.client.fetch_movie(id).await {
        Ok(Some(movie)) if let (Some(seerr), false) = (requests, movie.monitored || movie.has_file) => {
            recover_movie(seerr, (instance, &movie), SeerrChoices::of_instance(instance.four_k), context)
                .await
        }
        Ok(Some(movie)) if searched_recently(&movie, context.now) => {
            RecoveryOutcome::Done(search_result(instance, &movie, SearchStatus::Started).into())
        }
        Ok(_) => RecoveryOutcome::NotDone,
        Err(error) => {
            tracing::warn!(instance = instance.name, id, %error, "failed to check a search");
            RecoveryOutcome::Unknown
        }
    })
}

fn searched_recently(movie: &Movie, now: Timestamp) -> bool {
    let is_searchable = movie.monitored || movie.has_file;
    is_searchable && is_recent_search(movie.last_search, now)
}

pub(super) fn is_recent_search(search: Option<Timestamp>, now: Timestamp) -> bool {
    search.is_some_and(|at| now.duration_since(at) <= RECENT_SEARCH_AGE)
}

fn search_result(instance: &Instance<Radarr>, movie: &Movie, search: SearchStatus) -> CallResult {
    let name = format_media_title(&movie.title, movie.year);
    let for_user = match search {
        SearchStatus::Started if movie.has_file => format!("Looking for a better copy of {name} now."),
        SearchStatus::Started if !movie.available => {
            format!("Looking for {name} now. It is not out yet, so there may be nothing to find.")
        }
        SearchStatus::Started => format!("Looking for {name} now."),
        SearchStatus::NotStarted | SearchStatus::NothingReleased => format!(
            "{name} will be fetched from now on, but {} did not start the search.",
            instance.display_name()
        ),
    };
    let for_model = movie_status_json(movie, search.status_code());
    CallResult { for_model, for_user, shown: instance.shown_ids(movie) }
}

pub(super) fn movie_status_json(movie: &Movie, status: &str) -> Value {
    json!({ "status": status, "type": "movie", "title": clean_title(&movie.title), "year": movie.year,
        "on_disk": movie.has_file, "looked_for": movie.monitored && !movie.has_file, "released": movie.available })
}

/// Fetches a movie that an earlier result has shown.
pub(super) async fn fetch_shown_movie(instance: &Instance<Radarr>, id: i64) -> Result<Movie, ToolError> {
    let movie = instance.client.fetch_movie(id).await.map_err(|error| instance.request_error(&error))?;
    movie.ok_or_else(|| unknown_title(id).into())
}

/// Changes a movie and returns it after reading it back.
pub(super) async fn write_movie(
    instance: &Instance<Radarr>,
    id: i64,
    change: MovieChange,
    is_reached: impl FnOnce(&Movie) -> bool,
) -> Result<Movie, ToolError> {
    let written = instance.client.edit_movie(id, change).await.map_err(|error| instance.write_error(&error));
    read_back(instance, id, written, instance.client.fetch_movie(id), is_reached).await
}
