//! Tool that sends the poster of a movie or series.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::approval::ApprovedCall;
use super::arguments::{approved_arguments, argument_schema, parse_arguments};
use super::formatting::{clean_title, format_media_title};
use super::library::ArrInstances;
use super::{CallReferences, LOOKUP_TIMEOUT, Tool, ToolContext, ToolEffect, ToolError, ToolOutput};
use crate::arr::posters::CatalogPoster;
use crate::conversation::transcript::{
    CallFailure, CallResult, EffectLevel, FailureCode, MediaRef, ToolArguments, ToolAudience, ToolSpec,
};
use crate::conversation::turn::model_action::{ModelAction, Poster, PosterAddress, SEND_POSTER};

pub struct SendPoster {
    library: Arc<ArrInstances>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SendPosterArgs {
    tmdb: Option<i64>,
    tvdb: Option<i64>,
}

/// Title shown on the poster.
#[derive(Debug, Clone, Copy)]
enum PosterSubject {
    Movie(i64),
    Series(i64),
}

#[async_trait]
impl Tool for SendPoster {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: SEND_POSTER,
            description: "Send a poster, by a number from search_media.",
            effect_level: EffectLevel::Read,
            audience: ToolAudience::Everyone,
            parameters: argument_schema::<SendPosterArgs>().into(),
        }
    }

    fn timeout(&self) -> Duration {
        LOOKUP_TIMEOUT
    }

    fn check_arguments(&self, arguments: &ToolArguments) -> Result<CallReferences, CallFailure> {
        let shown = match parse_subject(arguments)? {
            PosterSubject::Movie(tmdb) => MediaRef::Tmdb(tmdb),
            PosterSubject::Series(tvdb) => MediaRef::Tvdb(tvdb),
        };
        Ok(CallReferences { refs: vec![shown], four_k: false })
    }

    async fn run(&self, call: &ApprovedCall, _world: &ToolContext) -> Result<ToolOutput, ToolError> {
        let found = match parse_subject(approved_arguments(call)?)? {
            PosterSubject::Movie(tmdb) => {
                // All instances of a kind share one catalog, so only the first is queried.
                let first = self.library.movies.first().map(|instance| instance.name);
                let radarr = self.library.movie_instance(first)?;
                let found = radarr.client.common_api().movie_poster(tmdb).await;
                found.map_err(|error| radarr.request_error(&error))?
            }
            PosterSubject::Series(tvdb) => {
                let first = self.library.series.first().map(|instance| instance.name);
                let sonarr = self.library.series_instance(first)?;
                let found = sonarr.client.common_api().series_poster(tvdb).await;
                found.map_err(|error| sonarr.request_error(&error))?
            }
        };
        let Some(CatalogPoster { title, year, poster, .. }) = found else {
            return Err(no_poster(None).into());
        };
        let name = format_media_title(&title, year);
        let Some(address) = poster.as_deref().and_then(PosterAddress::parse) else {
            return Err(no_poster(Some(name)).into());
        };
        let result = CallResult {
            for_model: json!({ "status": "on_its_way", "title": clean_title(&title), "year": year }),
            for_user: format!("The poster of {name} is on its way."),
            shown: Vec::new(),
        };
        Ok(ToolOutput::with_effect(
            result,
            ToolEffect::Act(ModelAction::SendPoster(Poster { name, address })),
        ))
    }
}

impl SendPoster {
    pub fn new(library: Arc<ArrInstances>) -> Self {
        Self { library }
    }
}

fn parse_subject(arguments: &ToolArguments) -> Result<PosterSubject, CallFailure> {
    let args: SendPosterArgs = parse_arguments(SEND_POSTER, &argument_schema::<SendPosterArgs>(), arguments)?;
    match (args.tmdb, args.tvdb) {
        (Some(tmdb), None) => Ok(PosterSubject::Movie(tmdb)),
        (None, Some(tvdb)) => Ok(PosterSubject::Series(tvdb)),
        (Some(_), Some(_)) | (None, None) => Err(CallFailure::new(
            FailureCode::BadArguments,
            json!({ "field": "tmdb", "expected": "either tmdb or tvdb, from search_media" }),
            None,
        )),
    }
}

fn no_poster(name: Option<String>) -> CallFailure {
    let sentence = name
        .map_or_else(|| "There is no poster.".to_owned(), |name| format!("There is no poster of {name}."));
    CallFailure::new(
        FailureCode::NoPoster,
        json!({ "hint": "the catalogue has no picture of it" }),
        Some(sentence),
    )
}
