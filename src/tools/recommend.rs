//! Recommendations of movies that are not in the library and fit it, each with a reason. Radarr suggests the movies,
//! and the library shows the taste of the household. Sonarr has no suggestions, so for series only the taste is
//! reported.

use std::collections::BTreeSet;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::formatting::{
    MAX_RESULTS, add_failed_services, append_failed_services, clean_title, format_media_title,
    format_sentence_list, list_first_results,
};
use super::instance_ref::InstanceRef;
use super::library::{ArrInstances, Instance, InstanceResults, LOOKUP_PATIENCE, query_all};
use super::library_cache::entries::genre_matches;
use super::library_cache::loaded_libraries::LoadedLibraries;
use super::library_cache::query::{LibraryQuery, TitleMatch};
use super::ranking::TitleQuery;
use super::taste::{GenreProfile, LikedTitle, RecommendationReason, RecommendationSource};
use super::typed_tool::TypedTool;
use super::{LOOKUP_TIMEOUT, ToolContext, ToolError, ToolOutput};
use crate::arr::Movie;
use crate::arr::collections::{SuggestedMovie, SuggestionSource};
use crate::arr::radarr::Radarr;
use crate::conversation::memory::answer_metadata::RECOMMEND;
use crate::conversation::text::title::quote_text;
use crate::conversation::transcript::{
    CallFailure, CallResult, EffectLevel, FailureCode, MediaKind, MediaRef, ToolAudience,
};

/// Time limit for the movies of a collection, which Radarr has stored locally.
const COLLECTION_PATIENCE: Duration = Duration::from_secs(2);
/// Maximum number of genres that are reported for a library, and for a movie.
const TOLD_GENRES: usize = 3;

/// Tool that suggests movies that are not in the library.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecommendMovies {
    #[serde(rename = "type")]
    kind: Option<MediaKind>,
    genre: Option<String>,
    like: Option<String>,
}

/// Title that recommendations should resemble, and the rest of its collection.
struct ExampleTitle {
    liked: LikedTitle,
    collection: Vec<(SuggestedMovie, RecommendationReason)>,
}

impl TypedTool for RecommendMovies {
    const NAME: &'static str = RECOMMEND;
    const DESCRIPTION: &'static str =
        "Suggest movies that are not in the library. Tells why: give that reason and no other.";
    const EFFECT_LEVEL: EffectLevel = EffectLevel::Read;
    const AUDIENCE: ToolAudience = ToolAudience::Everyone;
    const TIMEOUT: Duration = LOOKUP_TIMEOUT;

    async fn run(&self, library: &ArrInstances, context: &ToolContext) -> Result<ToolOutput, ToolError> {
        let genre = self.genre.as_deref().filter(|genre| !genre.trim().is_empty());
        let like = self.like.as_deref().filter(|like| !like.trim().is_empty());
        if self.kind == Some(MediaKind::Series) {
            let stock = LoadedLibraries::load_libraries(library, self.kind, context.now).await;
            return Ok(series_result(&stock)?.into());
        }
        // All instances share one catalog, so only the first is queried.
        let radarr = library.movies.get(..1).unwrap_or_default();
        let (stock, similar, popular, hits) = tokio::join!(
            LoadedLibraries::load_libraries(library, Some(MediaKind::Movie), context.now),
            query_all(radarr, LOOKUP_PATIENCE, |radarr| radarr.fetch_suggestions(SuggestionSource::Similar)),
            query_all(radarr, LOOKUP_PATIENCE, |radarr| radarr.fetch_suggestions(SuggestionSource::Popular)),
            query_all(radarr, LOOKUP_PATIENCE, |radarr| radarr.lookup_movies(like.unwrap_or_default())),
        );
        let example = match like {
            None => None,
            Some(like) => {
                Some(ExampleTitle::find_title(library, like, &stock, hits.map(|(_, hits)| hits)).await?)
            }
        };
        let films = similar
            .map(|(_, films)| (RecommendationSource::Similar, films))
            .merge(popular.map(|(_, films)| (RecommendationSource::Popular, films)));
        let answered = InstanceResults { failures: dedup_failures(films.failures, &stock.failures), ..films };
        let (films, failed) = answered.or_failure()?;
        let films =
            films.into_iter().flat_map(|(source, films)| films.into_iter().map(move |it| (source, it)));
        let entries = stock.cached_titles();
        let taste = GenreProfile::from_libraries(&entries);
        let ranked = taste.rank_movies(films.collect(), example.as_ref().map(|example| &example.liked));
        let collection = example.map(|example| example.collection).unwrap_or_default();
        let held: BTreeSet<i64> =
            entries.iter().flat_map(|it| it.titles()).map(|title| title.catalog).collect();
        let is_wanted = |film: &SuggestedMovie| {
            !film.in_library
                && !film.excluded
                && !held.contains(&film.tmdb)
                && genre.is_none_or(|wanted| film.genres.iter().any(|name| genre_matches(name, wanted)))
        };
        let mut seen = BTreeSet::new();
        let all = collection.into_iter().chain(ranked);
        let told: Vec<_> = all.filter(|(film, _)| is_wanted(film) && seen.insert(film.tmdb)).collect();
        Ok(recommendations_result(&told, &failed).into())
    }
}

impl ExampleTitle {
    /// Finds the title that the user means, either in the library or only in the catalog.
    async fn find_title(
        library: &ArrInstances,
        like: &str,
        stock: &LoadedLibraries<'_>,
        hits: InstanceResults<Vec<Movie>>,
    ) -> Result<Self, CallFailure> {
        let wanted = LibraryQuery { query: TitleQuery::new(like), only: None, genre: None, sort: None };
        let meant = wanted.select_titles(&stock.cached_titles()).into_iter().next();
        if let Some(meant) = meant.filter(TitleMatch::matches_start) {
            let shelf = &stock.libraries[meant.library];
            let entries = &shelf.cached.entries;
            let genres = entries.genre_names(meant.entry.genres).map(str::to_owned).collect();
            let liked = LikedTitle { name: format_media_title(&meant.entry.title, meant.entry.year), genres };
            let collection = match (shelf.instance, meant.entry.collection_id()) {
                (InstanceRef::Movies(instance), Some(number)) => {
                    fetch_collection(instance, number, stock).await
                }
                (InstanceRef::Movies(_) | InstanceRef::Series(_), _) => Vec::new(),
            };
            return Ok(Self { liked, collection });
        }
        let (hits, _) = hits.or_failure()?;
        let ranked = wanted.query.rank_hits(hits.concat(), |movie| (&movie.title, movie.year));
        let Some((_, movie)) = ranked.into_iter().next() else { return Err(no_such_movie(like)) };
        let liked = LikedTitle { name: format_media_title(&movie.title, movie.year), genres: movie.genres };
        let collection = match (library.movies.first(), movie.collection) {
            (Some(instance), Some(of)) => fetch_collection(instance, of.tmdb, stock).await,
            (Some(_) | None, _) => Vec::new(),
        };
        Ok(Self { liked, collection })
    }
}

/// Fetches the movies of a collection, by the id of the collection. The list is empty if Radarr does not respond in
/// time, because these movies are optional.
async fn fetch_collection(
    instance: &Instance<Radarr>,
    number: i64,
    stock: &LoadedLibraries<'_>,
) -> Vec<(SuggestedMovie, RecommendationReason)> {
    let asked = tokio::time::timeout(COLLECTION_PATIENCE, instance.client.fetch_collection(number)).await;
    let films = match asked {
        Ok(Ok(films)) => films,
        Ok(Err(error)) => {
            tracing::warn!(instance = instance.name, %error, "failed to fetch a collection");
            return Vec::new();
        }
        Err(_) => return Vec::new(),
    };
    let held = films.iter().filter(|film| film.in_library).count();
    let entries = stock.cached_titles();
    let name =
        entries.iter().find_map(|it| it.collection_name(number)).unwrap_or("the same collection").to_owned();
    films
        .into_iter()
        .map(|film| (film, RecommendationReason::Collection { name: name.clone(), held }))
        .collect()
}

fn no_such_movie(like: &str) -> CallFailure {
    CallFailure::new(
        FailureCode::NotFound,
        json!({ "hint": "no such movie; ask which is meant" }),
        Some(format!("I found no movie {}.", quote_text(like))),
    )
}

/// Combines the failures of several requests to the same instances, with each instance listed once.
fn dedup_failures(failures: Vec<CallFailure>, of_stock: &[CallFailure]) -> Vec<CallFailure> {
    let mut told = BTreeSet::new();
    let all = failures.into_iter().chain(of_stock.iter().cloned());
    all.filter(|failure| told.insert(failure.for_user.clone())).collect()
}

fn recommendations_result(told: &[(SuggestedMovie, RecommendationReason)], failed: &[String]) -> CallResult {
    let first = &told[..told.len().min(MAX_RESULTS)];
    let results = first.iter().map(|(film, why)| {
        json!({ "type": "movie", "tmdb": film.tmdb, "title": clean_title(&film.title), "year": film.year,
            "rating": film.rating, "genres": film.genres.iter().take(TOLD_GENRES).collect::<Vec<_>>(),
            "because": why.format_reason() })
    });
    let mut for_model =
        list_first_results(results.collect(), told.len(), "name a genre or a title for others");
    add_failed_services(&mut for_model, failed);
    let titles: Vec<String> =
        first.iter().map(|(film, _)| format_media_title(&film.title, film.year)).collect();
    let sentence = if titles.is_empty() {
        "Radarr suggests nothing of that kind right now.".to_owned()
    } else {
        format!("You might like {}.", format_sentence_list(&titles))
    };
    let shown = for_model["results"].as_array().map_or(0, Vec::len);
    CallResult {
        for_model,
        for_user: append_failed_services(sentence, failed),
        shown: first.iter().take(shown).map(|(film, _)| MediaRef::Tmdb(film.tmdb)).collect(),
    }
}

fn series_result(stock: &LoadedLibraries<'_>) -> Result<CallResult, CallFailure> {
    let answers = vec![(); stock.libraries.len()];
    let (_, failed) = InstanceResults { answers, failures: stock.failures.clone() }.or_failure()?;
    let entries = stock.cached_titles();
    let most = GenreProfile::from_libraries(&entries).top_genres(TOLD_GENRES);
    let mut for_model = json!({ "results": [], "total": 0,
        "library_has_most_of": most.iter().map(|(genre, held)| json!([genre, held])).collect::<Value>(),
        "note": "Sonarr suggests no shows: name some yourself, and check each with search_media" });
    add_failed_services(&mut for_model, &failed);
    let genres: Vec<String> = most.iter().map(|(genre, _)| (*genre).to_owned()).collect();
    let sentence = if genres.is_empty() {
        "Sonarr suggests no shows.".to_owned()
    } else {
        format!("Sonarr suggests no shows. The library has most of {}.", format_sentence_list(&genres))
    };
    Ok(CallResult { for_model, for_user: append_failed_services(sentence, &failed), shown: Vec::new() })
}
