//! Tool that searches the catalogs of Radarr and Sonarr for titles.

use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::future::join_all;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::approval::is_offered;
use super::formatting::{
    ALIAS_KEY, add_failed_services, append_failed_services, clean_text, clean_title, format_media_title,
    format_sentence_list, list_results,
};
use super::library::{ArrInstances, INSTANCE_LOOKUP_TIMEOUT, Instance, query_all};
use super::media_details::{format_airing, format_date};
use super::ranking::{MatchQuality, TitleQuery};
use super::typed_tool::TypedTool;
use super::{LOOKUP_TIMEOUT, ToolContext, ToolError, ToolOutput};
use crate::arr::radarr::Radarr;
use crate::arr::sonarr::Sonarr;
use crate::arr::{ArrError, Movie, Series};
use crate::conversation::text::title::quote_text;
use crate::conversation::text::title_key::spelling_variants;
use crate::conversation::transcript::{CallResult, EffectLevel, MediaKind, MediaRef, ToolAudience};

const MAX_OVERVIEW_CHARS: usize = 200;
/// Hint for the model about a user with caps on age ratings.
const AGE_LIMIT_HINT: &str = "titles over the age limit of this user are left out; to have one added, call ask_parents with their words";

/// Tool that searches the catalogs.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SearchMedia {
    /// Title, then year.
    #[schemars(length(min = 1))]
    query: String,
    #[serde(rename = "type")]
    kind: Option<MediaKind>,
}

/// Search hit as it is reported to the model and the user.
struct CatalogHit {
    for_model: Value,
    for_user: String,
    shown: Vec<MediaRef>,
}

impl TypedTool for SearchMedia {
    const NAME: &'static str = "search_media";
    const DESCRIPTION: &'static str = "Search all movies and shows that exist. Use it before adding. Gives tmdb or tvdb, and the id if \
        the library has it.";
    const EFFECT_LEVEL: EffectLevel = EffectLevel::Read;
    const AUDIENCE: ToolAudience = ToolAudience::Everyone;
    const TIMEOUT: Duration = LOOKUP_TIMEOUT;

    async fn run(&self, library: &ArrInstances, context: &ToolContext) -> Result<ToolOutput, ToolError> {
        let alias = context.facts.resolve_alias(&self.query);
        let query = TitleQuery::new(&self.query).with_alias(alias);
        let terms: Vec<&str> = std::iter::once(self.query.as_str()).chain(alias).collect();
        let variants = spelling_variants(&self.query);
        // All instances of a kind share one catalog, so only the first is queried.
        let movies = library.radarr_instances(self.kind).get(..1).unwrap_or_default();
        let series = library.sonarr_instances(self.kind).get(..1).unwrap_or_default();
        let (movies, series) = tokio::join!(
            query_all(movies, INSTANCE_LOOKUP_TIMEOUT, |radarr| {
                lookup_spellings(&terms, &variants, |term| radarr.lookup_movies(term))
            }),
            query_all(series, INSTANCE_LOOKUP_TIMEOUT, |sonarr| {
                lookup_spellings(&terms, &variants, |term| sonarr.lookup_series(term))
            }),
        );
        let movies = movies.map(|(instance, hits)| {
            let mut hits = dedup_hits(hits, |movie| movie.tmdb);
            hits.sort_by(|a, b| b.popularity.total_cmp(&a.popularity));
            let ranked = query.rank_hits(hits, |movie| (&movie.title, movie.year));
            ranked
                .into_iter()
                .map(|(quality, movie)| movie_hit(instance, &movie, context).with_match_quality(quality))
                .collect::<Vec<_>>()
        });
        let series = series.map(|(instance, hits)| {
            let ranked = query
                .rank_hits(dedup_hits(hits, |series| series.tvdb), |series| (&series.title, series.year));
            ranked
                .into_iter()
                .map(|(quality, series)| series_hit(instance, &series, context).with_match_quality(quality))
                .collect()
        });
        let (ranked_lists, failed) = movies.merge(series).or_failure()?;
        let found = merge_ranked(ranked_lists);
        let sentence = match format_hits(&found) {
            None => format!("I found nothing for {}.", quote_text(&self.query)),
            Some(titles) => format!("I found {titles}."),
        };
        let mut result = hits_result(found, sentence, &failed);
        if is_offered(ToolAudience::AgeLimited, context.rights, context.audience) {
            result.for_model["hint"] = json!(AGE_LIMIT_HINT);
        }
        Ok(result.into())
    }
}

/// Looks up a query. If nothing is found, other spellings of its numbers are looked up.
async fn lookup_spellings<'a, T, Lookup>(
    terms: &'a [&'a str],
    variants: &'a [String],
    lookup: impl Fn(&'a str) -> Lookup,
) -> Result<Vec<Vec<T>>, ArrError>
where
    Lookup: Future<Output = Result<Vec<T>, ArrError>>,
{
    let mut found = lookup_terms(terms, &lookup).await?;
    for variant in variants {
        if found.iter().any(|hits| !hits.is_empty()) {
            break;
        }
        found.push(lookup(variant).await?);
    }
    Ok(found)
}

/// Looks up a query, and the title for which it is an alias, if any. Only the lookup of the query itself must succeed.
async fn lookup_terms<'a, T, Lookup>(
    terms: &'a [&'a str],
    lookup: impl Fn(&'a str) -> Lookup,
) -> Result<Vec<Vec<T>>, ArrError>
where
    Lookup: Future<Output = Result<Vec<T>, ArrError>>,
{
    let mut responses = join_all(terms.iter().map(|term| lookup(term))).await.into_iter();
    let mut found = Vec::new();
    if let Some(query_hits) = responses.next() {
        found.push(query_hits?);
    }
    for alias_hits in responses {
        match alias_hits {
            Ok(hits) => found.push(hits),
            Err(error) => tracing::warn!(%error, "failed to look up the title of an alias"),
        }
    }
    Ok(found)
}

impl CatalogHit {
    fn with_match_quality(mut self, quality: MatchQuality) -> (MatchQuality, Self) {
        if quality == MatchQuality::Alias {
            self.for_model[ALIAS_KEY] = json!(true);
        }
        (quality, self)
    }
}

/// Combines the results of several searches, without duplicate ids.
fn dedup_hits<T>(hits: Vec<Vec<T>>, id: impl Fn(&T) -> i64) -> Vec<T> {
    let mut seen = BTreeSet::new();
    hits.into_iter().flatten().filter(|hit| seen.insert(id(hit))).collect()
}

/// Merges ranked lists by match quality, then by position in the list.
fn merge_ranked(lists: Vec<Vec<(MatchQuality, CatalogHit)>>) -> Vec<CatalogHit> {
    let mut all: Vec<(MatchQuality, usize, CatalogHit)> = lists
        .into_iter()
        .flat_map(|list| {
            list.into_iter().enumerate().map(|(position, (quality, hit))| (quality, position, hit))
        })
        .collect();
    all.sort_by_key(|(quality, position, _)| (*quality, *position));
    all.into_iter().map(|(_, _, hit)| hit).collect()
}

fn format_hits(found: &[CatalogHit]) -> Option<String> {
    let titles: Vec<String> = found.iter().map(|hit| hit.for_user.clone()).collect();
    (!titles.is_empty()).then(|| format_sentence_list(&titles))
}

fn hits_result(found: Vec<CatalogHit>, sentence: String, failed: &[String]) -> CallResult {
    let results = found.iter().map(|hit| hit.for_model.clone()).collect();
    let mut for_model = list_results(results, "add the year, or more of the title, to the query");
    add_failed_services(&mut for_model, failed);
    let shown_count = for_model["results"].as_array().map_or(0, Vec::len);
    CallResult {
        for_model,
        for_user: append_failed_services(sentence, failed),
        shown: found.into_iter().take(shown_count).flat_map(|hit| hit.shown).collect(),
    }
}

fn movie_hit(instance: &Instance<Radarr>, movie: &Movie, context: &ToolContext) -> CatalogHit {
    let mut for_model = json!({ "type": "movie", "title": clean_title(&movie.title), "year": movie.year,
        "tmdb": movie.tmdb, "in_library": movie.id.is_some() });
    add_library_id(&mut for_model, movie.id, instance.name);
    let today = context.now.to_zoned(context.zone.clone()).date();
    let dates = [("in_cinemas", movie.cinema), ("online", movie.digital), ("on_disc", movie.physical)];
    for (name, day) in dates {
        if let Some(day) = day.filter(|day| *day > today) {
            for_model[name] = json!(format_date(day));
        }
    }
    add_overview(&mut for_model, &movie.overview);
    let for_user = format_hit(&movie.title, movie.year, movie.id.is_some());
    CatalogHit { for_model, for_user, shown: instance.shown_ids(movie) }
}

fn series_hit(instance: &Instance<Sonarr>, series: &Series, context: &ToolContext) -> CatalogHit {
    let mut for_model = json!({ "type": "series", "title": clean_title(&series.title), "year": series.year,
        "tvdb": series.tvdb, "seasons": series.seasons.len(), "in_library": series.id.is_some() });
    add_library_id(&mut for_model, series.id, instance.name);
    if let Some(at) = series.next_airing {
        for_model["next_episode"] = json!(format_airing(at, context));
    }
    add_overview(&mut for_model, &series.overview);
    let for_user = format_hit(&series.title, series.year, series.id.is_some());
    CatalogHit { for_model, for_user, shown: instance.shown_ids(series) }
}

/// Adds the id with which other tools select the title, if it is in the library.
fn add_library_id(for_model: &mut Value, id: Option<i64>, instance: &str) {
    if let Some(id) = id {
        for_model["id"] = json!(id);
        for_model["instance"] = json!(instance);
    }
}

fn format_hit(title: &str, year: u16, in_library: bool) -> String {
    let name = format_media_title(title, year);
    if in_library { format!("{name} (you have it)") } else { name }
}

fn add_overview(for_model: &mut Value, overview: &str) {
    let overview = clean_text(overview, MAX_OVERVIEW_CHARS);
    if !overview.is_empty() {
        for_model["overview"] = json!(overview);
    }
}
