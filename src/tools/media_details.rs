//! Tool that returns the details of one title in the library, or of one of its seasons.

use std::time::Duration;

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
use super::{
    CallReferences, LOOKUP_TIMEOUT, ToolContext, ToolError, ToolOutput, playback, requesters, viewing,
};
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
const MAX_EVENTS: usize = 3;
/// Maximum number of episodes of a season in the details. Longer seasons list only their missing episodes.
const MAX_EPISODES: usize = 30;

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
    /// Person whose watching is asked about, in a question that the grammar has understood. A model gets the states of
    /// everybody whom it may mention.
    watched_by: Option<String>,
}

impl TypedTool for MediaDetails {
    const NAME: &'static str = "media_details";
    const DESCRIPTION: &'static str = "Quality, size, dates, seasons and history of a title in the library. With a season, its \
        episodes.";
    const EFFECT_LEVEL: EffectLevel = EffectLevel::Read;
    const AUDIENCE: ToolAudience = ToolAudience::Everyone;
    /// Time for the library, and for the media servers after it.
    const TIMEOUT: Duration = LOOKUP_TIMEOUT;

    fn hidden_arguments(_library: &ArrInstances) -> &'static [&'static str] {
        &["watched_by"]
    }

    fn check(&self, library: &ArrInstances) -> Result<CallReferences, CallFailure> {
        let instance = InstanceRef::find_by_name(library, self.kind, self.instance.as_deref())?;
        Ok(instance.media_ref(self.id).into())
    }

    fn reads_viewing(&self) -> bool {
        self.season.is_none()
    }

    async fn run(&self, library: &ArrInstances, context: &ToolContext) -> Result<ToolOutput, ToolError> {
        let instance = InstanceRef::find_by_name(library, self.kind, self.instance.as_deref())?;
        let by = self.watched_by.as_deref();
        match (instance, self.season) {
            (InstanceRef::Movies(instance), _) => {
                fetch_movie_details(library, (instance, self.id), by, context).await
            }
            (InstanceRef::Series(instance), None) => {
                fetch_series_details(library, (instance, self.id), by, context).await
            }
            (InstanceRef::Series(instance), Some(season)) => {
                let details = fetch_season_details(library, instance, (self.id, season), context).await;
                details.map(ToolOutput::from)
            }
        }
    }
}

async fn fetch_movie_details(
    library: &ArrInstances,
    (instance, id): (&Instance<Radarr>, i64),
    by: Option<&str>,
    context: &ToolContext,
) -> Result<ToolOutput, ToolError> {
    let client = &instance.client;
    let fetch =
        async { tokio::try_join!(client.fetch_movie(id), client.fetch_history(id), client.fetch_profiles()) };
    let (fetched, viewers) = tokio::join!(fetch, viewing::load_known(by, library, context));
    let (movie, history, profiles) = fetched.map_err(|error| instance.request_error(&error))?;
    let Some(movie) = movie else { return Err(unknown_title(id).into()) };
    let quality = movie.file.as_ref().map(|file| file.quality.as_str()).filter(|quality| !quality.is_empty());
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
    insert_field(&mut for_model, "quality", quality.map(str::to_owned));
    insert_field(&mut for_model, "rating", movie.rating.map(format_rating));
    insert_field(&mut for_model, "added", movie.added.map(|at| format_local_date(at, context)));
    insert_field(
        &mut for_model,
        "collection",
        movie.collection.as_ref().map(|collection| clean_title(&collection.title)),
    );
    insert_field(&mut for_model, "history", format_history(&history, context));
    let mut result =
        CallResult { for_model, for_user: format_movie(&movie, quality, context), shown: Vec::new() };
    if let Some(playback) = playback::check_movie(library, &movie, context.now).await {
        playback.add_to(&mut result, "It", context);
    }
    requesters::add_requesters(&mut result, &requested_movie(instance, &movie), context);
    Ok(viewing::add_title_states(result, (MediaKind::Movie, movie.catalog_ids()), viewers, context))
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
    library: &ArrInstances,
    (instance, id): (&Instance<Sonarr>, i64),
    by: Option<&str>,
    context: &ToolContext,
) -> Result<ToolOutput, ToolError> {
    let client = &instance.client;
    let fetch = async {
        tokio::try_join!(client.fetch_series(id), client.fetch_history(id), client.fetch_profiles())
    };
    let (fetched, viewers) = tokio::join!(fetch, viewing::load_known(by, library, context));
    let (series, history, profiles) = fetched.map_err(|error| instance.request_error(&error))?;
    let Some(series) = series else { return Err(unknown_title(id).into()) };
    let format_season_line = |season: &Season| {
        let monitoring_suffix = if season.monitored { "" } else { ", not wanted" };
        let (on_disk, all) = (season.episodes_on_disk, season.episodes);
        format!(
            "{}: {on_disk} of {all}, {}{monitoring_suffix}",
            season.number,
            format_size(season.size_bytes)
        )
    };
    let mut for_model = json!({
        "title": clean_title(&series.title), "year": series.year, "ended": series.ended,
        "monitored": series.monitored, "new_seasons_wanted": series.new_seasons, "kind": series.series_type,
        "size_gb": to_gigabytes(series.size_bytes), "seasons": series.seasons.iter().map(format_season_line).collect::<Vec<_>>(),
        "quality_wanted": profile_name(&profiles, series.profile), "genres": series.genres.iter().take(4).collect::<Vec<_>>(),
        "overview": clean_text(&series.overview, MAX_OVERVIEW_CHARS),
    });
    insert_field(&mut for_model, "next_episode", series.next_airing.map(|at| format_airing(at, context)));
    insert_field(&mut for_model, "rating", series.rating.map(format_rating));
    insert_field(&mut for_model, "added", series.added.map(|at| format_local_date(at, context)));
    insert_field(&mut for_model, "history", format_history(&history, context));
    let mut result = CallResult { for_model, for_user: format_series(&series, context), shown: Vec::new() };
    if let Some(playback) = playback::check_series(library, &series, None, context.now).await {
        playback.add_to(
            &mut result,
            playback::describe_part(series.episodes_on_disk, series.episodes),
            context,
        );
    }
    requesters::add_requesters(&mut result, &requested_series(instance, &series), context);
    Ok(viewing::add_title_states(result, (MediaKind::Series, series.catalog_ids()), viewers, context))
}

fn format_series(series: &Series, context: &ToolContext) -> String {
    let name = format_media_title(&series.title, series.year);
    let seasons = series.seasons.iter().filter(|season| season.number > 0).count();
    let seasons = if seasons == 1 { "1 season".to_owned() } else { format!("{seasons} seasons") };
    let (on_disk, all) = (series.episodes_on_disk, series.episodes);
    let next = match series.next_airing {
        Some(at) => format!(" The next episode airs {}.", format_airing(at, context)),
        None if series.ended => " It has ended.".to_owned(),
        None => String::new(),
    };
    format!(
        "{name}: {seasons}, {on_disk} of {all} episodes on disk, {}.{next}",
        format_size(series.size_bytes)
    )
}

async fn fetch_season_details(
    library: &ArrInstances,
    instance: &Instance<Sonarr>,
    (id, number): (i64, u32),
    context: &ToolContext,
) -> Result<CallResult, ToolError> {
    let client = &instance.client;
    let (series, episodes) =
        tokio::try_join!(client.fetch_series(id), client.fetch_season_episodes(id, number))
            .map_err(|error| instance.request_error(&error))?;
    let Some(series) = series else { return Err(unknown_title(id).into()) };
    if episodes.is_empty() {
        return Err(no_such_season(&series, number).into());
    }
    let on_disk = episodes.iter().filter(|episode| episode.on_disk()).count();
    let episode_lines: Vec<String> =
        episodes.iter().take(MAX_EPISODES).map(|episode| format_episode(episode, context)).collect();
    let mut for_model = json!({
        "title": clean_title(&series.title), "year": series.year, "season": number,
        "on_disk": on_disk, "total": episodes.len(), "episodes": episode_lines,
    });
    if episodes.len() > MAX_EPISODES {
        for_model["note"] = json!(format!("{MAX_EPISODES} of {} shown", episodes.len()));
    }
    let for_user = format_season(&series, number, &episodes, context);
    let mut result = CallResult { for_model, for_user, shown: Vec::new() };
    if let Some(playback) = playback::check_episodes(library, &series, &episodes, context.now).await {
        playback.add_to(&mut result, playback::describe_part(on_disk, episodes.len()), context);
    }
    Ok(result)
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

fn format_season(series: &Series, number: u32, episodes: &[Episode], context: &ToolContext) -> String {
    let name = format!(
        "{} of {}",
        deletion_messages::format_season(number),
        format_media_title(&series.title, series.year)
    );
    let on_disk = episodes.iter().filter(|episode| episode.on_disk()).count();
    let missing: Vec<String> = episodes
        .iter()
        .filter(|episode| !episode.on_disk() && episode.has_aired(context.now))
        .map(|episode| format!("E{:02}", episode.number))
        .collect();
    let next_airing =
        episodes.iter().filter_map(|episode| episode.airs_at).filter(|airs_at| *airs_at > context.now).min();
    let mut sentence = format!("{} of {} episodes of {name} are on disk.", on_disk, episodes.len());
    if !missing.is_empty() {
        sentence.push_str(&format!(" Missing: {}.", super::formatting::format_sentence_list(&missing)));
    }
    if let Some(at) = next_airing {
        sentence.push_str(&format!(" The next one airs {}.", format_airing(at, context)));
    }
    sentence
}

fn profile_name(profiles: &[QualityProfile], id: i64) -> Option<String> {
    profiles.iter().find(|profile| profile.id == id).map(|profile| clean_title(&profile.name))
}

/// Formats the most recent events of the title. The rows of one season pack count once.
fn format_history(history: &[HistoryEntry], context: &ToolContext) -> Option<Vec<String>> {
    let mut lines: Vec<String> = Vec::new();
    for entry in history {
        let event = match entry.event {
            HistoryEvent::Grabbed => "download began",
            HistoryEvent::Imported => "arrived",
            HistoryEvent::Failed => "download failed",
            HistoryEvent::FileDeleted => "file deleted",
            HistoryEvent::Ignored => "download taken away",
            HistoryEvent::Other => continue,
        };
        let line = format!("{}: {event} {}", format_local_date(entry.at, context), entry.quality);
        let line = line.trim_end().to_owned();
        if !lines.contains(&line) {
            lines.push(line);
        }
        if lines.len() == MAX_EVENTS {
            break;
        }
    }
    (!lines.is_empty()).then_some(lines)
}

fn insert_field(for_model: &mut Value, name: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        for_model[name] = value.into();
    }
}

fn format_rating(rating: f64) -> String {
    format!("{rating:.1} of 10")
}

pub(super) fn format_date(day: Date) -> String {
    day.strftime("%b %-d, %Y").to_string()
}

fn format_local_date(at: Timestamp, context: &ToolContext) -> String {
    format_date(at.to_zoned(context.zone.clone()).date())
}

pub(super) fn format_airing(at: Timestamp, context: &ToolContext) -> String {
    at.to_zoned(context.zone.clone()).strftime("%a %b %-d at %H:%M").to_string()
}

fn no_such_season(series: &Series, number: u32) -> CallFailure {
    let name = format_media_title(&series.title, series.year);
    let numbers: Vec<u32> = series.seasons.iter().map(|season| season.number).collect();
    CallFailure::new(
        FailureCode::NoSuchSeason,
        json!({ "title": name, "season": number, "seasons": numbers, "hint": "say which seasons there are" }),
        Some(format!(
            "{name} has no {}.",
            deletion_messages::format_season(number).trim_start_matches("the ")
        )),
    )
}
