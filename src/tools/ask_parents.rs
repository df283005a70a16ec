//! Tool that asks the parents for a title over the caps of the user.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::formatting::clean_text;
use super::library::{ArrInstances, Instance};
use super::ranking::{MatchQuality, TitleQuery};
use super::typed_tool::TypedTool;
use super::{LOOKUP_TIMEOUT, ToolContext, ToolEffect, ToolError, ToolOutput};
use crate::arr::radarr::Radarr;
use crate::arr::sonarr::Sonarr;
use crate::conversation::text::title::quote_text;
use crate::conversation::title_approvals::{TitleOverCap, format_already_asked, format_asked};
use crate::conversation::title_requests::RequestedTitle;
use crate::conversation::transcript::{
    CallFailure, CallResult, EffectLevel, FailureCode, MediaKind, ToolArguments, ToolAudience,
};

/// Maximum number of open requests of a user for titles over the caps.
const MAX_OPEN_REQUESTS: usize = 5;
/// Maximum length of an age rating in a message, in characters.
const MAX_RATING_CHARS: usize = 20;

/// Tool that asks the parents for a title.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AskParents {
    /// Title in the words of the user.
    #[schemars(length(min = 1))]
    title: String,
    #[serde(rename = "type")]
    kind: Option<MediaKind>,
    /// Only if named.
    seasons: Option<Vec<u32>>,
}

/// Title that the catalog found for the words of the user.
struct FoundTitle {
    quality: MatchQuality,
    wanted: RequestedTitle,
    certification: String,
    /// Whether the caps allow the title.
    is_within_limit: bool,
}

impl TypedTool for AskParents {
    const NAME: &'static str = "ask_parents";
    const DESCRIPTION: &'static str = "Ask the parents for a title that this user can't see because of its age rating. The parents' \
        decision is texted.";
    const EFFECT_LEVEL: EffectLevel = EffectLevel::Write;
    const AUDIENCE: ToolAudience = ToolAudience::AgeLimited;
    const TIMEOUT: Duration = LOOKUP_TIMEOUT;

    async fn run(&self, library: &ArrInstances, context: &ToolContext) -> Result<ToolOutput, ToolError> {
        let Some(parents) = context.parents.as_deref() else { return Err(no_parent().into()) };
        let movies = library.radarr_instances(self.kind).first();
        let series = library.sonarr_instances(self.kind).first();
        let mut found = match movies {
            Some(instance) => self.find_movies(instance).await?,
            None => Vec::new(),
        };
        if let Some(instance) = series {
            found.extend(self.find_series(instance).await?);
        }
        // A title that does not begin with the words may be another one than is meant. Of several, one over the limit is
        // meant.
        found.retain(|found| found.quality <= MatchQuality::Prefix);
        let best = found.into_iter().min_by_key(|found| (found.quality, found.is_within_limit));
        let Some(found) = best else { return Err(unknown_title(&self.title).into()) };
        if found.is_within_limit {
            return Err(within_limit().into());
        }
        let is_same = |open: &RequestedTitle| {
            (open.kind, open.catalog_id) == (found.wanted.kind, found.wanted.catalog_id)
        };
        if context.titles_asked_for.iter().any(is_same) {
            return Ok(asked_result("already_asked", format_already_asked(parents)).into());
        }
        if context.titles_asked_for.len() >= MAX_OPEN_REQUESTS {
            return Err(too_many_requests().into());
        }
        let over_cap = TitleOverCap {
            arguments: addition_arguments(&found.wanted),
            wanted: found.wanted,
            rating: clean_text(&found.certification, MAX_RATING_CHARS),
        };
        let result = asked_result("asked", format_asked(parents));
        Ok(ToolOutput::with_effect(result, ToolEffect::AskParents(Box::new(over_cap))))
    }
}

impl AskParents {
    async fn find_movies(&self, instance: &Instance<Radarr>) -> Result<Vec<FoundTitle>, ToolError> {
        let hits = instance.client.unlimited().lookup_movies(&self.title).await;
        let hits = hits.map_err(|error| instance.request_error(&error))?;
        let ranked = TitleQuery::new(&self.title).rank_hits(hits, |movie| (&movie.title, movie.year));
        let found = ranked.into_iter().map(|(quality, movie)| FoundTitle {
            quality,
            is_within_limit: instance
                .client
                .title_limit()
                .is_none_or(|limit| limit.allows((MediaKind::Movie, movie.tmdb), &movie.certification)),
            certification: movie.certification,
            wanted: RequestedTitle {
                instance: instance.name.to_owned(),
                kind: MediaKind::Movie,
                catalog_id: movie.tmdb,
                title: movie.title,
                year: movie.year,
                seasons: None,
            },
        });
        Ok(found.collect())
    }

    async fn find_series(&self, instance: &Instance<Sonarr>) -> Result<Vec<FoundTitle>, ToolError> {
        let hits = instance.client.unlimited().lookup_series(&self.title).await;
        let hits = hits.map_err(|error| instance.request_error(&error))?;
        let ranked = TitleQuery::new(&self.title).rank_hits(hits, |series| (&series.title, series.year));
        let found = ranked.into_iter().map(|(quality, series)| FoundTitle {
            quality,
            is_within_limit: instance
                .client
                .title_limit()
                .is_none_or(|limit| limit.allows((MediaKind::Series, series.tvdb), &series.certification)),
            certification: series.certification,
            wanted: RequestedTitle {
                instance: instance.name.to_owned(),
                kind: MediaKind::Series,
                catalog_id: series.tvdb,
                title: series.title,
                year: series.year,
                seasons: self.seasons.clone(),
            },
        });
        Ok(found.collect())
    }
}

/// Returns the arguments of `add_movie` or `add_series` for a title.
fn addition_arguments(wanted: &RequestedTitle) -> ToolArguments {
    let mut arguments: Map<String, Value> = Map::new();
    match wanted.kind {
        MediaKind::Movie => arguments.insert("tmdb".to_owned(), json!(wanted.catalog_id)),
        MediaKind::Series => arguments.insert("tvdb".to_owned(), json!(wanted.catalog_id)),
    };
    if let Some(seasons) = &wanted.seasons {
        arguments.insert("seasons".to_owned(), json!(seasons));
    }
    ToolArguments::Object(arguments)
}

/// Builds the answer, which names no title.
fn asked_result(status: &str, sentence: String) -> CallResult {
    CallResult { for_model: json!({ "status": status }), for_user: sentence, shown: Vec::new() }
}

fn no_parent() -> CallFailure {
    CallFailure::new(
        FailureCode::NobodyToAsk,
        json!({ "hint": "there is no parent to ask: say so" }),
        Some("There is no parent to ask.".to_owned()),
    )
}

fn unknown_title(words: &str) -> CallFailure {
    CallFailure::new(
        FailureCode::NotFound,
        json!({ "hint": "no such title; ask which is meant" }),
        Some(format!("I found nothing for {}.", quote_text(words))),
    )
}

fn within_limit() -> CallFailure {
    CallFailure::new(
        FailureCode::BadArguments,
        json!({ "hint": "this user may have that title: find it with search_media and add it" }),
        Some("You may have that. Ask me to add it.".to_owned()),
    )
}

fn too_many_requests() -> CallFailure {
    CallFailure::new(
        FailureCode::TooManyRequests,
        json!({ "open": MAX_OPEN_REQUESTS, "hint": "wait until they have answered" }),
        Some("You already have several open requests. Please wait until they are decided.".to_owned()),
    )
}
