//! Search for titles in the library, by name or by a property that they share.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::future::join_all;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::formatting::{
    MAX_RESULTS, MEANT, add_failed_services, append_failed_services, clean_title, format_media_title,
    format_sentence_list, list_first_results, to_gigabytes,
};
use super::library::{ArrInstances, InstanceResults};
use super::library_cache::entries::{CachedTitle, TitleKind};
use super::library_cache::loaded_libraries::{CurrentTitle, LoadedLibraries, LoadedLibrary};
use super::library_cache::query::{LibraryQuery, SortOrder, StatusFilter, TitleMatch};
use super::ranking::TitleQuery;
use super::requesters::add_requesters_to_list;
use super::typed_tool::TypedTool;
use super::{ToolContext, ToolError, ToolOutput};
use crate::arr::library_title::EpisodeCounts;
use crate::conversation::people::facts::UserFacts;
use crate::conversation::text::message_format::format_size;
use crate::conversation::text::title::quote_text;
use crate::conversation::transcript::{
    CallFailure, CallResult, EffectLevel, MediaKind, MediaRef, ToolAudience,
};

/// Time limit for all parts of a query, so that a failure is still reported as a failure.
const PATIENCE: Duration = Duration::from_secs(9);

/// Tool that finds titles in the library.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FindInLibrary {
    /// Title or collection, year last.
    #[serde(default)]
    query: String,
    #[serde(rename = "type")]
    kind: Option<MediaKind>,
    only: Option<StatusFilter>,
    genre: Option<String>,
    sort: Option<SortOrder>,
}

impl TypedTool for FindInLibrary {
    const NAME: &'static str = "find_in_library";
    const DESCRIPTION: &'static str = "Find titles in the library; without arguments the totals. \
                                       Gives the id that other tools need.";
    const EFFECT_LEVEL: EffectLevel = EffectLevel::Read;
    const AUDIENCE: ToolAudience = ToolAudience::Everyone;

    async fn run(&self, library: &ArrInstances, context: &ToolContext) -> Result<ToolOutput, ToolError> {
        let found = self.find_titles(library, &context.facts, context.now).await?;
        Ok(add_requesters_to_list(found, context).into())
    }
}

impl FindInLibrary {
    /// Runs a query against the current state of the libraries.
    pub async fn find_titles(
        &self,
        library: &ArrInstances,
        facts: &UserFacts,
        now: Timestamp,
    ) -> Result<CallResult, ToolError> {
        let deadline = Instant::now() + PATIENCE;
        let genre = self.genre.clone().filter(|genre| !genre.trim().is_empty());
        let query = TitleQuery::new(&self.query).with_alias(facts.resolve_alias(&self.query));
        let wanted = LibraryQuery { query, only: self.only, genre, sort: self.sort };
        let stock = LoadedLibraries::load_libraries(library, self.kind, now).await;
        if wanted.matches_everything() {
            return totals_result(&stock, self.kind);
        }
        let met = fetch_matches(&wanted, &stock, deadline).await;
        if met.total == 0
            && let Some(renewed) = stock.reload_if_stale().await
        {
            let met = fetch_matches(&wanted, &renewed, deadline).await;
            return matches_result(&wanted, &self.query, met, &renewed);
        }
        matches_result(&wanted, &self.query, met, &stock)
    }
}

/// Matches of a query.
struct LibraryMatches {
    titles: Vec<ReportedTitle>,
    /// Total number of titles that match the query.
    total: usize,
    failures: Vec<CallFailure>,
}

/// Title as it is reported to the model and the user.
struct ReportedTitle {
    for_model: Value,
    for_user: String,
    shown: [MediaRef; 2],
}

/// Selects the matching titles and fetches the current state of the first of them.
async fn fetch_matches(
    wanted: &LibraryQuery,
    stock: &LoadedLibraries<'_>,
    deadline: Instant,
) -> LibraryMatches {
    let meant = wanted.select_titles(&stock.cached_titles());
    let shelf = |it: &TitleMatch<'_>| &stock.libraries[it.library];
    let first = &meant[..meant.len().min(MAX_RESULTS)];
    let looks = join_all(first.iter().map(|it| shelf(it).fetch_current(it.entry.id, deadline))).await;
    let (mut told, mut outdated, mut failed) = (Vec::new(), Vec::new(), BTreeMap::new());
    for (it, now) in first.iter().zip(looks) {
        let (shelf, name) = (shelf(it), shelf(it).instance.name());
        match now {
            CurrentTitle::Present(entry) if wanted.meets_filter(&entry) => {
                let mut title = report_title(wanted, shelf, &entry);
                if it.is_alias() {
                    title.for_model[MEANT] = json!(true);
                }
                told.push((name, title));
            }
            CurrentTitle::Present(_) | CurrentTitle::Gone => outdated.push(name),
            CurrentTitle::Failed(failure) => {
                failed.insert(name, failure);
            }
        }
    }
    // Titles of a library that cannot be reached are neither reported nor counted.
    let answers = |name: &str| !failed.contains_key(name);
    let listed = meant.iter().filter(|it| answers(shelf(it).instance.name())).count();
    let total = listed - outdated.into_iter().filter(|name| answers(name)).count();
    told.retain(|(name, _)| answers(name));
    LibraryMatches {
        titles: told.into_iter().map(|(_, told)| told).collect(),
        total,
        failures: failed.into_values().collect(),
    }
}

fn report_title(wanted: &LibraryQuery, shelf: &LoadedLibrary<'_>, entry: &CachedTitle) -> ReportedTitle {
    let CachedTitle { id, catalog, year, size_bytes, .. } = *entry;
    let name = format_media_title(&entry.title, year);
    let item = shelf.media_ref(id);
    let mut for_model = json!({ "id": id, "instance": shelf.instance.name(), "title": clean_title(&entry.title),
        "year": year, "size_gb": to_gigabytes(size_bytes) });
    let (catalog, for_user) = match entry.kind {
        TitleKind::Movie { has_file, .. } => {
            for_model["type"] = json!("movie");
            for_model["on_disk"] = json!(has_file);
            let state = if has_file { format_size(size_bytes) } else { "not on disk yet".to_owned() };
            (MediaRef::Tmdb(catalog), format!("{name}, {state}"))
        }
        TitleKind::Series(EpisodeCounts { seasons, on_disk, all, missing }) => {
            let episodes = format!("{on_disk} of {all}");
            for_model["type"] = json!("series");
            for_model["seasons"] = json!(seasons);
            for_model["episodes"] = json!(episodes);
            if missing > 0 {
                for_model["missing"] = json!(missing);
            }
            (MediaRef::Tvdb(catalog), format!("{name}, {episodes} episodes, {}", format_size(size_bytes)))
        }
    };
    if !entry.monitored {
        for_model["monitored"] = json!(false);
    }
    match wanted.sort {
        Some(SortOrder::Newest | SortOrder::Oldest) => for_model["added"] = json!(entry.added),
        Some(SortOrder::Rating) => {
            for_model["rating"] = json!(f64::from((entry.rating * 10.0).round()) / 10.0)
        }
        Some(SortOrder::Biggest | SortOrder::Title) | None => {}
    }
    ReportedTitle { for_model, for_user, shown: [catalog, item] }
}

fn matches_result(
    wanted: &LibraryQuery,
    said: &str,
    met: LibraryMatches,
    stock: &LoadedLibraries<'_>,
) -> Result<CallResult, ToolError> {
    let failed = failure_sentences(stock, met.failures)?;
    let total = met.total;
    let (results, titles): (Vec<Value>, Vec<String>) =
        met.titles.iter().map(|told| (told.for_model.clone(), told.for_user.clone())).unzip();
    let more = total.saturating_sub(titles.len());
    let unknown = wanted.unknown_genre(&stock.cached_titles());
    let sentence = match (titles.is_empty(), unknown) {
        (true, Some(genre)) => {
            format!("Nothing in the library is of a genre {}.", quote_text(genre))
        }
        (true, _) if !failed.is_empty() => "I can't tell what is in the whole library.".to_owned(),
        (true, _) if said.trim().is_empty() => "Nothing in the library is like that.".to_owned(),
        (true, _) => format!("Nothing in the library matches {}.", quote_text(said)),
        (false, _) if more == 0 => format!("{}: {}.", wanted.list_heading(), format_sentence_list(&titles)),
        (false, _) => format!("{}: {}; and {more} more.", wanted.list_heading(), titles.join("; ")),
    };
    let mut for_model = list_first_results(results, total, "narrow it down");
    if unknown.is_some() {
        for_model["genres"] = json!(stock.genre_names());
    }
    add_failed_services(&mut for_model, &failed);
    let shown = for_model["results"].as_array().map_or(0, Vec::len);
    Ok(CallResult {
        for_model,
        for_user: append_failed_services(sentence, &failed),
        shown: met.titles.into_iter().take(shown).flat_map(|told| told.shown).collect(),
    })
}

fn totals_result(stock: &LoadedLibraries<'_>, kind: Option<MediaKind>) -> Result<CallResult, ToolError> {
    let failed = failure_sentences(stock, Vec::new())?;
    let (mut movies, mut series, mut missing, mut bytes) = (0_usize, 0_usize, 0_usize, 0_u64);
    for entry in stock.libraries.iter().flat_map(|shelf| shelf.cached.entries.titles()) {
        match entry.kind {
            TitleKind::Movie { .. } => movies += 1,
            TitleKind::Series(_) => series += 1,
        }
        missing += usize::from(entry.is_missing());
        bytes = bytes.saturating_add(entry.size_bytes);
    }
    let counted = |count: usize, noun: &str| format!("{count} {noun}{}", if count == 1 { "" } else { "s" });
    let sentence = match kind {
        Some(MediaKind::Movie) => format!("The library has {}.", counted(movies, "movie")),
        Some(MediaKind::Series) => format!("The library has {}.", counted(series, "show")),
        None => format!("The library has {} and {}.", counted(movies, "movie"), counted(series, "show")),
    };
    let mut for_model = json!({ "results": [], "total": movies + series, "movies": movies, "series": series,
        "missing": missing, "size_gb": to_gigabytes(bytes), "note": "name a title to see it" });
    add_failed_services(&mut for_model, &failed);
    Ok(CallResult { for_model, for_user: append_failed_services(sentence, &failed), shown: Vec::new() })
}

/// Returns a sentence for each library that failed. Returns an error if no library responded.
fn failure_sentences(
    stock: &LoadedLibraries<'_>,
    of_looks: Vec<CallFailure>,
) -> Result<Vec<String>, CallFailure> {
    let answers = vec![(); stock.libraries.len() - of_looks.len()];
    let failures = stock.failures.iter().cloned().chain(of_looks).collect();
    InstanceResults { answers, failures }.or_failure().map(|(_, failed)| failed)
}
