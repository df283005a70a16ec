//! Tool that recommends movies that are not in the library, each with a reason. Radarr suggests the movies, and the
//! genres of the library rank them. Sonarr suggests nothing, so the model itself names series.

use std::collections::BTreeSet;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::formatting::{
    MAX_RESULTS, add_failed_services, append_failed_services, clean_title, format_media_title,
    format_sentence_list, list_first_results,
};
use super::instance_ref::InstanceRef;
use super::library::{ArrInstances, INSTANCE_LOOKUP_TIMEOUT, Instance, InstanceResults, query_all};
use super::library_cache::entries::genre_matches;
use super::library_cache::loaded_libraries::LoadedLibraries;
use super::library_cache::query::{LibraryQuery, TitleMatch};
use super::ranking::TitleQuery;
use super::taste::{GenreProfile, LikedTitle, RecommendationReason, RecommendationSource};
use super::typed_tool::TypedTool;
use super::viewing::unseen::{LibraryRequest, recommend_from_library};
use super::{LOOKUP_TIMEOUT, ToolContext, ToolError, ToolOutput};
use crate::arr::Movie;
use crate::arr::collections::{SuggestedMovie, SuggestionSource};
use crate::arr::radarr::Radarr;
use crate::conversation::memory::answer_metadata::RECOMMEND;
use crate::conversation::text::title::quote_text;
use crate::conversation::transcript::{
    CallFailure, CallResult, EffectLevel, FailureCode, MediaKind, MediaRef, ToolAudience,
};

/// Time limit for the movies of a collection, which Radarr stores locally.
const COLLECTION_TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum number of genres that are reported for a library, and for a movie.
const MAX_GENRES: usize = 3;

/// Tool that recommends movies that are not in the library.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecommendMovies {
    /// Genre.
    genre: Option<String>,
    /// Similar title.
    like: Option<String>,
    /// Instead movies and shows on disk, unseen by the user.
    #[serde(default)]
    in_library: bool,
    #[serde(rename = "type")]
    kind: Option<MediaKind>,
}

/// Title that recommendations should resemble, and the rest of its collection.
struct ExampleTitle {
    liked: LikedTitle,
    collection: Vec<(SuggestedMovie, RecommendationReason)>,
}

impl TypedTool for RecommendMovies {
    const NAME: &'static str = RECOMMEND;
    const DESCRIPTION: &'static str = "Suggest movies that the library lacks; give its reason only. For shows, \
                                       name some and check with search_media.";
    const EFFECT_LEVEL: EffectLevel = EffectLevel::Read;
    const AUDIENCE: ToolAudience = ToolAudience::Everyone;
    const VIEWING_ARGUMENTS: &'static [&'static str] = &["in_library", "type"];
    const TIMEOUT: Duration = LOOKUP_TIMEOUT;

    fn reads_viewing(&self) -> bool {
        self.in_library
    }

    async fn run(&self, library: &ArrInstances, context: &ToolContext) -> Result<ToolOutput, ToolError> {
        let genre = self.genre.as_deref().filter(|genre| !genre.trim().is_empty());
        if self.in_library {
            let request = LibraryRequest { kind: self.kind, genre };
            return recommend_from_library(request, library, context).await;
        }
        let like = self.like.as_deref().filter(|like| !like.trim().is_empty());
        // All instances share one catalog, so only the first is queried.
        let radarr = library.movies.get(..1).unwrap_or_default();
        let (loaded, similar, popular, hits) = tokio::join!(
            LoadedLibraries::load_libraries(library, Some(MediaKind::Movie), context.now),
            query_all(radarr, INSTANCE_LOOKUP_TIMEOUT, |radarr| radarr
                .fetch_suggestions(SuggestionSource::Similar)),
            query_all(radarr, INSTANCE_LOOKUP_TIMEOUT, |radarr| radarr
                .fetch_suggestions(SuggestionSource::Popular)),
            query_all(radarr, INSTANCE_LOOKUP_TIMEOUT, |radarr| radarr
                .lookup_movies(like.unwrap_or_default())),
        );
        let example = match like {
            None => None,
            Some(like) => {
                Some(ExampleTitle::find_title(library, like, &loaded, hits.map(|(_, hits)| hits)).await?)
            }
        };
        let movies = similar
            .map(|(_, movies)| (RecommendationSource::Similar, movies))
            .merge(popular.map(|(_, movies)| (RecommendationSource::Popular, movies)));
        let responses =
            InstanceResults { failures: dedup_failures(movies.failures, &loaded.failures), ..movies };
        let (movies, failed) = responses.or_failure()?;
        let movies = movies
            .into_iter()
            .flat_map(|(source, movies)| movies.into_iter().map(move |movie| (source, movie)));
        let entries = loaded.cached_titles();
        let genre_profile = GenreProfile::from_libraries(&entries);
        let ranked =
            genre_profile.rank_movies(movies.collect(), example.as_ref().map(|example| &example.liked));
        let collection = example.map(|example| example.collection).unwrap_or_default();
        let library_ids: BTreeSet<i64> =
            entries.iter().flat_map(|titles| titles.titles()).map(|title| title.catalog).collect();
        let is_new = |movie: &SuggestedMovie| {
            !movie.in_library
                && !movie.excluded
                && !library_ids.contains(&movie.tmdb)
                && genre.is_none_or(|genre| movie.genres.iter().any(|name| genre_matches(name, genre)))
        };
        let mut seen = BTreeSet::new();
        let all = collection.into_iter().chain(ranked);
        let recommended: Vec<_> = all.filter(|(movie, _)| is_new(movie) && seen.insert(movie.tmdb)).collect();
        Ok(recommendations_result(&recommended, &failed).into())
    }
}

impl ExampleTitle {
    /// Finds the title by its name, in the library or else in the catalog.
    async fn find_title(
        library: &ArrInstances,
        like: &str,
        loaded: &LoadedLibraries<'_>,
        hits: InstanceResults<Vec<Movie>>,
    ) -> Result<Self, CallFailure> {
        let query = LibraryQuery::by_title(TitleQuery::new(like));
        let best_match = query.select_titles(&loaded.cached_titles()).into_iter().next();
        if let Some(found) = best_match.filter(TitleMatch::matches_start) {
            let loaded_library = &loaded.libraries[found.library];
            let entries = &loaded_library.cached.entries;
            let genres = entries.genre_names(found.entry.genres).map(str::to_owned).collect();
            let liked = LikedTitle { name: format_media_title(&found.entry.title, found.entry.year), genres };
            let collection = match (loaded_library.instance, found.entry.collection_id()) {
                (InstanceRef::Movies(instance), Some(collection_id)) => {
                    fetch_collection(instance, collection_id, loaded).await
                }
                (InstanceRef::Movies(_) | InstanceRef::Series(_), _) => Vec::new(),
            };
            return Ok(Self { liked, collection });
        }
        let (hits, _) = hits.or_failure()?;
        let ranked = query.query.rank_hits(hits.concat(), |movie| (&movie.title, movie.year));
        let Some((_, movie)) = ranked.into_iter().next() else { return Err(no_such_movie(like)) };
        let liked = LikedTitle { name: format_media_title(&movie.title, movie.year), genres: movie.genres };
        let collection = match (library.movies.first(), movie.collection) {
            (Some(instance), Some(collection)) => fetch_collection(instance, collection.tmdb, loaded).await,
            (Some(_) | None, _) => Vec::new(),
        };
        Ok(Self { liked, collection })
    }
}

/// Fetches the movies of a collection by its TMDB id. Returns no movies if Radarr fails or is late, because they are
/// optional.
async fn fetch_collection(
    instance: &Instance<Radarr>,
    collection_id: i64,
    loaded: &LoadedLibraries<'_>,
) -> Vec<(SuggestedMovie, RecommendationReason)> {
    let response =
        tokio::time::timeout(COLLECTION_TIMEOUT, instance.client.fetch_collection(collection_id)).await;
    let movies = match response {
        Ok(Ok(movies)) => movies,
        Ok(Err(error)) => {
            tracing::warn!(instance = instance.name, %error, "failed to fetch a collection");
            return Vec::new();
        }
        Err(_) => return Vec::new(),
    };
    let owned = movies.iter().filter(|movie| movie.in_library).count();
    let entries = loaded.cached_titles();
    let name = entries
        .iter()
        .find_map(|titles| titles.collection_name(collection_id))
        .unwrap_or("the same collection")
        .to_owned();
    movies
        .into_iter()
        .map(|movie| (movie, RecommendationReason::Collection { name: name.clone(), owned }))
        .collect()
}

fn no_such_movie(like: &str) -> CallFailure {
    CallFailure::new(
        FailureCode::NotFound,
        json!({ "hint": "no such movie; ask which is meant" }),
        Some(format!("I found no movie {}.", quote_text(like))),
    )
}

/// Combines the failures of several requests to the same instances, without duplicates.
fn dedup_failures(failures: Vec<CallFailure>, load_failures: &[CallFailure]) -> Vec<CallFailure> {
    let mut seen = BTreeSet::new();
    let all = failures.into_iter().chain(load_failures.iter().cloned());
    all.filter(|failure| seen.insert(failure.for_user.clone())).collect()
}

fn recommendations_result(
    recommended: &[(SuggestedMovie, RecommendationReason)],
    failed: &[String],
) -> CallResult {
    let first = &recommended[..recommended.len().min(MAX_RESULTS)];
    let results = first.iter().map(|(movie, reason)| {
        json!({ "type": "movie", "tmdb": movie.tmdb, "title": clean_title(&movie.title), "year": movie.year,
            "rating": movie.rating, "genres": movie.genres.iter().take(MAX_GENRES).collect::<Vec<_>>(),
            "because": reason.format_reason() })
    });
    let mut for_model =
        list_first_results(results.collect(), recommended.len(), "name a genre or a title for others");
    add_failed_services(&mut for_model, failed);
    let titles: Vec<String> =
        first.iter().map(|(movie, _)| format_media_title(&movie.title, movie.year)).collect();
    let sentence = if titles.is_empty() {
        "Radarr suggests nothing of that kind right now.".to_owned()
    } else {
        format!("You might like {}.", format_sentence_list(&titles))
    };
    let shown_count = for_model["results"].as_array().map_or(0, Vec::len);
    CallResult {
        for_model,
        for_user: append_failed_services(sentence, failed),
        shown: first.iter().take(shown_count).map(|(movie, _)| MediaRef::Tmdb(movie.tmdb)).collect(),
    }
}
