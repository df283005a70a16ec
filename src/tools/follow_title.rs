//! Notification of a user when a title that another user requested, or one season of a series, is ready.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::approval::ApprovedCall;
use super::arguments::{BadArgument, approved_arguments, argument_schema, parse_arguments};
use super::formatting::{clean_title, format_media_title};
use super::library::{ArrInstances, Instance};
use super::{
    CallReferences, InterruptedRun, RecoveryOutcome, Tool, ToolContext, ToolEffect, ToolError, ToolOutput,
    WRITE_TIMEOUT,
};
use crate::arr::episodes::Episode;
use crate::arr::radarr::Radarr;
use crate::arr::sonarr::Sonarr;
use crate::arr::{Movie, Season, Series};
use crate::conversation::title_requests::{FOLLOWING, NOT_FOLLOWING, RequestStatus, RequestedTitle};
use crate::conversation::transcript::{
    CallFailure, CallResult, EffectLevel, FailureCode, MediaKind, MediaRef, ToolArguments, ToolAudience,
    ToolSpec,
};

const TELL_ME_WHEN_READY: &str = "tell_me_when_ready";

pub struct TellMeWhenReady {
    library: Arc<ArrInstances>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TellMeWhenReadyArgs {
    #[serde(rename = "type")]
    kind: MediaKind,
    id: Option<i64>,
    tmdb: Option<i64>,
    tvdb: Option<i64>,
    season: Option<u32>,
    #[serde(default)]
    stop: bool,
    instance: Option<String>,
}

/// Notification setting that the user requests for a title.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FollowChange {
    Follow,
    Unfollow,
}

/// Identifier of a title in a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TitleKey {
    Id(i64),
    Catalog(i64),
}

#[async_trait]
impl Tool for TellMeWhenReady {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: TELL_ME_WHEN_READY,
            description: "Text the user when a title is ready (\"me too\"), by id, tmdb or tvdb.",
            effect_level: EffectLevel::Write,
            audience: ToolAudience::Everyone,
            parameters: self.parameters_schema().into(),
        }
    }

    fn timeout(&self) -> Duration {
        WRITE_TIMEOUT
    }

    fn check_arguments(&self, arguments: &ToolArguments) -> Result<CallReferences, CallFailure> {
        let args = self.parse_call(arguments)?;
        let name = args.instance.as_deref();
        let used = match (args.kind, args.title_key()?) {
            (MediaKind::Movie, TitleKey::Id(id)) => {
                self.library.movie_instance(name)?.media_ref(args.kind, id)
            }
            (MediaKind::Series, TitleKey::Id(id)) => {
                self.library.series_instance(name)?.media_ref(args.kind, id)
            }
            (MediaKind::Movie, TitleKey::Catalog(tmdb)) => MediaRef::Tmdb(tmdb),
            (MediaKind::Series, TitleKey::Catalog(tvdb)) => MediaRef::Tvdb(tvdb),
        };
        Ok(CallReferences { refs: vec![used], four_k: false })
    }

    async fn run(&self, call: &ApprovedCall, world: &ToolContext) -> Result<ToolOutput, ToolError> {
        self.follow_title(approved_arguments(call)?, world).await
    }

    /// Returns [`RecoveryOutcome::NotDone`]. Effects are stored only together with the result, so without a result no
    /// effect was stored.
    async fn recover_outcome(
        &self,
        _call: InterruptedRun<'_>,
        _world: &ToolContext,
    ) -> Result<RecoveryOutcome, ToolError> {
        Ok(RecoveryOutcome::NotDone)
    }
}

impl TellMeWhenReadyArgs {
    fn follow_change(&self) -> FollowChange {
        if self.stop { FollowChange::Unfollow } else { FollowChange::Follow }
    }

    fn title_key(&self) -> Result<TitleKey, CallFailure> {
        let catalog = match self.kind {
            MediaKind::Movie => self.tmdb,
            MediaKind::Series => self.tvdb,
        };
        match (self.id, catalog) {
            (Some(id), _) => Ok(TitleKey::Id(id)),
            (None, Some(id)) => Ok(TitleKey::Catalog(id)),
            (None, None) => Err(BadArgument {
                field: "id".to_owned(),
                expected: "id, tmdb of a movie, or tvdb of a series".to_owned(),
                hint: "Find the title first.".to_owned(),
            }
            .into()),
        }
    }
}

impl TellMeWhenReady {
    pub fn new(library: Arc<ArrInstances>) -> Self {
        Self { library }
    }

    pub(super) async fn follow_title(
        &self,
        arguments: &ToolArguments,
        world: &ToolContext,
    ) -> Result<ToolOutput, ToolError> {
        let args = self.parse_call(arguments)?;
        let (key, name) = (args.title_key()?, args.instance.as_deref());
        match args.kind {
            MediaKind::Movie => {
                let instance = self.library.movie_instance(name)?;
                let held = match key {
                    TitleKey::Id(id) => instance.client.fetch_movie(id).await,
                    TitleKey::Catalog(tmdb) => instance.client.movie_by_tmdb(tmdb).await,
                };
                match held {
                    Ok(Some(movie)) => Ok(follow_movie(instance, &movie, args.follow_change())),
                    Ok(None) => follow_waiting_title(instance.name, &args, world, not_in_library().into()),
                    Err(error) => {
                        follow_waiting_title(instance.name, &args, world, instance.request_error(&error))
                    }
                }
            }
            MediaKind::Series => {
                let instance = self.library.series_instance(name)?;
                let held = match key {
                    TitleKey::Id(id) => instance.client.fetch_series(id).await,
                    TitleKey::Catalog(tvdb) => instance.client.series_by_tvdb(tvdb).await,
                };
                match held {
                    Ok(Some(series)) => follow_series(instance, &series, &args, world).await,
                    Ok(None) => follow_waiting_title(instance.name, &args, world, not_in_library().into()),
                    Err(error) => {
                        follow_waiting_title(instance.name, &args, world, instance.request_error(&error))
                    }
                }
            }
        }
    }

    fn parameters_schema(&self) -> Value {
        let mut schema = argument_schema::<TellMeWhenReadyArgs>();
        self.library.offer_instances(&mut schema);
        schema
    }

    fn parse_call(&self, arguments: &ToolArguments) -> Result<TellMeWhenReadyArgs, CallFailure> {
        parse_arguments(TELL_ME_WHEN_READY, &self.parameters_schema(), arguments)
    }
}

fn follow_movie(instance: &Instance<Radarr>, movie: &Movie, wish: FollowChange) -> ToolOutput {
    let wanted = requested_movie(instance, movie);
    let waits = match (movie.monitored, movie.available) {
        (true, true) => "",
        (true, false) => " It is not out yet.",
        (false, _) => " It is not being looked for at the moment.",
    };
    match wish {
        FollowChange::Unfollow => unfollow_output(wanted),
        FollowChange::Follow if movie.has_file => ready_output(&wanted),
        FollowChange::Follow => follow_output(wanted, waits),
    }
}

async fn follow_series(
    instance: &Instance<Sonarr>,
    series: &Series,
    args: &TellMeWhenReadyArgs,
    world: &ToolContext,
) -> Result<ToolOutput, ToolError> {
    let season = match args.season {
        None => None,
        Some(number) => Some(series.season(number).ok_or_else(|| no_such_season(series))?),
    };
    let seasons = season.map(|season| vec![season.number]);
    let wanted = RequestedTitle { seasons, ..requested_series(instance, series) };
    if args.follow_change() == FollowChange::Unfollow {
        return Ok(unfollow_output(wanted));
    }
    let looked_for = series.monitored && season.is_none_or(|season| season.monitored);
    let waits = match looked_for {
        false => " It is not being looked for at the moment.",
        true if not_on_disk(series, &wanted).is_none() => " What has aired so far is there.",
        true => "",
    };
    let growing = growing_episodes(instance, series, &wanted).await;
    Ok(match missing_part(series, &wanted, (&growing, world.now)) {
        Some(open) => follow_output(open, waits),
        None => ready_output(&wanted),
    })
}

/// Fetches the episodes of the growing seasons of a request. If Sonarr does not return them, the seasons count as
/// incomplete.
pub(super) async fn growing_episodes(
    instance: &Instance<Sonarr>,
    series: &Series,
    wanted: &RequestedTitle,
) -> Vec<Episode> {
    let fetched = instance.client.growing_episodes(series, wanted.seasons.as_deref()).await;
    fetched.unwrap_or_else(|error| {
        let tvdb = series.tvdb;
        tracing::warn!(instance = instance.name, tvdb, %error, "failed to fetch the episodes of a growing season");
        Vec::new()
    })
}

/// Follows a title that the library does not have or cannot report, if some user is waiting for the title. `otherwise`
/// is the error for any other title.
fn follow_waiting_title(
    instance: &str,
    args: &TellMeWhenReadyArgs,
    world: &ToolContext,
    otherwise: ToolError,
) -> Result<ToolOutput, ToolError> {
    let TitleKey::Catalog(id) = args.title_key()? else { return Err(otherwise) };
    let asked = world.requests_for_title(instance, args.kind, id);
    let Some(asked) = asked.into_iter().rfind(|asked| asked.status == RequestStatus::Waiting) else {
        return Err(otherwise);
    };
    let wanted = RequestedTitle { seasons: args.season.map(|number| vec![number]), ..asked.wanted.clone() };
    Ok(match args.follow_change() {
        FollowChange::Follow => follow_output(wanted, " It is not added yet."),
        FollowChange::Unfollow => unfollow_output(wanted),
    })
}

pub(super) fn requested_movie(instance: &Instance<Radarr>, movie: &Movie) -> RequestedTitle {
    RequestedTitle {
        instance: instance.name.to_owned(),
        kind: MediaKind::Movie,
        catalog_id: movie.tmdb,
        title: clean_title(&movie.title),
        year: movie.year,
        seasons: None,
    }
}

/// Builds the request for the whole series.
pub(super) fn requested_series(instance: &Instance<Sonarr>, series: &Series) -> RequestedTitle {
    RequestedTitle {
        instance: instance.name.to_owned(),
        kind: MediaKind::Series,
        catalog_id: series.tvdb,
        title: clean_title(&series.title),
        year: series.year,
        seasons: None,
    }
}

/// Returns the part of a requested series that is not complete. Returns `None` if all of it is complete.
pub(super) fn missing_part(
    series: &Series,
    wanted: &RequestedTitle,
    (growing, now): (&[Episode], Timestamp),
) -> Option<RequestedTitle> {
    let is_complete = series.is_complete(growing, now);
    left_of(wanted, is_complete, |number| series.season_is_complete(number, growing, now))
}

/// Returns the part of a requested series of which listed episodes are not on disk. Returns `None` if all of them are
/// on disk, although more may be listed later.
pub(super) fn not_on_disk(series: &Series, wanted: &RequestedTitle) -> Option<RequestedTitle> {
    let is_on_disk = series.episodes > 0 && series.episodes_on_disk >= series.episodes;
    left_of(wanted, is_on_disk, |number| series.season(number).is_some_and(Season::is_on_disk))
}

/// Returns the part of a request that is left without the seasons that are done.
fn left_of(
    wanted: &RequestedTitle,
    whole_is_done: bool,
    is_done: impl Fn(u32) -> bool,
) -> Option<RequestedTitle> {
    let Some(seasons) = &wanted.seasons else { return (!whole_is_done).then(|| wanted.clone()) };
    let left: Vec<u32> = seasons.iter().copied().filter(|number| !is_done(*number)).collect();
    (!left.is_empty()).then(|| RequestedTitle { seasons: Some(left), ..wanted.clone() })
}

fn ready_output(wanted: &RequestedTitle) -> ToolOutput {
    let for_user = format!("{} {} there already, ready to watch.", wanted.format_name(), wanted.be_verb());
    CallResult { for_model: follow_status_json(wanted, "ready"), for_user, shown: Vec::new() }.into()
}

fn follow_output(wanted: RequestedTitle, waits: &str) -> ToolOutput {
    let for_user = format!("I'll text you when {} {} ready.{waits}", wanted.format_name(), wanted.be_verb());
    let result =
        CallResult { for_model: follow_status_json(&wanted, FOLLOWING), for_user, shown: Vec::new() };
    ToolOutput::with_effect(result, ToolEffect::Notify(wanted))
}

fn unfollow_output(wanted: RequestedTitle) -> ToolOutput {
    let for_user = format!("OK, I won't text you about {}.", wanted.format_name());
    let result =
        CallResult { for_model: follow_status_json(&wanted, NOT_FOLLOWING), for_user, shown: Vec::new() };
    ToolOutput::with_effect(result, ToolEffect::Unfollow(wanted))
}

fn follow_status_json(wanted: &RequestedTitle, status: &str) -> Value {
    json!({ "status": status, "title": wanted.title, "year": wanted.year, "seasons": wanted.seasons })
}

fn not_in_library() -> CallFailure {
    CallFailure::new(
        FailureCode::NotInLibrary,
        json!({ "hint": "it is not in the library; offer to add it" }),
        Some("That is not in the library.".to_owned()),
    )
}

fn no_such_season(series: &Series) -> CallFailure {
    let count = series.seasons.len();
    CallFailure::new(
        FailureCode::BadArguments,
        json!({ "field": "season", "seasons": count }),
        Some(format!("{} has no such season.", format_media_title(&series.title, series.year))),
    )
}
