//! Tool that adds unmonitored seasons or episodes of a series in the library, or searches again for what is missing.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Deserialize;

use super::get_more_results::{
    SearchStatus, existing_result, missing_episodes, nothing_missing, search_again_result, search_result,
};
use super::monitoring::{MonitoringChange, SeriesPart, SeriesSnapshot};
use super::movie_search;
use super::read_back::output_with_count;
use super::selectors;
use super::series_goal::{SeriesGoal, fetch_shown_series};
use crate::arr::ArrError;
use crate::arr::changes::SeriesSearch;
use crate::arr::episodes::Episode;
use crate::arr::sonarr::Sonarr;
use crate::conversation::title_requests::{Coverage, RequestedTitle};
use crate::conversation::transcript::{CallFailure, EffectLevel, MediaKind, ToolAudience};
use crate::seerr::Seerr;
use crate::tools::add_series::record_series_request;
use crate::tools::addition::count_seasons;
use crate::tools::follow_title::requested_series;
use crate::tools::instance_ref::InstanceRef;
use crate::tools::library::{ArrInstances, Instance};
use crate::tools::seasons::MAX_UNREQUESTED_SEASONS;
use crate::tools::seerr::seasons::{recover_part, request_part};
use crate::tools::typed_tool::TypedTool;
use crate::tools::{
    CallReferences, RecoveryOutcome, ToolContext, ToolEffect, ToolError, ToolOutput, deletion_outcomes,
};

/// Tool that adds seasons or episodes of a title in the library, or searches for its missing items again.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GetMore {
    #[serde(rename = "type")]
    kind: MediaKind,
    id: i64,
    /// Numbers, S02E03, all, first, latest or future.
    #[serde(default)]
    seasons: Vec<String>,
    instance: Option<String>,
}

impl TypedTool for GetMore {
    const NAME: &'static str = "get_more";
    const DESCRIPTION: &'static str = "Download seasons or episodes, or again what is missing, of a title in the library. For a bad \
        copy use replace_copy.";
    const EFFECT_LEVEL: EffectLevel = EffectLevel::Write;
    const AUDIENCE: ToolAudience = ToolAudience::CanAdd;

    fn check(&self, library: &ArrInstances) -> Result<CallReferences, CallFailure> {
        selectors::call_references(library, (self.kind, self.id), self.instance.as_deref())
    }

    async fn run(&self, library: &ArrInstances, context: &ToolContext) -> Result<ToolOutput, ToolError> {
        match InstanceRef::find_by_name(library, self.kind, self.instance.as_deref())? {
            InstanceRef::Movies(instance) => {
                movie_search::search_again(instance, self.id, context, library.requests.as_ref()).await
            }
            InstanceRef::Series(instance) => {
                let requests = library.requests.as_ref();
                get_more_episodes(instance, self.id, &self.seasons, context, requests).await
            }
        }
    }

    async fn recover(
        &self,
        library: &ArrInstances,
        context: &ToolContext,
    ) -> Result<RecoveryOutcome, ToolError> {
        match InstanceRef::find_by_name(library, self.kind, self.instance.as_deref())? {
            InstanceRef::Movies(instance) => {
                movie_search::recover_search(instance, self.id, context, library.requests.as_ref()).await
            }
            InstanceRef::Series(instance) => {
                recover_get_more(instance, self, context, library.requests.as_ref()).await
            }
        }
    }

    fn not_done_failure(title: Option<&str>) -> CallFailure {
        deletion_outcomes::not_changed(title)
    }
}

/// Adds seasons of a series in the library, for the retry of an earlier request.
pub(in crate::tools) async fn add_seasons(
    instance: &Instance<Sonarr>,
    id: i64,
    numbers: &[u32],
    context: &ToolContext,
    requests: Option<&Seerr>,
) -> Result<ToolOutput, ToolError> {
    let seasons: Vec<String> = numbers.iter().map(u32::to_string).collect();
    get_more_episodes(instance, id, &seasons, context, requests).await
}

async fn get_more_episodes(
    instance: &Instance<Sonarr>,
    id: i64,
    seasons: &[String],
    context: &ToolContext,
    requests: Option<&Seerr>,
) -> Result<ToolOutput, ToolError> {
    let snapshot = fetch_shown_series(instance, id).await?;
    let Some(part) = selectors::parse_part(&snapshot, seasons)? else {
        return search_missing(instance, &snapshot, context).await;
    };
    let goal = SeriesGoal::from_change(&snapshot, MonitoringChange::Monitor(part.clone()), context.now);
    let is_reached = goal.is_reached(&snapshot);
    if is_complete(&snapshot, &part, context.now) && part != SeriesPart::Future {
        return Ok(existing_result(instance, &snapshot, &part).into());
    }
    if let (Some(seerr), false) = (requests, is_reached) {
        let gained: Vec<u32> = snapshot.gained_seasons(&goal.flags).into_iter().collect();
        return request_part(seerr, (instance, &snapshot), (&part, &gained), context).await;
    }
    let count = (!is_reached).then(|| count_seasons(goal.count_gained_seasons(&snapshot)));
    let changed = goal.write(instance, &snapshot, count, context).await?;
    let search = search_part(instance, &changed, &part, context.now).await;
    if let (true, Err(error)) = (is_reached, &search) {
        // The search was the only step.
        return Err(instance.write_error(error));
    }
    let result =
        search_result(instance, &changed, (&part, search.unwrap_or(SearchStatus::NotStarted)), context.now);
    Ok(record_part_request(output_with_count(result, count), instance, (&changed, &part), context.now))
}

/// Determines the outcome of an interrupted call. The monitoring flags show whether the change was made. A search that
/// was not started is started now, since a repeated search does no harm.
async fn recover_get_more(
    instance: &Instance<Sonarr>,
    args: &GetMore,
    context: &ToolContext,
    requests: Option<&Seerr>,
) -> Result<RecoveryOutcome, ToolError> {
    let snapshot = match SeriesSnapshot::fetch_by_id(&instance.client, args.id).await {
        Ok(Some(snapshot)) => snapshot,
        Ok(None) => return Ok(RecoveryOutcome::NotDone),
        Err(error) => {
            tracing::warn!(instance = instance.name, id = args.id, %error, "failed to check added episodes");
            return Ok(RecoveryOutcome::Unknown);
        }
    };
    let part = selectors::parse_part(&snapshot, &args.seasons)?;
    let Some(part) = part else {
        let missing: Vec<&Episode> = missing_monitored_episodes(&snapshot, context.now);
        return Ok(if searched_recently(&missing, context.now) {
            RecoveryOutcome::Done(search_again_result(instance, &snapshot, missing.len()).into())
        } else {
            RecoveryOutcome::NotDone
        });
    };
    let goal = SeriesGoal::from_change(&snapshot, MonitoringChange::Monitor(part.clone()), context.now);
    if let Some(seerr) = requests {
        // If the Seerr has no such request, the call only started a search, or nothing.
        return Ok(recover_part(seerr, (instance, &snapshot), &part, context).await);
    }
    if !goal.is_reached(&snapshot) {
        return Ok(RecoveryOutcome::NotDone);
    }
    let missing = missing_episodes(&snapshot, &part, context.now);
    let search = if searched_recently(&missing, context.now) {
        SearchStatus::Started
    } else {
        search_part(instance, &snapshot, &part, context.now).await.unwrap_or(SearchStatus::NotStarted)
    };
    // The earlier monitoring flags are no longer known, so everything that the call requested counts.
    let mut seasons: Vec<u32> = missing.iter().map(|episode| episode.season).collect();
    seasons.dedup();
    let result = search_result(instance, &snapshot, (&part, search), context.now);
    let output = output_with_count(result, Some(count_seasons(seasons.len())));
    Ok(RecoveryOutcome::Done(record_part_request(output, instance, (&snapshot, &part), context.now)))
}

/// Searches for all monitored episodes that have aired and are not on disk.
async fn search_missing(
    instance: &Instance<Sonarr>,
    snapshot: &SeriesSnapshot,
    context: &ToolContext,
) -> Result<ToolOutput, ToolError> {
    let missing = missing_monitored_episodes(snapshot, context.now);
    if missing.is_empty() {
        return Err(nothing_missing(snapshot, context.now).into());
    }
    let search = SeriesSearch::Missing(snapshot.id);
    instance.client.search_series(&search).await.map_err(|error| instance.write_error(&error))?;
    Ok(search_again_result(instance, snapshot, missing.len()).into())
}

/// Asks Sonarr to search immediately for the episodes of the part that have aired and are not on disk.
async fn search_part(
    instance: &Instance<Sonarr>,
    snapshot: &SeriesSnapshot,
    part: &SeriesPart,
    now: Timestamp,
) -> Result<SearchStatus, ArrError> {
    let released: Vec<&Episode> =
        missing_episodes(snapshot, part, now).into_iter().filter(|episode| episode.has_aired(now)).collect();
    let searches = match part {
        // Sonarr has not listed the episodes yet, so the whole seasons are searched for.
        SeriesPart::Seasons(numbers) if snapshot.episodes.is_empty() => season_searches(snapshot.id, numbers),
        _ if released.is_empty() => return Ok(SearchStatus::NothingReleased),
        SeriesPart::Seasons(_) => {
            let mut seasons: Vec<u32> = released.iter().map(|episode| episode.season).collect();
            seasons.dedup();
            season_searches(snapshot.id, &seasons)
        }
        SeriesPart::Episodes(_) | SeriesPart::Future => {
            vec![SeriesSearch::Episodes(released.iter().map(|episode| episode.id).collect())]
        }
    };
    for search in &searches {
        if let Err(error) = instance.client.search_series(search).await {
            tracing::warn!(instance = instance.name, series = snapshot.id, %error, "failed to start a search");
            return Err(error);
        }
    }
    Ok(SearchStatus::Started)
}

/// Returns one search per season if there are few, because a season search may find packs. Otherwise returns one search
/// for all missing episodes.
fn season_searches(series: i64, seasons: &[u32]) -> Vec<SeriesSearch> {
    if seasons.len() > MAX_UNREQUESTED_SEASONS {
        return vec![SeriesSearch::Missing(series)];
    }
    seasons.iter().map(|&season| SeriesSearch::Season { series, season }).collect()
}

/// Returns whether a part is on disk and no more episodes of it are expected.
fn is_complete(snapshot: &SeriesSnapshot, part: &SeriesPart, now: Timestamp) -> bool {
    let is_season_complete =
        |number: &u32| snapshot.series.season_is_complete(*number, &snapshot.episodes, now);
    let may_grow = matches!(part, SeriesPart::Seasons(numbers) if !numbers.iter().all(is_season_complete));
    !snapshot.episodes.is_empty() && missing_episodes(snapshot, part, now).is_empty() && !may_grow
}

fn missing_monitored_episodes(snapshot: &SeriesSnapshot, now: Timestamp) -> Vec<&Episode> {
    let is_missing = |episode: &&Episode| {
        snapshot.series.monitored && episode.monitored && episode.has_aired(now) && !episode.on_disk()
    };
    snapshot.episodes.iter().filter(is_missing).collect()
}

fn searched_recently(missing: &[&Episode], now: Timestamp) -> bool {
    missing.iter().any(|episode| movie_search::is_recent_search(episode.last_search, now))
}

/// Adds the effects that record the request of a part and notify the user when it is ready.
fn record_part_request(
    output: ToolOutput,
    instance: &Instance<Sonarr>,
    (snapshot, part): (&SeriesSnapshot, &SeriesPart),
    now: Timestamp,
) -> ToolOutput {
    let whole_series = requested_series(instance, &snapshot.series);
    let (mut seasons, coverage): (Vec<u32>, Coverage) = match part {
        SeriesPart::Seasons(numbers) => (numbers.clone(), Coverage::Whole),
        SeriesPart::Episodes(codes) => {
            (codes.iter().map(|(season, _)| *season).collect(), Coverage::SomeEpisodes)
        }
        // Future episodes belong to no season with a known number.
        SeriesPart::Future => {
            let request = ToolEffect::Request(whole_series.clone(), Coverage::SomeEpisodes);
            return output.and_effect(request).and_effect(ToolEffect::Follow(whole_series));
        }
    };
    seasons.sort_unstable();
    seasons.dedup();
    record_series_request(
        output,
        (RequestedTitle { seasons: Some(seasons), ..whole_series }, coverage),
        &snapshot.series,
        (&snapshot.episodes, now),
    )
}
