//! Tool that changes a title in the library: its monitored parts, its quality profile, and the type of a series.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::get_more_results::series_status_json;
use super::monitoring::{MonitoringChange, SeriesPart, SeriesSnapshot};
use super::movie_change::{change_movie, recover_movie_change};
use super::read_back::output_with_count;
use super::selectors;
use super::series_goal::{SeriesGoal, fetch_shown_series};
use crate::arr::QualityProfile;
use crate::arr::sonarr::Sonarr;
use crate::conversation::transcript::{
    CallFailure, CallResult, EffectLevel, MediaKind, ToolAudience, UserRights,
};
use crate::seerr::Seerr;
use crate::tools::addition::count_seasons;
use crate::tools::arguments::parsing::bad_argument;
use crate::tools::formatting::format_media_title;
use crate::tools::instance_ref::InstanceRef;
use crate::tools::library::{ArrInstances, Instance};
use crate::tools::seerr::ask_by_request;
use crate::tools::typed_tool::TypedTool;
use crate::tools::{CallReferences, RecoveryOutcome, ToolContext, ToolError, ToolOutput, deletion_outcomes};

const ANIME_TYPE: &str = "anime";
const STANDARD_TYPE: &str = "standard";

/// Tool that changes which parts of a title are monitored, its quality, or the type of a series.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChangeMedia {
    #[serde(rename = "type")]
    kind: MediaKind,
    pub(super) id: i64,
    /// Whether it is searched for.
    pub(super) monitored: Option<bool>,
    /// Only these, as in get_more.
    #[serde(default)]
    seasons: Vec<String>,
    /// Only episodes not aired yet.
    #[serde(default)]
    only_future: bool,
    /// New profile.
    pub(super) quality: Option<String>,
    anime: Option<bool>,
    /// Also seasons announced later.
    new_seasons: Option<bool>,
    instance: Option<String>,
}

impl TypedTool for ChangeMedia {
    const NAME: &'static str = "change_media";
    const DESCRIPTION: &'static str = "Change settings of a title in the library: give only what changes. Downloads nothing: use \
        get_more.";
    const EFFECT_LEVEL: EffectLevel = EffectLevel::Write;
    const AUDIENCE: ToolAudience = ToolAudience::CanAdd;

    fn quality_names(library: &ArrInstances, rights: UserRights) -> Vec<String> {
        library.quality_names(None, rights)
    }

    fn check(&self, library: &ArrInstances) -> Result<CallReferences, CallFailure> {
        selectors::call_references(library, (self.kind, self.id), self.instance.as_deref())
    }

    async fn run(&self, library: &ArrInstances, context: &ToolContext) -> Result<ToolOutput, ToolError> {
        match InstanceRef::find_by_name(library, self.kind, self.instance.as_deref())? {
            InstanceRef::Movies(instance) => {
                change_movie(instance, self, context, library.requests.as_ref()).await
            }
            InstanceRef::Series(instance) => {
                change_series(instance, self, context, library.requests.as_ref()).await
            }
        }
    }

    /// Determines the outcome of an interrupted change. The earlier monitoring flags are no longer known, so the change
    /// does not count towards the quota.
    async fn recover(
        &self,
        library: &ArrInstances,
        context: &ToolContext,
    ) -> Result<RecoveryOutcome, ToolError> {
        let outcome = match InstanceRef::find_by_name(library, self.kind, self.instance.as_deref())? {
            InstanceRef::Movies(instance) => recover_movie_change(instance, self).await,
            InstanceRef::Series(instance) => recover_series_change(instance, self, context.now).await,
        };
        match outcome {
            Ok(Some(result)) => Ok(RecoveryOutcome::Done(result.into())),
            Ok(None) => Ok(RecoveryOutcome::NotDone),
            Err(ToolError::Fatal(error)) => Err(ToolError::Fatal(error)),
            Err(error @ (ToolError::CallFailed(_) | ToolError::Unknown(_))) => {
                tracing::warn!(id = self.id, %error, "failed to check a change");
                Ok(RecoveryOutcome::Unknown)
            }
        }
    }

    fn not_done_failure(title: Option<&str>) -> CallFailure {
        deletion_outcomes::not_changed(title)
    }
}

async fn change_series(
    instance: &Instance<Sonarr>,
    args: &ChangeMedia,
    context: &ToolContext,
    requests: Option<&Seerr>,
) -> Result<ToolOutput, ToolError> {
    let snapshot = fetch_shown_series(instance, args.id).await?;
    let goal = goal_from_args(instance, &snapshot, args, context.now).await?;
    if goal.is_reached(&snapshot) {
        return Ok(series_result(instance, &snapshot, (&goal, args), "unchanged").into());
    }
    let gained_seasons = goal.count_gained_seasons(&snapshot);
    if requests.is_some() && gained_seasons > 0 {
        return Err(ask_by_request().into());
    }
    let count = (gained_seasons > 0).then(|| count_seasons(gained_seasons));
    let changed = goal.write(instance, &snapshot, count, context).await?;
    Ok(output_with_count(series_result(instance, &changed, (&goal, args), "changed"), count))
}

async fn recover_series_change(
    instance: &Instance<Sonarr>,
    args: &ChangeMedia,
    now: Timestamp,
) -> Result<Option<CallResult>, ToolError> {
    let snapshot = SeriesSnapshot::fetch_by_id(&instance.client, args.id).await;
    let Some(snapshot) = snapshot.map_err(|error| instance.request_error(&error))? else { return Ok(None) };
    let goal = goal_from_args(instance, &snapshot, args, now).await?;
    Ok(goal.is_reached(&snapshot).then(|| series_result(instance, &snapshot, (&goal, args), "changed")))
}

async fn goal_from_args(
    instance: &Instance<Sonarr>,
    snapshot: &SeriesSnapshot,
    args: &ChangeMedia,
    now: Timestamp,
) -> Result<SeriesGoal, ToolError> {
    let change = parse_monitoring_change(snapshot, args)?;
    let profile = selectors::named_profile(&InstanceRef::Series(instance), args.quality.as_deref()).await?;
    let mut goal = SeriesGoal { profile, ..SeriesGoal::from_change(snapshot, change, now) };
    goal.flags.new_seasons = args.new_seasons.unwrap_or(goal.flags.new_seasons);
    goal.series_type = match args.anime {
        Some(true) => Some(ANIME_TYPE),
        Some(false) if snapshot.series.series_type == ANIME_TYPE => Some(STANDARD_TYPE),
        Some(false) | None => None,
    };
    Ok(goal)
}

fn parse_monitoring_change(
    snapshot: &SeriesSnapshot,
    args: &ChangeMedia,
) -> Result<MonitoringChange, CallFailure> {
    let part = selectors::parse_part(snapshot, &args.seasons)?;
    let has_other_change = args.quality.is_some() || args.anime.is_some() || args.new_seasons.is_some();
    match (args.monitored, part) {
        _ if args.only_future && snapshot.episodes.is_empty() => {
            Err(selectors::episodes_not_listed(snapshot))
        }
        _ if args.only_future => Ok(MonitoringChange::OnlyFuture),
        (Some(true), Some(part)) => Ok(MonitoringChange::Monitor(part)),
        (Some(false), Some(part)) => Ok(MonitoringChange::Unmonitor(part)),
        (Some(flag), None) => Ok(MonitoringChange::Series(flag)),
        (None, None) if has_other_change => Ok(MonitoringChange::Unchanged),
        (None, Some(_)) => Err(missing_change("true or false for these seasons")),
        (None, None) => Err(missing_change("at least one change")),
    }
}

pub(super) fn missing_change(expected: &str) -> CallFailure {
    bad_argument("monitored", expected, "")
}

fn series_result(
    instance: &Instance<Sonarr>,
    snapshot: &SeriesSnapshot,
    (goal, args): (&SeriesGoal, &ChangeMedia),
    status: &str,
) -> CallResult {
    let mut parts = Vec::new();
    match &goal.change {
        MonitoringChange::Unchanged => {}
        MonitoringChange::Series(monitored) => parts.push(format_monitored(*monitored).to_owned()),
        MonitoringChange::Monitor(part) => parts.push(format_part_change(part, "looked for")),
        MonitoringChange::Unmonitor(part) => parts.push(format_part_change(part, "not looked for")),
        MonitoringChange::OnlyFuture => parts.push("only episodes still to come are looked for".to_owned()),
    }
    parts.extend(goal.profile.as_ref().map(format_quality));
    parts.extend(args.anime.map(|anime| if anime { "it is anime" } else { "it is not anime" }.to_owned()));
    parts.extend(args.new_seasons.map(|monitored| {
        if monitored { "new seasons are fetched" } else { "new seasons are not fetched" }.to_owned()
    }));
    let mut for_model = series_status_json(snapshot, status);
    for_model["now"] = json!(parts);
    let for_user = format!(
        "{}: {}.",
        format_media_title(&snapshot.series.title, snapshot.series.year),
        parts.join(", ")
    );
    CallResult { for_model, for_user, shown: instance.shown_ids(&snapshot.series) }
}

pub(super) fn format_monitored(monitored: bool) -> &'static str {
    if monitored { "it is looked for" } else { "it is not looked for" }
}

pub(super) fn format_quality(profile: &QualityProfile) -> String {
    format!("the quality is {}", profile.name)
}

fn format_part_change(part: &SeriesPart, state: &str) -> String {
    let is_singular = match part {
        SeriesPart::Seasons(numbers) => matches!(numbers.as_slice(), [season] if *season > 0),
        SeriesPart::Episodes(codes) => codes.len() == 1,
        SeriesPart::Future => true,
    };
    format!("{} {} {state}", selectors::format_part(part), if is_singular { "is" } else { "are" })
}
