//! Answers to "Why is it not here?" for a movie, a show, a season or one episode. This file fetches the facts that
//! `why.rs` evaluates.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::answers::{clean_title, named, refusal};
use super::approval::Cleared;
use super::arguments::{cleared, read, schema};
use super::library::{Instance, Library};
use super::place::Place;
use super::removal::unknown;
use super::why::{Facts, Moment, Out, Why};
use super::{LOOKUP_TIMEOUT, Ran, Tool, ToolError, Uses, World};
use crate::arr::episodes::Episode;
use crate::arr::history::HistoryEntry;
use crate::arr::radarr::Radarr;
use crate::arr::server::Ailment;
use crate::arr::sonarr::Sonarr;
use crate::arr::{ArrError, Availability, Download, DownloadOf, Movie, Profile, RootFolder, Series};
use crate::conversation::deletion;
use crate::conversation::transcript::{
    Arguments, Audience, CallFailure, CallResult, MediaKind, MediaRef, Tier, ToolSpec,
};

const WHY_MISSING: &str = "why_missing";
/// Maximum number of episodes of one season that are listed individually.
const MOST_NAMED: usize = 3;

pub struct WhyMissing {
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
    episode: Option<u32>,
}

/// State of a server and of its downloads.
struct Server {
    downloads: Vec<Download>,
    history: Vec<HistoryEntry>,
    folders: Vec<RootFolder>,
    ailments: Vec<Ailment>,
    profiles: Vec<Profile>,
}

/// Episodes that the query is about.
struct Part {
    name: String,
    episodes: Vec<Episode>,
    wanted: bool,
    out: Out,
    on_disk: Option<u64>,
}

#[async_trait]
impl Tool for WhyMissing {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: WHY_MISSING,
            description: "Why something of the library is not on disk yet, and what can be done.",
            tier: Tier::Read,
            audience: Audience::Everyone,
            parameters: self.schema().into(),
        }
    }

    fn timeout(&self) -> Duration {
        LOOKUP_TIMEOUT
    }

    fn check(&self, arguments: &Arguments) -> Result<Uses, CallFailure> {
        let args = self.arguments(arguments)?;
        let place = Place::of(&self.library, args.kind, args.instance.as_deref())?;
        Ok(Uses { refs: vec![place.item(args.id)], four_k: false })
    }

    async fn run(&self, call: &Cleared, world: &World) -> Result<Ran, ToolError> {
        let args = self.arguments(cleared(call)?)?;
        match Place::of(&self.library, args.kind, args.instance.as_deref())? {
            Place::Movies(instance) => of_movie(instance, args.id, world).await,
            Place::Series(instance) => of_series(instance, &args, world).await,
        }
        .map(Ran::from)
    }
}

impl WhyMissing {
    pub fn new(library: Arc<Library>) -> Self {
        Self { library }
    }

    fn schema(&self) -> Value {
        let mut schema = schema::<Args>();
        self.library.offer(&mut schema);
        schema
    }

    fn arguments(&self, arguments: &Arguments) -> Result<Args, CallFailure> {
        read(WHY_MISSING, &self.schema(), arguments)
    }
}

async fn of_movie(instance: &Instance<Radarr>, id: i64, world: &World) -> Result<CallResult, ToolError> {
    let client = &instance.client;
    let (movie, downloads, history, folders, ailments, profiles) = tokio::join!(
        client.movie(id),
        client.downloads(),
        client.history(id),
        client.root_folders(),
        client.server().health(),
        client.profiles(),
    );
    let Some(movie) = movie.map_err(|error| instance.refused(&error))? else {
        return Err(unknown(id).into());
    };
    let server = Server {
        downloads: downloads.map_err(|error| instance.refused(&error))?,
        history: as_far_as_known(instance, history),
        folders: as_far_as_known(instance, folders),
        ailments: as_far_as_known(instance, ailments),
        profiles: as_far_as_known(instance, profiles),
    };
    let download = server.downloads.iter().find(|download| download.of == DownloadOf::Movie(id));
    let facts = Facts {
        name: &named(&movie.title, movie.year),
        on_disk: movie.has_file.then_some(movie.size_bytes),
        wanted: movie.monitored,
        out: if movie.available { Out::Yes } else { Out::On(expected(&movie)) },
        last_search: movie.last_search,
        download,
        history: &server.history,
        free_bytes: server.free_bytes(&movie.path),
        ailments: &server.ailments,
        quality: &server.quality(movie.profile),
    };
    Ok(answer(instance.name, &facts, world))
}

async fn of_series(instance: &Instance<Sonarr>, args: &Args, world: &World) -> Result<CallResult, ToolError> {
    let client = &instance.client;
    let id = args.id;
    let (show, episodes, downloads, history, folders, ailments, profiles) = tokio::join!(
        client.series(id),
        client.episodes(id),
        client.downloads(),
        client.history(id),
        client.root_folders(),
        client.server().health(),
        client.profiles(),
    );
    let Some(show) = show.map_err(|error| instance.refused(&error))? else { return Err(unknown(id).into()) };
    let episodes = episodes.map_err(|error| instance.refused(&error))?;
    let Some(part) = part(&show, episodes, args, world) else { return Err(not_listed(&show).into()) };
    let concerns = |id: i64| part.episodes.iter().any(|episode| episode.id == id);
    let mut history = as_far_as_known(instance, history);
    history.retain(|entry| entry.episode.is_some_and(|(id, _, _)| concerns(id)));
    let server = Server {
        downloads: downloads.map_err(|error| instance.refused(&error))?,
        history,
        folders: as_far_as_known(instance, folders),
        ailments: as_far_as_known(instance, ailments),
        profiles: as_far_as_known(instance, profiles),
    };
    let download = server.downloads.iter().find(|download| match &download.of {
        DownloadOf::Episodes { episodes, .. } => episodes.iter().any(|queued| concerns(queued.id)),
        DownloadOf::Movie(_) | DownloadOf::Nothing => false,
    });
    let facts = Facts {
        name: &part.name,
        on_disk: part.on_disk,
        wanted: part.wanted,
        out: part.out,
        last_search: part.episodes.iter().filter_map(|episode| episode.last_search).max(),
        download,
        history: &server.history,
        free_bytes: server.free_bytes(&show.path),
        ailments: &server.ailments,
        quality: &server.quality(show.profile),
    };
    Ok(answer(instance.name, &facts, world))
}

fn answer(instance: &str, facts: &Facts<'_>, world: &World) -> CallResult {
    let why = Why::of(facts);
    let moment = Moment { zone: &world.zone, now: world.now, rights: world.rights };
    let sentence = why.told(facts, &moment);
    let mut for_model =
        json!({ "title": clean_title(facts.name), "reason": why.code(), "sentence": sentence });
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

impl Server {
    fn free_bytes(&self, path: &str) -> Option<u64> {
        let holds = |folder: &&RootFolder| {
            let root = folder.path.trim_end_matches(['/', '\\']);
            let rest = path.strip_prefix(root);
            !root.is_empty() && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '\\']))
        };
        let folder = self.folders.iter().filter(holds).max_by_key(|folder| folder.path.len())?;
        folder.free_bytes
    }

    fn quality(&self, id: i64) -> String {
        let profile = self.profiles.iter().find(|profile| profile.id == id);
        profile.map(|profile| clean_title(&profile.name)).unwrap_or_default()
    }
}

/// Optional data of an answer. A failure to fetch it must not fail the answer.
fn as_far_as_known<Client, T>(instance: &Instance<Client>, answer: Result<Vec<T>, ArrError>) -> Vec<T> {
    answer.unwrap_or_else(|error| {
        tracing::warn!(instance = instance.name, %error, "a reason is told without a part of what it goes by");
        Vec::new()
    })
}

fn expected(movie: &Movie) -> Option<Date> {
    match movie.availability {
        Availability::Announced => None,
        Availability::InCinemas => movie.cinema,
        Availability::Released => [movie.digital, movie.physical].into_iter().flatten().min(),
    }
}

/// Most relevant part of the requested episodes: those that could be on disk but are missing, else those that are not
/// monitored, else those that have not aired yet, else all of them if they are on disk. Returns `None` if there are no
/// such episodes.
fn part(show: &Series, episodes: Vec<Episode>, args: &Args, world: &World) -> Option<Part> {
    let asked = |one: &Episode| match (args.season, args.episode) {
        (Some(season), Some(number)) => (one.season, one.number) == (season, number),
        (Some(season), None) => one.season == season,
        // Specials are included only if they are requested explicitly.
        (None, _) => one.season > 0,
    };
    let (there, missing): (Vec<Episode>, Vec<Episode>) =
        episodes.into_iter().filter(asked).partition(Episode::on_disk);
    let (aired, to_come): (Vec<Episode>, Vec<Episode>) =
        missing.into_iter().partition(|one| one.aired(world.now));
    let (wanted, unwanted): (Vec<Episode>, Vec<Episode>) =
        aired.into_iter().partition(|one| show.monitored && one.monitored);
    if !wanted.is_empty() {
        return Some(Part::of(show, wanted, true, Out::Yes));
    }
    if !unwanted.is_empty() {
        return Some(Part::of(show, unwanted, false, Out::Yes));
    }
    if let Some(next) = to_come.iter().min_by_key(|one| one.airs.map_or(jiff::Timestamp::MAX, |airs| airs)) {
        let wanted = show.monitored && next.monitored;
        let out = Out::On(next.airs.map(|airs| day(airs, &world.zone)));
        return Some(Part::of(show, vec![next.clone()], wanted, out));
    }
    if there.is_empty() {
        return None;
    }
    let bytes = super::season_files::files_of(&there).iter().map(|file| file.size_bytes).sum();
    let part = Part::of(show, there, true, Out::Yes);
    Some(Part { on_disk: Some(bytes), ..part })
}

impl Part {
    fn of(show: &Series, episodes: Vec<Episode>, wanted: bool, out: Out) -> Self {
        Self { name: episodes_told(show, &episodes), episodes, wanted, out, on_disk: None }
    }
}

/// Episodes in words: `The Bear (2022) S02E03`, `The Bear (2022) S02E03, E04`, `10 episodes of season 2 of The Bear
/// (2022)`.
fn episodes_told(show: &Series, episodes: &[Episode]) -> String {
    let title = named(&show.title, show.year);
    let Some(first) = episodes.first() else { return title };
    let one_season = episodes.iter().all(|one| one.season == first.season);
    match (one_season, episodes.len()) {
        (true, ..=MOST_NAMED) => {
            let codes: Vec<String> = episodes.iter().map(|one| format!("E{:02}", one.number)).collect();
            format!("{title} S{:02}{}", first.season, codes.join(", "))
        }
        (true, count) => format!("{count} episodes of {} of {title}", deletion::season(first.season)),
        (false, count) => format!("{count} episodes of {title}"),
    }
}

fn day(at: jiff::Timestamp, zone: &TimeZone) -> Date {
    at.to_zoned(zone.clone()).date()
}

fn not_listed(show: &Series) -> CallFailure {
    let name = named(&show.title, show.year);
    refusal(
        "not_listed",
        json!({ "title": name, "hint": "Sonarr knows no such season or episode of it" }),
        Some(format!("There is no such season or episode of {name}.")),
    )
}
