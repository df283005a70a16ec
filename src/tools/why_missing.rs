//! Tool that diagnoses why a movie, a series, a season or one episode is not on disk. This file fetches the facts that
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
const MOST_NAMED: usize = 3;

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
    episode: Option<u32>,
}

/// State of an instance and of its downloads.
struct InstanceState {
    downloads: Vec<Download>,
    history: Vec<HistoryEntry>,
    folders: Vec<RootFolder>,
    ailments: Vec<HealthProblem>,
    profiles: Vec<QualityProfile>,
}

/// Episodes that the query is about.
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
        "Why something of the library is not on disk yet, and what can be done.";
    const EFFECT_LEVEL: EffectLevel = EffectLevel::Read;
    const AUDIENCE: ToolAudience = ToolAudience::Everyone;
    const TIMEOUT: Duration = LOOKUP_TIMEOUT;

    fn check(&self, library: &ArrInstances) -> Result<CallReferences, CallFailure> {
        let place = InstanceRef::find_by_name(library, self.kind, self.instance.as_deref())?;
        Ok(place.media_ref(self.id).into())
    }

    async fn run(&self, library: &ArrInstances, context: &ToolContext) -> Result<ToolOutput, ToolError> {
        match InstanceRef::find_by_name(library, self.kind, self.instance.as_deref())? {
            InstanceRef::Movies(instance) => diagnose_movie(instance, self.id, context).await,
            InstanceRef::Series(instance) => diagnose_series(instance, self, context).await,
        }
        .map(ToolOutput::from)
    }
}

async fn diagnose_movie(
    instance: &Instance<Radarr>,
    id: i64,
    context: &ToolContext,
) -> Result<CallResult, ToolError> {
    let place = InstanceRef::Movies(instance);
    let (movie, server) =
        tokio::join!(instance.client.fetch_movie(id), InstanceState::fetch_about_title(&place, id));
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
        ailments: &server.ailments,
        quality: &server.profile_name(movie.profile),
    };
    Ok(diagnosis_result(instance.name, &facts, context))
}

async fn diagnose_series(
    instance: &Instance<Sonarr>,
    args: &WhyMissing,
    context: &ToolContext,
) -> Result<CallResult, ToolError> {
    let (client, id, place) = (&instance.client, args.id, InstanceRef::Series(instance));
    let (show, episodes, server) = tokio::join!(
        client.fetch_series(id),
        client.fetch_episodes(id),
        InstanceState::fetch_about_title(&place, id),
    );
    let Some(show) = show.map_err(|error| instance.request_error(&error))? else {
        return Err(unknown_title(id).into());
    };
    let episodes = episodes.map_err(|error| instance.request_error(&error))?;
    let Some(part) = select_episodes(&show, episodes, args, context) else {
        return Err(no_such_episodes(&show).into());
    };
    let concerns = |id: i64| part.episodes.iter().any(|episode| episode.id == id);
    let mut server = server?;
    server.history.retain(|entry| entry.episode.is_some_and(|(id, _, _)| concerns(id)));
    let download = server.downloads.iter().find(|download| match &download.content {
        DownloadContent::Episodes { episodes, .. } => episodes.iter().any(|queued| concerns(queued.id)),
        DownloadContent::Movie(_) | DownloadContent::Nothing => false,
    });
    let facts = DiagnosisFacts {
        name: &part.name,
        on_disk: part.on_disk,
        monitored: part.monitored,
        release: part.release,
        last_search: part.episodes.iter().filter_map(|episode| episode.last_search).max(),
        download,
        history: &server.history,
        free_bytes: server.free_bytes(&show.path),
        ailments: &server.ailments,
        quality: &server.profile_name(show.profile),
    };
    Ok(diagnosis_result(instance.name, &facts, context))
}

fn diagnosis_result(instance: &str, facts: &DiagnosisFacts<'_>, context: &ToolContext) -> CallResult {
    let why = MissingReason::from_facts(facts);
    let moment = DiagnosisContext { zone: &context.zone, now: context.now, rights: context.rights };
    let sentence = why.format_sentence(facts, &moment);
    let mut for_model =
        json!({ "title": clean_title(facts.name), "reason": why.reason_code(), "sentence": sentence });
    if let Some(tool) = why.next_tool() {
        for_model["next_step"] = json!(tool);
    }
    let mut shown = Vec::new();
    if let Some(&id) = facts.download.and_then(|download| download.rows.first()) {
        for_model["download"] = json!({ "id": id, "instance": instance });
        shown.push(MediaRef::Download { instance: instance.to_owned(), id });
    }
    CallResult { for_model, for_user: sentence, shown }
}

impl InstanceState {
    /// Fetches the state of the instance, with the history of one title.
    async fn fetch_about_title(place: &InstanceRef<'_>, id: i64) -> Result<Self, ToolError> {
        let api = place.common_api();
        let (downloads, history, folders, ailments, profiles) = tokio::join!(
            place.fetch_downloads(),
            place.fetch_history(id),
            api.fetch_root_folders(),
            api.fetch_health(),
            api.fetch_profiles(),
        );
        Ok(Self {
            downloads: downloads.map_err(|error| place.request_error(&error))?,
            history: or_empty_list(place, history),
            folders: or_empty_list(place, folders),
            ailments: or_empty_list(place, ailments),
            profiles: or_empty_list(place, profiles),
        })
    }

    fn free_bytes(&self, path: &str) -> Option<u64> {
        let holds = |folder: &&RootFolder| {
            let root = folder.path.trim_end_matches(['/', '\\']);
            let rest = path.strip_prefix(root);
            !root.is_empty() && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '\\']))
        };
        let folder = self.folders.iter().filter(holds).max_by_key(|folder| folder.path.len())?;
        folder.free_bytes
    }

    fn profile_name(&self, id: i64) -> String {
        let profile = self.profiles.iter().find(|profile| profile.id == id);
        profile.map(|profile| clean_title(&profile.name)).unwrap_or_default()
    }
}

/// Returns the optional data of a diagnosis, or an empty list. A failure to fetch the data must not fail the diagnosis.
fn or_empty_list<T>(place: &InstanceRef<'_>, answer: Result<Vec<T>, ArrError>) -> Vec<T> {
    answer.unwrap_or_else(|error| {
        tracing::warn!(instance = place.name(), %error, "failed to fetch part of the data for a diagnosis");
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
    show: &Series,
    episodes: Vec<Episode>,
    args: &WhyMissing,
    context: &ToolContext,
) -> Option<EpisodeSelection> {
    let asked = |one: &Episode| match (args.season, args.episode) {
        (Some(season), Some(number)) => (one.season, one.number) == (season, number),
        (Some(season), None) => one.season == season,
        // Specials are included only if they are requested explicitly.
        (None, _) => one.season > 0,
    };
    let (there, missing): (Vec<Episode>, Vec<Episode>) =
        episodes.into_iter().filter(asked).partition(Episode::on_disk);
    let (aired, to_come): (Vec<Episode>, Vec<Episode>) =
        missing.into_iter().partition(|one| one.has_aired(context.now));
    let (wanted, unwanted): (Vec<Episode>, Vec<Episode>) =
        aired.into_iter().partition(|one| show.monitored && one.monitored);
    if !wanted.is_empty() {
        return Some(EpisodeSelection::from_episodes(show, wanted, true, ReleaseState::Released));
    }
    if !unwanted.is_empty() {
        return Some(EpisodeSelection::from_episodes(show, unwanted, false, ReleaseState::Released));
    }
    if let Some(next) = to_come.iter().min_by_key(|one| one.airs_at.map_or(jiff::Timestamp::MAX, |airs| airs))
    {
        let wanted = show.monitored && next.monitored;
        let out = ReleaseState::Expected(next.airs_at.map(|airs| local_day(airs, &context.zone)));
        return Some(EpisodeSelection::from_episodes(show, vec![next.clone()], wanted, out));
    }
    if there.is_empty() {
        return None;
    }
    let bytes = super::season_files::episode_files(&there).iter().map(|file| file.size_bytes).sum();
    let part = EpisodeSelection::from_episodes(show, there, true, ReleaseState::Released);
    Some(EpisodeSelection { on_disk: Some(bytes), ..part })
}

impl EpisodeSelection {
    fn from_episodes(show: &Series, episodes: Vec<Episode>, wanted: bool, out: ReleaseState) -> Self {
        Self {
            name: format_episodes(show, &episodes),
            episodes,
            monitored: wanted,
            release: out,
            on_disk: None,
        }
    }
}

/// Formats episodes as `The Bear (2022) S02E03`, `The Bear (2022) S02E03, E04`, `10 episodes of season 2 of The Bear
/// (2022)`.
fn format_episodes(show: &Series, episodes: &[Episode]) -> String {
    let title = format_media_title(&show.title, show.year);
    let Some(first) = episodes.first() else { return title };
    let one_season = episodes.iter().all(|one| one.season == first.season);
    match (one_season, episodes.len()) {
        (true, ..=MOST_NAMED) => {
            let codes: Vec<String> = episodes.iter().map(|one| format!("E{:02}", one.number)).collect();
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

fn no_such_episodes(show: &Series) -> CallFailure {
    let name = format_media_title(&show.title, show.year);
    CallFailure::new(
        FailureCode::NotListed,
        json!({ "title": name, "hint": "Sonarr knows no such season or episode of it" }),
        Some(format!("There is no such season or episode of {name}.")),
    )
}
