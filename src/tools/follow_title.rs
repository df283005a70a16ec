//! Tool that follows a title or a season, so that the user is notified when it is ready, or unfollows it.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::arguments::parsing::bad_argument;
use super::formatting::{clean_title, format_media_title};
use super::instance_ref::InstanceRef;
use super::library::{ArrInstances, Instance};
use super::playback::{self, PlaybackAnswer};
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

/// Tool that turns on or off the notification about a title.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TellMeWhenReady {
    #[serde(rename = "type")]
    kind: MediaKind,
    id: Option<i64>,
    /// Of a movie, without id.
    tmdb: Option<i64>,
    /// Of a show, without id.
    tvdb: Option<i64>,
    season: Option<u32>,
    /// No more texts.
    #[serde(default)]
    stop: bool,
    instance: Option<String>,
}

/// Requested change of the notification about a title.
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
    const DESCRIPTION: &'static str = "Text only the user when a title is ready. Adding does it by itself.";
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
                let found = match key {
                    TitleKey::Id(id) => instance.client.fetch_movie(id).await,
                    TitleKey::Catalog(tmdb) => instance.client.fetch_movie_by_tmdb(tmdb).await,
                };
                match found {
                    Ok(Some(movie)) => {
                        Ok(follow_movie(library, (instance, &movie), self.follow_change(), context).await)
                    }
                    Ok(None) => follow_waiting_title(instance.name, self, context, not_in_library().into()),
                    Err(error) => {
                        follow_waiting_title(instance.name, self, context, instance.request_error(&error))
                    }
                }
            }
            MediaKind::Series => {
                let instance = library.series_instance(name)?;
                let found = match key {
                    TitleKey::Id(id) => instance.client.fetch_series(id).await,
                    TitleKey::Catalog(tvdb) => instance.client.fetch_series_by_tvdb(tvdb).await,
                };
                match found {
                    Ok(Some(series)) => follow_series(library, (instance, &series), self, context).await,
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

async fn follow_movie(
    library: &ArrInstances,
    (instance, movie): (&Instance<Radarr>, &Movie),
    change: FollowChange,
    context: &ToolContext,
) -> ToolOutput {
    let requested = requested_movie(instance, movie);
    let note = match (movie.monitored, movie.available) {
        (true, true) => "",
        (true, false) => " It is not out yet.",
        (false, _) => " It is not being looked for at the moment.",
    };
    match change {
        FollowChange::Unfollow => unfollow_output(requested),
        FollowChange::Follow if movie.has_file => {
            let playback = playback::check_movie(library, movie, context.now).await;
            ready_output(requested, playback, context)
        }
        FollowChange::Follow => follow_output(requested, note),
    }
}

async fn follow_series(
    library: &ArrInstances,
    (instance, series): (&Instance<Sonarr>, &Series),
    args: &TellMeWhenReady,
    context: &ToolContext,
) -> Result<ToolOutput, ToolError> {
    let season = match args.season {
        None => None,
        Some(number) => Some(series.season(number).ok_or_else(|| no_such_season(series))?),
    };
    let seasons = season.map(|season| vec![season.number]);
    let requested = RequestedTitle { seasons, ..requested_series(instance, series) };
    if args.follow_change() == FollowChange::Unfollow {
        return Ok(unfollow_output(requested));
    }
    let is_monitored = series.monitored && season.is_none_or(|season| season.monitored);
    let note = match is_monitored {
        false => " It is not being looked for at the moment.",
        true if not_on_disk(series, &requested).is_none() => " Everything that has aired so far is there.",
        true => "",
    };
    let growing = growing_episodes(instance, series, &requested).await;
    Ok(match missing_part(series, &requested, (&growing, context.now)) {
        Some(missing) => follow_output(missing, note),
        None => {
            let playback = playback::check_series(library, series, season, context.now).await;
            ready_output(requested, playback, context)
        }
    })
}

/// Fetches the episodes of the growing seasons of a request. If Sonarr does not return them, the seasons count as
/// incomplete.
pub(super) async fn growing_episodes(
    instance: &Instance<Sonarr>,
    series: &Series,
    requested: &RequestedTitle,
) -> Vec<Episode> {
    let fetched = instance.client.fetch_growing_episodes(series, requested.seasons.as_deref()).await;
    fetched.unwrap_or_else(|error| {
        let tvdb = series.tvdb;
        tracing::warn!(instance = instance.name, tvdb, %error, "failed to fetch the episodes of a growing season");
        Vec::new()
    })
}

/// Follows a title that is not in the library, or whose instance is down, if a waiting request for it exists. Otherwise
/// returns `error`.
fn follow_waiting_title(
    instance: &str,
    args: &TellMeWhenReady,
    context: &ToolContext,
    error: ToolError,
) -> Result<ToolOutput, ToolError> {
    let TitleKey::Catalog(id) = args.title_key()? else { return Err(error) };
    let requests = context.requests_for_title(instance, args.kind, id);
    let Some(request) = requests.into_iter().rfind(|request| request.status == RequestStatus::Waiting) else {
        return Err(error);
    };
    let requested =
        RequestedTitle { seasons: args.season.map(|number| vec![number]), ..request.wanted.clone() };
    Ok(match args.follow_change() {
        FollowChange::Follow => follow_output(requested, " It is not added yet."),
        FollowChange::Unfollow => unfollow_output(requested),
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
    requested: &RequestedTitle,
    (growing, now): (&[Episode], Timestamp),
) -> Option<RequestedTitle> {
    let is_complete = series.is_complete(growing, now);
    remaining_part(requested, is_complete, |number| series.season_is_complete(number, growing, now))
}

/// Returns the part of a requested series that has listed episodes which are not on disk. Returns `None` if all of them
/// are on disk, even if more may be listed later.
pub(super) fn not_on_disk(series: &Series, requested: &RequestedTitle) -> Option<RequestedTitle> {
    let is_on_disk = series.episodes > 0 && series.episodes_on_disk >= series.episodes;
    remaining_part(requested, is_on_disk, |number| series.season(number).is_some_and(Season::is_on_disk))
}

/// Returns the part of a request without the seasons that are done. Returns `None` if nothing remains.
fn remaining_part(
    requested: &RequestedTitle,
    is_whole_done: bool,
    is_done: impl Fn(u32) -> bool,
) -> Option<RequestedTitle> {
    let Some(seasons) = &requested.seasons else { return (!is_whole_done).then(|| requested.clone()) };
    let remaining: Vec<u32> = seasons.iter().copied().filter(|number| !is_done(*number)).collect();
    (!remaining.is_empty()).then(|| RequestedTitle { seasons: Some(remaining), ..requested.clone() })
}

/// Returns the answer about a title on disk. If a media server does not show it, the user follows it.
fn ready_output(
    requested: RequestedTitle,
    playback: Option<PlaybackAnswer>,
    context: &ToolContext,
) -> ToolOutput {
    let name = requested.format_name();
    if let Some(playback) = playback.filter(|playback| !playback.is_playable()) {
        let role = context.rights.role;
        let mut for_model = follow_status_json(&requested, FOLLOWING);
        playback.add_fields(&mut for_model, role);
        let for_user = playback.format_sentence(&name, role);
        let result = CallResult { for_model, for_user, shown: Vec::new() };
        return ToolOutput::with_effect(result, ToolEffect::Notify(requested));
    }
    let for_user = format!("{name} {} there already, ready to watch.", requested.be_verb());
    CallResult { for_model: follow_status_json(&requested, "ready"), for_user, shown: Vec::new() }.into()
}

fn follow_output(requested: RequestedTitle, note: &str) -> ToolOutput {
    let for_user =
        format!("I'll text you when {} {} ready.{note}", requested.format_name(), requested.be_verb());
    let result =
        CallResult { for_model: follow_status_json(&requested, FOLLOWING), for_user, shown: Vec::new() };
    ToolOutput::with_effect(result, ToolEffect::Notify(requested))
}

fn unfollow_output(requested: RequestedTitle) -> ToolOutput {
    let for_user = format!("OK, I won't text you about {}.", requested.format_name());
    let result =
        CallResult { for_model: follow_status_json(&requested, NOT_FOLLOWING), for_user, shown: Vec::new() };
    ToolOutput::with_effect(result, ToolEffect::Unfollow(requested))
}

fn follow_status_json(requested: &RequestedTitle, status: &str) -> Value {
    json!({ "status": status, "title": requested.title, "year": requested.year, "seasons": requested.seasons })
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
        json!({ "field": "season", "seasons": count, "hint": "say which seasons there are" }),
        Some(format!("{} has no such season.", format_media_title(&series.title, series.year))),
    )
}
