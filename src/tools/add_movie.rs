//! Tool that adds a movie to the library.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::addition::{
    ONE_MOVIE, choose_profile_and_folder, choose_radarr, request_from_arguments, unknown_catalog_id,
};
use super::approval;
use super::follow_title::requested_movie;
use super::formatting::{clean_title, format_media_title};
use super::instance_ref::InstanceRef;
use super::library::{ArrInstances, Instance};
use super::preference::preferred_instance;
use super::seerr::{SeerrChoices, movies};
use super::typed_tool::TypedTool;
use super::{
    CallReferences, RecoveryOutcome, RequestTiming, ToolContext, ToolEffect, ToolError, ToolOutput,
    deletion_outcomes, requesters,
};
use crate::arr::radarr::Radarr;
use crate::arr::{AdditionOutcome, Availability, Movie, NewMovie, QualityProfile};
use crate::conversation::people::facts::UserFacts;
use crate::conversation::title_requests::{Coverage, NOT_MONITORED, RequestedTitle};
use crate::conversation::transcript::{
    CallFailure, CallResult, EffectLevel, MediaKind, MediaRef, ToolAudience, UserRights,
};
use crate::seerr::Seerr;

/// Tool that adds a movie and searches for it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AddMovie {
    /// From search_media.
    tmdb: i64,
    /// Only if named.
    quality: Option<String>,
    /// Only if named.
    folder: Option<String>,
    /// Only if named.
    instance: Option<String>,
}

impl AddMovie {
    fn instance<'a>(&self, library: &'a ArrInstances) -> Result<&'a Instance<Radarr>, CallFailure> {
        choose_radarr(library, self.instance.as_deref(), self.quality.as_deref())
    }

    /// Returns the choices of the call that matter to a Seerr.
    fn choices(&self, instance: &Instance<Radarr>) -> SeerrChoices {
        SeerrChoices::from_arguments(instance.four_k, self.quality.as_deref(), self.folder.as_deref())
    }
}

impl TypedTool for AddMovie {
    const NAME: &'static str = "add_movie";
    const DESCRIPTION: &'static str = "Add a movie and search for it. For one in the library use get_more.";
    const EFFECT_LEVEL: EffectLevel = EffectLevel::Write;
    const AUDIENCE: ToolAudience = ToolAudience::CanAdd;

    fn is_supported(library: &ArrInstances) -> bool {
        // Without any instance, the failure of the call reports what is missing.
        !library.movies.is_empty() || library.series.is_empty()
    }

    fn instance_names(library: &ArrInstances) -> Vec<&'static str> {
        library.movie_names()
    }

    fn quality_names(library: &ArrInstances, rights: UserRights) -> Vec<String> {
        library.quality_names(Some(MediaKind::Movie), rights)
    }

    fn check(&self, library: &ArrInstances) -> Result<CallReferences, CallFailure> {
        let instance = self.instance(library)?;
        let four_k = instance.four_k || library.requests.is_some() && self.choices(instance).is_4k();
        Ok(CallReferences { refs: vec![MediaRef::Tmdb(self.tmdb)], four_k })
    }

    async fn run(&self, library: &ArrInstances, context: &ToolContext) -> Result<ToolOutput, ToolError> {
        match &library.requests {
            Some(seerr) => request_at_seerr(seerr, self.instance(library)?, self, context).await,
            None => add_to_radarr(self.instance(library)?, self, context).await,
        }
    }

    async fn recover(
        &self,
        library: &ArrInstances,
        context: &ToolContext,
    ) -> Result<RecoveryOutcome, ToolError> {
        let instance = self.instance(library)?;
        match &library.requests {
            Some(seerr) => Ok(recover_at_seerr(seerr, instance, self, context).await),
            None => Ok(check_addition(instance, self.tmdb).await),
        }
    }

    fn preferred_instance(
        library: &ArrInstances,
        facts: &UserFacts,
        rights: UserRights,
    ) -> Option<&'static str> {
        preferred_instance(&library.movies, facts.preferred_quality(MediaKind::Movie)?, rights)
    }

    fn deferrable_request(&self, library: &ArrInstances) -> Option<RequestedTitle> {
        let instance = self.instance(library).ok()?;
        Some(request_from_arguments(instance.name, (MediaKind::Movie, self.tmdb), None))
    }

    fn not_done_failure(title: Option<&str>) -> CallFailure {
        deletion_outcomes::not_added("Radarr", title.unwrap_or("The movie"))
    }
}

async fn add_to_radarr(
    instance: &Instance<Radarr>,
    args: &AddMovie,
    context: &ToolContext,
) -> Result<ToolOutput, ToolError> {
    let radarr = &instance.client;
    let existing =
        radarr.fetch_movie_by_tmdb(args.tmdb).await.map_err(|error| instance.request_error(&error))?;
    if let Some(movie) = existing {
        return Ok(existing_output(instance, &movie, context));
    }
    let hit = look_up_movie(instance, args.tmdb).await?;
    approval::check_quota(context, ONE_MOVIE)?;
    let choices = (args.quality.as_deref(), args.folder.as_deref());
    let (profile, folder) =
        choose_profile_and_folder(&InstanceRef::Movies(instance), choices, context).await?;
    let new_movie = NewMovie {
        tmdb: hit.tmdb,
        title: hit.title,
        profile: profile.id,
        root_folder: folder.path,
        availability: Availability::Released,
    };
    let addition = radarr.add_movie(&new_movie).await.map_err(|error| instance.write_error(&error))?;
    let movie = radarr
        .fetch_movie_by_tmdb(args.tmdb)
        .await
        .map_err(|error| instance.unverified_write_error(&error))?;
    match (movie, addition) {
        (Some(movie), AdditionOutcome::Added) => Ok(added_output(instance, &movie, Some(&profile))),
        (Some(movie), AdditionOutcome::AlreadyExists) => Ok(existing_output(instance, &movie, context)),
        (None, AdditionOutcome::Added | AdditionOutcome::AlreadyExists) => Err(ToolError::Unknown(format!(
            "{}: tmdb {} is missing after it was added",
            instance.name, args.tmdb
        ))),
    }
}

async fn look_up_movie(instance: &Instance<Radarr>, tmdb: i64) -> Result<Movie, ToolError> {
    let hits = instance.client.lookup_movies(&format!("tmdb:{tmdb}")).await;
    let hits = hits.map_err(|error| instance.request_error(&error))?;
    let hit = hits.into_iter().find(|hit| hit.tmdb == tmdb);
    hit.ok_or_else(|| unknown_catalog_id(MediaKind::Movie, tmdb).into())
}

/// Requests a movie at a Seerr, unless the library has it.
async fn request_at_seerr(
    seerr: &Seerr,
    instance: &Instance<Radarr>,
    args: &AddMovie,
    context: &ToolContext,
) -> Result<ToolOutput, ToolError> {
    let existing = instance.client.fetch_movie_by_tmdb(args.tmdb).await;
    if let Some(movie) = existing.map_err(|error| instance.request_error(&error))? {
        return Ok(existing_output(instance, &movie, context));
    }
    let movie = look_up_movie(instance, args.tmdb).await?;
    movies::request_movie(seerr, (instance, &movie), args.choices(instance), context).await
}

async fn recover_at_seerr(
    seerr: &Seerr,
    instance: &Instance<Radarr>,
    args: &AddMovie,
    context: &ToolContext,
) -> RecoveryOutcome {
    match look_up_movie(instance, args.tmdb).await {
        Ok(movie) => movies::recover_movie(seerr, (instance, &movie), args.choices(instance), context).await,
        Err(error) => {
            tracing::warn!(instance = instance.name, tmdb = args.tmdb, %error, "failed to name a requested movie");
            RecoveryOutcome::Unknown
        }
    }
}

async fn check_addition(instance: &Instance<Radarr>, tmdb: i64) -> RecoveryOutcome {
    match instance.client.fetch_movie_by_tmdb(tmdb).await {
        Ok(Some(movie)) => RecoveryOutcome::Done(added_output(instance, &movie, None)),
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
    let result = CallResult { for_model, for_user, shown: instance.shown_ids(movie) };
    record_movie_request(ToolOutput::with_effect(result, ToolEffect::Count(ONE_MOVIE)), instance, movie)
}

/// Adds the effects that record the request of a movie and notify the user when it is ready.
pub(super) fn record_movie_request(
    output: ToolOutput,
    instance: &Instance<Radarr>,
    movie: &Movie,
) -> ToolOutput {
    let requested = requested_movie(instance, movie);
    let output = output.and_effect(ToolEffect::Request(requested.clone(), Coverage::Whole));
    if movie.has_file { output } else { output.and_effect(ToolEffect::Follow(requested)) }
}

/// Returns the result for a movie that is already in the library. For a new request, the user is offered a
/// notification. For a retry, the request is recorded, since the user was promised the movie.
fn existing_output(instance: &Instance<Radarr>, movie: &Movie, context: &ToolContext) -> ToolOutput {
    let requested = requested_movie(instance, movie);
    let mut result = existing_result(instance, movie);
    requesters::add_requesters(&mut result, &requested, context);
    match context.request_timing {
        RequestTiming::Earlier => {
            if !movie.has_file && !movie.monitored {
                result.for_model[NOT_MONITORED] = json!([]);
            }
            return record_movie_request(result.into(), instance, movie);
        }
        RequestTiming::Now if !movie.has_file && movie.monitored => {
            requesters::offer_notification(&mut result, &requested, context)
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
    CallResult { for_model, for_user, shown: instance.shown_ids(movie) }
}

fn movie_status_json(movie: &Movie, status: &str) -> Value {
    json!({ "status": status, "type": "movie", "title": clean_title(&movie.title), "year": movie.year,
        "tmdb": movie.tmdb, "on_disk": movie.has_file, "looked_for": movie.monitored && !movie.has_file,
        "released": movie.available })
}
