//! Search for titles in the catalogs of Radarr and Sonarr.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::join_all;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::answers::{MEANT, clean, clean_title, listing, name_failed, named, sentence_list, with_failed};
use super::approval::Cleared;
use super::arguments::{cleared, read, schema};
use super::library::{Instance, LOOKUP_PATIENCE, Library, ask_all};
use super::ranking::{Fit, Query};
use super::{LOOKUP_TIMEOUT, Ran, Tool, ToolError, Uses, World};
use crate::arr::radarr::Radarr;
use crate::arr::sonarr::Sonarr;
use crate::arr::{ArrError, Movie, Series};
use crate::conversation::facts::Facts;
use crate::conversation::title::quote;
use crate::conversation::transcript::{
    Arguments, Audience, CallFailure, CallResult, MediaKind, MediaRef, Tier, ToolSpec,
};

const MAX_OVERVIEW_CHARS: usize = 200;

pub struct SearchMedia {
    library: Arc<Library>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SearchArgs {
    /// Title, year last if known.
    #[schemars(length(min = 1))]
    query: String,
    #[serde(rename = "type")]
    kind: Option<MediaKind>,
}

/// One title as it is reported to the model and the user.
struct Found {
    for_model: Value,
    for_user: String,
    shown: Vec<MediaRef>,
}

#[async_trait]
impl Tool for SearchMedia {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "search_media",
            description: "Search the catalogues, in the library or not. \
                          Gives the tmdb or tvdb number that adding needs.",
            tier: Tier::Read,
            audience: Audience::Everyone,
            parameters: schema::<SearchArgs>().into(),
        }
    }

    fn timeout(&self) -> Duration {
        LOOKUP_TIMEOUT
    }

    fn check(&self, arguments: &Arguments) -> Result<Uses, CallFailure> {
        self.arguments(arguments).map(|_| Uses::default())
    }

    async fn run(&self, call: &Cleared, world: &World) -> Result<Ran, ToolError> {
        self.search(cleared(call)?, &world.facts).await.map(Ran::from)
    }
}

impl SearchMedia {
    pub fn new(library: Arc<Library>) -> Self {
        Self { library }
    }

    fn arguments(&self, arguments: &Arguments) -> Result<SearchArgs, CallFailure> {
        read("search_media", &schema::<SearchArgs>(), arguments)
    }

    pub(super) async fn search(&self, arguments: &Arguments, facts: &Facts) -> Result<CallResult, ToolError> {
        let args = self.arguments(arguments)?;
        let meant = facts.alias(&args.query);
        let query = Query::new(&args.query).meaning(meant);
        let terms: Vec<&str> = std::iter::once(args.query.as_str()).chain(meant).collect();
        // All instances of a kind share one catalog, so only the first is asked.
        let movies = self.library.movies_of(args.kind).get(..1).unwrap_or_default();
        let series = self.library.series_of(args.kind).get(..1).unwrap_or_default();
        let (movies, series) = tokio::join!(
            ask_all(movies, LOOKUP_PATIENCE, |radarr| { each_term(&terms, |term| radarr.lookup(term)) }),
            ask_all(series, LOOKUP_PATIENCE, |sonarr| { each_term(&terms, |term| sonarr.lookup(term)) }),
        );
        let movies = movies.map(|(instance, hits)| {
            let mut hits = each_once(hits, |movie| movie.tmdb);
            hits.sort_by(|one, other| other.popularity.total_cmp(&one.popularity));
            let ranked = query.rank(hits, |movie| (&movie.title, movie.year));
            ranked.into_iter().map(|(fit, movie)| movie_hit(instance, &movie).of(fit)).collect::<Vec<_>>()
        });
        let series = series.map(|(instance, hits)| {
            let ranked =
                query.rank(each_once(hits, |series| series.tvdb), |series| (&series.title, series.year));
            ranked.into_iter().map(|(fit, series)| series_hit(instance, &series).of(fit)).collect()
        });
        let (answers, failed) = movies.and(series).or_failure()?;
        let found = in_turn(answers);
        let sentence = match told(&found) {
            None => format!("I found nothing for {}.", quote(&args.query)),
            Some(titles) => format!("I found {titles}."),
        };
        Ok(answer(found, sentence, &failed))
    }
}

/// Results for a query, and for the title that the user means by it. Only the query itself must be answered.
async fn each_term<'a, T, Answer>(
    terms: &'a [&'a str],
    lookup: impl Fn(&'a str) -> Answer,
) -> Result<Vec<Vec<T>>, ArrError>
where
    Answer: Future<Output = Result<Vec<T>, ArrError>>,
{
    let mut answers = join_all(terms.iter().map(|term| lookup(term))).await.into_iter();
    let mut found = Vec::new();
    if let Some(said) = answers.next() {
        found.push(said?);
    }
    for meant in answers {
        match meant {
            Ok(hits) => found.push(hits),
            Err(error) => tracing::warn!(%error, "what a name means could not be looked up"),
        }
    }
    Ok(found)
}

impl Found {
    fn of(mut self, fit: Fit) -> (Fit, Self) {
        if fit == Fit::Meant {
            self.for_model[MEANT] = json!(true);
        }
        (fit, self)
    }
}

/// Combined results of several searches, without duplicate ids.
fn each_once<T>(hits: Vec<Vec<T>>, id: impl Fn(&T) -> i64) -> Vec<T> {
    let mut seen = BTreeSet::new();
    hits.into_iter().flatten().filter(|hit| seen.insert(id(hit))).collect()
}

/// Merges ranked lists: by match quality, then the first of each list, the second of each, and so on.
fn in_turn(lists: Vec<Vec<(Fit, Found)>>) -> Vec<Found> {
    let mut all: Vec<(Fit, usize, Found)> = lists
        .into_iter()
        .flat_map(|list| list.into_iter().enumerate().map(|(position, (fit, found))| (fit, position, found)))
        .collect();
    all.sort_by_key(|(fit, position, _)| (*fit, *position));
    all.into_iter().map(|(_, _, found)| found).collect()
}

fn told(found: &[Found]) -> Option<String> {
    let titles: Vec<String> = found.iter().map(|found| found.for_user.clone()).collect();
    (!titles.is_empty()).then(|| sentence_list(&titles))
}

fn answer(found: Vec<Found>, sentence: String, failed: &[String]) -> CallResult {
    let results = found.iter().map(|found| found.for_model.clone()).collect();
    let mut for_model = listing(results, "add a year or more of the title to the query");
    name_failed(&mut for_model, failed);
    let shown = for_model["results"].as_array().map_or(0, Vec::len);
    CallResult {
        for_model,
        for_user: with_failed(sentence, failed),
        shown: found.into_iter().take(shown).flat_map(|found| found.shown).collect(),
    }
}

fn movie_hit(instance: &Instance<Radarr>, movie: &Movie) -> Found {
    let mut for_model = json!({ "type": "movie", "title": clean_title(&movie.title), "year": movie.year,
        "tmdb": movie.tmdb, "in_library": movie.id.is_some() });
    add_overview(&mut for_model, &movie.overview);
    let held = movie.id.map(|id| instance.item(MediaKind::Movie, id));
    Found {
        for_model,
        for_user: hit_told(&movie.title, movie.year, held.as_ref()),
        shown: [MediaRef::Tmdb(movie.tmdb)].into_iter().chain(held).collect(),
    }
}

fn series_hit(instance: &Instance<Sonarr>, series: &Series) -> Found {
    let mut for_model = json!({ "type": "series", "title": clean_title(&series.title), "year": series.year,
        "tvdb": series.tvdb, "seasons": series.seasons.len(), "in_library": series.id.is_some() });
    add_overview(&mut for_model, &series.overview);
    let held = series.id.map(|id| instance.item(MediaKind::Series, id));
    Found {
        for_model,
        for_user: hit_told(&series.title, series.year, held.as_ref()),
        shown: [MediaRef::Tvdb(series.tvdb)].into_iter().chain(held).collect(),
    }
}

fn hit_told(title: &str, year: u16, held: Option<&MediaRef>) -> String {
    match held {
        Some(_) => format!("{} (you have it)", named(title, year)),
        None => named(title, year),
    }
}

fn add_overview(for_model: &mut Value, overview: &str) {
    let overview = clean(overview, MAX_OVERVIEW_CHARS);
    if !overview.is_empty() {
        for_model["overview"] = json!(overview);
    }
}
