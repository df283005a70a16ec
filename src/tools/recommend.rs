//! Recommendations of films that are not in the library and fit it, each with a reason. Radarr suggests the films, and
//! the library shows the taste of the household. Sonarr has no suggestions, so for shows only the taste is reported.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::answers::{
    MAX_RESULTS, clean_title, listing_of, name_failed, named, refusal, sentence_list, with_failed,
};
use super::approval::Cleared;
use super::arguments::{cleared, read, schema};
use super::library::{Gathered, Instance, LOOKUP_PATIENCE, Library, ask_all};
use super::place::Place;
use super::ranking::Query;
use super::shelf::entries::genre_is;
use super::shelf::selection::{Meant, Wanted};
use super::shelf::stock::Stock;
use super::taste::{Liked, Source, Taste, Why};
use super::{LOOKUP_TIMEOUT, Ran, Tool, ToolError, Uses, World};
use crate::arr::Movie;
use crate::arr::collections::{Suggest, Suggestion};
use crate::arr::radarr::Radarr;
use crate::conversation::extraction::RECOMMEND;
use crate::conversation::title::quote;
use crate::conversation::transcript::{
    Arguments, Audience, CallFailure, CallResult, MediaKind, MediaRef, Tier, ToolSpec,
};

/// Time limit for the films of a collection, which Radarr has stored locally.
const COLLECTION_PATIENCE: Duration = Duration::from_secs(2);
/// Maximum number of genres that are reported for a library, and for a film.
const TOLD_GENRES: usize = 3;

pub struct Recommend {
    library: Arc<Library>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    #[serde(rename = "type")]
    kind: Option<MediaKind>,
    genre: Option<String>,
    like: Option<String>,
}

/// Title that recommendations should resemble, and the rest of its collection.
struct Example {
    liked: Liked,
    collection: Vec<(Suggestion, Why)>,
}

#[async_trait]
impl Tool for Recommend {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: RECOMMEND,
            description: "Suggest movies that are not in the library. Tells why: give that reason and no other.",
            tier: Tier::Read,
            audience: Audience::Everyone,
            parameters: schema::<Args>().into(),
        }
    }

    fn timeout(&self) -> Duration {
        LOOKUP_TIMEOUT
    }

    fn check(&self, arguments: &Arguments) -> Result<Uses, CallFailure> {
        self.arguments(arguments).map(|_| Uses::default())
    }

    async fn run(&self, call: &Cleared, world: &World) -> Result<Ran, ToolError> {
        self.recommend(cleared(call)?, world.now).await.map(Ran::from)
    }
}

impl Recommend {
    pub fn new(library: Arc<Library>) -> Self {
        Self { library }
    }

    fn arguments(&self, arguments: &Arguments) -> Result<Args, CallFailure> {
        read(RECOMMEND, &schema::<Args>(), arguments)
    }

    pub(super) async fn recommend(
        &self,
        arguments: &Arguments,
        now: Timestamp,
    ) -> Result<CallResult, ToolError> {
        let args = self.arguments(arguments)?;
        let genre = args.genre.as_deref().filter(|genre| !genre.trim().is_empty());
        let like = args.like.as_deref().filter(|like| !like.trim().is_empty());
        if args.kind == Some(MediaKind::Series) {
            let stock = Stock::take(&self.library, args.kind, now).await;
            return Ok(of_shows(&stock)?);
        }
        // All instances share one catalog, so only the first is asked.
        let radarr = self.library.movies.get(..1).unwrap_or_default();
        let (stock, similar, popular, hits) = tokio::join!(
            Stock::take(&self.library, Some(MediaKind::Movie), now),
            ask_all(radarr, LOOKUP_PATIENCE, |radarr| radarr.suggestions(Suggest::Similar)),
            ask_all(radarr, LOOKUP_PATIENCE, |radarr| radarr.suggestions(Suggest::Popular)),
            ask_all(radarr, LOOKUP_PATIENCE, |radarr| radarr.lookup(like.unwrap_or_default())),
        );
        let example = match like {
            None => None,
            Some(like) => Some(Example::find(&self.library, like, &stock, hits.map(|(_, hits)| hits)).await?),
        };
        let films = similar
            .map(|(_, films)| (Source::Similar, films))
            .and(popular.map(|(_, films)| (Source::Popular, films)));
        let answered = Gathered { failures: once_each(films.failures, &stock.failures), ..films };
        let (films, failed) = answered.or_failure()?;
        let films =
            films.into_iter().flat_map(|(source, films)| films.into_iter().map(move |it| (source, it)));
        let entries = stock.entries();
        let taste = Taste::of(&entries);
        let ranked = taste.rank(films.collect(), example.as_ref().map(|example| &example.liked));
        let collection = example.map(|example| example.collection).unwrap_or_default();
        let held: BTreeSet<i64> =
            entries.iter().flat_map(|it| it.titles()).map(|title| title.catalog).collect();
        let is_wanted = |film: &Suggestion| {
            !film.in_library
                && !film.excluded
                && !held.contains(&film.tmdb)
                && genre.is_none_or(|wanted| film.genres.iter().any(|name| genre_is(name, wanted)))
        };
        let mut seen = BTreeSet::new();
        let all = collection.into_iter().chain(ranked);
        let told: Vec<_> = all.filter(|(film, _)| is_wanted(film) && seen.insert(film.tmdb)).collect();
        Ok(answer(&told, &failed))
    }
}

impl Example {
    /// Finds the title that the user means: one in the library, or one that only the catalog has.
    async fn find(
        library: &Library,
        like: &str,
        stock: &Stock<'_>,
        hits: Gathered<Vec<Movie>>,
    ) -> Result<Self, CallFailure> {
        let wanted = Wanted { query: Query::new(like), only: None, genre: None, sort: None };
        let meant = wanted.select(&stock.entries()).into_iter().next();
        if let Some(meant) = meant.filter(Meant::begins_so) {
            let shelf = &stock.shelves[meant.library];
            let entries = &shelf.held.entries;
            let genres = entries.names_of(meant.entry.genres).map(str::to_owned).collect();
            let liked = Liked { name: named(&meant.entry.title, meant.entry.year), genres };
            let collection = match (shelf.place, meant.entry.collection()) {
                (Place::Movies(instance), Some(number)) => collection(instance, number, stock).await,
                (Place::Movies(_) | Place::Series(_), _) => Vec::new(),
            };
            return Ok(Self { liked, collection });
        }
        let (hits, _) = hits.or_failure()?;
        let ranked = wanted.query.rank(hits.concat(), |movie| (&movie.title, movie.year));
        let Some((_, movie)) = ranked.into_iter().next() else { return Err(unknown(like)) };
        let liked = Liked { name: named(&movie.title, movie.year), genres: movie.genres };
        let collection = match (library.movies.first(), movie.collection) {
            (Some(instance), Some(of)) => collection(instance, of.tmdb, stock).await,
            (Some(_) | None, _) => Vec::new(),
        };
        Ok(Self { liked, collection })
    }
}

/// Films of a collection, by the id of the collection. Returns none if Radarr does not answer in time, because these
/// films are optional.
async fn collection(instance: &Instance<Radarr>, number: i64, stock: &Stock<'_>) -> Vec<(Suggestion, Why)> {
    let asked = tokio::time::timeout(COLLECTION_PATIENCE, instance.client.collection(number)).await;
    let films = match asked {
        Ok(Ok(films)) => films,
        Ok(Err(error)) => {
            tracing::warn!(instance = instance.name, %error, "failed to read a collection");
            return Vec::new();
        }
        Err(_) => return Vec::new(),
    };
    let held = films.iter().filter(|film| film.in_library).count();
    let entries = stock.entries();
    let name =
        entries.iter().find_map(|it| it.collection(number)).unwrap_or("the same collection").to_owned();
    films.into_iter().map(|film| (film, Why::Collection { name: name.clone(), held })).collect()
}

fn unknown(like: &str) -> CallFailure {
    refusal(
        "not_found",
        json!({ "hint": "no such movie; ask which is meant" }),
        Some(format!("I found no movie {}.", quote(like))),
    )
}

/// Failures of several requests to the same servers, with each server listed once.
fn once_each(failures: Vec<CallFailure>, of_stock: &[CallFailure]) -> Vec<CallFailure> {
    let mut told = BTreeSet::new();
    let all = failures.into_iter().chain(of_stock.iter().cloned());
    all.filter(|failure| told.insert(failure.for_user.clone())).collect()
}

fn answer(told: &[(Suggestion, Why)], failed: &[String]) -> CallResult {
    let first = &told[..told.len().min(MAX_RESULTS)];
    let results = first.iter().map(|(film, why)| {
        json!({ "type": "movie", "tmdb": film.tmdb, "title": clean_title(&film.title), "year": film.year,
            "rating": film.rating, "genres": film.genres.iter().take(TOLD_GENRES).collect::<Vec<_>>(),
            "because": why.told() })
    });
    let mut for_model = listing_of(results.collect(), told.len(), "name a genre or a title for others");
    name_failed(&mut for_model, failed);
    let titles: Vec<String> = first.iter().map(|(film, _)| named(&film.title, film.year)).collect();
    let sentence = if titles.is_empty() {
        "Radarr suggests nothing of that kind right now.".to_owned()
    } else {
        format!("You might like {}.", sentence_list(&titles))
    };
    let shown = for_model["results"].as_array().map_or(0, Vec::len);
    CallResult {
        for_model,
        for_user: with_failed(sentence, failed),
        shown: first.iter().take(shown).map(|(film, _)| MediaRef::Tmdb(film.tmdb)).collect(),
    }
}

fn of_shows(stock: &Stock<'_>) -> Result<CallResult, CallFailure> {
    let answers = vec![(); stock.shelves.len()];
    let (_, failed) = Gathered { answers, failures: stock.failures.clone() }.or_failure()?;
    let entries = stock.entries();
    let most = Taste::of(&entries).most(TOLD_GENRES);
    let mut for_model = json!({ "results": [], "total": 0,
        "library_has_most_of": most.iter().map(|(genre, held)| json!([genre, held])).collect::<Value>(),
        "note": "Sonarr suggests no shows: name some yourself, and check each with search_media" });
    name_failed(&mut for_model, &failed);
    let genres: Vec<String> = most.iter().map(|(genre, _)| (*genre).to_owned()).collect();
    let sentence = if genres.is_empty() {
        "Sonarr suggests no shows.".to_owned()
    } else {
        format!("Sonarr suggests no shows. The library has most of {}.", sentence_list(&genres))
    };
    Ok(CallResult { for_model, for_user: with_failed(sentence, &failed), shown: Vec::new() })
}
