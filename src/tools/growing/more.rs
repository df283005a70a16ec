//! Additions to titles that are in the library: seasons or episodes of a show that were not monitored so far, or a
//! repeated search for missing items.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::films;
use super::picking;
use super::wanting::{Held, Part, Wish, set};
use crate::arr::ArrError;
use crate::arr::changes::{SeriesChange, SeriesSearch};
use crate::arr::episodes::Episode;
use crate::arr::sonarr::Sonarr;
use crate::conversation::requests::{Coverage, Wanted};
use crate::conversation::transcript::{
    Added, Arguments, Audience, CallFailure, CallResult, Counted, MediaKind, MediaRef, Tier, ToolSpec,
};
use crate::tools::answers::{clean_title, named, refusal};
use crate::tools::approval::{self, Cleared};
use crate::tools::arguments::{cleared, read, schema};
use crate::tools::following::wanted_series;
use crate::tools::library::{Instance, Library};
use crate::tools::removal::unknown;
use crate::tools::seasons::{MAX_SEASONS_UNASKED, asks_for_many, season_list, which_seasons};
use crate::tools::series::remembered;
use crate::tools::{Deed, Interrupted, Ran, Settled, Tool, ToolError, Uses, WRITE_TIMEOUT, World, outcomes};

/// Age below which a search counts as recent. A recent search is not repeated for a call whose response was lost.
const LATELY: SignedDuration = SignedDuration::from_mins(10);

pub struct GetMore {
    library: Arc<Library>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    #[serde(rename = "type")]
    kind: MediaKind,
    id: i64,
    /// Numbers or S02E03, or all, first, latest, future.
    #[serde(default)]
    seasons: Vec<String>,
    instance: Option<String>,
}

/// Outcome of asking Sonarr or Radarr to search immediately.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Search {
    Begun,
    /// The search could not be started, or its outcome is unknown.
    NotBegun,
    /// No item has been released yet, so none can be found.
    NothingOut,
}

#[async_trait]
impl Tool for GetMore {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "get_more",
            description: "Get seasons or episodes of a show in the library, or look again for what is missing.",
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
            MediaKind::Movie => films::look_again(self.library.movie_instance(name)?, args.id, world).await,
            MediaKind::Series => more(self.library.series_instance(name)?, &args, world).await,
        }
    }

    fn not_done(&self, title: Option<&str>) -> CallFailure {
        outcomes::not_changed(title)
    }

    async fn settle(&self, call: Interrupted<'_>, world: &World) -> Result<Settled, ToolError> {
        let Interrupted::Call(arguments) = call else { return Ok(Settled::Unknown) };
        let args = self.arguments(arguments)?;
        let name = args.instance.as_deref();
        match args.kind {
            MediaKind::Movie => films::settle(self.library.movie_instance(name)?, args.id, world).await,
            MediaKind::Series => settle(self.library.series_instance(name)?, &args, world).await,
        }
    }
}

impl GetMore {
    pub fn new(library: Arc<Library>) -> Self {
        Self { library }
    }

    fn schema(&self) -> Value {
        let mut schema = schema::<Args>();
        self.library.offer(&mut schema);
        schema
    }

    fn arguments(&self, arguments: &Arguments) -> Result<Args, CallFailure> {
        read("get_more", &self.schema(), arguments)
    }
}

/// Adds seasons of a show that is already there, for a request that waited.
pub(in crate::tools) async fn seasons(
    instance: &Instance<Sonarr>,
    id: i64,
    numbers: &[u32],
    world: &World,
) -> Result<Ran, ToolError> {
    let seasons = numbers.iter().map(u32::to_string).collect();
    more(instance, &Args { kind: MediaKind::Series, id, seasons, instance: None }, world).await
}

async fn more(instance: &Instance<Sonarr>, args: &Args, world: &World) -> Result<Ran, ToolError> {
    let held = Held::read(&instance.client, args.id).await.map_err(|error| instance.refused(&error))?;
    let held = held.ok_or_else(|| unknown(args.id))?;
    let Some(part) = picking::part(&held, &args.seasons)? else { return again(instance, &held, world).await };
    let wish = Wish::More(part.clone());
    let goal = held.goal(&wish, world.now);
    let reached = held.flags().reach(&goal);
    let complete = is_complete(&held, &part, world.now);
    if complete && part != Part::Future {
        return Ok(already_there(instance, &held, &part).into());
    }
    let gained = held.seasons_gained(&goal);
    if gained.len() > MAX_SEASONS_UNASKED && !asks_for_many(&world.said, &held.series) {
        return Err(which_seasons(&held.series).into());
    }
    let count = (!reached).then(|| counted(gained.len()));
    if let Some(count) = count {
        approval::within_quota(world, count)?;
    }
    let written = set(instance, &held, (&wish, &goal), SeriesChange::default()).await;
    if let Err(error @ (ToolError::TellModel(_) | ToolError::Fatal(_))) = written {
        return Err(error);
    }
    // If the response to a write was lost, the flags show whether the change was made.
    let after = Held::read(&instance.client, args.id).await.map_err(|error| instance.unread_write(&error))?;
    let Some(after) = after.filter(|after| after.flags().reach(&goal)) else {
        return Err(written.err().unwrap_or_else(|| ToolError::Unknown(not_so(instance, args.id))));
    };
    let search = look(instance, &after, &part, world.now).await;
    if let (true, Err(error)) = (reached, &search) {
        // Only the search was left to do.
        return Err(instance.failed_write(error));
    }
    let result = looking(instance, &after, (&part, search.unwrap_or(Search::NotBegun)), world.now);
    Ok(noted(with_count(result, count), instance, (&after, &part), world.now))
}

/// Determines the outcome of an interrupted call. The flags show whether the change was made. A search that was not
/// started is started now, since repeating a search does no harm.
async fn settle(instance: &Instance<Sonarr>, args: &Args, world: &World) -> Result<Settled, ToolError> {
    let held = match Held::read(&instance.client, args.id).await {
        Ok(Some(held)) => held,
        Ok(None) => return Ok(Settled::NotDone),
        Err(error) => {
            tracing::warn!(instance = instance.name, id = args.id, %error, "failed to settle more of a show");
            return Ok(Settled::Unknown);
        }
    };
    let part = picking::part(&held, &args.seasons)?;
    let Some(part) = part else {
        let missing: Vec<&Episode> = wanted_and_out(&held, world.now);
        return Ok(if lately(&missing, world.now) {
            Settled::Done(looking_again(instance, &held, missing.len()).into())
        } else {
            Settled::NotDone
        });
    };
    let goal = held.goal(&Wish::More(part.clone()), world.now);
    if !held.flags().reach(&goal) {
        return Ok(Settled::NotDone);
    }
    let missing = lacking(&held, &part, world.now);
    let search = if lately(&missing, world.now) {
        Search::Begun
    } else {
        look(instance, &held, &part, world.now).await.unwrap_or(Search::NotBegun)
    };
    // The monitoring state before the call is no longer known, so all that the call requested counts.
    let mut seasons: Vec<u32> = missing.iter().map(|episode| episode.season).collect();
    seasons.dedup();
    let result = looking(instance, &held, (&part, search), world.now);
    let ran = with_count(result, Some(counted(seasons.len())));
    Ok(Settled::Done(noted(ran, instance, (&held, &part), world.now)))
}

/// Searches for all monitored episodes that have aired and are not on disk.
async fn again(instance: &Instance<Sonarr>, held: &Held, world: &World) -> Result<Ran, ToolError> {
    let missing = wanted_and_out(held, world.now);
    if missing.is_empty() {
        return Err(nothing_to_look_for(held, world.now).into());
    }
    let search = SeriesSearch::Missing(held.id);
    instance.client.search(&search).await.map_err(|error| instance.failed_write(&error))?;
    Ok(looking_again(instance, held, missing.len()).into())
}

/// Asks Sonarr to search immediately for the episodes of the part that have aired and are not on disk.
async fn look(
    instance: &Instance<Sonarr>,
    held: &Held,
    part: &Part,
    now: Timestamp,
) -> Result<Search, ArrError> {
    let out: Vec<&Episode> = lacking(held, part, now).into_iter().filter(|one| one.aired(now)).collect();
    let searches = match part {
        // If Sonarr has not loaded the episodes of a show yet, none of them is known to be on disk.
        Part::Seasons(numbers) if held.episodes.is_empty() => by_season(held.id, numbers),
        _ if out.is_empty() => return Ok(Search::NothingOut),
        Part::Seasons(_) => {
            let mut seasons: Vec<u32> = out.iter().map(|episode| episode.season).collect();
            seasons.dedup();
            by_season(held.id, &seasons)
        }
        Part::Episodes(_) | Part::Future => {
            vec![SeriesSearch::Episodes(out.iter().map(|episode| episode.id).collect())]
        }
    };
    for search in &searches {
        if let Err(error) = instance.client.search(search).await {
            tracing::warn!(instance = instance.name, series = held.id, %error, "failed to begin a search");
            return Err(error);
        }
    }
    Ok(Search::Begun)
}

/// One request for each season if there are few, because a season request may find packs. Otherwise one request for all
/// missing episodes.
fn by_season(series: i64, seasons: &[u32]) -> Vec<SeriesSearch> {
    if seasons.len() > MAX_SEASONS_UNASKED {
        return vec![SeriesSearch::Missing(series)];
    }
    seasons.iter().map(|&season| SeriesSearch::Season { series, season }).collect()
}

/// Episodes of a part that are not on disk.
fn lacking<'a>(held: &'a Held, part: &Part, now: Timestamp) -> Vec<&'a Episode> {
    held.episodes_of(part, now).into_iter().filter(|episode| !episode.on_disk()).collect()
}

/// Returns whether a part is on disk and nothing more of it is to come.
fn is_complete(held: &Held, part: &Part, now: Timestamp) -> bool {
    let is_over = |number: &u32| held.series.season_is_complete(*number, &held.episodes, now);
    let may_come = matches!(part, Part::Seasons(numbers) if !numbers.iter().all(is_over));
    !held.episodes.is_empty() && lacking(held, part, now).is_empty() && !may_come
}

fn wanted_and_out(held: &Held, now: Timestamp) -> Vec<&Episode> {
    let wanted = |one: &&Episode| held.series.monitored && one.monitored && one.aired(now) && !one.on_disk();
    held.episodes.iter().filter(wanted).collect()
}

fn lately(missing: &[&Episode], now: Timestamp) -> bool {
    missing.iter().any(|episode| episode.last_search.is_some_and(|at| now.duration_since(at) <= LATELY))
}

/// Quota usage of additional seasons. More of a show counts as at least one season.
pub(super) fn counted(seasons: usize) -> Added {
    Added { what: Counted::Seasons, amount: u32::try_from(seasons).unwrap_or(u32::MAX).max(1) }
}

/// Records who requested the addition. The user is notified when it is ready.
fn noted(ran: Ran, instance: &Instance<Sonarr>, (held, part): (&Held, &Part), now: Timestamp) -> Ran {
    let whole = wanted_series(instance, &held.series);
    let (mut seasons, coverage): (Vec<u32>, Coverage) = match part {
        Part::Seasons(numbers) => (numbers.clone(), Coverage::Whole),
        Part::Episodes(codes) => (codes.iter().map(|(season, _)| *season).collect(), Coverage::SomeEpisodes),
        // Future episodes belong to no season with a known number.
        Part::Future => {
            let request = Deed::Request(whole.clone(), Coverage::SomeEpisodes);
            return ran.and(request).and(Deed::Follow(whole));
        }
    };
    seasons.sort_unstable();
    seasons.dedup();
    remembered(
        ran,
        (Wanted { seasons: Some(seasons), ..whole }, coverage),
        &held.series,
        (&held.episodes, now),
    )
}

pub(super) fn with_count(result: CallResult, count: Option<Added>) -> Ran {
    match count {
        Some(count) => Ran::with(result, Deed::Count(count)),
        None => result.into(),
    }
}

pub(super) fn not_so<Client>(instance: &Instance<Client>, id: i64) -> String {
    format!("{}: {id} is not as it was written", instance.name)
}

fn looking(
    instance: &Instance<Sonarr>,
    held: &Held,
    (part, search): (&Part, Search),
    now: Timestamp,
) -> CallResult {
    let name = named(&held.series.title, held.series.year);
    let missing = lacking(held, part, now);
    let to_come = missing.iter().filter(|episode| !episode.aired(now)).count();
    let what = picking::told(&lacking_part(part, &missing));
    let for_user = match (search, part) {
        (Search::Begun, _) if to_come > 0 => {
            format!("Looking for {what} of {name} now. Episodes still to come are fetched as they air.")
        }
        (Search::Begun, _) => format!("Looking for {what} of {name} now."),
        (Search::NothingOut, Part::Future) if held.series.ended && missing.is_empty() => {
            format!(
                "{name} has ended, so there is probably nothing to come. If there is, it will be fetched."
            )
        }
        (Search::NothingOut, Part::Future) => format!("New episodes of {name} will be fetched as they air."),
        (Search::NothingOut, Part::Seasons(_)) if missing.is_empty() => {
            format!("You have {what} of {name} as far as it has aired. New episodes are fetched as they air.")
        }
        (Search::NothingOut, Part::Seasons(_) | Part::Episodes(_)) => {
            format!("Nothing of that has aired yet: {what} of {name} will be fetched when it airs.")
        }
        (Search::NotBegun, _) => format!(
            "{name}: {what} will be fetched from now on, but {} did not begin to look at once.",
            instance.label()
        ),
    };
    let mut for_model = told(held, search.word());
    for_model["of"] = json!(what);
    for_model["missing"] = json!(missing.len() - to_come);
    for_model["not_aired"] = json!(to_come);
    CallResult { for_model, for_user, shown: shown(instance, held) }
}

/// Part reduced to its missing episodes, if any of them are missing.
fn lacking_part(part: &Part, missing: &[&Episode]) -> Part {
    match part {
        Part::Seasons(numbers) if !missing.is_empty() => {
            let lacks = |number: &u32| missing.iter().any(|episode| episode.season == *number);
            Part::Seasons(numbers.iter().copied().filter(lacks).collect())
        }
        Part::Episodes(_) if !missing.is_empty() => {
            Part::Episodes(missing.iter().map(|episode| (episode.season, episode.number)).collect())
        }
        Part::Seasons(_) | Part::Episodes(_) | Part::Future => part.clone(),
    }
}

fn looking_again(instance: &Instance<Sonarr>, held: &Held, missing: usize) -> CallResult {
    let name = named(&held.series.title, held.series.year);
    let episodes =
        if missing == 1 { "1 missing episode".to_owned() } else { format!("{missing} missing episodes") };
    let mut for_model = told(held, Search::Begun.word());
    for_model["missing"] = json!(missing);
    let for_user = format!("Looking again for {episodes} of {name}.");
    CallResult { for_model, for_user, shown: shown(instance, held) }
}

fn already_there(instance: &Instance<Sonarr>, held: &Held, part: &Part) -> CallResult {
    let name = named(&held.series.title, held.series.year);
    let what = picking::told(part);
    let mut for_model = told(held, "already_exists");
    for_model["of"] = json!(what);
    CallResult {
        for_model,
        for_user: format!("You already have {what} of {name}."),
        shown: shown(instance, held),
    }
}

/// Result if everything monitored is already there. Items that are not monitored so far can be listed.
fn nothing_to_look_for(held: &Held, now: Timestamp) -> CallFailure {
    let name = named(&held.series.title, held.series.year);
    let unwanted = held.episodes.iter().filter(|one| !one.on_disk() && one.aired(now));
    let mut seasons: Vec<u32> = unwanted.map(|episode| episode.season).collect();
    seasons.dedup();
    if seasons.is_empty() {
        let for_user = format!("Nothing that has aired of {name} is missing.");
        return refusal(
            "nothing_missing",
            json!({ "title": clean_title(&held.series.title) }),
            Some(for_user),
        );
    }
    refusal(
        "which_seasons",
        json!({ "title": clean_title(&held.series.title), "not_looked_for": seasons,
            "hint": "all that is looked for is there; ask which of these to get, then call again with them" }),
        Some(format!("Of {name}, {} can be fetched as well. Which ones do you want?", season_list(&seasons))),
    )
}

pub(super) fn told(held: &Held, status: &str) -> Value {
    json!({ "status": status, "type": "series", "title": clean_title(&held.series.title),
        "year": held.series.year, "seasons_looked_for": held.seasons_wanted() })
}

pub(super) fn shown(instance: &Instance<Sonarr>, held: &Held) -> Vec<MediaRef> {
    vec![MediaRef::Tvdb(held.series.tvdb), instance.item(MediaKind::Series, held.id)]
}

impl Search {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Begun => "being_looked_for",
            Self::NotBegun => "wanted_but_search_not_begun",
            Self::NothingOut => "wanted_not_out_yet",
        }
    }
}
