//! Changes to titles in the library: which parts are monitored, in which quality, and the type of a series.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::get_more::{output_with_count, unexpected_state};
use super::monitoring::{MonitoringChange, MonitoringFlags, SeriesPart, SeriesSnapshot, write_flags};
use super::selectors;
use super::{get_more, movie_search};
use crate::arr::changes::{MovieChange, SeriesChange};
use crate::arr::radarr::Radarr;
use crate::arr::sonarr::Sonarr;
use crate::arr::{Movie, QualityProfile};
use crate::conversation::transcript::{
    CallFailure, CallResult, EffectLevel, MediaKind, MediaRef, ToolAudience,
};
use crate::tools::approval;
use crate::tools::arguments::parsing::bad_argument;
use crate::tools::formatting::format_media_title;
use crate::tools::instance_ref::InstanceRef;
use crate::tools::library::{ArrInstances, Instance, find_profile};
use crate::tools::remove_media::unknown_title;
use crate::tools::seasons::{MAX_SEASONS_UNASKED, asks_for_many, which_seasons};
use crate::tools::typed_tool::TypedTool;
use crate::tools::{CallReferences, RecoveryOutcome, ToolContext, ToolError, ToolOutput, deletion_outcomes};

const ANIME: &str = "anime";
const STANDARD: &str = "standard";

/// Tool that changes which parts of a title are monitored, its quality, or the type of a series.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChangeMedia {
    #[serde(rename = "type")]
    kind: MediaKind,
    id: i64,
    monitored: Option<bool>,
    #[serde(default)]
    seasons: Vec<String>,
    #[serde(default)]
    only_future: bool,
    quality: Option<String>,
    anime: Option<bool>,
    new_seasons: Option<bool>,
    instance: Option<String>,
}

impl TypedTool for ChangeMedia {
    const NAME: &'static str = "change_media";
    const DESCRIPTION: &'static str =
        "Change how a title of the library, or these seasons, is looked for. Give only what changes.";
    const EFFECT_LEVEL: EffectLevel = EffectLevel::Write;
    const AUDIENCE: ToolAudience = ToolAudience::Adders;

    fn check(&self, library: &ArrInstances) -> Result<CallReferences, CallFailure> {
        selectors::call_references(library, (self.kind, self.id), self.instance.as_deref())
    }

    async fn run(&self, library: &ArrInstances, world: &ToolContext) -> Result<ToolOutput, ToolError> {
        match InstanceRef::find_by_name(library, self.kind, self.instance.as_deref())? {
            InstanceRef::Movies(instance) => change_movie(instance, self, world).await,
            InstanceRef::Series(instance) => change_series(instance, self, world).await,
        }
    }

    /// Determines the outcome of an interrupted change. The earlier monitoring state is no longer known, so the change
    /// counts nothing towards the quota.
    async fn recover(
        &self,
        library: &ArrInstances,
        world: &ToolContext,
    ) -> Result<RecoveryOutcome, ToolError> {
        let found = match InstanceRef::find_by_name(library, self.kind, self.instance.as_deref())? {
            InstanceRef::Movies(instance) => recover_movie_change(instance, self).await,
            InstanceRef::Series(instance) => recover_series_change(instance, self, world.now).await,
        };
        match found {
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

/// Desired state of a movie.
struct MovieGoal {
    monitored: Option<bool>,
    profile: Option<QualityProfile>,
}

impl MovieGoal {
    async fn from_args(instance: &Instance<Radarr>, args: &ChangeMedia) -> Result<Self, ToolError> {
        let profile = match &args.quality {
            Some(quality) => {
                let profiles =
                    instance.client.fetch_profiles().await.map_err(|error| instance.request_error(&error))?;
                Some(find_profile(&profiles, quality)?.clone())
            }
            None => None,
        };
        if args.monitored.is_none() && profile.is_none() {
            return Err(missing_change("monitored or quality for a movie").into());
        }
        Ok(Self { monitored: args.monitored, profile })
    }

    /// Returns the properties of the movie that differ from the goal.
    fn needed_change(&self, movie: &Movie) -> MovieChange {
        MovieChange {
            monitored: self.monitored.filter(|flag| *flag != movie.monitored),
            profile: self.profile.as_ref().map(|profile| profile.id).filter(|id| *id != movie.profile),
            availability: None,
        }
    }
}

async fn change_movie(
    instance: &Instance<Radarr>,
    args: &ChangeMedia,
    world: &ToolContext,
) -> Result<ToolOutput, ToolError> {
    let radarr = &instance.client;
    let goal = MovieGoal::from_args(instance, args).await?;
    let held = radarr.fetch_movie(args.id).await.map_err(|error| instance.request_error(&error))?;
    let held = held.ok_or_else(|| unknown_title(args.id))?;
    let change = goal.needed_change(&held);
    if change == MovieChange::default() {
        return Ok(movie_result(instance, &held, &goal, "unchanged").into());
    }
    goal.profile.iter().try_for_each(|profile| approval::check_profile_right(profile, world.rights))?;
    let count = (change.monitored == Some(true) && !held.has_file).then_some(movie_search::ONE_MOVIE);
    if let Some(count) = count {
        approval::check_quota(world, count)?;
    }
    let written = radarr.edit_movie(args.id, change).await.map_err(|error| instance.write_error(&error));
    if let Err(error @ (ToolError::CallFailed(_) | ToolError::Fatal(_))) = written {
        return Err(error);
    }
    // If the response was lost, the movie itself shows whether the change was made.
    let after = radarr.fetch_movie(args.id).await.map_err(|error| instance.unverified_write_error(&error))?;
    match after.filter(|after| goal.needed_change(after) == MovieChange::default()) {
        Some(after) => Ok(output_with_count(movie_result(instance, &after, &goal, "changed"), count)),
        None => Err(written.err().unwrap_or_else(|| ToolError::Unknown(unexpected_state(instance, args.id)))),
    }
}

async fn recover_movie_change(
    instance: &Instance<Radarr>,
    args: &ChangeMedia,
) -> Result<Option<CallResult>, ToolError> {
    let goal = MovieGoal::from_args(instance, args).await?;
    let held = instance.client.fetch_movie(args.id).await.map_err(|error| instance.request_error(&error))?;
    let held = held.filter(|held| goal.needed_change(held) == MovieChange::default());
    Ok(held.map(|held| movie_result(instance, &held, &goal, "changed")))
}

fn movie_result(instance: &Instance<Radarr>, movie: &Movie, goal: &MovieGoal, status: &str) -> CallResult {
    let mut parts = Vec::new();
    parts.extend(goal.monitored.map(|_| format_monitored(movie.monitored).to_owned()));
    parts.extend(goal.profile.as_ref().map(format_quality));
    let mut for_model = movie_search::movie_status_json(movie, status);
    for_model["now"] = json!(parts);
    let for_user = format!("{}: {}.", format_media_title(&movie.title, movie.year), parts.join(", "));
    let mut shown = vec![MediaRef::Tmdb(movie.tmdb)];
    shown.extend(movie.id.map(|id| instance.media_ref(MediaKind::Movie, id)));
    CallResult { for_model, for_user, shown }
}

/// Desired state of a series.
struct SeriesGoal {
    change: MonitoringChange,
    flags: MonitoringFlags,
    profile: Option<QualityProfile>,
    series_type: Option<&'static str>,
}

impl SeriesGoal {
    async fn from_args(
        instance: &Instance<Sonarr>,
        held: &SeriesSnapshot,
        args: &ChangeMedia,
        now: Timestamp,
    ) -> Result<Self, ToolError> {
        let wish = parse_monitoring_change(held, args)?;
        let profile = match &args.quality {
            Some(quality) => {
                let profiles =
                    instance.client.fetch_profiles().await.map_err(|error| instance.request_error(&error))?;
                Some(find_profile(&profiles, quality)?.clone())
            }
            None => None,
        };
        let mut flags = held.goal_flags(&wish, now);
        flags.new_seasons = args.new_seasons.unwrap_or(flags.new_seasons);
        let series_type = match args.anime {
            Some(true) => Some(ANIME),
            Some(false) if held.series.series_type == ANIME => Some(STANDARD),
            Some(false) | None => None,
        };
        Ok(Self { change: wish, flags, profile, series_type })
    }

    /// Returns the properties of the series, apart from the flags, that differ from the goal.
    fn needed_change(&self, held: &SeriesSnapshot) -> SeriesChange {
        SeriesChange {
            profile: self.profile.as_ref().map(|profile| profile.id).filter(|id| *id != held.series.profile),
            series_type: self.series_type.filter(|word| *word != held.series.series_type),
            ..SeriesChange::default()
        }
    }

    fn is_reached(&self, held: &SeriesSnapshot) -> bool {
        held.monitoring_flags().meets_goal(&self.flags) && self.needed_change(held) == SeriesChange::default()
    }
}

async fn change_series(
    instance: &Instance<Sonarr>,
    args: &ChangeMedia,
    world: &ToolContext,
) -> Result<ToolOutput, ToolError> {
    let held = SeriesSnapshot::fetch_by_id(&instance.client, args.id)
        .await
        .map_err(|error| instance.request_error(&error))?;
    let held = held.ok_or_else(|| unknown_title(args.id))?;
    let goal = SeriesGoal::from_args(instance, &held, args, world.now).await?;
    if goal.is_reached(&held) {
        return Ok(series_result(instance, &held, (&goal, args), "unchanged").into());
    }
    goal.profile.iter().try_for_each(|profile| approval::check_profile_right(profile, world.rights))?;
    let gained = held.seasons_gained(&goal.flags);
    if gained.len() > MAX_SEASONS_UNASKED && !asks_for_many(&world.turn_messages, &held.series) {
        return Err(which_seasons(&held.series).into());
    }
    let count = (!gained.is_empty()).then(|| get_more::count_seasons(gained.len()));
    if let Some(count) = count {
        approval::check_quota(world, count)?;
    }
    let written = write_flags(instance, &held, (&goal.change, &goal.flags), goal.needed_change(&held)).await;
    if let Err(error @ (ToolError::CallFailed(_) | ToolError::Fatal(_))) = written {
        return Err(error);
    }
    // If the response to a write was lost, the series itself shows whether the change was made.
    let after = SeriesSnapshot::fetch_by_id(&instance.client, args.id)
        .await
        .map_err(|error| instance.unverified_write_error(&error))?;
    match after.filter(|after| goal.is_reached(after)) {
        Some(after) => {
            Ok(output_with_count(series_result(instance, &after, (&goal, args), "changed"), count))
        }
        None => Err(written.err().unwrap_or_else(|| ToolError::Unknown(unexpected_state(instance, args.id)))),
    }
}

async fn recover_series_change(
    instance: &Instance<Sonarr>,
    args: &ChangeMedia,
    now: Timestamp,
) -> Result<Option<CallResult>, ToolError> {
    let held = SeriesSnapshot::fetch_by_id(&instance.client, args.id)
        .await
        .map_err(|error| instance.request_error(&error))?;
    let Some(held) = held else { return Ok(None) };
    let goal = SeriesGoal::from_args(instance, &held, args, now).await?;
    Ok(goal.is_reached(&held).then(|| series_result(instance, &held, (&goal, args), "changed")))
}

fn parse_monitoring_change(
    held: &SeriesSnapshot,
    args: &ChangeMedia,
) -> Result<MonitoringChange, CallFailure> {
    let part = selectors::parse_part(held, &args.seasons)?;
    let named = args.quality.is_some() || args.anime.is_some() || args.new_seasons.is_some();
    match (args.monitored, part) {
        _ if args.only_future && held.episodes.is_empty() => Err(selectors::episodes_not_listed(held)),
        _ if args.only_future => Ok(MonitoringChange::OnlyFuture),
        (Some(true), Some(part)) => Ok(MonitoringChange::Monitor(part)),
        (Some(false), Some(part)) => Ok(MonitoringChange::Unmonitor(part)),
        (Some(flag), None) => Ok(MonitoringChange::Series(flag)),
        (None, None) if named => Ok(MonitoringChange::Unchanged),
        (None, Some(_)) => Err(missing_change("true or false for these seasons")),
        (None, None) => Err(missing_change("at least one change")),
    }
}

fn missing_change(expected: &str) -> CallFailure {
    bad_argument("monitored", expected, "")
}

fn series_result(
    instance: &Instance<Sonarr>,
    held: &SeriesSnapshot,
    (goal, args): (&SeriesGoal, &ChangeMedia),
    status: &str,
) -> CallResult {
    let mut parts = Vec::new();
    match &goal.change {
        MonitoringChange::Unchanged => {}
        MonitoringChange::Series(wanted) => parts.push(format_monitored(*wanted).to_owned()),
        MonitoringChange::Monitor(part) => parts.push(format_part_change(part, "looked for")),
        MonitoringChange::Unmonitor(part) => parts.push(format_part_change(part, "not looked for")),
        MonitoringChange::OnlyFuture => parts.push("only episodes still to come are looked for".to_owned()),
    }
    parts.extend(goal.profile.as_ref().map(format_quality));
    parts.extend(args.anime.map(|anime| if anime { "it is anime" } else { "it is no anime" }.to_owned()));
    parts.extend(args.new_seasons.map(|wanted| {
        if wanted { "new seasons are fetched" } else { "new seasons are not fetched" }.to_owned()
    }));
    let mut for_model = get_more::series_status_json(held, status);
    for_model["now"] = json!(parts);
    let for_user =
        format!("{}: {}.", format_media_title(&held.series.title, held.series.year), parts.join(", "));
    CallResult { for_model, for_user, shown: get_more::shown_ids(instance, held) }
}

fn format_monitored(looked_for: bool) -> &'static str {
    if looked_for { "it is looked for" } else { "it is not looked for" }
}

fn format_quality(profile: &QualityProfile) -> String {
    format!("the quality is {}", profile.name)
}

fn format_part_change(part: &SeriesPart, how: &str) -> String {
    let one = match part {
        SeriesPart::Seasons(numbers) => matches!(numbers.as_slice(), [season] if *season > 0),
        SeriesPart::Episodes(codes) => codes.len() == 1,
        SeriesPart::Future => true,
    };
    format!("{} {} {how}", selectors::format_part(part), if one { "is" } else { "are" })
}
