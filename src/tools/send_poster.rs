//! Tool that sends the poster of a movie or series.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::arguments::parsing::bad_argument;
use super::formatting::{clean_title, format_media_title};
use super::library::ArrInstances;
use super::typed_tool::TypedTool;
use super::{CallReferences, LOOKUP_TIMEOUT, ToolContext, ToolEffect, ToolError, ToolOutput};
use crate::arr::posters::CatalogPoster;
use crate::conversation::transcript::{
    CallFailure, CallResult, EffectLevel, FailureCode, MediaRef, ToolAudience,
};
use crate::conversation::turn::model_action::{ModelAction, Poster, PosterUrl, SEND_POSTER};

/// Tool that sends the poster of one title, by its catalog id.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SendPoster {
    /// Of a movie.
    tmdb: Option<i64>,
    /// Of a show.
    tvdb: Option<i64>,
}

/// Title of the poster, by its TMDB or TheTVDB id.
#[derive(Debug, Clone, Copy)]
enum PosterSubject {
    Movie(i64),
    Series(i64),
}

impl TypedTool for SendPoster {
    const NAME: &'static str = SEND_POSTER;
    const DESCRIPTION: &'static str = "Send the poster of a title.";
    const EFFECT_LEVEL: EffectLevel = EffectLevel::Read;
    const AUDIENCE: ToolAudience = ToolAudience::Chat;
    const TIMEOUT: Duration = LOOKUP_TIMEOUT;

    fn check(&self, _library: &ArrInstances) -> Result<CallReferences, CallFailure> {
        Ok(match self.parse_subject()? {
            PosterSubject::Movie(tmdb) => MediaRef::Tmdb(tmdb).into(),
            PosterSubject::Series(tvdb) => MediaRef::Tvdb(tvdb).into(),
        })
    }

    async fn run(&self, library: &ArrInstances, _context: &ToolContext) -> Result<ToolOutput, ToolError> {
        let found = match self.parse_subject()? {
            PosterSubject::Movie(tmdb) => {
                // All instances of a kind share one catalog, so only the first is queried.
                let name = library.movies.first().map(|instance| instance.name);
                let radarr = library.movie_instance(name)?;
                let found = radarr.client.common_api().fetch_movie_poster(tmdb).await;
                found.map_err(|error| radarr.request_error(&error))?
            }
            PosterSubject::Series(tvdb) => {
                let name = library.series.first().map(|instance| instance.name);
                let sonarr = library.series_instance(name)?;
                let found = sonarr.client.common_api().fetch_series_poster(tvdb).await;
                found.map_err(|error| sonarr.request_error(&error))?
            }
        };
        let Some(CatalogPoster { title, year, poster, .. }) = found else {
            return Err(no_poster(None).into());
        };
        let name = format_media_title(&title, year);
        let Some(address) = poster.as_deref().and_then(PosterUrl::parse) else {
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
    fn parse_subject(&self) -> Result<PosterSubject, CallFailure> {
        match (self.tmdb, self.tvdb) {
            (Some(tmdb), None) => Ok(PosterSubject::Movie(tmdb)),
            (None, Some(tvdb)) => Ok(PosterSubject::Series(tvdb)),
            (Some(_), Some(_)) | (None, None) => {
                Err(bad_argument("tmdb", "either tmdb or tvdb, from search_media", ""))
            }
        }
    }
}

fn no_poster(name: Option<String>) -> CallFailure {
    let sentence = name
        .map_or_else(|| "There is no poster.".to_owned(), |name| format!("There is no poster of {name}."));
    CallFailure::new(
        FailureCode::NoPoster,
        json!({ "hint": "the catalog has no poster of it: say so" }),
        Some(sentence),
    )
}
