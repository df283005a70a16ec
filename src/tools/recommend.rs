//! Tool that recommends titles that are not in the library, each with a reason. They are found at Seerr or TMDB. Without
//! either, Radarr suggests movies, and the genres of the library rank them; Sonarr suggests nothing, so the model itself
//! names series.

use std::collections::BTreeSet;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::discover::criteria::{Criteria, Selection, StatedCriteria};
use super::discover::{DiscoveryCall, DiscoveryOutcome, find_titles};
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
use super::{ToolContext, ToolError, ToolOutput};
use crate::arr::Movie;
use crate::arr::collections::{SuggestedMovie, SuggestionSource};
use crate::arr::radarr::Radarr;
use crate::conversation::memory::answer_metadata::RECOMMEND;
use crate::conversation::text::title::quote_text;
use crate::conversation::transcript::{
    CallFailure, CallResult, EffectLevel, FailureCode, MediaKind, MediaRef, ToolAudience,
};
use crate::discovery::DiscoverySource;

/// Time limit of the tool: the sources are asked first, and Radarr after them if they do not answer.
const DISCOVERY_TOOL_TIMEOUT: Duration = Duration::from_secs(40);
/// Time limit for the movies of a collection, which Radarr stores locally.
const COLLECTION_TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum number of genres that are reported for a library, and for a movie.
const MAX_GENRES: usize = 3;

/// Arguments that only a source of titles can answer.
const DISCOVERY_ARGUMENTS: &[&str] =
    &["person", "mood", "years", "provider", "trending", "min_rating", "max_minutes"];
const DISCOVERY_ARGUMENTS_AND_TYPE: &[&str] =
    &["person", "mood", "years", "provider", "trending", "min_rating", "max_minutes", "type"];

/// Tool that recommends titles that are not in the library.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecommendTitles {
    genre: Option<String>,
    /// Similar title.
    like: Option<String>,
    /// Instead movies and shows on disk, unseen by the user.
    #[serde(default)]
    in_library: bool,
    #[serde(rename = "type")]
    kind: Option<MediaKind>,
    /// Actor or director.
    person: Option<String>,
    /// funny, scary, feel_good, heist.
    mood: Option<String>,
    /// 1990-1999.
    years: Option<String>,
    /// Streaming service.
    provider: Option<String>,
    #[serde(default)]
    trending: bool,
    min_rating: Option<f64>,
    max_minutes: Option<u32>,
}

/// Title that recommendations should resemble, and the rest of its collection.
struct ExampleTitle {
    liked: LikedTitle,
    collection: Vec<(SuggestedMovie, RecommendationReason)>,
}

impl TypedTool for RecommendTitles {
    const NAME: &'static str = RECOMMEND;
    const DESCRIPTION: &'static str = "Suggest movies that the library lacks; give its reason only. For shows, \
                                       name some and check with search_media.";
    const EFFECT_LEVEL: EffectLevel = EffectLevel::Read;
    const AUDIENCE: ToolAudience = ToolAudience::Everyone;
    const VIEWING_ARGUMENTS: &'static [&'static str] = &["in_library"];
    const TIMEOUT: Duration = DISCOVERY_TOOL_TIMEOUT;

    fn description(library: &ArrInstances) -> &'static str {
        if library.discovery.is_empty() {
            Self::DESCRIPTION
        } else {
            "Find movies and shows by what they are like; give its reason only."
        }
    }

    fn hidden_arguments(library: &ArrInstances) -> &'static [&'static str] {
        match (library.discovery.is_empty(), library.media_servers.is_empty()) {
            (true, true) => DISCOVERY_ARGUMENTS_AND_TYPE,
            (true, false) => DISCOVERY_ARGUMENTS,
            (false, _) => &[],
        }
    }

    fn reads_viewing(&self) -> bool {
        self.in_library
    }

    async fn run(&self, library: &ArrInstances, context: &ToolContext) -> Result<ToolOutput, ToolError> {
        let genre = stated(self.genre.as_ref());
        if self.in_library {
            let request = LibraryRequest { kind: self.kind, genre };
            return recommend_from_library(request, library, context).await;
        }
        let criteria = Criteria::parse(&StatedCriteria {
            kind: self.kind,
            genre,
            mood: stated(self.mood.as_ref()),
            years: stated(self.years.as_ref()),
            min_rating: self.min_rating,
            max_minutes: self.max_minutes,
        });
        if library.discovery.is_empty() {
            return self.recommend_without_source(criteria.ok(), library, context).await;
        }
        let call = DiscoveryCall {
            selection: self.selection(),
            criteria: criteria?,
            provider: stated(self.provider.as_ref()),
        };
        match find_titles(&call, library, context).await? {
            DiscoveryOutcome::Found(output) => Ok(output),
            DiscoveryOutcome::NoSource => {
                self.recommend_without_source(Some(call.criteria), library, context).await
            }
        }
    }
}

/// Returns a text argument, unless it is empty.
fn stated(text: Option<&String>) -> Option<&str> {
    text.map(|text| text.trim()).filter(|text| !text.is_empty())
}

impl RecommendTitles {
    fn selection(&self) -> Selection<'_> {
        match (stated(self.person.as_ref()), stated(self.like.as_ref()), self.trending) {
            (Some(person), _, _) => Selection::Person(person),
            (None, Some(like), _) => Selection::Like(like),
            (None, None, true) => Selection::Trending,
            (None, None, false) => Selection::Catalog,
        }
    }

    /// Recommends what Radarr suggests, and says what cannot be answered without a source.
    async fn recommend_without_source(
        &self,
        criteria: Option<Criteria>,
        library: &ArrInstances,
        context: &ToolContext,
    ) -> Result<ToolOutput, ToolError> {
        let criteria = criteria.unwrap_or_default();
        let labels: Vec<&str> = library.discovery.sources().iter().map(DiscoverySource::label).collect();
        if let Some(action) = self.unanswerable_action(&criteria) {
            return Err(needs_source(action, &labels).into());
        }
        let genre = match stated(self.genre.as_ref()) {
            Some(genre) => Some(genre),
            None => criteria.genre_of_mood(MediaKind::Movie),
        };
        let selected = |movie: &SuggestedMovie| {
            criteria.years.is_none_or(|years| years.contains(movie.year))
                && criteria.min_rating.is_none_or(|min| movie.rating.is_some_and(|rating| rating >= min))
        };
        let like = stated(self.like.as_ref());
        let mut result = recommend_movies(RadarrCriteria { genre, like }, selected, library, context).await?;
        if self.has_discovery_argument() || !labels.is_empty() {
            result.for_model["note"] = json!("from Radarr alone, which suggests movies; say so");
            result.for_user =
                format!("{} That is from Radarr alone, which suggests movies.", result.for_user);
        }
        Ok(result.into())
    }

    /// Returns the part of the call that neither Radarr nor Sonarr can answer.
    fn unanswerable_action(&self, criteria: &Criteria) -> Option<&'static str> {
        let has_no_genre = || criteria.mood.is_some() && criteria.genre_of_mood(MediaKind::Movie).is_none();
        match () {
            () if stated(self.person.as_ref()).is_some() => Some("find titles by actor or director"),
            () if stated(self.provider.as_ref()).is_some() => Some("find titles by streaming service"),
            () if self.max_minutes.is_some() => Some("find titles by length"),
            () if self.kind == Some(MediaKind::Series) => Some("recommend shows"),
            () if has_no_genre() => Some("find titles about that"),
            () => None,
        }
    }

    fn has_discovery_argument(&self) -> bool {
        self.mood.is_some() || self.years.is_some() || self.trending || self.min_rating.is_some()
    }
}

/// Builds the failure for a call that needs a source of titles. `action` completes "I can't …". `labels` are those of the
/// configured sources, which do not answer.
fn needs_source(action: &str, labels: &[&str]) -> CallFailure {
    let (hint, sentence) = match labels {
        [] => (
            "needs Seerr or an account at TMDB, which are not set up: say so",
            format!("I can't {action}: that needs Seerr or TMDB, which are not set up here."),
        ),
        labels => (
            "the source of titles does not answer: say so",
            format!("I can't {action} right now: {} does not answer.", labels.join(" or ")),
        ),
    };
    CallFailure::new(FailureCode::NotKnown, json!({ "hint": hint }), Some(sentence))
}

/// Criteria of movies that Radarr suggests.
#[derive(Debug, Clone, Copy)]
struct RadarrCriteria<'a> {
    genre: Option<&'a str>,
    like: Option<&'a str>,
}

/// Recommends movies of Radarr's suggestions, ranked by the genres of the library.
async fn recommend_movies(
    RadarrCriteria { genre, like }: RadarrCriteria<'_>,
    is_selected: impl Fn(&SuggestedMovie) -> bool,
    library: &ArrInstances,
    context: &ToolContext,
) -> Result<CallResult, ToolError> {
    // All instances share one catalog, so only the first is queried.
    let radarr = library.movies.get(..1).unwrap_or_default();
    let (loaded, similar, popular, hits) = tokio::join!(
        LoadedLibraries::load_libraries(library, Some(MediaKind::Movie), context.now),
        query_all(radarr, INSTANCE_LOOKUP_TIMEOUT, |radarr| radarr
            .fetch_suggestions(SuggestionSource::Similar)),
        query_all(radarr, INSTANCE_LOOKUP_TIMEOUT, |radarr| radarr
            .fetch_suggestions(SuggestionSource::Popular)),
        query_all(radarr, INSTANCE_LOOKUP_TIMEOUT, |radarr| radarr.lookup_movies(like.unwrap_or_default())),
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
    let responses = InstanceResults { failures: dedup_failures(movies.failures, &loaded.failures), ..movies };
    let (movies, failed) = responses.or_failure()?;
    let movies =
        movies.into_iter().flat_map(|(source, movies)| movies.into_iter().map(move |movie| (source, movie)));
    let entries = loaded.cached_titles();
    let genre_profile = GenreProfile::from_libraries(&entries);
    let ranked = genre_profile.rank_movies(movies.collect(), example.as_ref().map(|example| &example.liked));
    let collection = example.map(|example| example.collection).unwrap_or_default();
    let library_ids: BTreeSet<i64> =
        entries.iter().flat_map(|titles| titles.titles()).map(|title| title.catalog).collect();
    let is_new = |movie: &SuggestedMovie| {
        !movie.in_library
            && !movie.excluded
            && !library_ids.contains(&movie.tmdb)
            && genre.is_none_or(|genre| movie.genres.iter().any(|name| genre_matches(name, genre)))
            && is_selected(movie)
    };
    let mut seen = BTreeSet::new();
    let all = collection.into_iter().chain(ranked);
    let recommended: Vec<_> = all.filter(|(movie, _)| is_new(movie) && seen.insert(movie.tmdb)).collect();
    Ok(recommendations_result(&recommended, &failed))
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
        let best_match = query.select_titles(&loaded.cached_titles(), 1).into_iter().next();
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
