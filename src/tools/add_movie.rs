//! Tool that adds a movie to the library.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::approval::{self, ApprovedCall};
use super::arguments::{approved_arguments, argument_schema, offer_instances, parse_arguments};
use super::deferred_addition::queue_for_retry;
use super::folders::folder_for;
use super::follow_title::requested_movie;
use super::formatting::{call_failure, clean_title, format_media_title};
use super::library::{ArrInstances, Instance, find_profile, usual_profile};
use super::library_cache::refresh::FreshnessPolicy;
use super::preference::{preferred_profile, with_preferred_instance};
use super::{
    CallReferences, InterruptedRun, RecoveryOutcome, RequestTiming, Tool, ToolContext, ToolEffect, ToolError,
    ToolOutput, WRITE_TIMEOUT, deletion_outcomes, requesters,
};
use crate::arr::radarr::Radarr;
use crate::arr::{AdditionOutcome, Availability, Movie, NewMovie, QualityProfile};
use crate::conversation::people::facts::UserFacts;
use crate::conversation::title_requests::{Coverage, NOT_MONITORED, RequestedTitle};
use crate::conversation::transcript::{
    CallFailure, CallResult, EffectLevel, MediaKind, MediaRef, QuotaKind, QuotaUse, ToolArguments,
    ToolAudience, ToolSpec, UserRights,
};

pub struct AddMovie {
    library: Arc<ArrInstances>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AddMovieArgs {
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
            effect_level: EffectLevel::Write,
            audience: ToolAudience::Adders,
            parameters: self.parameters_schema().into(),
        }
    }

    fn timeout(&self) -> Duration {
        WRITE_TIMEOUT
    }

    fn check_arguments(&self, arguments: &ToolArguments) -> Result<CallReferences, CallFailure> {
        let args = self.parse_call(arguments)?;
        let instance = self.library.movie_instance(args.instance.as_deref())?;
        Ok(CallReferences { refs: vec![MediaRef::Tmdb(args.tmdb)], four_k: instance.four_k })
    }

    async fn run(&self, call: &ApprovedCall, world: &ToolContext) -> Result<ToolOutput, ToolError> {
        self.add_movie(approved_arguments(call)?, world).await
    }

    fn apply_preferences(
        &self,
        arguments: &ToolArguments,
        facts: &UserFacts,
        rights: UserRights,
    ) -> Option<ToolArguments> {
        let quality = facts.preferred_quality(MediaKind::Movie)?;
        with_preferred_instance(arguments, quality, rights, &self.library.movies)
    }

    fn not_done_failure(&self, title: Option<&str>) -> CallFailure {
        deletion_outcomes::not_added("Radarr", title.unwrap_or("The movie"))
    }

    async fn recover_outcome(
        &self,
        call: InterruptedRun<'_>,
        _world: &ToolContext,
    ) -> Result<RecoveryOutcome, ToolError> {
        match call {
            InterruptedRun::Call(arguments) => self.recover_addition(arguments).await,
            InterruptedRun::Item(_) => Ok(RecoveryOutcome::Unknown),
        }
    }
}

impl AddMovie {
    pub fn new(library: Arc<ArrInstances>) -> Self {
        Self { library }
    }

    pub(super) async fn add_movie(
        &self,
        arguments: &ToolArguments,
        world: &ToolContext,
    ) -> Result<ToolOutput, ToolError> {
        let args = self.parse_call(arguments)?;
        let instance = self.library.movie_instance(args.instance.as_deref())?;
        match add_to_radarr(instance, &args, world).await {
            Err(ToolError::CallFailed(failure)) if instance.is_down(&failure) => {
                queue_for_retry(&failure, request_from_args(instance, &args), arguments, world)
            }
            ended => ended,
        }
    }

    pub(super) async fn recover_addition(
        &self,
        arguments: &ToolArguments,
    ) -> Result<RecoveryOutcome, ToolError> {
        let args = self.parse_call(arguments)?;
        Ok(check_addition(self.library.movie_instance(args.instance.as_deref())?, args.tmdb).await)
    }

    fn parameters_schema(&self) -> Value {
        let mut schema = argument_schema::<AddMovieArgs>();
        offer_instances(&mut schema, "", &self.library.movie_names());
        schema
    }

    fn parse_call(&self, arguments: &ToolArguments) -> Result<AddMovieArgs, CallFailure> {
        parse_arguments("add_movie", &self.parameters_schema(), arguments)
    }
}

const ONE_MOVIE: QuotaUse = QuotaUse { kind: QuotaKind::Movies, amount: 1 };

async fn add_to_radarr(
    instance: &Instance<Radarr>,
    args: &AddMovieArgs,
    world: &ToolContext,
) -> Result<ToolOutput, ToolError> {
    let radarr = &instance.client;
    let held = radarr.movie_by_tmdb(args.tmdb).await.map_err(|error| instance.request_error(&error))?;
    if let Some(held) = held {
        return Ok(existing_output(instance, &held, world));
    }
    let hits = radarr
        .lookup_movies(&format!("tmdb:{}", args.tmdb))
        .await
        .map_err(|error| instance.request_error(&error))?;
    let Some(hit) = hits.into_iter().find(|hit| hit.tmdb == args.tmdb) else {
        return Err(unknown_movie(args.tmdb).into());
    };
    approval::check_quota(world, ONE_MOVIE)?;
    let (wanted, profile) = plan_addition(instance, args, hit, world).await?;
    let addition = radarr.add_movie(&wanted).await.map_err(|error| instance.write_error(&error))?;
    let held =
        radarr.movie_by_tmdb(args.tmdb).await.map_err(|error| instance.unverified_write_error(&error))?;
    match (held, addition) {
        (Some(held), AdditionOutcome::Added) => Ok(added_output(instance, &held, Some(&profile))),
        (Some(held), AdditionOutcome::AlreadyThere) => Ok(existing_output(instance, &held, world)),
        (None, AdditionOutcome::Added | AdditionOutcome::AlreadyThere) => Err(ToolError::Unknown(format!(
            "{}: tmdb {} is not there after the add",
            instance.name, args.tmdb
        ))),
    }
}

/// Chooses the folder and the quality profile for the movie.
async fn plan_addition(
    instance: &Instance<Radarr>,
    args: &AddMovieArgs,
    hit: Movie,
    world: &ToolContext,
) -> Result<(NewMovie, QualityProfile), ToolError> {
    let radarr = &instance.client;
    let (profiles, folders) = tokio::try_join!(radarr.fetch_profiles(), radarr.root_folders())
        .map_err(|error| instance.request_error(&error))?;
    let profile = match &args.quality {
        Some(quality) => {
            let profile = find_profile(&profiles, quality)?;
            approval::check_profile_right(profile, world.rights)?;
            Some(profile)
        }
        None => match preferred_profile(&profiles, MediaKind::Movie, world) {
            Some(profile) => Some(profile),
            None => {
                let held = instance.load_library(world.now, FreshnessPolicy::Rough).await;
                let held = held.map_err(|error| instance.request_error(&error))?;
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
    };
    Ok((wanted, profile.clone()))
}

async fn check_addition(instance: &Instance<Radarr>, tmdb: i64) -> RecoveryOutcome {
    match instance.client.movie_by_tmdb(tmdb).await {
        Ok(Some(held)) => RecoveryOutcome::Done(added_output(instance, &held, None)),
        Ok(None) => RecoveryOutcome::NotDone,
        Err(error) => {
            tracing::warn!(instance = instance.name, tmdb, %error, "failed to check an added movie");
            RecoveryOutcome::Unknown
        }
    }
}

fn added_output(instance: &Instance<Radarr>, movie: &Movie, profile: Option<&QualityProfile>) -> ToolOutput {
    let name = format_media_title(&movie.title, movie.year);
    let mut for_model = movie_status_json(movie, "added");
    if let Some(profile) = profile {
        for_model["quality"] = json!(profile.name);
    }
    let for_user = if movie.available {
        format!("Added {name}.")
    } else {
        format!("Added {name}. It is not out yet and will be fetched when it is.")
    };
    let result = CallResult { for_model, for_user, shown: shown_ids(instance, movie) };
    record_movie_request(ToolOutput::with_effect(result, ToolEffect::Count(ONE_MOVIE)), instance, movie)
}

/// Records the requester of a movie, who is notified when the movie is ready.
pub(super) fn record_movie_request(
    ran: ToolOutput,
    instance: &Instance<Radarr>,
    movie: &Movie,
) -> ToolOutput {
    let wanted = requested_movie(instance, movie);
    let ran = ran.and_effect(ToolEffect::Request(wanted.clone(), Coverage::Whole));
    if movie.has_file { ran } else { ran.and_effect(ToolEffect::Follow(wanted)) }
}

/// Builds the title request of a call, as far as its arguments alone determine the request.
fn request_from_args(instance: &Instance<Radarr>, args: &AddMovieArgs) -> RequestedTitle {
    RequestedTitle {
        instance: instance.name.to_owned(),
        kind: MediaKind::Movie,
        catalog_id: args.tmdb,
        title: String::new(),
        year: 0,
        seasons: None,
    }
}

/// Returns the result for a movie that is already in the library, so that no addition is necessary. A new requester
/// gets this information and may follow the movie. A user who was promised the movie has it now.
fn existing_output(instance: &Instance<Radarr>, movie: &Movie, world: &ToolContext) -> ToolOutput {
    let wanted = requested_movie(instance, movie);
    let mut result = existing_result(instance, movie);
    requesters::add_requesters(&mut result, &wanted, world);
    match world.request_timing {
        RequestTiming::Earlier => {
            if !movie.has_file && !movie.monitored {
                result.for_model[NOT_MONITORED] = json!([]);
            }
            return record_movie_request(result.into(), instance, movie);
        }
        RequestTiming::Now if !movie.has_file && movie.monitored => {
            requesters::offer_notification(&mut result, &wanted, world)
        }
        RequestTiming::Now => {}
    }
    result.into()
}

fn existing_result(instance: &Instance<Radarr>, movie: &Movie) -> CallResult {
    let name = format_media_title(&movie.title, movie.year);
    let for_user = match (movie.has_file, movie.monitored, movie.available) {
        (true, _, _) => format!("You already have {name}."),
        (false, true, true) => format!("{name} is already in the library and is being looked for."),
        (false, true, false) => {
            format!("{name} is already in the library. It is not out yet and will be fetched when it is.")
        }
        (false, false, _) => format!("{name} is already in the library, but it is not being looked for."),
    };
    let mut for_model = movie_status_json(movie, "already_exists");
    if !movie.has_file {
        for_model["id"] = json!(movie.id);
        for_model["hint"] = json!("get_more looks for it again");
    }
    CallResult { for_model, for_user, shown: shown_ids(instance, movie) }
}

fn movie_status_json(movie: &Movie, status: &str) -> Value {
    json!({ "status": status, "type": "movie", "title": clean_title(&movie.title), "year": movie.year,
        "tmdb": movie.tmdb, "on_disk": movie.has_file, "looked_for": movie.monitored && !movie.has_file,
        "released": movie.available })
}

fn shown_ids(instance: &Instance<Radarr>, movie: &Movie) -> Vec<MediaRef> {
    let item = movie.id.map(|id| instance.media_ref(MediaKind::Movie, id));
    [MediaRef::Tmdb(movie.tmdb)].into_iter().chain(item).collect()
}

fn unknown_movie(tmdb: i64) -> CallFailure {
    call_failure(
        "unknown_id",
        json!({ "tmdb": tmdb, "hint": "call search_media and use a number it gives" }),
        Some("I can't find that movie.".to_owned()),
    )
}
