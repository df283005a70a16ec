//! Full details of one title of the library, or of one season of it.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use jiff::civil::Date;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::answers::{clean, clean_title, gigabytes, named, refusal};
use super::approval::Cleared;
use super::arguments::{cleared, read, schema};
use super::following::{wanted_movie, wanted_series};
use super::library::{Instance, Library};
use super::place::Place;
use super::removal::unknown;
use super::{READ_TIMEOUT, Ran, Tool, ToolError, Uses, World, asked};
use crate::arr::episodes::Episode;
use crate::arr::history::{HistoryEntry, HistoryEvent};
use crate::arr::radarr::Radarr;
use crate::arr::sonarr::Sonarr;
use crate::arr::{Movie, Profile, Season, Series};
use crate::conversation::deletion;
use crate::conversation::text::size;
use crate::conversation::transcript::{
    Arguments, Audience, CallFailure, CallResult, MediaKind, Tier, ToolSpec,
};

const MEDIA_DETAILS: &str = "media_details";
const MAX_OVERVIEW_CHARS: usize = 200;
/// Maximum number of past events in the details.
const MOST_EVENTS: usize = 3;
/// Maximum number of episodes of a season in the details. Longer seasons list only their missing episodes.
const MOST_EPISODES: usize = 30;

pub struct MediaDetails {
    library: Arc<Library>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    #[serde(rename = "type")]
    kind: MediaKind,
    id: i64,
    instance: Option<String>,
    #[schemars(range(min = 0))]
    season: Option<u32>,
}

#[async_trait]
impl Tool for MediaDetails {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: MEDIA_DETAILS,
            description: "Quality, size, dates, seasons and history of a title in the library; with a season its episodes.",
            tier: Tier::Read,
            audience: Audience::Everyone,
            parameters: self.schema().into(),
        }
    }

    fn timeout(&self) -> Duration {
        READ_TIMEOUT
    }

    fn check(&self, arguments: &Arguments) -> Result<Uses, CallFailure> {
        let args = self.arguments(arguments)?;
        let place = Place::of(&self.library, args.kind, args.instance.as_deref())?;
        Ok(Uses { refs: vec![place.item(args.id)], four_k: false })
    }

    async fn run(&self, call: &Cleared, world: &World) -> Result<Ran, ToolError> {
        let args = self.arguments(cleared(call)?)?;
        match (Place::of(&self.library, args.kind, args.instance.as_deref())?, args.season) {
            (Place::Movies(instance), _) => of_movie(instance, args.id, world).await,
            (Place::Series(instance), None) => of_series(instance, args.id, world).await,
            (Place::Series(instance), Some(season)) => of_season(instance, args.id, season, world).await,
        }
        .map(Ran::from)
    }
}

impl MediaDetails {
    pub fn new(library: Arc<Library>) -> Self {
        Self { library }
    }

    fn schema(&self) -> Value {
        let mut schema = schema::<Args>();
        self.library.offer(&mut schema);
        schema
    }

    fn arguments(&self, arguments: &Arguments) -> Result<Args, CallFailure> {
        read(MEDIA_DETAILS, &self.schema(), arguments)
    }
}

async fn of_movie(instance: &Instance<Radarr>, id: i64, world: &World) -> Result<CallResult, ToolError> {
    let client = &instance.client;
    let (movie, history, profiles) =
        tokio::try_join!(client.movie(id), client.history(id), client.profiles())
            .map_err(|error| instance.refused(&error))?;
    let Some(movie) = movie else { return Err(unknown(id).into()) };
    let file = movie.file.as_ref().map(|file| file.quality.as_str()).filter(|quality| !quality.is_empty());
    let mut for_model = json!({
        "title": clean_title(&movie.title), "year": movie.year, "on_disk": movie.has_file,
        "size_gb": gigabytes(movie.size_bytes), "monitored": movie.monitored,
        "quality_wanted": profile_name(&profiles, movie.profile), "genres": movie.genres.iter().take(4).collect::<Vec<_>>(),
        "overview": clean(&movie.overview, MAX_OVERVIEW_CHARS),
    });
    let dates = [("in_cinemas", movie.cinema), ("online", movie.digital), ("on_disc", movie.physical)];
    for (name, day) in dates {
        add(&mut for_model, name, day.map(date_told));
    }
    add(&mut for_model, "quality", file.map(str::to_owned));
    add(&mut for_model, "rating", movie.rating.map(rating_told));
    add(&mut for_model, "added", movie.added.map(|at| day_told(at, world)));
    add(&mut for_model, "collection", movie.collection.as_ref().map(|it| clean_title(&it.title)));
    add(&mut for_model, "history", past(&history, world));
    let mut told = CallResult { for_model, for_user: movie_told(&movie, file, world), shown: Vec::new() };
    asked::tell(&mut told, &wanted_movie(instance, &movie), world);
    Ok(told)
}

fn movie_told(movie: &Movie, quality: Option<&str>, world: &World) -> String {
    let name = named(&movie.title, movie.year);
    let state = match (movie.has_file, movie.monitored) {
        (true, _) => {
            let quality = quality.map(|quality| format!(" in {quality}")).unwrap_or_default();
            format!("on disk{quality}, {}", size(movie.size_bytes))
        }
        (false, true) if movie.available => "not on disk yet, and looked for".to_owned(),
        (false, true) => "not out yet".to_owned(),
        (false, false) => "not on disk, and not looked for".to_owned(),
    };
    let added = movie.added.map(|at| format!(" Added {}.", day_told(at, world))).unwrap_or_default();
    format!("{name}: {state}.{added}")
}

async fn of_series(instance: &Instance<Sonarr>, id: i64, world: &World) -> Result<CallResult, ToolError> {
    let client = &instance.client;
    let (show, history, profiles) =
        tokio::try_join!(client.series(id), client.history(id), client.profiles())
            .map_err(|error| instance.refused(&error))?;
    let Some(show) = show else { return Err(unknown(id).into()) };
    let season = |season: &Season| {
        let wanted = if season.monitored { "" } else { ", not wanted" };
        let (on_disk, all) = (season.episodes_on_disk, season.episodes);
        format!("{}: {on_disk} of {all}, {}{wanted}", season.number, size(season.size_bytes))
    };
    let mut for_model = json!({
        "title": clean_title(&show.title), "year": show.year, "ended": show.ended,
        "monitored": show.monitored, "new_seasons_wanted": show.new_seasons, "kind": show.series_type,
        "size_gb": gigabytes(show.size_bytes), "seasons": show.seasons.iter().map(season).collect::<Vec<_>>(),
        "quality_wanted": profile_name(&profiles, show.profile), "genres": show.genres.iter().take(4).collect::<Vec<_>>(),
        "overview": clean(&show.overview, MAX_OVERVIEW_CHARS),
    });
    add(&mut for_model, "next_episode", show.next_airing.map(|at| airing_told(at, world)));
    add(&mut for_model, "rating", show.rating.map(rating_told));
    add(&mut for_model, "added", show.added.map(|at| day_told(at, world)));
    add(&mut for_model, "history", past(&history, world));
    let mut told = CallResult { for_model, for_user: series_told(&show, world), shown: Vec::new() };
    asked::tell(&mut told, &wanted_series(instance, &show), world);
    Ok(told)
}

fn series_told(show: &Series, world: &World) -> String {
    let name = named(&show.title, show.year);
    let seasons = show.seasons.iter().filter(|season| season.number > 0).count();
    let seasons = if seasons == 1 { "1 season".to_owned() } else { format!("{seasons} seasons") };
    let (on_disk, all) = (show.episodes_on_disk, show.episodes);
    let next = match show.next_airing {
        Some(at) => format!(" The next episode airs {}.", airing_told(at, world)),
        None if show.ended => " It has ended.".to_owned(),
        None => String::new(),
    };
    format!("{name}: {seasons}, {on_disk} of {all} episodes on disk, {}.{next}", size(show.size_bytes))
}

async fn of_season(
    instance: &Instance<Sonarr>,
    id: i64,
    number: u32,
    world: &World,
) -> Result<CallResult, ToolError> {
    let client = &instance.client;
    let (show, episodes) = tokio::try_join!(client.series(id), client.season_episodes(id, number))
        .map_err(|error| instance.refused(&error))?;
    let Some(show) = show else { return Err(unknown(id).into()) };
    if episodes.is_empty() {
        return Err(no_such_season(&show, number).into());
    }
    let on_disk = episodes.iter().filter(|episode| episode.on_disk()).count();
    let told: Vec<String> =
        episodes.iter().take(MOST_EPISODES).map(|episode| episode_told(episode, world)).collect();
    let mut for_model = json!({
        "title": clean_title(&show.title), "year": show.year, "season": number,
        "on_disk": on_disk, "total": episodes.len(), "episodes": told,
    });
    if episodes.len() > MOST_EPISODES {
        for_model["note"] = json!(format!("{MOST_EPISODES} of {} shown", episodes.len()));
    }
    let for_user = season_told(&show, number, &episodes, world);
    Ok(CallResult { for_model, for_user, shown: Vec::new() })
}

fn episode_told(episode: &Episode, world: &World) -> String {
    let title = clean(&episode.title, 60);
    let state = match (&episode.file, episode.aired(world.now), episode.monitored) {
        (Some(_), _, _) => "on disk".to_owned(),
        (None, true, true) => "missing".to_owned(),
        (None, true, false) => "not wanted".to_owned(),
        (None, false, _) => match episode.airs {
            Some(at) => format!("airs {}", airing_told(at, world)),
            None => "no date yet".to_owned(),
        },
    };
    format!("E{:02} {title}: {state}", episode.number)
}

fn season_told(show: &Series, number: u32, episodes: &[Episode], world: &World) -> String {
    let name = format!("{} of {}", deletion::season(number), named(&show.title, show.year));
    let on_disk = episodes.iter().filter(|episode| episode.on_disk()).count();
    let missing: Vec<String> = episodes
        .iter()
        .filter(|episode| !episode.on_disk() && episode.aired(world.now))
        .map(|episode| format!("E{:02}", episode.number))
        .collect();
    let to_come = episodes.iter().filter_map(|episode| episode.airs).filter(|airs| *airs > world.now).min();
    let mut sentence = format!("{} of {} episodes of {name} are on disk.", on_disk, episodes.len());
    if !missing.is_empty() {
        sentence.push_str(&format!(" Missing: {}.", super::answers::sentence_list(&missing)));
    }
    if let Some(at) = to_come {
        sentence.push_str(&format!(" The next one airs {}.", airing_told(at, world)));
    }
    sentence
}

fn profile_name(profiles: &[Profile], id: i64) -> Option<String> {
    profiles.iter().find(|profile| profile.id == id).map(|profile| clean_title(&profile.name))
}

/// Most recent events of the title. The rows of one season pack count once.
fn past(history: &[HistoryEntry], world: &World) -> Option<Vec<String>> {
    let mut told: Vec<String> = Vec::new();
    for entry in history {
        let what = match entry.event {
            HistoryEvent::Grabbed => "download began",
            HistoryEvent::Imported => "arrived",
            HistoryEvent::Failed => "download failed",
            HistoryEvent::FileDeleted => "file deleted",
            HistoryEvent::Ignored => "download taken away",
            HistoryEvent::Other => continue,
        };
        let line = format!("{}: {what} {}", day_told(entry.at, world), entry.quality);
        let line = line.trim_end().to_owned();
        if !told.contains(&line) {
            told.push(line);
        }
        if told.len() == MOST_EVENTS {
            break;
        }
    }
    (!told.is_empty()).then_some(told)
}

fn add(for_model: &mut Value, name: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        for_model[name] = value.into();
    }
}

fn rating_told(rating: f64) -> String {
    format!("{rating:.1} of 10")
}

fn date_told(day: Date) -> String {
    day.strftime("%b %-d, %Y").to_string()
}

fn day_told(at: Timestamp, world: &World) -> String {
    date_told(at.to_zoned(world.zone.clone()).date())
}

fn airing_told(at: Timestamp, world: &World) -> String {
    at.to_zoned(world.zone.clone()).strftime("%a %b %-d at %H:%M").to_string()
}

fn no_such_season(show: &Series, number: u32) -> CallFailure {
    let name = named(&show.title, show.year);
    let numbers: Vec<u32> = show.seasons.iter().map(|season| season.number).collect();
    refusal(
        "no_such_season",
        json!({ "title": name, "season": number, "seasons": numbers }),
        Some(format!("{name} has no {}.", deletion::season(number).trim_start_matches("the "))),
    )
}
