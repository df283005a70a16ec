//! Addition of a movie.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::answers::{clean_title, named, refusal};
use super::approval::{self, Cleared};
use super::arguments::{cleared, offer_instances, read, schema};
use super::folders::folder_for;
use super::following::wanted_movie;
use super::library::{Instance, Library, profile_named, usual_profile};
use super::preference::{in_its_place, profile_wished};
use super::queueing::tried_later;
use super::shelf::freshness::Need;
use super::{
    Asking, Deed, Interrupted, Ran, Settled, Tool, ToolError, Uses, WRITE_TIMEOUT, World, asked, outcomes,
};
use crate::arr::radarr::Radarr;
use crate::arr::{Addition, Availability, Movie, MovieScope, NewMovie, Profile};
use crate::conversation::facts::Facts;
use crate::conversation::requests::{Coverage, NOT_LOOKED_FOR, Wanted};
use crate::conversation::transcript::{
    Added, Arguments, Audience, CallFailure, CallResult, Counted, MediaKind, MediaRef, Rights, Tier, ToolSpec,
};

pub struct AddMovie {
    library: Arc<Library>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    tmdb: i64,
    /// Only if the user named one.
    quality: Option<String>,
    folder: Option<String>,
    instance: Option<String>,
}

#[async_trait]
impl Tool for AddMovie {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "add_movie",
            description: "Add a movie and look for a copy of it.",
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
        let instance = self.library.movie_instance(args.instance.as_deref())?;
        Ok(Uses { refs: vec![MediaRef::Tmdb(args.tmdb)], four_k: instance.four_k })
    }

    async fn run(&self, call: &Cleared, world: &World) -> Result<Ran, ToolError> {
        self.add(cleared(call)?, world).await
    }

    fn preferred(&self, arguments: &Arguments, facts: &Facts, rights: Rights) -> Option<Arguments> {
        let quality = facts.quality(MediaKind::Movie)?;
        in_its_place(arguments, quality, rights, &self.library.movies)
    }

    fn not_done(&self, title: Option<&str>) -> CallFailure {
        outcomes::not_added("Radarr", title.unwrap_or("The movie"))
    }

    async fn settle(&self, call: Interrupted<'_>, _world: &World) -> Result<Settled, ToolError> {
        match call {
            Interrupted::Call(arguments) => self.find_out(arguments).await,
            Interrupted::Item(_) => Ok(Settled::Unknown),
        }
    }
}

impl AddMovie {
    pub fn new(library: Arc<Library>) -> Self {
        Self { library }
    }

    pub(super) async fn add(&self, arguments: &Arguments, world: &World) -> Result<Ran, ToolError> {
        let args = self.arguments(arguments)?;
        let instance = self.library.movie_instance(args.instance.as_deref())?;
        match add(instance, &args, world).await {
            Err(ToolError::TellModel(failure)) if instance.is_down(&failure) => {
                tried_later(&failure, wanted_by(instance, &args), arguments, world)
            }
            ended => ended,
        }
    }

    pub(super) async fn find_out(&self, arguments: &Arguments) -> Result<Settled, ToolError> {
        let args = self.arguments(arguments)?;
        Ok(settle(self.library.movie_instance(args.instance.as_deref())?, args.tmdb).await)
    }

    fn schema(&self) -> Value {
        let mut schema = schema::<Args>();
        offer_instances(&mut schema, "", &self.library.movie_names());
        schema
    }

    fn arguments(&self, arguments: &Arguments) -> Result<Args, CallFailure> {
        read("add_movie", &self.schema(), arguments)
    }
}

const ONE_MOVIE: Added = Added { what: Counted::Movies, amount: 1 };

async fn add(instance: &Instance<Radarr>, args: &Args, world: &World) -> Result<Ran, ToolError> {
    let radarr = &instance.client;
    let held = radarr.movie_by_tmdb(args.tmdb).await.map_err(|error| instance.refused(&error))?;
    if let Some(held) = held {
        return Ok(found_there(instance, &held, world));
    }
    let hits =
        radarr.lookup(&format!("tmdb:{}", args.tmdb)).await.map_err(|error| instance.refused(&error))?;
    let Some(hit) = hits.into_iter().find(|hit| hit.tmdb == args.tmdb) else {
        return Err(unknown(args.tmdb).into());
    };
    approval::within_quota(world, ONE_MOVIE)?;
    let (wanted, profile) = plan(instance, args, hit, world).await?;
    let addition = radarr.add(&wanted).await.map_err(|error| instance.failed_write(&error))?;
    let held = radarr.movie_by_tmdb(args.tmdb).await.map_err(|error| instance.unread_write(&error))?;
    match (held, addition) {
        (Some(held), Addition::Added) => Ok(added(instance, &held, Some(&profile))),
        (Some(held), Addition::AlreadyThere) => Ok(found_there(instance, &held, world)),
        (None, Addition::Added | Addition::AlreadyThere) => Err(ToolError::Unknown(format!(
            "{}: tmdb {} is not there after the add",
            instance.name, args.tmdb
        ))),
    }
}

/// Chooses the folder and the quality profile for the movie.
async fn plan(
    instance: &Instance<Radarr>,
    args: &Args,
    hit: Movie,
    world: &World,
) -> Result<(NewMovie, Profile), ToolError> {
    let radarr = &instance.client;
    let (profiles, folders) = tokio::try_join!(radarr.profiles(), radarr.root_folders())
        .map_err(|error| instance.refused(&error))?;
    let profile = match &args.quality {
        Some(quality) => {
            let profile = profile_named(&profiles, quality)?;
            approval::may_choose(profile, world.rights)?;
            Some(profile)
        }
        None => match profile_wished(&profiles, MediaKind::Movie, world) {
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
    let wanted = NewMovie {
        tmdb: hit.tmdb,
        title: hit.title,
        profile: profile.id,
        root_folder: folder.path.clone(),
        availability: Availability::Released,
        scope: MovieScope::Movie,
    };
    Ok((wanted, profile.clone()))
}

async fn settle(instance: &Instance<Radarr>, tmdb: i64) -> Settled {
    match instance.client.movie_by_tmdb(tmdb).await {
        Ok(Some(held)) => Settled::Done(added(instance, &held, None)),
        Ok(None) => Settled::NotDone,
        Err(error) => {
            tracing::warn!(instance = instance.name, tmdb, %error, "failed to settle an added movie");
            Settled::Unknown
        }
    }
}

fn added(instance: &Instance<Radarr>, movie: &Movie, profile: Option<&Profile>) -> Ran {
    let name = named(&movie.title, movie.year);
    let mut for_model = told(movie, "added");
    if let Some(profile) = profile {
        for_model["quality"] = json!(profile.name);
    }
    let for_user = if movie.available {
        format!("Added {name}.")
    } else {
        format!("Added {name}. It is not out yet and will be fetched when it is.")
    };
    let result = CallResult { for_model, for_user, shown: shown(instance, movie) };
    remembered(Ran::with(result, Deed::Count(ONE_MOVIE)), instance, movie)
}

/// Records who requested a movie. The user is notified when it is ready.
pub(super) fn remembered(ran: Ran, instance: &Instance<Radarr>, movie: &Movie) -> Ran {
    let wanted = wanted_movie(instance, movie);
    let ran = ran.and(Deed::Request(wanted.clone(), Coverage::Whole));
    if movie.has_file { ran } else { ran.and(Deed::Follow(wanted)) }
}

/// Title request of a call, as far as its arguments alone determine it.
fn wanted_by(instance: &Instance<Radarr>, args: &Args) -> Wanted {
    Wanted {
        instance: instance.name.to_owned(),
        kind: MediaKind::Movie,
        catalog_id: args.tmdb,
        title: String::new(),
        year: 0,
        seasons: None,
    }
}

/// Result for a movie that is already there, so that no addition is necessary. A user who asks now gets this
/// information and may follow the movie. A user who was promised the movie has it now.
fn found_there(instance: &Instance<Radarr>, movie: &Movie, world: &World) -> Ran {
    let wanted = wanted_movie(instance, movie);
    let mut result = already_there(instance, movie);
    asked::tell(&mut result, &wanted, world);
    match world.asking {
        Asking::Before => {
            if !movie.has_file && !movie.monitored {
                result.for_model[NOT_LOOKED_FOR] = json!([]);
            }
            return remembered(result.into(), instance, movie);
        }
        Asking::Now if !movie.has_file && movie.monitored => asked::offer(&mut result, &wanted, world),
        Asking::Now => {}
    }
    result.into()
}

fn already_there(instance: &Instance<Radarr>, movie: &Movie) -> CallResult {
    let name = named(&movie.title, movie.year);
    let for_user = match (movie.has_file, movie.monitored, movie.available) {
        (true, _, _) => format!("You already have {name}."),
        (false, true, true) => format!("{name} is already in the library and is being looked for."),
        (false, true, false) => {
            format!("{name} is already in the library. It is not out yet and will be fetched when it is.")
        }
        (false, false, _) => format!("{name} is already in the library, but it is not being looked for."),
    };
    let mut for_model = told(movie, "already_exists");
    if !movie.has_file {
        for_model["id"] = json!(movie.id);
        for_model["hint"] = json!("get_more looks for it again");
    }
    CallResult { for_model, for_user, shown: shown(instance, movie) }
}

fn told(movie: &Movie, status: &str) -> Value {
    json!({ "status": status, "type": "movie", "title": clean_title(&movie.title), "year": movie.year,
        "tmdb": movie.tmdb, "on_disk": movie.has_file, "looked_for": movie.monitored && !movie.has_file,
        "released": movie.available })
}

fn shown(instance: &Instance<Radarr>, movie: &Movie) -> Vec<MediaRef> {
    let item = movie.id.map(|id| instance.item(MediaKind::Movie, id));
    [MediaRef::Tmdb(movie.tmdb)].into_iter().chain(item).collect()
}

fn unknown(tmdb: i64) -> CallFailure {
    refusal(
        "unknown_id",
        json!({ "tmdb": tmdb, "hint": "call search_media and use a number it gives" }),
        Some("I can't find that movie.".to_owned()),
    )
}
