//! Delivery of the poster of a movie or show.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::answers::{clean_title, named, refusal};
use super::approval::Cleared;
use super::arguments::{cleared, read, schema};
use super::library::Library;
use super::{Deed, LOOKUP_TIMEOUT, Ran, Tool, ToolError, Uses, World};
use crate::arr::posters::Pictured;
use crate::conversation::action::{Action, Poster, PosterAddress, SEND_POSTER};
use crate::conversation::transcript::{
    Arguments, Audience, CallFailure, CallResult, MediaRef, Tier, ToolSpec,
};

pub struct SendPoster {
    library: Arc<Library>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    tmdb: Option<i64>,
    tvdb: Option<i64>,
}

/// Title on the poster.
#[derive(Debug, Clone, Copy)]
enum Subject {
    Movie(i64),
    Series(i64),
}

#[async_trait]
impl Tool for SendPoster {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: SEND_POSTER,
            description: "Send a poster, by a number from search_media.",
            tier: Tier::Read,
            audience: Audience::Everyone,
            parameters: schema::<Args>().into(),
        }
    }

    fn timeout(&self) -> Duration {
        LOOKUP_TIMEOUT
    }

    fn check(&self, arguments: &Arguments) -> Result<Uses, CallFailure> {
        let shown = match subject(arguments)? {
            Subject::Movie(tmdb) => MediaRef::Tmdb(tmdb),
            Subject::Series(tvdb) => MediaRef::Tvdb(tvdb),
        };
        Ok(Uses { refs: vec![shown], four_k: false })
    }

    async fn run(&self, call: &Cleared, _world: &World) -> Result<Ran, ToolError> {
        let found = match subject(cleared(call)?)? {
            Subject::Movie(tmdb) => {
                // All instances of a kind share one catalog, so only the first is asked.
                let first = self.library.movies.first().map(|instance| instance.name);
                let radarr = self.library.movie_instance(first)?;
                let found = radarr.client.server().movie_poster(tmdb).await;
                found.map_err(|error| radarr.refused(&error))?
            }
            Subject::Series(tvdb) => {
                let first = self.library.series.first().map(|instance| instance.name);
                let sonarr = self.library.series_instance(first)?;
                let found = sonarr.client.server().series_poster(tvdb).await;
                found.map_err(|error| sonarr.refused(&error))?
            }
        };
        let Some(Pictured { title, year, poster, .. }) = found else { return Err(no_poster(None).into()) };
        let name = named(&title, year);
        let Some(address) = poster.as_deref().and_then(PosterAddress::parse) else {
            return Err(no_poster(Some(name)).into());
        };
        let result = CallResult {
            for_model: json!({ "status": "on_its_way", "title": clean_title(&title), "year": year }),
            for_user: format!("The poster of {name} is on its way."),
            shown: Vec::new(),
        };
        Ok(Ran::with(result, Deed::Act(Action::SendPoster(Poster { name, address }))))
    }
}

impl SendPoster {
    pub fn new(library: Arc<Library>) -> Self {
        Self { library }
    }
}

fn subject(arguments: &Arguments) -> Result<Subject, CallFailure> {
    let args: Args = read(SEND_POSTER, &schema::<Args>(), arguments)?;
    match (args.tmdb, args.tvdb) {
        (Some(tmdb), None) => Ok(Subject::Movie(tmdb)),
        (None, Some(tvdb)) => Ok(Subject::Series(tvdb)),
        (Some(_), Some(_)) | (None, None) => Err(refusal(
            "bad_arguments",
            json!({ "field": "tmdb", "expected": "either tmdb or tvdb, from search_media" }),
            None,
        )),
    }
}

fn no_poster(name: Option<String>) -> CallFailure {
    let sentence = name
        .map_or_else(|| "There is no poster.".to_owned(), |name| format!("There is no poster of {name}."));
    refusal("no_poster", json!({ "hint": "the catalogue has no picture of it" }), Some(sentence))
}
