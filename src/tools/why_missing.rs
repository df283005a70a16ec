//! Tool that diagnoses why a movie, a series, a season or an episode is not on disk. It fetches the facts that
//! `diagnosis.rs` evaluates.

use std::time::Duration;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::diagnosis::{DiagnosisContext, DiagnosisFacts, MissingReason, ReleaseState};
use super::formatting::{clean_title, format_media_title};
use super::instance_ref::InstanceRef;
use super::library::{ArrInstances, Instance, unknown_title};
use super::playback::{self, PlaybackAnswer};
use super::remove_download::REMOVE_DOWNLOAD;
use super::typed_tool::TypedTool;
use super::{CallReferences, LOOKUP_TIMEOUT, ToolContext, ToolError, ToolOutput};
use crate::arr::common_api::HealthProblem;
use crate::arr::episodes::Episode;
use crate::arr::history::HistoryEntry;
use crate::arr::radarr::Radarr;
use crate::arr::sonarr::Sonarr;
use crate::arr::{
    ArrError, Availability, Download, DownloadContent, Movie, QualityProfile, RootFolder, Series,
};
use crate::conversation::deletion::deletion_messages;
use crate::conversation::transcript::{
    CallFailure, CallResult, EffectLevel, FailureCode, MediaKind, MediaRef, ToolAudience,
};

/// Maximum number of episodes of one season that are listed individually.
const MAX_LISTED_EPISODES: usize = 3;

/// Tool that diagnoses why a title or a part of it is not on disk.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WhyMissing {
    #[serde(rename = "type")]
    kind: MediaKind,
    id: i64,
    instance: Option<String>,
    #[schemars(range(min = 0))]
    season: Option<u32>,
    /// Its episode.
    episode: Option<u32>,
}

/// State of an instance, with its downloads and the history of one title.
struct InstanceState {
    downloads: Vec<Download>,
    history: Vec<HistoryEntry>,
    folders: Vec<RootFolder>,
    problems: Vec<HealthProblem>,
    profiles: Vec<QualityProfile>,
}

/// Episodes that the diagnosis is about.
struct EpisodeSelection {
    name: String,
    episodes: Vec<Episode>,
    monitored: bool,
    release: ReleaseState,
    on_disk: Option<u64>,
}

impl TypedTool for WhyMissing {
    const NAME: &'static str = "why_missing";
    const DESCRIPTION: &'static str =
        "Why a title in the library is not on disk. Gives the reason and the next step.";
    const EFFECT_LEVEL: EffectLevel = EffectLevel::Read;
    const AUDIENCE: ToolAudience = ToolAudience::Everyone;
    const TIMEOUT: Duration = LOOKUP_TIMEOUT;

    fn check(&self, library: &ArrInstances) -> Result<CallReferences, CallFailure> {
        let instance = InstanceRef::find_by_name(library, self.kind, self.instance.as_deref())?;
        Ok(instance.media_ref(self.id).into())
    }

    async fn run(&self, library: &ArrInstances, context: &ToolContext) -> Result<ToolOutput, ToolError> {
        match InstanceRef::find_by_name(library, self.kind, self.instance.as_deref())? {
            InstanceRef::Movies(instance) => diagnose_movie(library, instance, self.id, context).await,
            InstanceRef::Series(instance) => diagnose_series(library, instance, self, context).await,
        }
        .map(ToolOutput::from)
    }
}

async fn diagnose_movie(
    library: &ArrInstances,
    instance: &Instance<Radarr>,
    id: i64,
    context: &ToolContext,
) -> Result<CallResult, ToolError> {
    let instance_ref = InstanceRef::Movies(instance);
    let (movie, server) =
        tokio::join!(instance.client.fetch_movie(id), InstanceState::fetch_for_title(&instance_ref, id));
    let Some(movie) = movie.map_err(|error| instance.request_error(&error))? else {
        return Err(unknown_title(id).into());
    };
    let server = server?;
    let download = server.downloads.iter().find(|download| download.content == DownloadContent::Movie(id));
    let facts = DiagnosisFacts {
        name: &format_media_title(&movie.title, movie.year),
        on_disk: movie.has_file.then_some(movie.size_bytes),
        monitored: movie.monitored,
        release: if movie.available {
            ReleaseState::Released
        } else {
            ReleaseState::Expected(expected_release(&movie))
        },
        last_search: movie.last_search,
        download,
        history: &server.history,
        free_bytes: server.free_bytes(&movie.path),
        problems: &server.problems,
        quality: &server.profile_name(movie.profile),
    };
    let result = diagnosis_result(instance.name, &facts, context);
    let playback = playback::check_movie(library, &movie, context.now).await;
    Ok(with_playback(result, playback.as_ref(), facts.name, context))
}

async fn diagnose_series(
    library: &ArrInstances,
    instance: &Instance<Sonarr>,
    args: &WhyMissing,
    context: &ToolContext,
) -> Result<CallResult, ToolError> {
    let (client, id, instance_ref) = (&instance.client, args.id, InstanceRef::Series(instance));
    let (series, episodes, server) = tokio::join!(
        client.fetch_series(id),
        client.fetch_episodes(id),
        InstanceState::fetch_for_title(&instance_ref, id),
    );
    let Some(series) = series.map_err(|error| instance.request_error(&error))? else {
        return Err(unknown_title(id).into());
    };
    let episodes = episodes.map_err(|error| instance.request_error(&error))?;
    let Some(selection) = select_episodes(&series, episodes, args, context) else {
        return Err(no_such_episodes(&series).into());
    };
    let is_selected = |id: i64| selection.episodes.iter().any(|episode| episode.id == id);
    let mut server = server?;
    server.history.retain(|entry| entry.episode.is_some_and(|(id, _, _)| is_selected(id)));
    let download = server.downloads.iter().find(|download| match &download.content {
        DownloadContent::Episodes { episodes, .. } => episodes.iter().any(|queued| is_selected(queued.id)),
        DownloadContent::Movie(_) | DownloadContent::Nothing => false,
    });
    let facts = DiagnosisFacts {
        name: &selection.name,
        on_disk: selection.on_disk,
        monitored: selection.monitored,
        release: selection.release,
        last_search: selection.episodes.iter().filter_map(|episode| episode.last_search).max(),
        download,
        history: &server.history,
        free_bytes: server.free_bytes(&series.path),
        problems: &server.problems,
        quality: &server.profile_name(series.profile),
    };
    let result = diagnosis_result(instance.name, &facts, context);
    // Nothing of a selection that is missing is on disk.
    let playback = playback::check_episodes(library, &series, &selection.episodes, context.now).await;
    let content = playback::format_content(&series, &selection.episodes);
    Ok(with_playback(result, playback.as_ref(), &content, context))
}

fn diagnosis_result(instance: &str, facts: &DiagnosisFacts<'_>, context: &ToolContext) -> CallResult {
    let reason = MissingReason::from_facts(facts);
    let diagnosis_context =
        DiagnosisContext { zone: &context.zone, now: context.now, rights: context.rights };
    let sentence = reason.format_sentence(facts, &diagnosis_context);
    let mut for_model =
        json!({ "title": clean_title(facts.name), "reason": reason.reason_code(), "sentence": sentence });
    match reason.next_tool() {
        Some(REMOVE_DOWNLOAD) if !context.rights.may_delete() => {
            for_model["next_step"] = json!("an admin can remove the download");
        }
        Some(tool) => for_model["next_step"] = json!(tool),
        None => {}
    }
    let mut shown = Vec::new();
    if let Some(&id) = facts.download.and_then(|download| download.rows.first()) {
        for_model["download"] = json!({ "download_id": id, "instance": instance });
        shown.push(MediaRef::Download { instance: instance.to_owned(), id });
    }
    CallResult { for_model, for_user: sentence, shown }
}

/// Replaces the sentence about a title on disk by the answer of the media servers.
fn with_playback(
    mut result: CallResult,
    playback: Option<&PlaybackAnswer>,
    content: &str,
    context: &ToolContext,
) -> CallResult {
    let Some(playback) = playback else { return result };
    result.for_user = playback.format_sentence(content, context.rights.role);
    result.for_model["sentence"] = json!(result.for_user);
    playback.add_fields(&mut result.for_model, context.rights.role);
    result
}

impl InstanceState {
    /// Fetches the state of the instance, with the history of one title.
    async fn fetch_for_title(instance: &InstanceRef<'_>, id: i64) -> Result<Self, ToolError> {
        let api = instance.common_api();
        let (downloads, history, folders, problems, profiles) = tokio::join!(
            instance.fetch_downloads(),
            instance.fetch_history(id),
            api.fetch_root_folders(),
            api.fetch_health(),
            api.fetch_profiles(),
        );
        Ok(Self {
            downloads: downloads.map_err(|error| instance.request_error(&error))?,
            history: or_empty_list(instance, history),
            folders: or_empty_list(instance, folders),
            problems: or_empty_list(instance, problems),
            profiles: or_empty_list(instance, profiles),
        })
    }

    fn free_bytes(&self, path: &str) -> Option<u64> {
        let contains_path = |folder: &&RootFolder| {
            let root = folder.path.trim_end_matches(['/', '\\']);
            let rest = path.strip_prefix(root);
            !root.is_empty() && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '\\']))
        };
        let folder = self.folders.iter().filter(contains_path).max_by_key(|folder| folder.path.len())?;
        folder.free_bytes
    }

    fn profile_name(&self, id: i64) -> String {
        let profile = self.profiles.iter().find(|profile| profile.id == id);
        profile.map(|profile| clean_title(&profile.name)).unwrap_or_default()
    }
}

/// Returns optional facts, or no facts if the request failed, so that the diagnosis is still possible.
fn or_empty_list<T>(instance: &InstanceRef<'_>, response: Result<Vec<T>, ArrError>) -> Vec<T> {
    response.unwrap_or_else(|error| {
        tracing::warn!(instance = instance.name(), %error, "failed to fetch facts for a diagnosis");
        Vec::new()
    })
}

fn expected_release(movie: &Movie) -> Option<Date> {
    match movie.availability {
        Availability::Announced => None,
        Availability::InCinemas => movie.cinema,
        Availability::Released => [movie.digital, movie.physical].into_iter().flatten().min(),
    }
}

/// Selects the most relevant part of the requested episodes: those that could be on disk but are missing, else those
/// that are not monitored, else those that have not aired yet, else all of them if they are on disk. Returns `None` if
/// there are no such episodes.
fn select_episodes(
    series: &Series,
    episodes: Vec<Episode>,
    args: &WhyMissing,
    context: &ToolContext,
) -> Option<EpisodeSelection> {
    let is_requested = |episode: &Episode| match (args.season, args.episode) {
        (Some(season), Some(number)) => (episode.season, episode.number) == (season, number),
        (Some(season), None) => episode.season == season,
        // Specials are included only if they are requested explicitly.
        (None, _) => episode.season > 0,
    };
    let (on_disk, missing): (Vec<Episode>, Vec<Episode>) =
        episodes.into_iter().filter(is_requested).partition(Episode::on_disk);
    let (aired, upcoming): (Vec<Episode>, Vec<Episode>) =
        missing.into_iter().partition(|episode| episode.has_aired(context.now));
    let (monitored, unmonitored): (Vec<Episode>, Vec<Episode>) =
        aired.into_iter().partition(|episode| series.monitored && episode.monitored);
    if !monitored.is_empty() {
        return Some(EpisodeSelection::from_episodes(series, monitored, true, ReleaseState::Released));
    }
    if !unmonitored.is_empty() {
        return Some(EpisodeSelection::from_episodes(series, unmonitored, false, ReleaseState::Released));
    }
    if let Some(next) = upcoming.iter().min_by_key(|episode| episode.airs_at.unwrap_or(jiff::Timestamp::MAX))
    {
        let is_monitored = series.monitored && next.monitored;
        let release = ReleaseState::Expected(next.airs_at.map(|airs| local_day(airs, &context.zone)));
        return Some(EpisodeSelection::from_episodes(series, vec![next.clone()], is_monitored, release));
    }
    if on_disk.is_empty() {
        return None;
    }
    let bytes = super::season_files::episode_files(&on_disk).iter().map(|file| file.size_bytes).sum();
    let selection = EpisodeSelection::from_episodes(series, on_disk, true, ReleaseState::Released);
    Some(EpisodeSelection { on_disk: Some(bytes), ..selection })
}

impl EpisodeSelection {
    fn from_episodes(
        series: &Series,
        episodes: Vec<Episode>,
        monitored: bool,
        release: ReleaseState,
    ) -> Self {
        Self { name: format_episodes(series, &episodes), episodes, monitored, release, on_disk: None }
    }
}

/// Formats episodes as `The Bear (2022) S02E03`, `The Bear (2022) S02E03, E04`, `10 episodes of season 2 of The Bear
/// (2022)`.
fn format_episodes(series: &Series, episodes: &[Episode]) -> String {
    let title = format_media_title(&series.title, series.year);
    let Some(first) = episodes.first() else { return title };
    let is_one_season = episodes.iter().all(|episode| episode.season == first.season);
    match (is_one_season, episodes.len()) {
        (true, ..=MAX_LISTED_EPISODES) => {
            let codes: Vec<String> =
                episodes.iter().map(|episode| format!("E{:02}", episode.number)).collect();
            format!("{title} S{:02}{}", first.season, codes.join(", "))
        }
        (true, count) => {
            format!("{count} episodes of {} of {title}", deletion_messages::format_season(first.season))
        }
        (false, count) => format!("{count} episodes of {title}"),
    }
}

fn local_day(at: jiff::Timestamp, zone: &TimeZone) -> Date {
    at.to_zoned(zone.clone()).date()
}

fn no_such_episodes(series: &Series) -> CallFailure {
    let name = format_media_title(&series.title, series.year);
    CallFailure::new(
        FailureCode::NotListed,
        json!({ "title": name, "hint": "Sonarr lists no such season or episode: say so" }),
        Some(format!("There is no such season or episode of {name}.")),
    )
}
