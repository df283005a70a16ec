//! Changes to titles in the library: which parts are monitored, in which quality, and the type of a show.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::more::{not_so, with_count};
use super::picking;
use super::wanting::{Flags, Held, Part, Wish, set};
use super::{films, more};
use crate::arr::changes::{MovieChange, SeriesChange};
use crate::arr::radarr::Radarr;
use crate::arr::sonarr::Sonarr;
use crate::arr::{Movie, Profile};
use crate::conversation::transcript::{
    Arguments, Audience, CallFailure, CallResult, MediaKind, MediaRef, Tier, ToolSpec,
};
use crate::tools::answers::named;
use crate::tools::approval::{self, Cleared};
use crate::tools::arguments::{BadArgument, cleared, read, schema};
use crate::tools::library::{Instance, Library, profile_named};
use crate::tools::removal::unknown;
use crate::tools::seasons::{MAX_SEASONS_UNASKED, asks_for_many, which_seasons};
use crate::tools::{Interrupted, Ran, Settled, Tool, ToolError, Uses, WRITE_TIMEOUT, World, outcomes};

const ANIME: &str = "anime";
const STANDARD: &str = "standard";

pub struct ChangeMedia {
    library: Arc<Library>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
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

#[async_trait]
impl Tool for ChangeMedia {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "change_media",
            description: "Change how a title of the library, or these seasons, is looked for. Give only what changes.",
            tier: Tier::Write,
            audience: Audience::Adders,
            parameters: self.schema().into(),
        }
    }

    fn timeout(&self) -> Duration {
        WRITE_TIMEOUT
    }

    fn check(&self, arguments: &Arguments) -> Result<Uses, CallFailure> {
        let args = self.arguments(arguments)?;
        picking::uses(&self.library, (args.kind, args.id), args.instance.as_deref())
    }

    async fn run(&self, call: &Cleared, world: &World) -> Result<Ran, ToolError> {
        let args = self.arguments(cleared(call)?)?;
        let name = args.instance.as_deref();
        match args.kind {
            MediaKind::Movie => change_movie(self.library.movie_instance(name)?, &args, world).await,
            MediaKind::Series => change_series(self.library.series_instance(name)?, &args, world).await,
        }
    }

    fn not_done(&self, title: Option<&str>) -> CallFailure {
        outcomes::not_changed(title)
    }

    /// The earlier monitoring state is no longer known, so an interrupted change counts nothing towards the quota.
    async fn settle(&self, call: Interrupted<'_>, world: &World) -> Result<Settled, ToolError> {
        let Interrupted::Call(arguments) = call else { return Ok(Settled::Unknown) };
        let args = self.arguments(arguments)?;
        let name = args.instance.as_deref();
        let found = match args.kind {
            MediaKind::Movie => movie_changed(self.library.movie_instance(name)?, &args).await,
            MediaKind::Series => series_changed(self.library.series_instance(name)?, &args, world.now).await,
        };
        match found {
            Ok(Some(result)) => Ok(Settled::Done(result.into())),
            Ok(None) => Ok(Settled::NotDone),
            Err(ToolError::Fatal(error)) => Err(ToolError::Fatal(error)),
            Err(error @ (ToolError::TellModel(_) | ToolError::Unknown(_))) => {
                tracing::warn!(id = args.id, %error, "failed to settle a change");
                Ok(Settled::Unknown)
            }
        }
    }
}

impl ChangeMedia {
    pub fn new(library: Arc<Library>) -> Self {
        Self { library }
    }

    fn schema(&self) -> Value {
        let mut schema = schema::<Args>();
        self.library.offer(&mut schema);
        schema
    }

    fn arguments(&self, arguments: &Arguments) -> Result<Args, CallFailure> {
        read("change_media", &self.schema(), arguments)
    }
}

/// Desired state of a movie.
struct FilmGoal {
    monitored: Option<bool>,
    profile: Option<Profile>,
}

impl FilmGoal {
    async fn of(instance: &Instance<Radarr>, args: &Args) -> Result<Self, ToolError> {
        let profile = match &args.quality {
            Some(quality) => {
                let profiles = instance.client.profiles().await.map_err(|error| instance.refused(&error))?;
                Some(profile_named(&profiles, quality)?.clone())
            }
            None => None,
        };
        if args.monitored.is_none() && profile.is_none() {
            return Err(nothing_named("monitored or quality for a movie").into());
        }
        Ok(Self { monitored: args.monitored, profile })
    }

    /// Properties of the movie that differ from the goal.
    fn change(&self, movie: &Movie) -> MovieChange {
        MovieChange {
            monitored: self.monitored.filter(|flag| *flag != movie.monitored),
            profile: self.profile.as_ref().map(|profile| profile.id).filter(|id| *id != movie.profile),
            availability: None,
        }
    }
}

async fn change_movie(instance: &Instance<Radarr>, args: &Args, world: &World) -> Result<Ran, ToolError> {
    let radarr = &instance.client;
    let goal = FilmGoal::of(instance, args).await?;
    let held = radarr.movie(args.id).await.map_err(|error| instance.refused(&error))?;
    let held = held.ok_or_else(|| unknown(args.id))?;
    let change = goal.change(&held);
    if change == MovieChange::default() {
        return Ok(movie_told(instance, &held, &goal, "unchanged").into());
    }
    goal.profile.iter().try_for_each(|profile| approval::may_choose(profile, world.rights))?;
    let count = (change.monitored == Some(true) && !held.has_file).then_some(films::ONE_MOVIE);
    if let Some(count) = count {
        approval::within_quota(world, count)?;
    }
    let written = radarr.edit(args.id, change).await.map_err(|error| instance.failed_write(&error));
    if let Err(error @ (ToolError::TellModel(_) | ToolError::Fatal(_))) = written {
        return Err(error);
    }
    // If the response was lost, the movie itself shows whether the change was made.
    let after = radarr.movie(args.id).await.map_err(|error| instance.unread_write(&error))?;
    match after.filter(|after| goal.change(after) == MovieChange::default()) {
        Some(after) => Ok(with_count(movie_told(instance, &after, &goal, "changed"), count)),
        None => Err(written.err().unwrap_or_else(|| ToolError::Unknown(not_so(instance, args.id)))),
    }
}

async fn movie_changed(instance: &Instance<Radarr>, args: &Args) -> Result<Option<CallResult>, ToolError> {
    let goal = FilmGoal::of(instance, args).await?;
    let held = instance.client.movie(args.id).await.map_err(|error| instance.refused(&error))?;
    let held = held.filter(|held| goal.change(held) == MovieChange::default());
    Ok(held.map(|held| movie_told(instance, &held, &goal, "changed")))
}

fn movie_told(instance: &Instance<Radarr>, movie: &Movie, goal: &FilmGoal, status: &str) -> CallResult {
    let mut parts = Vec::new();
    parts.extend(goal.monitored.map(|_| show_told(movie.monitored).to_owned()));
    parts.extend(goal.profile.as_ref().map(quality_told));
    let mut for_model = films::told(movie, status);
    for_model["now"] = json!(parts);
    let for_user = format!("{}: {}.", named(&movie.title, movie.year), parts.join(", "));
    let mut shown = vec![MediaRef::Tmdb(movie.tmdb)];
    shown.extend(movie.id.map(|id| instance.item(MediaKind::Movie, id)));
    CallResult { for_model, for_user, shown }
}

/// Desired state of a show.
struct ShowGoal {
    wish: Wish,
    flags: Flags,
    profile: Option<Profile>,
    series_type: Option<&'static str>,
}

impl ShowGoal {
    async fn of(
        instance: &Instance<Sonarr>,
        held: &Held,
        args: &Args,
        now: Timestamp,
    ) -> Result<Self, ToolError> {
        let wish = wish(held, args)?;
        let profile = match &args.quality {
            Some(quality) => {
                let profiles = instance.client.profiles().await.map_err(|error| instance.refused(&error))?;
                Some(profile_named(&profiles, quality)?.clone())
            }
            None => None,
        };
        let mut flags = held.goal(&wish, now);
        flags.new_seasons = args.new_seasons.unwrap_or(flags.new_seasons);
        let series_type = match args.anime {
            Some(true) => Some(ANIME),
            Some(false) if held.series.series_type == ANIME => Some(STANDARD),
            Some(false) | None => None,
        };
        Ok(Self { wish, flags, profile, series_type })
    }

    /// Properties of the show, apart from the flags, that differ from the goal.
    fn change(&self, held: &Held) -> SeriesChange {
        SeriesChange {
            profile: self.profile.as_ref().map(|profile| profile.id).filter(|id| *id != held.series.profile),
            series_type: self.series_type.filter(|word| *word != held.series.series_type),
            ..SeriesChange::default()
        }
    }

    fn reached(&self, held: &Held) -> bool {
        held.flags().reach(&self.flags) && self.change(held) == SeriesChange::default()
    }
}

async fn change_series(instance: &Instance<Sonarr>, args: &Args, world: &World) -> Result<Ran, ToolError> {
    let held = Held::read(&instance.client, args.id).await.map_err(|error| instance.refused(&error))?;
    let held = held.ok_or_else(|| unknown(args.id))?;
    let goal = ShowGoal::of(instance, &held, args, world.now).await?;
    if goal.reached(&held) {
        return Ok(series_told(instance, &held, (&goal, args), "unchanged").into());
    }
    goal.profile.iter().try_for_each(|profile| approval::may_choose(profile, world.rights))?;
    let gained = held.seasons_gained(&goal.flags);
    if gained.len() > MAX_SEASONS_UNASKED && !asks_for_many(&world.said, &held.series) {
        return Err(which_seasons(&held.series).into());
    }
    let count = (!gained.is_empty()).then(|| more::counted(gained.len()));
    if let Some(count) = count {
        approval::within_quota(world, count)?;
    }
    let written = set(instance, &held, (&goal.wish, &goal.flags), goal.change(&held)).await;
    if let Err(error @ (ToolError::TellModel(_) | ToolError::Fatal(_))) = written {
        return Err(error);
    }
    // If the response to a write was lost, the show itself shows whether the change was made.
    let after = Held::read(&instance.client, args.id).await.map_err(|error| instance.unread_write(&error))?;
    match after.filter(|after| goal.reached(after)) {
        Some(after) => Ok(with_count(series_told(instance, &after, (&goal, args), "changed"), count)),
        None => Err(written.err().unwrap_or_else(|| ToolError::Unknown(not_so(instance, args.id)))),
    }
}

async fn series_changed(
    instance: &Instance<Sonarr>,
    args: &Args,
    now: Timestamp,
) -> Result<Option<CallResult>, ToolError> {
    let held = Held::read(&instance.client, args.id).await.map_err(|error| instance.refused(&error))?;
    let Some(held) = held else { return Ok(None) };
    let goal = ShowGoal::of(instance, &held, args, now).await?;
    Ok(goal.reached(&held).then(|| series_told(instance, &held, (&goal, args), "changed")))
}

fn wish(held: &Held, args: &Args) -> Result<Wish, CallFailure> {
    let part = picking::part(held, &args.seasons)?;
    let named = args.quality.is_some() || args.anime.is_some() || args.new_seasons.is_some();
    match (args.monitored, part) {
        _ if args.only_future && held.episodes.is_empty() => Err(picking::not_listed_yet(held)),
        _ if args.only_future => Ok(Wish::OnlyFuture),
        (Some(true), Some(part)) => Ok(Wish::More(part)),
        (Some(false), Some(part)) => Ok(Wish::Less(part)),
        (Some(flag), None) => Ok(Wish::Show(flag)),
        (None, None) if named => Ok(Wish::AsItIs),
        (None, Some(_)) => Err(nothing_named("true or false for these seasons")),
        (None, None) => Err(nothing_named("at least one change")),
    }
}

fn nothing_named(expected: &str) -> CallFailure {
    BadArgument { field: "monitored".to_owned(), expected: expected.to_owned(), hint: String::new() }.into()
}

fn series_told(
    instance: &Instance<Sonarr>,
    held: &Held,
    (goal, args): (&ShowGoal, &Args),
    status: &str,
) -> CallResult {
    let mut parts = Vec::new();
    match &goal.wish {
        Wish::AsItIs => {}
        Wish::Show(wanted) => parts.push(show_told(*wanted).to_owned()),
        Wish::More(part) => parts.push(part_told(part, "looked for")),
        Wish::Less(part) => parts.push(part_told(part, "not looked for")),
        Wish::OnlyFuture => parts.push("only episodes still to come are looked for".to_owned()),
    }
    parts.extend(goal.profile.as_ref().map(quality_told));
    parts.extend(args.anime.map(|anime| if anime { "it is anime" } else { "it is no anime" }.to_owned()));
    parts.extend(args.new_seasons.map(|wanted| {
        if wanted { "new seasons are fetched" } else { "new seasons are not fetched" }.to_owned()
    }));
    let mut for_model = more::told(held, status);
    for_model["now"] = json!(parts);
    let for_user = format!("{}: {}.", named(&held.series.title, held.series.year), parts.join(", "));
    CallResult { for_model, for_user, shown: more::shown(instance, held) }
}

fn show_told(looked_for: bool) -> &'static str {
    if looked_for { "it is looked for" } else { "it is not looked for" }
}

fn quality_told(profile: &Profile) -> String {
    format!("the quality is {}", profile.name)
}

fn part_told(part: &Part, how: &str) -> String {
    let one = match part {
        Part::Seasons(numbers) => matches!(numbers.as_slice(), [season] if *season > 0),
        Part::Episodes(codes) => codes.len() == 1,
        Part::Future => true,
    };
    format!("{} {} {how}", picking::told(part), if one { "is" } else { "are" })
}
