//! Tool that returns the full details of one title of the library, or of one season of it.

use jiff::Timestamp;
use jiff::civil::Date;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::follow_title::{requested_movie, requested_series};
use super::formatting::{clean_text, clean_title, format_media_title, to_gigabytes};
use super::instance_ref::InstanceRef;
use super::library::{ArrInstances, Instance, unknown_title};
use super::typed_tool::TypedTool;
use super::{CallReferences, ToolContext, ToolError, ToolOutput, requesters};
use crate::arr::episodes::Episode;
use crate::arr::history::{HistoryEntry, HistoryEvent};
use crate::arr::radarr::Radarr;
use crate::arr::sonarr::Sonarr;
use crate::arr::{Movie, QualityProfile, Season, Series};
use crate::conversation::deletion::deletion_messages;
use crate::conversation::text::message_format::format_size;
use crate::conversation::transcript::{
    CallFailure, CallResult, EffectLevel, FailureCode, MediaKind, ToolAudience,
};

const MAX_OVERVIEW_CHARS: usize = 200;
/// Maximum number of past events in the details.
const MOST_EVENTS: usize = 3;
/// Maximum number of episodes of a season in the details. Longer seasons list only their missing episodes.
const MOST_EPISODES: usize = 30;

/// Tool that returns the details of one title or season.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MediaDetails {
    #[serde(rename = "type")]
    kind: MediaKind,
    id: i64,
    instance: Option<String>,
    #[schemars(range(min = 0))]
    season: Option<u32>,
}

impl TypedTool for MediaDetails {
    const NAME: &'static str = "media_details";
    const DESCRIPTION: &'static str =
        "Quality, size, dates, seasons and history of a title in the library; with a season its episodes.";
    const EFFECT_LEVEL: EffectLevel = EffectLevel::Read;
    const AUDIENCE: ToolAudience = ToolAudience::Everyone;

    fn check(&self, library: &ArrInstances) -> Result<CallReferences, CallFailure> {
        let place = InstanceRef::find_by_name(library, self.kind, self.instance.as_deref())?;
        Ok(place.media_ref(self.id).into())
    }

    async fn run(&self, library: &ArrInstances, context: &ToolContext) -> Result<ToolOutput, ToolError> {
        let place = InstanceRef::find_by_name(library, self.kind, self.instance.as_deref())?;
        match (place, self.season) {
            (InstanceRef::Movies(instance), _) => fetch_movie_details(instance, self.id, context).await,
            (InstanceRef::Series(instance), None) => fetch_series_details(instance, self.id, context).await,
            (InstanceRef::Series(instance), Some(season)) => {
                fetch_season_details(instance, self.id, season, context).await
            }
        }
        .map(ToolOutput::from)
    }
}

async fn fetch_movie_details(
    instance: &Instance<Radarr>,
    id: i64,
    context: &ToolContext,
) -> Result<CallResult, ToolError> {
    let client = &instance.client;
    let (movie, history, profiles) =
        tokio::try_join!(client.fetch_movie(id), client.fetch_history(id), client.fetch_profiles())
            .map_err(|error| instance.request_error(&error))?;
    let Some(movie) = movie else { return Err(unknown_title(id).into()) };
    let file = movie.file.as_ref().map(|file| file.quality.as_str()).filter(|quality| !quality.is_empty());
    let mut for_model = json!({
        "title": clean_title(&movie.title), "year": movie.year, "on_disk": movie.has_file,
        "size_gb": to_gigabytes(movie.size_bytes), "monitored": movie.monitored,
        "quality_wanted": profile_name(&profiles, movie.profile), "genres": movie.genres.iter().take(4).collect::<Vec<_>>(),
        "overview": clean_text(&movie.overview, MAX_OVERVIEW_CHARS),
    });
    let dates = [("in_cinemas", movie.cinema), ("online", movie.digital), ("on_disc", movie.physical)];
    for (name, day) in dates {
        insert_field(&mut for_model, name, day.map(format_date));
    }
    insert_field(&mut for_model, "quality", file.map(str::to_owned));
    insert_field(&mut for_model, "rating", movie.rating.map(format_rating));
    insert_field(&mut for_model, "added", movie.added.map(|at| format_local_date(at, context)));
    insert_field(&mut for_model, "collection", movie.collection.as_ref().map(|it| clean_title(&it.title)));
    insert_field(&mut for_model, "history", format_history(&history, context));
    let mut told = CallResult { for_model, for_user: format_movie(&movie, file, context), shown: Vec::new() };
    requesters::add_requesters(&mut told, &requested_movie(instance, &movie), context);
    Ok(told)
}

fn format_movie(movie: &Movie, quality: Option<&str>, context: &ToolContext) -> String {
    let name = format_media_title(&movie.title, movie.year);
    let state = match (movie.has_file, movie.monitored) {
        (true, _) => {
            let quality = quality.map(|quality| format!(" in {quality}")).unwrap_or_default();
            format!("on disk{quality}, {}", format_size(movie.size_bytes))
        }
        (false, true) if movie.available => "not on disk yet, and looked for".to_owned(),
        (false, true) => "not out yet".to_owned(),
        (false, false) => "not on disk, and not looked for".to_owned(),
    };
    let added =
        movie.added.map(|at| format!(" Added {}.", format_local_date(at, context))).unwrap_or_default();
    format!("{name}: {state}.{added}")
}

async fn fetch_series_details(
    instance: &Instance<Sonarr>,
    id: i64,
    context: &ToolContext,
) -> Result<CallResult, ToolError> {
    let client = &instance.client;
    let (show, history, profiles) =
        tokio::try_join!(client.fetch_series(id), client.fetch_history(id), client.fetch_profiles())
            .map_err(|error| instance.request_error(&error))?;
    let Some(show) = show else { return Err(unknown_title(id).into()) };
    let season = |season: &Season| {
        let wanted = if season.monitored { "" } else { ", not wanted" };
        let (on_disk, all) = (season.episodes_on_disk, season.episodes);
        format!("{}: {on_disk} of {all}, {}{wanted}", season.number, format_size(season.size_bytes))
    };
    let mut for_model = json!({
        "title": clean_title(&show.title), "year": show.year, "ended": show.ended,
        "monitored": show.monitored, "new_seasons_wanted": show.new_seasons, "kind": show.series_type,
        "size_gb": to_gigabytes(show.size_bytes), "seasons": show.seasons.iter().map(season).collect::<Vec<_>>(),
        "quality_wanted": profile_name(&profiles, show.profile), "genres": show.genres.iter().take(4).collect::<Vec<_>>(),
        "overview": clean_text(&show.overview, MAX_OVERVIEW_CHARS),
    });
    insert_field(&mut for_model, "next_episode", show.next_airing.map(|at| format_airing(at, context)));
    insert_field(&mut for_model, "rating", show.rating.map(format_rating));
    insert_field(&mut for_model, "added", show.added.map(|at| format_local_date(at, context)));
    insert_field(&mut for_model, "history", format_history(&history, context));
    let mut told = CallResult { for_model, for_user: format_series(&show, context), shown: Vec::new() };
    requesters::add_requesters(&mut told, &requested_series(instance, &show), context);
    Ok(told)
}

fn format_series(show: &Series, context: &ToolContext) -> String {
    let name = format_media_title(&show.title, show.year);
    let seasons = show.seasons.iter().filter(|season| season.number > 0).count();
    let seasons = if seasons == 1 { "1 season".to_owned() } else { format!("{seasons} seasons") };
    let (on_disk, all) = (show.episodes_on_disk, show.episodes);
    let next = match show.next_airing {
        Some(at) => format!(" The next episode airs {}.", format_airing(at, context)),
        None if show.ended => " It has ended.".to_owned(),
        None => String::new(),
    };
    format!("{name}: {seasons}, {on_disk} of {all} episodes on disk, {}.{next}", format_size(show.size_bytes))
}

async fn fetch_season_details(
    instance: &Instance<Sonarr>,
    id: i64,
    number: u32,
    context: &ToolContext,
) -> Result<CallResult, ToolError> {
    let client = &instance.client;
    let (show, episodes) =
        tokio::try_join!(client.fetch_series(id), client.fetch_season_episodes(id, number))
            .map_err(|error| instance.request_error(&error))?;
    let Some(show) = show else { return Err(unknown_title(id).into()) };
    if episodes.is_empty() {
        return Err(no_such_season(&show, number).into());
    }
    let on_disk = episodes.iter().filter(|episode| episode.on_disk()).count();
    let told: Vec<String> =
        episodes.iter().take(MOST_EPISODES).map(|episode| format_episode(episode, context)).collect();
    let mut for_model = json!({
        "title": clean_title(&show.title), "year": show.year, "season": number,
        "on_disk": on_disk, "total": episodes.len(), "episodes": told,
    });
    if episodes.len() > MOST_EPISODES {
        for_model["note"] = json!(format!("{MOST_EPISODES} of {} shown", episodes.len()));
    }
    let for_user = format_season(&show, number, &episodes, context);
    Ok(CallResult { for_model, for_user, shown: Vec::new() })
}

fn format_episode(episode: &Episode, context: &ToolContext) -> String {
    let title = clean_text(&episode.title, 60);
    let state = match (&episode.file, episode.has_aired(context.now), episode.monitored) {
        (Some(_), _, _) => "on disk".to_owned(),
        (None, true, true) => "missing".to_owned(),
        (None, true, false) => "not wanted".to_owned(),
        (None, false, _) => match episode.airs_at {
            Some(at) => format!("airs {}", format_airing(at, context)),
            None => "no date yet".to_owned(),
        },
    };
    format!("E{:02} {title}: {state}", episode.number)
}

fn format_season(show: &Series, number: u32, episodes: &[Episode], context: &ToolContext) -> String {
    let name = format!(
        "{} of {}",
        deletion_messages::format_season(number),
        format_media_title(&show.title, show.year)
    );
    let on_disk = episodes.iter().filter(|episode| episode.on_disk()).count();
    let missing: Vec<String> = episodes
        .iter()
        .filter(|episode| !episode.on_disk() && episode.has_aired(context.now))
        .map(|episode| format!("E{:02}", episode.number))
        .collect();
    let to_come =
        episodes.iter().filter_map(|episode| episode.airs_at).filter(|airs| *airs > context.now).min();
    let mut sentence = format!("{} of {} episodes of {name} are on disk.", on_disk, episodes.len());
    if !missing.is_empty() {
        sentence.push_str(&format!(" Missing: {}.", super::formatting::format_sentence_list(&missing)));
    }
    if let Some(at) = to_come {
        sentence.push_str(&format!(" The next one airs {}.", format_airing(at, context)));
    }
    sentence
}

fn profile_name(profiles: &[QualityProfile], id: i64) -> Option<String> {
    profiles.iter().find(|profile| profile.id == id).map(|profile| clean_title(&profile.name))
}

/// Formats the most recent events of the title. The rows of one season pack count once.
fn format_history(history: &[HistoryEntry], context: &ToolContext) -> Option<Vec<String>> {
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
        let line = format!("{}: {what} {}", format_local_date(entry.at, context), entry.quality);
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

fn insert_field(for_model: &mut Value, name: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        for_model[name] = value.into();
    }
}

fn format_rating(rating: f64) -> String {
    format!("{rating:.1} of 10")
}

fn format_date(day: Date) -> String {
    day.strftime("%b %-d, %Y").to_string()
}

fn format_local_date(at: Timestamp, context: &ToolContext) -> String {
    format_date(at.to_zoned(context.zone.clone()).date())
}

fn format_airing(at: Timestamp, context: &ToolContext) -> String {
    at.to_zoned(context.zone.clone()).strftime("%a %b %-d at %H:%M").to_string()
}

fn no_such_season(show: &Series, number: u32) -> CallFailure {
    let name = format_media_title(&show.title, show.year);
    let numbers: Vec<u32> = show.seasons.iter().map(|season| season.number).collect();
    CallFailure::new(
        FailureCode::NoSuchSeason,
        json!({ "title": name, "season": number, "seasons": numbers }),
        Some(format!(
            "{name} has no {}.",
            deletion_messages::format_season(number).trim_start_matches("the ")
        )),
    )
}
