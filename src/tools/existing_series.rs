//! Addition of a series that is already in the library.

use serde_json::json;

use super::add_series::{AddSeries, record_series_request, series_status_json};
use super::follow_title::{growing_episodes, missing_part, not_on_disk, requested_series};
use super::formatting::format_media_title;
use super::library::Instance;
use super::library_changes::get_more;
use super::requesters;
use super::seasons::{NamedSeasons, SeasonSelector};
use super::{RequestTiming, ToolContext, ToolError, ToolOutput};
use crate::arr::Series;
use crate::arr::sonarr::Sonarr;
use crate::conversation::title_requests::{NOT_MONITORED, RequestedTitle};
use crate::conversation::transcript::CallResult;
use crate::seerr::Seerr;

/// Returns the result for a series that is already in the library. The retry of an earlier request adds the seasons
/// that are neither on disk nor monitored, because the series may have been added without them.
pub(super) async fn add_promised_seasons(
    instance: &Instance<Sonarr>,
    series: &Series,
    args: &AddSeries,
    context: &ToolContext,
    requests: Option<&Seerr>,
) -> Result<ToolOutput, ToolError> {
    match (context.request_timing, series.id, promised_seasons(instance, series, args)) {
        (RequestTiming::Earlier, Some(id), Some(seasons)) => {
            get_more::add_seasons(instance, id, &seasons, context, requests).await
        }
        (RequestTiming::Earlier | RequestTiming::Now, _, _) => {
            Ok(existing_output(instance, series, args, context).await)
        }
    }
}

/// Returns the requested seasons, if at least one of them is neither on disk nor monitored.
pub(super) fn promised_seasons(
    instance: &Instance<Sonarr>,
    series: &Series,
    args: &AddSeries,
) -> Option<Vec<u32>> {
    let requested = request_for_series(instance, series, args);
    let unmonitored = unmonitored_seasons(series, &requested, args)?;
    requested.seasons.filter(|_| !unmonitored.is_empty())
}

/// Returns the result for a series that is already in the library, as for a movie.
async fn existing_output(
    instance: &Instance<Sonarr>,
    series: &Series,
    args: &AddSeries,
    context: &ToolContext,
) -> ToolOutput {
    let requested = request_for_series(instance, series, args);
    let mut result = existing_result(instance, series);
    requesters::add_requesters(&mut result, &requested, context);
    let growing = growing_episodes(instance, series, &requested).await;
    match context.request_timing {
        RequestTiming::Earlier => {
            if let Some(seasons) = unmonitored_seasons(series, &requested, args) {
                result.for_model[NOT_MONITORED] = json!(seasons);
            }
            return record_series_request(
                result.into(),
                (requested, args.coverage()),
                series,
                (&growing, context.now),
            );
        }
        RequestTiming::Now
            if series.monitored && missing_part(series, &requested, (&growing, context.now)).is_some() =>
        {
            requesters::offer_notification(&mut result, &requested, context);
        }
        RequestTiming::Now => {}
    }
    result.into()
}

/// Builds the title request of a call from the series.
fn request_for_series(instance: &Instance<Sonarr>, series: &Series, args: &AddSeries) -> RequestedTitle {
    let numbers = || series.seasons.iter().map(|season| season.number);
    let seasons: Option<Vec<u32>> = match &args.seasons {
        None
        | Some(SeasonSelector::Named(NamedSeasons::All | NamedSeasons::Future | NamedSeasons::Pilot)) => None,
        Some(SeasonSelector::Named(NamedSeasons::First)) => numbers().min().map(|first| vec![first]),
        Some(SeasonSelector::Named(NamedSeasons::Latest)) => numbers().max().map(|latest| vec![latest]),
        Some(SeasonSelector::Numbers(listed)) => Some(listed.clone()),
    };
    let proper_subset = seasons.filter(|listed| !numbers().all(|number| listed.contains(&number)));
    RequestedTitle { seasons: proper_subset, ..requested_series(instance, series) }
}

/// Returns the requested seasons that are neither on disk nor monitored. The list is empty if this applies to the whole
/// series.
fn unmonitored_seasons(series: &Series, requested: &RequestedTitle, args: &AddSeries) -> Option<Vec<u32>> {
    let missing = not_on_disk(series, requested)?;
    if missing.seasons.is_none() {
        let is_monitored = series.monitored && (!series.seasons.is_empty() || series.new_seasons);
        if !is_monitored {
            return Some(Vec::new());
        }
        if let Some(SeasonSelector::Named(NamedSeasons::Future | NamedSeasons::Pilot)) = args.seasons {
            return None;
        }
    }
    let all_seasons = || series.seasons.iter().map(|season| season.number).collect();
    let by_season =
        RequestedTitle { seasons: Some(missing.seasons.unwrap_or_else(all_seasons)), ..requested.clone() };
    let numbers = not_on_disk(series, &by_season)?.seasons?;
    let is_monitored =
        |number: &u32| series.monitored && series.season(*number).is_some_and(|season| season.monitored);
    let unmonitored: Vec<u32> = numbers.into_iter().filter(|number| !is_monitored(number)).collect();
    (!unmonitored.is_empty()).then_some(unmonitored)
}

fn existing_result(instance: &Instance<Sonarr>, series: &Series) -> CallResult {
    let name = format_media_title(&series.title, series.year);
    let Series { episodes_on_disk, episodes, .. } = series;
    let for_user = if *episodes == 0 {
        format!("{name} is already in the library, but no episode of it is listed yet.")
    } else if episodes_on_disk >= episodes {
        format!("You already have {name}.")
    } else if series.monitored {
        format!(
            "You already have {name}: {episodes_on_disk} of {episodes} episodes, and it is being looked for."
        )
    } else {
        format!("You already have {name}: {episodes_on_disk} of {episodes} episodes.")
    };
    let mut for_model = series_status_json(series, "already_exists");
    let is_incomplete = series.episodes_on_disk < series.episodes || series.episodes == 0;
    if is_incomplete || series.seasons.iter().any(|season| !season.monitored) {
        for_model["id"] = json!(series.id);
        for_model["hint"] = json!("get_more gets more of it");
    }
    CallResult { for_model, for_user, shown: instance.shown_ids(series) }
}
