//! Notification of a user when a title that another user requested, or one season of a show, is ready.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::answers::{clean_title, named, refusal};
use super::approval::Cleared;
use super::arguments::{BadArgument, cleared, read, schema};
use super::library::{Instance, Library};
use super::{Deed, Interrupted, Ran, Settled, Tool, ToolError, Uses, WRITE_TIMEOUT, World};
use crate::arr::episodes::Episode;
use crate::arr::radarr::Radarr;
use crate::arr::sonarr::Sonarr;
use crate::arr::{Movie, Season, Series};
use crate::conversation::requests::{FOLLOWING, NOT_FOLLOWING, Stage, Wanted};
use crate::conversation::transcript::{
    Arguments, Audience, CallFailure, CallResult, MediaKind, MediaRef, Tier, ToolSpec,
};

const TELL_ME_WHEN_READY: &str = "tell_me_when_ready";

pub struct TellMeWhenReady {
    library: Arc<Library>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
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
enum Wish {
    Hear,
    HearNoMore,
}

/// Identifier of a title in a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Key {
    Id(i64),
    Catalog(i64),
}

#[async_trait]
impl Tool for TellMeWhenReady {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: TELL_ME_WHEN_READY,
            description: "Text the user when a title is ready (\"me too\"), by id, tmdb or tvdb.",
            tier: Tier::Write,
            audience: Audience::Everyone,
            parameters: self.schema().into(),
        }
    }

    fn timeout(&self) -> Duration {
        WRITE_TIMEOUT
    }

    fn check(&self, arguments: &Arguments) -> Result<Uses, CallFailure> {
        let args = self.arguments(arguments)?;
        let name = args.instance.as_deref();
        let used = match (args.kind, args.key()?) {
            (MediaKind::Movie, Key::Id(id)) => self.library.movie_instance(name)?.item(args.kind, id),
            (MediaKind::Series, Key::Id(id)) => self.library.series_instance(name)?.item(args.kind, id),
            (MediaKind::Movie, Key::Catalog(tmdb)) => MediaRef::Tmdb(tmdb),
            (MediaKind::Series, Key::Catalog(tvdb)) => MediaRef::Tvdb(tvdb),
        };
        Ok(Uses { refs: vec![used], four_k: false })
    }

    async fn run(&self, call: &Cleared, world: &World) -> Result<Ran, ToolError> {
        self.follow(cleared(call)?, world).await
    }

    /// Effects are stored only together with the result, so without a result no effect was stored.
    async fn settle(&self, _call: Interrupted<'_>, _world: &World) -> Result<Settled, ToolError> {
        Ok(Settled::NotDone)
    }
}

impl Args {
    fn wish(&self) -> Wish {
        if self.stop { Wish::HearNoMore } else { Wish::Hear }
    }

    fn key(&self) -> Result<Key, CallFailure> {
        let catalog = match self.kind {
            MediaKind::Movie => self.tmdb,
            MediaKind::Series => self.tvdb,
        };
        match (self.id, catalog) {
            (Some(id), _) => Ok(Key::Id(id)),
            (None, Some(id)) => Ok(Key::Catalog(id)),
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
    pub fn new(library: Arc<Library>) -> Self {
        Self { library }
    }

    pub(super) async fn follow(&self, arguments: &Arguments, world: &World) -> Result<Ran, ToolError> {
        let args = self.arguments(arguments)?;
        let (key, name) = (args.key()?, args.instance.as_deref());
        match args.kind {
            MediaKind::Movie => {
                let instance = self.library.movie_instance(name)?;
                let held = match key {
                    Key::Id(id) => instance.client.movie(id).await,
                    Key::Catalog(tmdb) => instance.client.movie_by_tmdb(tmdb).await,
                };
                match held {
                    Ok(Some(movie)) => Ok(follow_movie(instance, &movie, args.wish())),
                    Ok(None) => follow_promised(instance.name, &args, world, not_there().into()),
                    Err(error) => follow_promised(instance.name, &args, world, instance.refused(&error)),
                }
            }
            MediaKind::Series => {
                let instance = self.library.series_instance(name)?;
                let held = match key {
                    Key::Id(id) => instance.client.series(id).await,
                    Key::Catalog(tvdb) => instance.client.series_by_tvdb(tvdb).await,
                };
                match held {
                    Ok(Some(series)) => follow_series(instance, &series, &args, world).await,
                    Ok(None) => follow_promised(instance.name, &args, world, not_there().into()),
                    Err(error) => follow_promised(instance.name, &args, world, instance.refused(&error)),
                }
            }
        }
    }

    fn schema(&self) -> Value {
        let mut schema = schema::<Args>();
        self.library.offer(&mut schema);
        schema
    }

    fn arguments(&self, arguments: &Arguments) -> Result<Args, CallFailure> {
        read(TELL_ME_WHEN_READY, &self.schema(), arguments)
    }
}

fn follow_movie(instance: &Instance<Radarr>, movie: &Movie, wish: Wish) -> Ran {
    let wanted = wanted_movie(instance, movie);
    let waits = match (movie.monitored, movie.available) {
        (true, true) => "",
        (true, false) => " It is not out yet.",
        (false, _) => " It is not being looked for at the moment.",
    };
    match wish {
        Wish::HearNoMore => not_following(wanted),
        Wish::Hear if movie.has_file => ready(&wanted),
        Wish::Hear => following(wanted, waits),
    }
}

async fn follow_series(
    instance: &Instance<Sonarr>,
    series: &Series,
    args: &Args,
    world: &World,
) -> Result<Ran, ToolError> {
    let season = match args.season {
        None => None,
        Some(number) => Some(series.season(number).ok_or_else(|| no_such_season(series))?),
    };
    let seasons = season.map(|season| vec![season.number]);
    let wanted = Wanted { seasons, ..wanted_series(instance, series) };
    if args.wish() == Wish::HearNoMore {
        return Ok(not_following(wanted));
    }
    let looked_for = series.monitored && season.is_none_or(|season| season.monitored);
    let waits = match looked_for {
        false => " It is not being looked for at the moment.",
        true if not_on_disk(series, &wanted).is_none() => " What has aired so far is there.",
        true => "",
    };
    let growing = growing_episodes(instance, series, &wanted).await;
    Ok(match still_open(series, &wanted, (&growing, world.now)) {
        Some(open) => following(open, waits),
        None => ready(&wanted),
    })
}

/// Fetches the episodes of the growing seasons of a request. If Sonarr does not return them, the seasons count as
/// incomplete.
pub(super) async fn growing_episodes(
    instance: &Instance<Sonarr>,
    series: &Series,
    wanted: &Wanted,
) -> Vec<Episode> {
    let fetched = instance.client.growing_episodes(series, wanted.seasons.as_deref()).await;
    fetched.unwrap_or_else(|error| {
        let tvdb = series.tvdb;
        tracing::warn!(instance = instance.name, tvdb, %error, "failed to fetch the episodes of a growing season");
        Vec::new()
    })
}

/// Follows a title that the library does not have or cannot report, if some user is waiting for it. `otherwise` is the
/// error for any other title.
fn follow_promised(
    instance: &str,
    args: &Args,
    world: &World,
    otherwise: ToolError,
) -> Result<Ran, ToolError> {
    let Key::Catalog(id) = args.key()? else { return Err(otherwise) };
    let asked = world.who_asked(instance, args.kind, id);
    let Some(asked) = asked.into_iter().rfind(|asked| asked.stage == Stage::Waiting) else {
        return Err(otherwise);
    };
    let wanted = Wanted { seasons: args.season.map(|number| vec![number]), ..asked.wanted.clone() };
    Ok(match args.wish() {
        Wish::Hear => following(wanted, " It is not added yet."),
        Wish::HearNoMore => not_following(wanted),
    })
}

pub(super) fn wanted_movie(instance: &Instance<Radarr>, movie: &Movie) -> Wanted {
    Wanted {
        instance: instance.name.to_owned(),
        kind: MediaKind::Movie,
        catalog_id: movie.tmdb,
        title: clean_title(&movie.title),
        year: movie.year,
        seasons: None,
    }
}

/// Request for the whole show.
pub(super) fn wanted_series(instance: &Instance<Sonarr>, series: &Series) -> Wanted {
    Wanted {
        instance: instance.name.to_owned(),
        kind: MediaKind::Series,
        catalog_id: series.tvdb,
        title: clean_title(&series.title),
        year: series.year,
        seasons: None,
    }
}

/// Part of a requested show that is not complete. Returns `None` if all of it is.
pub(super) fn still_open(
    series: &Series,
    wanted: &Wanted,
    (growing, now): (&[Episode], Timestamp),
) -> Option<Wanted> {
    let is_complete = series.is_complete(growing, now);
    left_of(wanted, is_complete, |number| series.season_is_complete(number, growing, now))
}

/// Part of a requested show of which listed episodes are not on disk. Returns `None` if all of them are, although more
/// may be listed later.
pub(super) fn not_on_disk(series: &Series, wanted: &Wanted) -> Option<Wanted> {
    let is_on_disk = series.episodes > 0 && series.episodes_on_disk >= series.episodes;
    left_of(wanted, is_on_disk, |number| series.season(number).is_some_and(Season::is_on_disk))
}

/// Part of a request that is left without the seasons that are done.
fn left_of(wanted: &Wanted, whole_is_done: bool, is_done: impl Fn(u32) -> bool) -> Option<Wanted> {
    let Some(seasons) = &wanted.seasons else { return (!whole_is_done).then(|| wanted.clone()) };
    let left: Vec<u32> = seasons.iter().copied().filter(|number| !is_done(*number)).collect();
    (!left.is_empty()).then(|| Wanted { seasons: Some(left), ..wanted.clone() })
}

fn ready(wanted: &Wanted) -> Ran {
    let for_user = format!("{} {} there already, ready to watch.", wanted.name(), wanted.verb());
    CallResult { for_model: told(wanted, "ready"), for_user, shown: Vec::new() }.into()
}

fn following(wanted: Wanted, waits: &str) -> Ran {
    let for_user = format!("I'll text you when {} {} ready.{waits}", wanted.name(), wanted.verb());
    let result = CallResult { for_model: told(&wanted, FOLLOWING), for_user, shown: Vec::new() };
    Ran::with(result, Deed::Notify(wanted))
}

fn not_following(wanted: Wanted) -> Ran {
    let for_user = format!("OK, I won't text you about {}.", wanted.name());
    let result = CallResult { for_model: told(&wanted, NOT_FOLLOWING), for_user, shown: Vec::new() };
    Ran::with(result, Deed::Unfollow(wanted))
}

fn told(wanted: &Wanted, status: &str) -> Value {
    json!({ "status": status, "title": wanted.title, "year": wanted.year, "seasons": wanted.seasons })
}

fn not_there() -> CallFailure {
    refusal(
        "not_in_library",
        json!({ "hint": "it is not in the library; offer to add it" }),
        Some("That is not in the library.".to_owned()),
    )
}

fn no_such_season(series: &Series) -> CallFailure {
    let count = series.seasons.len();
    refusal(
        "bad_arguments",
        json!({ "field": "season", "seasons": count }),
        Some(format!("{} has no such season.", named(&series.title, series.year))),
    )
}
