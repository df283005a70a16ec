//! Additions to titles that are in the library: seasons or episodes of a series that were not monitored so far, or a
//! repeated search for missing items.

use jiff::{SignedDuration, Timestamp};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::monitoring::{MonitoringChange, SeriesPart, SeriesSnapshot, write_flags};
use super::movie_search;
use super::selectors;
use crate::arr::ArrError;
use crate::arr::changes::{SeriesChange, SeriesSearch};
use crate::arr::episodes::Episode;
use crate::arr::sonarr::Sonarr;
use crate::conversation::title_requests::{Coverage, RequestedTitle};
use crate::conversation::transcript::{
    CallFailure, CallResult, EffectLevel, FailureCode, MediaKind, MediaRef, QuotaKind, QuotaUse, ToolAudience,
};
use crate::tools::add_series::record_series_request;
use crate::tools::approval;
use crate::tools::follow_title::requested_series;
use crate::tools::formatting::{clean_title, format_media_title};
use crate::tools::instance_ref::InstanceRef;
use crate::tools::library::{ArrInstances, Instance};
use crate::tools::remove_media::unknown_title;
use crate::tools::seasons::{MAX_SEASONS_UNASKED, asks_for_many, format_season_list, which_seasons};
use crate::tools::typed_tool::TypedTool;
use crate::tools::{
    CallReferences, RecoveryOutcome, ToolContext, ToolEffect, ToolError, ToolOutput, deletion_outcomes,
};

/// Age below which a search counts as recent. A recent search is not repeated for a call whose response was lost.
const LATELY: SignedDuration = SignedDuration::from_mins(10);

/// Tool that adds seasons or episodes of a title in the library, or searches for its missing items again.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GetMore {
    #[serde(rename = "type")]
    kind: MediaKind,
    id: i64,
    /// Numbers or S02E03, or all, first, latest, future.
    #[serde(default)]
    seasons: Vec<String>,
    instance: Option<String>,
}

/// Outcome of the request to Sonarr or Radarr to search immediately.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SearchStatus {
    Started,
    /// Search that could not be started, or whose outcome is unknown.
    NotStarted,
    /// Search without any released item, so that no release can be found.
    NothingReleased,
}

impl TypedTool for GetMore {
    const NAME: &'static str = "get_more";
    const DESCRIPTION: &'static str =
        "Get seasons or episodes of a show in the library, or look again for what is missing.";
    const EFFECT_LEVEL: EffectLevel = EffectLevel::Write;
    const AUDIENCE: ToolAudience = ToolAudience::Adders;

    fn check(&self, library: &ArrInstances) -> Result<CallReferences, CallFailure> {
        selectors::call_references(library, (self.kind, self.id), self.instance.as_deref())
    }

    async fn run(&self, library: &ArrInstances, world: &ToolContext) -> Result<ToolOutput, ToolError> {
        match InstanceRef::find_by_name(library, self.kind, self.instance.as_deref())? {
            InstanceRef::Movies(instance) => movie_search::search_again(instance, self.id, world).await,
            InstanceRef::Series(instance) => get_more_episodes(instance, self.id, &self.seasons, world).await,
        }
    }

    async fn recover(
        &self,
        library: &ArrInstances,
        world: &ToolContext,
    ) -> Result<RecoveryOutcome, ToolError> {
        match InstanceRef::find_by_name(library, self.kind, self.instance.as_deref())? {
            InstanceRef::Movies(instance) => movie_search::recover_search(instance, self.id, world).await,
            InstanceRef::Series(instance) => recover_get_more(instance, self, world).await,
        }
    }

    fn not_done_failure(title: Option<&str>) -> CallFailure {
        deletion_outcomes::not_changed(title)
    }
}

/// Adds seasons of a series that is already in the library, for a request that waited.
pub(in crate::tools) async fn add_seasons(
    instance: &Instance<Sonarr>,
    id: i64,
    numbers: &[u32],
    world: &ToolContext,
) -> Result<ToolOutput, ToolError> {
    let seasons: Vec<String> = numbers.iter().map(u32::to_string).collect();
    get_more_episodes(instance, id, &seasons, world).await
}

async fn get_more_episodes(
    instance: &Instance<Sonarr>,
    id: i64,
    seasons: &[String],
    world: &ToolContext,
) -> Result<ToolOutput, ToolError> {
    let held = SeriesSnapshot::fetch_by_id(&instance.client, id)
        .await
        .map_err(|error| instance.request_error(&error))?;
    let held = held.ok_or_else(|| unknown_title(id))?;
    let Some(part) = selectors::parse_part(&held, seasons)? else {
        return search_missing(instance, &held, world).await;
    };
    let wish = MonitoringChange::Monitor(part.clone());
    let goal = held.goal_flags(&wish, world.now);
    let reached = held.monitoring_flags().meets_goal(&goal);
    let complete = is_complete(&held, &part, world.now);
    if complete && part != SeriesPart::Future {
        return Ok(existing_result(instance, &held, &part).into());
    }
    let gained = held.seasons_gained(&goal);
    if gained.len() > MAX_SEASONS_UNASKED && !asks_for_many(&world.turn_messages, &held.series) {
        return Err(which_seasons(&held.series).into());
    }
    let count = (!reached).then(|| count_seasons(gained.len()));
    if let Some(count) = count {
        approval::check_quota(world, count)?;
    }
    let written = write_flags(instance, &held, (&wish, &goal), SeriesChange::default()).await;
    if let Err(error @ (ToolError::CallFailed(_) | ToolError::Fatal(_))) = written {
        return Err(error);
    }
    // If the response to a write was lost, the flags show whether the change was made.
    let after = SeriesSnapshot::fetch_by_id(&instance.client, id)
        .await
        .map_err(|error| instance.unverified_write_error(&error))?;
    let Some(after) = after.filter(|after| after.monitoring_flags().meets_goal(&goal)) else {
        return Err(written.err().unwrap_or_else(|| ToolError::Unknown(unexpected_state(instance, id))));
    };
    let search = search_part(instance, &after, &part, world.now).await;
    if let (true, Err(error)) = (reached, &search) {
        // Only the search remained.
        return Err(instance.write_error(error));
    }
    let result =
        search_result(instance, &after, (&part, search.unwrap_or(SearchStatus::NotStarted)), world.now);
    Ok(record_part_request(output_with_count(result, count), instance, (&after, &part), world.now))
}

/// Determines the outcome of an interrupted call. The flags show whether the change was made. A search that was not
/// started is started now, since repeating a search does no harm.
async fn recover_get_more(
    instance: &Instance<Sonarr>,
    args: &GetMore,
    world: &ToolContext,
) -> Result<RecoveryOutcome, ToolError> {
    let held = match SeriesSnapshot::fetch_by_id(&instance.client, args.id).await {
        Ok(Some(held)) => held,
        Ok(None) => return Ok(RecoveryOutcome::NotDone),
        Err(error) => {
            tracing::warn!(instance = instance.name, id = args.id, %error, "failed to check added episodes");
            return Ok(RecoveryOutcome::Unknown);
        }
    };
    let part = selectors::parse_part(&held, &args.seasons)?;
    let Some(part) = part else {
        let missing: Vec<&Episode> = missing_monitored_episodes(&held, world.now);
        return Ok(if searched_recently(&missing, world.now) {
            RecoveryOutcome::Done(search_again_result(instance, &held, missing.len()).into())
        } else {
            RecoveryOutcome::NotDone
        });
    };
    let goal = held.goal_flags(&MonitoringChange::Monitor(part.clone()), world.now);
    if !held.monitoring_flags().meets_goal(&goal) {
        return Ok(RecoveryOutcome::NotDone);
    }
    let missing = missing_episodes(&held, &part, world.now);
    let search = if searched_recently(&missing, world.now) {
        SearchStatus::Started
    } else {
        search_part(instance, &held, &part, world.now).await.unwrap_or(SearchStatus::NotStarted)
    };
    // The monitoring state before the call is no longer known, so all that the call requested counts.
    let mut seasons: Vec<u32> = missing.iter().map(|episode| episode.season).collect();
    seasons.dedup();
    let result = search_result(instance, &held, (&part, search), world.now);
    let ran = output_with_count(result, Some(count_seasons(seasons.len())));
    Ok(RecoveryOutcome::Done(record_part_request(ran, instance, (&held, &part), world.now)))
}

/// Searches for all monitored episodes that have aired and are not on disk.
async fn search_missing(
    instance: &Instance<Sonarr>,
    held: &SeriesSnapshot,
    world: &ToolContext,
) -> Result<ToolOutput, ToolError> {
    let missing = missing_monitored_episodes(held, world.now);
    if missing.is_empty() {
        return Err(nothing_missing(held, world.now).into());
    }
    let search = SeriesSearch::Missing(held.id);
    instance.client.search_series(&search).await.map_err(|error| instance.write_error(&error))?;
    Ok(search_again_result(instance, held, missing.len()).into())
}

/// Asks Sonarr to search immediately for the episodes of the part that have aired and are not on disk.
async fn search_part(
    instance: &Instance<Sonarr>,
    held: &SeriesSnapshot,
    part: &SeriesPart,
    now: Timestamp,
) -> Result<SearchStatus, ArrError> {
    let out: Vec<&Episode> =
        missing_episodes(held, part, now).into_iter().filter(|one| one.has_aired(now)).collect();
    let searches = match part {
        // If Sonarr has not loaded the episodes of a series yet, none of them is known to be on disk.
        SeriesPart::Seasons(numbers) if held.episodes.is_empty() => season_searches(held.id, numbers),
        _ if out.is_empty() => return Ok(SearchStatus::NothingReleased),
        SeriesPart::Seasons(_) => {
            let mut seasons: Vec<u32> = out.iter().map(|episode| episode.season).collect();
            seasons.dedup();
            season_searches(held.id, &seasons)
        }
        SeriesPart::Episodes(_) | SeriesPart::Future => {
            vec![SeriesSearch::Episodes(out.iter().map(|episode| episode.id).collect())]
        }
    };
    for search in &searches {
        if let Err(error) = instance.client.search_series(search).await {
            tracing::warn!(instance = instance.name, series = held.id, %error, "failed to start a search");
            return Err(error);
        }
    }
    Ok(SearchStatus::Started)
}

/// Returns one request for each season if there are few, because a season request may find packs. Otherwise returns one
/// request for all missing episodes.
fn season_searches(series: i64, seasons: &[u32]) -> Vec<SeriesSearch> {
    if seasons.len() > MAX_SEASONS_UNASKED {
        return vec![SeriesSearch::Missing(series)];
    }
    seasons.iter().map(|&season| SeriesSearch::Season { series, season }).collect()
}

/// Returns the episodes of a part that are not on disk.
fn missing_episodes<'a>(held: &'a SeriesSnapshot, part: &SeriesPart, now: Timestamp) -> Vec<&'a Episode> {
    held.part_episodes(part, now).into_iter().filter(|episode| !episode.on_disk()).collect()
}

/// Returns whether a part is on disk and no more of it is expected.
fn is_complete(held: &SeriesSnapshot, part: &SeriesPart, now: Timestamp) -> bool {
    let is_over = |number: &u32| held.series.season_is_complete(*number, &held.episodes, now);
    let may_come = matches!(part, SeriesPart::Seasons(numbers) if !numbers.iter().all(is_over));
    !held.episodes.is_empty() && missing_episodes(held, part, now).is_empty() && !may_come
}

fn missing_monitored_episodes(held: &SeriesSnapshot, now: Timestamp) -> Vec<&Episode> {
    let wanted =
        |one: &&Episode| held.series.monitored && one.monitored && one.has_aired(now) && !one.on_disk();
    held.episodes.iter().filter(wanted).collect()
}

fn searched_recently(missing: &[&Episode], now: Timestamp) -> bool {
    missing.iter().any(|episode| episode.last_search.is_some_and(|at| now.duration_since(at) <= LATELY))
}

/// Returns the quota usage of additional seasons. More of a series counts as at least one season.
pub(super) fn count_seasons(seasons: usize) -> QuotaUse {
    QuotaUse { kind: QuotaKind::Seasons, amount: u32::try_from(seasons).unwrap_or(u32::MAX).max(1) }
}

/// Records the requester of the addition, who is notified when it is ready.
fn record_part_request(
    ran: ToolOutput,
    instance: &Instance<Sonarr>,
    (held, part): (&SeriesSnapshot, &SeriesPart),
    now: Timestamp,
) -> ToolOutput {
    let whole = requested_series(instance, &held.series);
    let (mut seasons, coverage): (Vec<u32>, Coverage) = match part {
        SeriesPart::Seasons(numbers) => (numbers.clone(), Coverage::Whole),
        SeriesPart::Episodes(codes) => {
            (codes.iter().map(|(season, _)| *season).collect(), Coverage::SomeEpisodes)
        }
        // Future episodes belong to no season with a known number.
        SeriesPart::Future => {
            let request = ToolEffect::Request(whole.clone(), Coverage::SomeEpisodes);
            return ran.and_effect(request).and_effect(ToolEffect::Follow(whole));
        }
    };
    seasons.sort_unstable();
    seasons.dedup();
    record_series_request(
        ran,
        (RequestedTitle { seasons: Some(seasons), ..whole }, coverage),
        &held.series,
        (&held.episodes, now),
    )
}

pub(super) fn output_with_count(result: CallResult, count: Option<QuotaUse>) -> ToolOutput {
    match count {
        Some(count) => ToolOutput::with_effect(result, ToolEffect::Count(count)),
        None => result.into(),
    }
}

pub(super) fn unexpected_state<Client>(instance: &Instance<Client>, id: i64) -> String {
    format!("{}: {id} is not as it was written", instance.name)
}

fn search_result(
    instance: &Instance<Sonarr>,
    held: &SeriesSnapshot,
    (part, search): (&SeriesPart, SearchStatus),
    now: Timestamp,
) -> CallResult {
    let name = format_media_title(&held.series.title, held.series.year);
    let missing = missing_episodes(held, part, now);
    let to_come = missing.iter().filter(|episode| !episode.has_aired(now)).count();
    let what = selectors::format_part(&missing_part(part, &missing));
    let for_user = match (search, part) {
        (SearchStatus::Started, _) if to_come > 0 => {
            format!("Looking for {what} of {name} now. Episodes still to come are fetched as they air.")
        }
        (SearchStatus::Started, _) => format!("Looking for {what} of {name} now."),
        (SearchStatus::NothingReleased, SeriesPart::Future) if held.series.ended && missing.is_empty() => {
            format!(
                "{name} has ended, so there is probably nothing to come. If there is, it will be fetched."
            )
        }
        (SearchStatus::NothingReleased, SeriesPart::Future) => {
            format!("New episodes of {name} will be fetched as they air.")
        }
        (SearchStatus::NothingReleased, SeriesPart::Seasons(_)) if missing.is_empty() => {
            format!("You have {what} of {name} as far as it has aired. New episodes are fetched as they air.")
        }
        (SearchStatus::NothingReleased, SeriesPart::Seasons(_) | SeriesPart::Episodes(_)) => {
            format!("Nothing of that has aired yet: {what} of {name} will be fetched when it airs.")
        }
        (SearchStatus::NotStarted, _) => format!(
            "{name}: {what} will be fetched from now on, but {} did not begin to look at once.",
            instance.display_name()
        ),
    };
    let mut for_model = series_status_json(held, search.status_code());
    for_model["of"] = json!(what);
    for_model["missing"] = json!(missing.len() - to_come);
    for_model["not_aired"] = json!(to_come);
    CallResult { for_model, for_user, shown: shown_ids(instance, held) }
}

/// Returns the part reduced to its missing episodes, if any of them are missing.
fn missing_part(part: &SeriesPart, missing: &[&Episode]) -> SeriesPart {
    match part {
        SeriesPart::Seasons(numbers) if !missing.is_empty() => {
            let lacks = |number: &u32| missing.iter().any(|episode| episode.season == *number);
            SeriesPart::Seasons(numbers.iter().copied().filter(lacks).collect())
        }
        SeriesPart::Episodes(_) if !missing.is_empty() => {
            SeriesPart::Episodes(missing.iter().map(|episode| (episode.season, episode.number)).collect())
        }
        SeriesPart::Seasons(_) | SeriesPart::Episodes(_) | SeriesPart::Future => part.clone(),
    }
}

fn search_again_result(instance: &Instance<Sonarr>, held: &SeriesSnapshot, missing: usize) -> CallResult {
    let name = format_media_title(&held.series.title, held.series.year);
    let episodes =
        if missing == 1 { "1 missing episode".to_owned() } else { format!("{missing} missing episodes") };
    let mut for_model = series_status_json(held, SearchStatus::Started.status_code());
    for_model["missing"] = json!(missing);
    let for_user = format!("Looking again for {episodes} of {name}.");
    CallResult { for_model, for_user, shown: shown_ids(instance, held) }
}

fn existing_result(instance: &Instance<Sonarr>, held: &SeriesSnapshot, part: &SeriesPart) -> CallResult {
    let name = format_media_title(&held.series.title, held.series.year);
    let what = selectors::format_part(part);
    let mut for_model = series_status_json(held, "already_exists");
    for_model["of"] = json!(what);
    CallResult {
        for_model,
        for_user: format!("You already have {what} of {name}."),
        shown: shown_ids(instance, held),
    }
}

/// Returns the result for a title of which everything monitored is on disk. Items that are not monitored so far can be
/// listed.
fn nothing_missing(held: &SeriesSnapshot, now: Timestamp) -> CallFailure {
    let name = format_media_title(&held.series.title, held.series.year);
    let unwanted = held.episodes.iter().filter(|one| !one.on_disk() && one.has_aired(now));
    let mut seasons: Vec<u32> = unwanted.map(|episode| episode.season).collect();
    seasons.dedup();
    if seasons.is_empty() {
        let for_user = format!("Nothing that has aired of {name} is missing.");
        return CallFailure::new(
            FailureCode::NothingMissing,
            json!({ "title": clean_title(&held.series.title) }),
            Some(for_user),
        );
    }
    CallFailure::new(
        FailureCode::WhichSeasons,
        json!({ "title": clean_title(&held.series.title), "not_looked_for": seasons,
            "hint": "all that is looked for is there; ask which of these to get, then call again with them" }),
        Some(format!(
            "Of {name}, {} can be fetched as well. Which ones do you want?",
            format_season_list(&seasons)
        )),
    )
}

pub(super) fn series_status_json(held: &SeriesSnapshot, status: &str) -> Value {
    json!({ "status": status, "type": "series", "title": clean_title(&held.series.title),
        "year": held.series.year, "seasons_looked_for": held.seasons_wanted() })
}

pub(super) fn shown_ids(instance: &Instance<Sonarr>, held: &SeriesSnapshot) -> Vec<MediaRef> {
    vec![MediaRef::Tvdb(held.series.tvdb), instance.media_ref(MediaKind::Series, held.id)]
}

impl SearchStatus {
    pub(super) fn status_code(self) -> &'static str {
        match self {
            Self::Started => "being_looked_for",
            Self::NotStarted => "wanted_but_search_not_begun",
            Self::NothingReleased => "wanted_not_out_yet",
        }
    }
}
