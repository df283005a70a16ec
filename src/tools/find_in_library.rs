//! Tool that searches the library for titles, by name, status or genre.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::future::join_all;
use jiff::Zoned;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::formatting::{
    ALIAS_KEY, MAX_RESULTS, add_failed_services, append_failed_services, clean_title, format_media_title,
    format_sentence_list, list_first_results, to_gigabytes,
};
use super::library::{ArrInstances, InstanceResults};
use super::library_cache::entries::{CachedTitle, TitleKind};
use super::library_cache::loaded_libraries::{CurrentTitle, LoadedLibraries, LoadedLibrary};
use super::library_cache::query::{
    LibraryQuery, QuerySpelling, SortBounds, SortOrder, StatusFilter, TitleMatch,
};
use super::ranking::TitleQuery;
use super::requesters::add_requesters_to_list;
use super::typed_tool::TypedTool;
use super::viewing::describe_gap;
use super::viewing::selection::{WatchCriteria, WatchFilter, WatchSelection};
use super::{LOOKUP_TIMEOUT, ToolContext, ToolEffect, ToolError, ToolOutput};
use crate::arr::library_title::EpisodeCounts;
use crate::conversation::people::facts::UserFacts;
use crate::conversation::text::message_format::format_size;
use crate::conversation::text::title::quote_text;
use crate::conversation::transcript::{
    CallFailure, CallResult, EffectLevel, MediaKind, MediaRef, ToolAudience,
};
use crate::media_servers::WatchEvidence;

/// Time limit of a query. It is shorter than that of the tool, so that the failure of an instance is reported.
const QUERY_TIMEOUT: Duration = Duration::from_secs(9);

/// Tool that finds titles in the library.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FindInLibrary {
    /// Title or collection.
    #[serde(default)]
    query: String,
    #[serde(rename = "type")]
    kind: Option<MediaKind>,
    only: Option<StatusFilter>,
    genre: Option<String>,
    #[schemars(range(min = 0))]
    year: Option<u16>,
    sort: Option<SortOrder>,
    /// Least GB, rating or days since added, by sort.
    #[schemars(range(min = 0))]
    min: Option<u32>,
    /// Most of it.
    #[schemars(range(min = 0))]
    max: Option<u32>,
    /// By what people watched.
    watched: Option<WatchFilter>,
    /// Whose, if not the user's: a name, or anyone.
    watched_by: Option<String>,
    /// Days without a play.
    #[schemars(range(min = 1, max = 36_500))]
    not_watched_days: Option<u32>,
    /// Order by last play.
    #[serde(default)]
    last_watched: bool,
    /// From 1.
    #[schemars(range(min = 1, max = 1_000))]
    page: Option<usize>,
}

impl TypedTool for FindInLibrary {
    const NAME: &'static str = "find_in_library";
    const DESCRIPTION: &'static str = "List titles of the library, 5 a page; without arguments, totals. Gives the id that other tools \
        need.";
    const EFFECT_LEVEL: EffectLevel = EffectLevel::Read;
    const AUDIENCE: ToolAudience = ToolAudience::Everyone;
    /// What people have watched is read before the library.
    const TIMEOUT: Duration = LOOKUP_TIMEOUT;
    const VIEWING_ARGUMENTS: &'static [&'static str] =
        &["watched", "watched_by", "not_watched_days", "last_watched"];

    fn reads_viewing(&self) -> bool {
        self.watched.is_some()
            || self.watched_by.is_some()
            || self.not_watched_days.is_some()
            || self.last_watched
    }

    async fn run(&self, library: &ArrInstances, context: &ToolContext) -> Result<ToolOutput, ToolError> {
        let now = context.now.to_zoned(context.zone.clone());
        if !TypedTool::reads_viewing(self) || library.media_servers.is_empty() {
            let found = self.find_titles(library, &context.facts, (&now, None)).await?;
            return Ok(add_requesters_to_list(found, context).into());
        }
        let criteria = WatchCriteria {
            filter: self.watched,
            by: self.watched_by.as_deref(),
            not_since_days: self.not_watched_days,
        };
        let watched = WatchSelection::load(criteria, library, context).await?;
        let found = self.find_titles(library, &context.facts, (&now, Some(watched))).await?;
        Ok(ToolOutput::with_effect(add_requesters_to_list(found, context), ToolEffect::MentionViewing))
    }
}

impl FindInLibrary {
    /// Runs a query against the current state of the libraries, with a selection by what people have watched.
    pub async fn find_titles(
        &self,
        library: &ArrInstances,
        facts: &UserFacts,
        (now, watched): (&Zoned, Option<WatchSelection>),
    ) -> Result<CallResult, ToolError> {
        let deadline = Instant::now() + QUERY_TIMEOUT;
        let genre = self.genre.clone().filter(|genre| !genre.trim().is_empty());
        let query = TitleQuery::new(&self.query).with_alias(facts.resolve_alias(&self.query));
        let bounds = SortBounds { min: self.min, max: self.max, today: now.date() };
        let spelling = QuerySpelling::Correct;
        let by_play = (self.last_watched && watched.is_some()).then_some(SortOrder::LastWatched);
        let (year, sort) = (self.year, by_play.or(self.sort));
        let mut query = LibraryQuery { query, spelling, only: self.only, genre, year, sort, bounds, watched };
        let mut loaded = LoadedLibraries::load_libraries(library, self.kind, now.timestamp()).await;
        if query.matches_everything() && self.kind.is_none() && self.page.is_none() {
            return totals_result(&loaded);
        }
        let page = self.page.unwrap_or(1);
        let mut matches = fetch_matches(&query, page, &loaded, deadline).await;
        if matches.total == 0
            && let Some(reloaded) = loaded.reload_if_stale().await
        {
            loaded = reloaded;
            matches = fetch_matches(&query, page, &loaded, deadline).await;
        }
        if matches.total == 0 && matches.failures.is_empty() && !query.query.is_empty() {
            query.spelling = QuerySpelling::Similar;
            matches = fetch_matches(&query, page, &loaded, deadline).await;
        }
        matches_result(&query, &self.query, matches, &loaded)
    }
}

/// Matching titles of a query, with the failures of instances.
struct LibraryMatches {
    titles: Vec<ReportedTitle>,
    /// Page of the titles, from 1.
    page: usize,
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

/// Selects the matching titles and fetches the current state of those on the page.
async fn fetch_matches(
    query: &LibraryQuery,
    page: usize,
    loaded: &LoadedLibraries<'_>,
    deadline: Instant,
) -> LibraryMatches {
    let matches = query.select_titles(&loaded.cached_titles(), page.saturating_mul(MAX_RESULTS));
    let library_of = |title: &TitleMatch<'_>| &loaded.libraries[title.library];
    let start = page.saturating_sub(1).saturating_mul(MAX_RESULTS).min(matches.len());
    let on_page = &matches[start..matches.len().min(start + MAX_RESULTS)];
    let current_titles =
        join_all(on_page.iter().map(|title| library_of(title).fetch_current(title.entry.id, deadline))).await;
    let (mut reported, mut outdated, mut failed) = (Vec::new(), Vec::new(), BTreeMap::new());
    for (title_match, current) in on_page.iter().zip(current_titles) {
        let library = library_of(title_match);
        let name = library.instance.name();
        match current {
            CurrentTitle::Present(entry) if query.meets_filter(&entry) => {
                let mut title = report_title(query, library, &entry);
                if title_match.is_alias() {
                    title.for_model[ALIAS_KEY] = json!(true);
                }
                reported.push((name, title));
            }
            CurrentTitle::Present(_) | CurrentTitle::Gone => outdated.push(name),
            CurrentTitle::Failed(failure) => {
                failed.insert(name, failure);
            }
        }
    }
    // Titles of a library that cannot be reached are neither reported nor counted.
    let has_responded = |name: &str| !failed.contains_key(name);
    let listed = matches.iter().filter(|title| has_responded(library_of(title).instance.name())).count();
    let total = listed - outdated.into_iter().filter(|name| has_responded(name)).count();
    reported.retain(|(name, _)| has_responded(name));
    LibraryMatches {
        titles: reported.into_iter().map(|(_, title)| title).collect(),
        page,
        total,
        failures: failed.into_values().collect(),
    }
}

fn report_title(query: &LibraryQuery, library: &LoadedLibrary<'_>, entry: &CachedTitle) -> ReportedTitle {
    let CachedTitle { id, catalog, year, size_bytes, .. } = *entry;
    let name = format_media_title(&entry.title, year);
    let item = library.media_ref(id);
    let mut for_model = json!({ "id": id, "instance": library.instance.name(), "title": clean_title(&entry.title),
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
    match query.sort {
        Some(SortOrder::Newest | SortOrder::Oldest) => for_model["added"] = json!(entry.added),
        Some(SortOrder::Rating | SortOrder::Worst) => {
            for_model["rating"] = json!(f64::from((entry.rating * 10.0).round()) / 10.0)
        }
        Some(SortOrder::LastWatched) => for_model["last_play"] = json!(query.last_play(entry)),
        Some(SortOrder::Biggest | SortOrder::Title) | None => {}
    }
    ReportedTitle { for_model, for_user, shown: [catalog, item] }
}

fn matches_result(
    query: &LibraryQuery,
    query_text: &str,
    matches: LibraryMatches,
    loaded: &LoadedLibraries<'_>,
) -> Result<CallResult, ToolError> {
    let failed = failure_sentences(loaded, matches.failures)?;
    let total = matches.total;
    let (results, titles): (Vec<Value>, Vec<String>) =
        matches.titles.iter().map(|title| (title.for_model.clone(), title.for_user.clone())).unzip();
    let remaining = total.saturating_sub((matches.page - 1) * MAX_RESULTS + titles.len());
    let unknown_genre = query.unknown_genre(&loaded.cached_titles());
    let evidence = query.watched.as_ref().map_or(WatchEvidence::Complete, WatchSelection::evidence);
    let sentence = match (titles.is_empty(), unknown_genre) {
        (true, Some(genre)) => {
            format!("Nothing in the library is of the genre {}.", quote_text(genre))
        }
        (true, _) if !failed.is_empty() => "I could not check the whole library.".to_owned(),
        (true, _) if evidence == WatchEvidence::NotAnswered => {
            "I can't see right now what was watched. Please ask again later.".to_owned()
        }
        (true, _) if evidence == WatchEvidence::NotRecorded => {
            "I can't tell, because not everything that was watched is recorded.".to_owned()
        }
        (true, _) if query_text.trim().is_empty() => "No title in the library matches.".to_owned(),
        (true, _) => format!("Nothing in the library matches {}.", quote_text(query_text)),
        (false, _) if remaining == 0 => {
            format!("{}: {}.", query.list_heading(), format_sentence_list(&titles))
        }
        (false, _) => format!("{}: {}; and {remaining} more.", query.list_heading(), titles.join("; ")),
    };
    let mut for_model = list_first_results(results, total, "narrow it down");
    if remaining > 0 {
        for_model["note"] =
            json!(format!("{remaining} more: ask for page {}, or narrow it down", matches.page + 1));
    }
    if query.spelling == QuerySpelling::Similar && total > 0 {
        for_model["note"] = json!("nothing of this name; these resemble it");
    }
    if let Some(gap) = describe_gap(evidence) {
        for_model["incomplete"] = json!(format!("{gap}, so titles may be missing"));
    }
    if unknown_genre.is_some() {
        for_model["genres"] = json!(loaded.genre_names());
    }
    add_failed_services(&mut for_model, &failed);
    let shown_count = for_model["results"].as_array().map_or(0, Vec::len);
    Ok(CallResult {
        for_model,
        for_user: append_failed_services(sentence, &failed),
        shown: matches.titles.into_iter().take(shown_count).flat_map(|title| title.shown).collect(),
    })
}

fn totals_result(loaded: &LoadedLibraries<'_>) -> Result<CallResult, ToolError> {
    let failed = failure_sentences(loaded, Vec::new())?;
    let (mut movies, mut series, mut missing, mut bytes) = (0_usize, 0_usize, 0_usize, 0_u64);
    for entry in loaded.libraries.iter().flat_map(|library| library.cached.entries.titles()) {
        match entry.kind {
            TitleKind::Movie { .. } => movies += 1,
            TitleKind::Series(_) => series += 1,
        }
        missing += usize::from(entry.is_missing());
        bytes = bytes.saturating_add(entry.size_bytes);
    }
    let format_count =
        |count: usize, noun: &str| format!("{count} {noun}{}", if count == 1 { "" } else { "s" });
    let sentence =
        format!("The library has {} and {}.", format_count(movies, "movie"), format_count(series, "show"));
    let mut for_model = json!({ "results": [], "total": movies + series, "movies": movies, "series": series,
        "missing": missing, "size_gb": to_gigabytes(bytes), "note": "name a title to see it" });
    add_failed_services(&mut for_model, &failed);
    Ok(CallResult { for_model, for_user: append_failed_services(sentence, &failed), shown: Vec::new() })
}

/// Returns a sentence for each library that failed. Returns an error if no library responded.
fn failure_sentences(
    loaded: &LoadedLibraries<'_>,
    fetch_failures: Vec<CallFailure>,
) -> Result<Vec<String>, CallFailure> {
    let responses = vec![(); loaded.libraries.len() - fetch_failures.len()];
    let failures = loaded.failures.iter().cloned().chain(fetch_failures).collect();
    InstanceResults { responses, failures }.or_failure().map(|(_, failed)| failed)
}
