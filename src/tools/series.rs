//! Addition of a show with its requested seasons.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::answers::{clean_title, named, refusal};
use super::approval::{self, Cleared};
use super::arguments::{cleared, offer_instances, read, schema};
use super::folders::folder_for;
use super::following::{growing_episodes, not_on_disk, still_open, wanted_series};
use super::growing::more;
use super::library::{Instance, Library, profile_named, usual_profile};
use super::preference::{in_its_place, profile_wished};
use super::queueing::tried_later;
use super::seasons::{NamedSeasons, SPECIALS, Seasons, choose, season_list};
use super::shelf::freshness::Need;
use super::{
    Asking, Deed, Interrupted, Ran, Settled, Tool, ToolError, Uses, WRITE_TIMEOUT, World, asked, outcomes,
};
use crate::arr::episodes::Episode;
use crate::arr::sonarr::Sonarr;
use crate::arr::{Addition, NewSeries, Series, WantedEpisodes};
use crate::conversation::facts::Facts;
use crate::conversation::requests::{Coverage, NOT_LOOKED_FOR, Wanted};
use crate::conversation::transcript::{
    Added, Arguments, Audience, CallFailure, CallResult, Counted, MediaKind, MediaRef, Rights, Tier, ToolSpec,
};

pub struct AddSeries {
    library: Arc<Library>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    tvdb: i64,
    /// As the user said; leave out if they did not.
    seasons: Option<Seasons>,
    quality: Option<String>,
    folder: Option<String>,
    #[serde(default)]
    anime: bool,
    instance: Option<String>,
}

impl Args {
    fn coverage(&self) -> Coverage {
        match self.seasons {
            Some(Seasons::Named(NamedSeasons::Future | NamedSeasons::Pilot)) => Coverage::SomeEpisodes,
            Some(Seasons::Named(NamedSeasons::All | NamedSeasons::First | NamedSeasons::Latest))
            | Some(Seasons::Numbers(_))
            | None => Coverage::Whole,
        }
    }
}

#[async_trait]
impl Tool for AddSeries {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "add_series",
            description: "Add a show and look for its episodes.",
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
        let instance = self.library.series_instance(args.instance.as_deref())?;
        Ok(Uses { refs: vec![MediaRef::Tvdb(args.tvdb)], four_k: instance.four_k })
    }

    async fn run(&self, call: &Cleared, world: &World) -> Result<Ran, ToolError> {
        self.add(cleared(call)?, world).await
    }

    fn preferred(&self, arguments: &Arguments, facts: &Facts, rights: Rights) -> Option<Arguments> {
        let quality = facts.quality(MediaKind::Series)?;
        in_its_place(arguments, quality, rights, &self.library.series)
    }

    fn not_done(&self, title: Option<&str>) -> CallFailure {
        outcomes::not_added("Sonarr", title.unwrap_or("The show"))
    }

    async fn settle(&self, call: Interrupted<'_>, world: &World) -> Result<Settled, ToolError> {
        match call {
            Interrupted::Call(arguments) => self.find_out(arguments, world).await,
            Interrupted::Item(_) => Ok(Settled::Unknown),
        }
    }
}

impl AddSeries {
    pub fn new(library: Arc<Library>) -> Self {
        Self { library }
    }

    pub(super) async fn add(&self, arguments: &Arguments, world: &World) -> Result<Ran, ToolError> {
        let args = self.arguments(arguments)?;
        let instance = self.library.series_instance(args.instance.as_deref())?;
        match add(instance, &args, world).await {
            Err(ToolError::TellModel(failure)) if instance.is_down(&failure) => {
                tried_later(&failure, wanted_by(instance, &args), arguments, world)
            }
            ended => ended,
        }
    }

    pub(super) async fn find_out(&self, arguments: &Arguments, world: &World) -> Result<Settled, ToolError> {
        let args = self.arguments(arguments)?;
        Ok(settle(self.library.series_instance(args.instance.as_deref())?, &args, world).await)
    }

    fn schema(&self) -> Value {
        let mut schema = schema::<Args>();
        offer_instances(&mut schema, "", &self.library.series_names());
        schema
    }

    fn arguments(&self, arguments: &Arguments) -> Result<Args, CallFailure> {
        read("add_series", &self.schema(), arguments)
    }
}

async fn add(instance: &Instance<Sonarr>, args: &Args, world: &World) -> Result<Ran, ToolError> {
    let sonarr = &instance.client;
    let held = sonarr.series_by_tvdb(args.tvdb).await.map_err(|error| instance.refused(&error))?;
    if let Some(held) = held {
        return get_promised(instance, &held, args, world).await;
    }
    let hits =
        sonarr.lookup(&format!("tvdb:{}", args.tvdb)).await.map_err(|error| instance.refused(&error))?;
    let Some(hit) = hits.into_iter().find(|hit| hit.tvdb == args.tvdb) else {
        return Err(unknown(args.tvdb).into());
    };
    let wanted = choose(&hit, args.seasons.as_ref(), &world.said)?;
    approval::within_quota(world, counted(&wanted))?;
    let asked = plan(instance, args, hit, wanted.clone(), world).await?;
    let addition = sonarr.add(&asked).await.map_err(|error| instance.failed_write(&error))?;
    let held = sonarr.series_by_tvdb(args.tvdb).await.map_err(|error| instance.unread_write(&error))?;
    match (held, addition) {
        (Some(held), Addition::Added) => Ok(added(instance, &held, &wanted, world).await),
        (Some(held), Addition::AlreadyThere) => get_promised(instance, &held, args, world).await,
        (None, Addition::Added | Addition::AlreadyThere) => Err(ToolError::Unknown(format!(
            "{}: tvdb {} is not there after the add",
            instance.name, args.tvdb
        ))),
    }
}

/// Number of requested seasons. A show counts as at least one season, and its specials count as none.
fn counted(wanted: &WantedEpisodes) -> Added {
    let seasons = match wanted {
        WantedEpisodes::Seasons(seasons) => {
            seasons.iter().filter(|(number, wanted)| *wanted && *number != SPECIALS).count()
        }
        WantedEpisodes::Future | WantedEpisodes::Pilot => 1,
    };
    Added { what: Counted::Seasons, amount: u32::try_from(seasons).unwrap_or(u32::MAX).max(1) }
}

/// Chooses the folder and the quality profile for the show.
async fn plan(
    instance: &Instance<Sonarr>,
    args: &Args,
    hit: Series,
    wanted: WantedEpisodes,
    world: &World,
) -> Result<NewSeries, ToolError> {
    let sonarr = &instance.client;
    let (profiles, folders) = tokio::try_join!(sonarr.profiles(), sonarr.root_folders())
        .map_err(|error| instance.refused(&error))?;
    let profile = match &args.quality {
        Some(quality) => {
            let profile = profile_named(&profiles, quality)?;
            approval::may_choose(profile, world.rights)?;
            Some(profile)
        }
        None => match profile_wished(&profiles, MediaKind::Series, world) {
            Some(profile) => Some(profile),
            None => {
                let held = instance.held(world.now, Need::Rough).await;
                let held = held.map_err(|error| instance.refused(&error))?;
                usual_profile(&profiles, held.entries.titles().iter().map(|title| title.profile))
            }
        },
    };
    let (Some(profile), Some(folder)) = (profile, folder_for(&folders, args.folder.as_deref())?) else {
        return Err(instance.not_ready().into());
    };
    Ok(NewSeries {
        tvdb: hit.tvdb,
        title: hit.title,
        series_type: if args.anime { "anime".to_owned() } else { hit.series_type },
        profile: profile.id,
        root_folder: folder.path.clone(),
        wanted,
    })
}

async fn settle(instance: &Instance<Sonarr>, args: &Args, world: &World) -> Settled {
    match instance.client.series_by_tvdb(args.tvdb).await {
        // The show was there before, or another request has added it. The seasons of this request must still be
        // searched for.
        Ok(Some(held)) if promised(instance, &held, args).is_some() => Settled::NotDone,
        Ok(Some(held)) => Settled::Done(added(instance, &held, &as_held(&held, args), world).await),
        Ok(None) => Settled::NotDone,
        Err(error) => {
            let tvdb = args.tvdb;
            tracing::warn!(instance = instance.name, tvdb, %error, "failed to settle an added show");
            Settled::Unknown
        }
    }
}

/// Episodes that a call requested of a show, given the current state of the show.
fn as_held(series: &Series, args: &Args) -> WantedEpisodes {
    let is_asked_for = |number: u32| match &args.seasons {
        Some(Seasons::Numbers(listed)) => listed.contains(&number),
        Some(Seasons::Named(_)) | None => true,
    };
    match args.seasons {
        Some(Seasons::Named(NamedSeasons::Future)) => WantedEpisodes::Future,
        Some(Seasons::Named(NamedSeasons::Pilot)) => WantedEpisodes::Pilot,
        Some(Seasons::Named(NamedSeasons::All | NamedSeasons::First | NamedSeasons::Latest))
        | Some(Seasons::Numbers(_))
        | None => {
            let asked = series.all_seasons().filter(|season| is_asked_for(season.number));
            WantedEpisodes::Seasons(asked.map(|season| (season.number, season.monitored)).collect())
        }
    }
}

fn flags(series: &Series) -> Vec<(u32, bool)> {
    series.seasons.iter().map(|season| (season.number, season.monitored)).collect()
}

/// Result of an addition. The reported seasons are those that were read back, as far as Sonarr reports them this early.
async fn added(instance: &Instance<Sonarr>, series: &Series, wanted: &WantedEpisodes, world: &World) -> Ran {
    let mut for_model = told(series, "added");
    let Extent { ending, seasons, coverage } = extent(series, wanted, &mut for_model);
    let for_user = format!("Added {}{ending}", named(&series.title, series.year));
    let result = CallResult { for_model, for_user, shown: shown(instance, series) };
    let asked = Wanted { seasons, ..wanted_series(instance, series) };
    let growing = growing_episodes(instance, series, &asked).await;
    let ran = Ran::with(result, Deed::Count(counted(wanted)));
    remembered(ran, (asked, coverage), series, (&growing, world.now))
}

/// Part of a show that was added.
struct Extent {
    /// End of the sentence about the addition.
    ending: String,
    /// Requested seasons; `None` for all of the show.
    seasons: Option<Vec<u32>>,
    coverage: Coverage,
}

impl Extent {
    fn of_show(ending: &str, coverage: Coverage) -> Self {
        Self { ending: ending.to_owned(), seasons: None, coverage }
    }
}

fn extent(series: &Series, wanted: &WantedEpisodes, for_model: &mut Value) -> Extent {
    let asked = match wanted {
        WantedEpisodes::Seasons(asked) => asked,
        WantedEpisodes::Future => {
            for_model["wanted"] = json!("future episodes");
            return Extent::of_show(", only what is still to come.", Coverage::SomeEpisodes);
        }
        WantedEpisodes::Pilot => {
            for_model["wanted"] = json!("first episode");
            return Extent::of_show(", only the first episode.", Coverage::SomeEpisodes);
        }
    };
    if waits_for_seasons(series, asked) {
        for_model["wanted"] = json!("all that comes; nothing is out yet");
        let ending = ". Nothing of it is out yet; new episodes will be fetched as they air.";
        return Extent::of_show(ending, Coverage::Whole);
    }
    let specials = asked.iter().filter(|(number, _)| *number == SPECIALS).copied();
    // Another request may have added other seasons in the meantime.
    let of_this = |(number, _): &(u32, bool)| asked.iter().any(|(asked, _)| asked == number);
    let numbered: Vec<(u32, bool)> = flags(series).into_iter().filter(of_this).collect();
    let is_all = !numbered.is_empty() && numbered.len() == series.seasons.len();
    let whole = is_all && numbered.iter().all(|(_, wanted)| *wanted);
    let wanted: Vec<u32> =
        specials.chain(numbered).filter(|(_, wanted)| *wanted).map(|(number, _)| number).collect();
    for_model["seasons_wanted"] = json!(wanted);
    if whole {
        return Extent::of_show(".", Coverage::Whole);
    }
    if wanted.is_empty() {
        // Sonarr does not list the seasons yet, so it is unknown which of them are fetched.
        return Extent::of_show(".", Coverage::SomeEpisodes);
    }
    let ending = format!(", {}.", season_list(&wanted));
    Extent { ending, seasons: Some(wanted), coverage: Coverage::Whole }
}

/// True if a show has no regular season yet, so that all future seasons are fetched.
fn waits_for_seasons(series: &Series, asked: &[(u32, bool)]) -> bool {
    series.seasons.is_empty() && asked.iter().all(|(_, wanted)| !wanted)
}

/// Records who requested a show. The user is notified when the requested part is complete.
pub(super) fn remembered(
    ran: Ran,
    (wanted, coverage): (Wanted, Coverage),
    series: &Series,
    (growing, now): (&[Episode], Timestamp),
) -> Ran {
    let open = still_open(series, &wanted, (growing, now));
    let ran = ran.and(Deed::Request(wanted, coverage));
    match open {
        Some(open) => ran.and(Deed::Follow(open)),
        None => ran,
    }
}

/// Title request of a call for a known show.
fn wanted_of(instance: &Instance<Sonarr>, series: &Series, args: &Args) -> Wanted {
    let numbers = || series.seasons.iter().map(|season| season.number);
    let seasons: Option<Vec<u32>> = match &args.seasons {
        None | Some(Seasons::Named(NamedSeasons::All | NamedSeasons::Future | NamedSeasons::Pilot)) => None,
        Some(Seasons::Named(NamedSeasons::First)) => numbers().min().map(|first| vec![first]),
        Some(Seasons::Named(NamedSeasons::Latest)) => numbers().max().map(|latest| vec![latest]),
        Some(Seasons::Numbers(listed)) => Some(listed.clone()),
    };
    let partly = seasons.filter(|listed| !numbers().all(|number| listed.contains(&number)));
    Wanted { seasons: partly, ..wanted_series(instance, series) }
}

/// Title request of a call, as far as the arguments alone determine it.
fn wanted_by(instance: &Instance<Sonarr>, args: &Args) -> Wanted {
    let seasons = match &args.seasons {
        Some(Seasons::Numbers(listed)) => Some(listed.clone()),
        Some(Seasons::Named(_)) | None => None,
    };
    Wanted {
        instance: instance.name.to_owned(),
        kind: MediaKind::Series,
        catalog_id: args.tvdb,
        title: String::new(),
        year: 0,
        seasons,
    }
}

/// Result for a show that is already there. Promised seasons of it are monitored and searched for from now on, because
/// an earlier request may have added the show without them.
async fn get_promised(
    instance: &Instance<Sonarr>,
    series: &Series,
    args: &Args,
    world: &World,
) -> Result<Ran, ToolError> {
    match (world.asking, series.id, promised(instance, series, args)) {
        (Asking::Before, Some(id), Some(seasons)) => more::seasons(instance, id, &seasons, world).await,
        (Asking::Before | Asking::Now, _, _) => Ok(found_there(instance, series, args, world).await),
    }
}

/// Seasons in a call, if at least one of them is neither on disk nor monitored.
fn promised(instance: &Instance<Sonarr>, series: &Series, args: &Args) -> Option<Vec<u32>> {
    let wanted = wanted_of(instance, series, args);
    let lacking = not_looked_for(series, &wanted, args)?;
    wanted.seasons.filter(|_| !lacking.is_empty())
}

/// Result for a show that is already there, as for a movie.
async fn found_there(instance: &Instance<Sonarr>, series: &Series, args: &Args, world: &World) -> Ran {
    let wanted = wanted_of(instance, series, args);
    let mut result = already_there(instance, series);
    asked::tell(&mut result, &wanted, world);
    let growing = growing_episodes(instance, series, &wanted).await;
    match world.asking {
        Asking::Before => {
            if let Some(seasons) = not_looked_for(series, &wanted, args) {
                result.for_model[NOT_LOOKED_FOR] = json!(seasons);
            }
            return remembered(result.into(), (wanted, args.coverage()), series, (&growing, world.now));
        }
        Asking::Now if series.monitored && still_open(series, &wanted, (&growing, world.now)).is_some() => {
            asked::offer(&mut result, &wanted, world);
        }
        Asking::Now => {}
    }
    result.into()
}

/// Seasons that are requested and not on disk but not monitored. The list is empty if that applies to the whole show.
fn not_looked_for(series: &Series, wanted: &Wanted, args: &Args) -> Option<Vec<u32>> {
    let open = not_on_disk(series, wanted)?;
    if open.seasons.is_none() {
        let is_looked_for = series.monitored && (!series.seasons.is_empty() || series.new_seasons);
        if !is_looked_for {
            return Some(Vec::new());
        }
        if let Some(Seasons::Named(NamedSeasons::Future | NamedSeasons::Pilot)) = args.seasons {
            return None;
        }
    }
    let whole = || series.seasons.iter().map(|season| season.number).collect();
    let named = Wanted { seasons: Some(open.seasons.unwrap_or_else(whole)), ..wanted.clone() };
    let numbers = not_on_disk(series, &named)?.seasons?;
    let is_looked_for =
        |number: &u32| series.monitored && series.season(*number).is_some_and(|season| season.monitored);
    let left: Vec<u32> = numbers.into_iter().filter(|number| !is_looked_for(number)).collect();
    (!left.is_empty()).then_some(left)
}

fn already_there(instance: &Instance<Sonarr>, series: &Series) -> CallResult {
    let name = named(&series.title, series.year);
    let Series { episodes_on_disk, episodes, .. } = series;
    let for_user = if *episodes == 0 {
        format!("{name} is already in the library, but no episode of it is listed yet.")
    } else if episodes_on_disk >= episodes {
        format!("You already have {name}.")
    } else if series.monitored {
        format!(
            "You already have {name}: {episodes_on_disk} of {episodes} episodes, and it is being looked for."
        )
    } else {
        format!("You already have {name}: {episodes_on_disk} of {episodes} episodes.")
    };
    let mut for_model = told(series, "already_exists");
    let lacks_some = series.episodes_on_disk < series.episodes || series.episodes == 0;
    if lacks_some || series.seasons.iter().any(|season| !season.monitored) {
        for_model["id"] = json!(series.id);
        for_model["hint"] = json!("get_more gets more of it");
    }
    CallResult { for_model, for_user, shown: shown(instance, series) }
}

fn told(series: &Series, status: &str) -> Value {
    json!({ "status": status, "type": "series", "title": clean_title(&series.title), "year": series.year,
        "tvdb": series.tvdb, "seasons": series.seasons.len(),
        "episodes": format!("{} of {}", series.episodes_on_disk, series.episodes) })
}

fn shown(instance: &Instance<Sonarr>, series: &Series) -> Vec<MediaRef> {
    let item = series.id.map(|id| instance.item(MediaKind::Series, id));
    [MediaRef::Tvdb(series.tvdb)].into_iter().chain(item).collect()
}

fn unknown(tvdb: i64) -> CallFailure {
    refusal(
        "unknown_id",
        json!({ "tvdb": tvdb, "hint": "call search_media and use a number it gives" }),
        Some("I can't find that show.".to_owned()),
    )
}
