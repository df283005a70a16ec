//! Notification of a user when a title that another user requested, or one season of a series, is ready.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::arguments::parsing::bad_argument;
use super::formatting::{clean_title, format_media_title};
use super::instance_ref::InstanceRef;
use super::library::{ArrInstances, Instance};
use super::typed_tool::TypedTool;
use super::{CallReferences, ToolContext, ToolEffect, ToolError, ToolOutput};
use crate::arr::episodes::Episode;
use crate::arr::radarr::Radarr;
use crate::arr::sonarr::Sonarr;
use crate::arr::{Movie, Season, Series};
use crate::conversation::title_requests::{FOLLOWING, NOT_FOLLOWING, RequestStatus, RequestedTitle};
use crate::conversation::transcript::{
    CallFailure, CallResult, EffectLevel, FailureCode, MediaKind, MediaRef, ToolAudience,
};

/// Tool that turns the notification about a title on or off.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TellMeWhenReady {
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

impl TypedTool for TellMeWhenReady {
    const NAME: &'static str = "tell_me_when_ready";
    const DESCRIPTION: &'static str =
        "Text the user when a title is ready (\"me too\"), by id, tmdb or tvdb.";
    const EFFECT_LEVEL: EffectLevel = EffectLevel::Write;
    const AUDIENCE: ToolAudience = ToolAudience::Everyone;

    fn check(&self, library: &ArrInstances) -> Result<CallReferences, CallFailure> {
        Ok(match (self.kind, self.title_key()?) {
            (_, TitleKey::Id(id)) => {
                InstanceRef::find_by_name(library, self.kind, self.instance.as_deref())?.media_ref(id).into()
            }
            (MediaKind::Movie, TitleKey::Catalog(tmdb)) => MediaRef::Tmdb(tmdb).into(),
            (MediaKind::Series, TitleKey::Catalog(tvdb)) => MediaRef::Tvdb(tvdb).into(),
        })
    }

    async fn run(&self, library: &ArrInstances, context: &ToolContext) -> Result<ToolOutput, ToolError> {
        let (key, name) = (self.title_key()?, self.instance.as_deref());
        match self.kind {
            MediaKind::Movie => {
                let instance = library.movie_instance(name)?;
                let held = match key {
                    TitleKey::Id(id) => instance.client.fetch_movie(id).await,
                    TitleKey::Catalog(tmdb) => instance.client.fetch_movie_by_tmdb(tmdb).await,
                };
                match held {
                    Ok(Some(movie)) => Ok(follow_movie(instance, &movie, self.follow_change())),
                    Ok(None) => follow_waiting_title(instance.name, self, context, not_in_library().into()),
                    Err(error) => {
                        follow_waiting_title(instance.name, self, context, instance.request_error(&error))
                    }
                }
            }
            MediaKind::Series => {
                let instance = library.series_instance(name)?;
                let held = match key {
                    TitleKey::Id(id) => instance.client.fetch_series(id).await,
                    TitleKey::Catalog(tvdb) => instance.client.fetch_series_by_tvdb(tvdb).await,
                };
                match held {
                    Ok(Some(series)) => follow_series(instance, &series, self, context).await,
                    Ok(None) => follow_waiting_title(instance.name, self, context, not_in_library().into()),
                    Err(error) => {
                        follow_waiting_title(instance.name, self, context, instance.request_error(&error))
                    }
                }
            }
        }
    }
}

impl TellMeWhenReady {
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
            (None, None) => {
                Err(bad_argument("id", "id, tmdb of a movie, or tvdb of a series", "Find the title first."))
            }
        }
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
    args: &TellMeWhenReady,
    context: &ToolContext,
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
    Ok(match missing_part(series, &wanted, (&growing, context.now)) {
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
    let fetched = instance.client.fetch_growing_episodes(series, wanted.seasons.as_deref()).await;
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
    args: &TellMeWhenReady,
    context: &ToolContext,
    otherwise: ToolError,
) -> Result<ToolOutput, ToolError> {
    let TitleKey::Catalog(id) = args.title_key()? else { return Err(otherwise) };
    let asked = context.requests_for_title(instance, args.kind, id);
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
