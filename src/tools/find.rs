//! Search for titles in the library, by name or by a property that they share.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::join_all;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::answers::{
    MAX_RESULTS, MEANT, clean_title, gigabytes, listing_of, name_failed, named, sentence_list, with_failed,
};
use super::approval::Cleared;
use super::arguments::{cleared, read, schema};
use super::asked::tell_each;
use super::library::{Gathered, Library};
use super::ranking::Query;
use super::shelf::entries::{Entry, Kind};
use super::shelf::selection::{Meant, Only, Sort, Wanted};
use super::shelf::stock::{Now, Shelved, Stock};
use super::{READ_TIMEOUT, Ran, Tool, ToolError, Uses, World};
use crate::arr::holding::Episodes;
use crate::conversation::facts::Facts;
use crate::conversation::text::size;
use crate::conversation::title::quote;
use crate::conversation::transcript::{
    Arguments, Audience, CallFailure, CallResult, MediaKind, MediaRef, Tier, ToolSpec,
};

/// Deadline by which all parts of a query must be answered, so that a failure is still reported as a failure.
const PATIENCE: Duration = Duration::from_secs(9);

pub struct FindInLibrary {
    library: Arc<Library>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// Title or collection, year last.
    #[serde(default)]
    query: String,
    #[serde(rename = "type")]
    kind: Option<MediaKind>,
    only: Option<Only>,
    genre: Option<String>,
    sort: Option<Sort>,
}

#[async_trait]
impl Tool for FindInLibrary {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "find_in_library",
            description: "Find titles in the library; without arguments the totals. \
                          Gives the id that other tools need.",
            tier: Tier::Read,
            audience: Audience::Everyone,
            parameters: schema::<Args>().into(),
        }
    }

    fn timeout(&self) -> Duration {
        READ_TIMEOUT
    }

    fn check(&self, arguments: &Arguments) -> Result<Uses, CallFailure> {
        self.arguments(arguments).map(|_| Uses::default())
    }

    async fn run(&self, call: &Cleared, world: &World) -> Result<Ran, ToolError> {
        self.find(cleared(call)?, &world.facts, world.now).await.map(|found| tell_each(found, world).into())
    }
}

impl FindInLibrary {
    pub fn new(library: Arc<Library>) -> Self {
        Self { library }
    }

    fn arguments(&self, arguments: &Arguments) -> Result<Args, CallFailure> {
        read("find_in_library", &schema::<Args>(), arguments)
    }

    /// Runs a query against the current state of the libraries.
    pub async fn find(
        &self,
        arguments: &Arguments,
        facts: &Facts,
        now: Timestamp,
    ) -> Result<CallResult, ToolError> {
        let deadline = Instant::now() + PATIENCE;
        let Args { query, kind, only, genre, sort } = self.arguments(arguments)?;
        let said = query.clone();
        let genre = genre.filter(|genre| !genre.trim().is_empty());
        let query = Query::new(&query).meaning(facts.alias(&query));
        let wanted = Wanted { query, only, genre, sort };
        let stock = Stock::take(&self.library, kind, now).await;
        if wanted.is_everything() {
            return totals(&stock, kind);
        }
        let met = look(&wanted, &stock, deadline).await;
        if met.total == 0
            && let Some(renewed) = stock.renewed().await
        {
            let met = look(&wanted, &renewed, deadline).await;
            return answer(&wanted, &said, met, &renewed);
        }
        answer(&wanted, &said, met, &stock)
    }
}

/// Result of a query.
struct Met {
    told: Vec<Told>,
    /// Total number of titles that match the query.
    total: usize,
    failures: Vec<CallFailure>,
}

/// One title as it is reported to the model and the user.
struct Told {
    for_model: Value,
    for_user: String,
    shown: [MediaRef; 2],
}

/// Selects the matching titles and fetches the current state of the first of them.
async fn look(wanted: &Wanted, stock: &Stock<'_>, deadline: Instant) -> Met {
    let meant = wanted.select(&stock.entries());
    let shelf = |it: &Meant<'_>| &stock.shelves[it.library];
    let first = &meant[..meant.len().min(MAX_RESULTS)];
    let looks = join_all(first.iter().map(|it| shelf(it).look(it.entry.id, deadline))).await;
    let (mut told, mut outdated, mut failed) = (Vec::new(), Vec::new(), BTreeMap::new());
    for (it, now) in first.iter().zip(looks) {
        let (shelf, name) = (shelf(it), shelf(it).place.name());
        match now {
            Now::Here(entry) if wanted.holds(&entry) => {
                let mut title = tell(wanted, shelf, &entry);
                if it.is_what_they_mean() {
                    title.for_model[MEANT] = json!(true);
                }
                told.push((name, title));
            }
            Now::Here(_) | Now::Gone => outdated.push(name),
            Now::Failed(failure) => {
                failed.insert(name, failure);
            }
        }
    }
    // Titles of a library that cannot be reached are neither reported nor counted.
    let answers = |name: &str| !failed.contains_key(name);
    let listed = meant.iter().filter(|it| answers(shelf(it).place.name())).count();
    let total = listed - outdated.into_iter().filter(|name| answers(name)).count();
    told.retain(|(name, _)| answers(name));
    Met {
        told: told.into_iter().map(|(_, told)| told).collect(),
        total,
        failures: failed.into_values().collect(),
    }
}

fn tell(wanted: &Wanted, shelf: &Shelved<'_>, entry: &Entry) -> Told {
    let Entry { id, catalog, year, size_bytes, .. } = *entry;
    let name = named(&entry.title, year);
    let item = shelf.item(id);
    let mut for_model = json!({ "id": id, "instance": shelf.place.name(), "title": clean_title(&entry.title),
        "year": year, "size_gb": gigabytes(size_bytes) });
    let (catalog, for_user) = match entry.kind {
        Kind::Movie { has_file, .. } => {
            for_model["type"] = json!("movie");
            for_model["on_disk"] = json!(has_file);
            let state = if has_file { size(size_bytes) } else { "not on disk yet".to_owned() };
            (MediaRef::Tmdb(catalog), format!("{name}, {state}"))
        }
        Kind::Series(Episodes { seasons, on_disk, all, missing }) => {
            let episodes = format!("{on_disk} of {all}");
            for_model["type"] = json!("series");
            for_model["seasons"] = json!(seasons);
            for_model["episodes"] = json!(episodes);
            if missing > 0 {
                for_model["missing"] = json!(missing);
            }
            (MediaRef::Tvdb(catalog), format!("{name}, {episodes} episodes, {}", size(size_bytes)))
        }
    };
    if !entry.monitored {
        for_model["monitored"] = json!(false);
    }
    match wanted.sort {
        Some(Sort::Newest | Sort::Oldest) => for_model["added"] = json!(entry.added),
        Some(Sort::Rating) => for_model["rating"] = json!(f64::from((entry.rating * 10.0).round()) / 10.0),
        Some(Sort::Biggest | Sort::Title) | None => {}
    }
    Told { for_model, for_user, shown: [catalog, item] }
}

fn answer(wanted: &Wanted, said: &str, met: Met, stock: &Stock<'_>) -> Result<CallResult, ToolError> {
    let failed = failures(stock, met.failures)?;
    let total = met.total;
    let (results, titles): (Vec<Value>, Vec<String>) =
        met.told.iter().map(|told| (told.for_model.clone(), told.for_user.clone())).unzip();
    let more = total.saturating_sub(titles.len());
    let unknown = wanted.unknown_genre(&stock.entries());
    let sentence = match (titles.is_empty(), unknown) {
        (true, Some(genre)) => {
            format!("Nothing in the library is of a genre {}.", quote(genre))
        }
        (true, _) if !failed.is_empty() => "I can't tell what is in the whole library.".to_owned(),
        (true, _) if said.trim().is_empty() => "Nothing in the library is like that.".to_owned(),
        (true, _) => format!("Nothing in the library matches {}.", quote(said)),
        (false, _) if more == 0 => format!("{}: {}.", wanted.heading(), sentence_list(&titles)),
        (false, _) => format!("{}: {}; and {more} more.", wanted.heading(), titles.join("; ")),
    };
    let mut for_model = listing_of(results, total, "narrow it down");
    if unknown.is_some() {
        for_model["genres"] = json!(stock.genres());
    }
    name_failed(&mut for_model, &failed);
    let shown = for_model["results"].as_array().map_or(0, Vec::len);
    Ok(CallResult {
        for_model,
        for_user: with_failed(sentence, &failed),
        shown: met.told.into_iter().take(shown).flat_map(|told| told.shown).collect(),
    })
}

fn totals(stock: &Stock<'_>, kind: Option<MediaKind>) -> Result<CallResult, ToolError> {
    let failed = failures(stock, Vec::new())?;
    let (mut movies, mut series, mut missing, mut bytes) = (0_usize, 0_usize, 0_usize, 0_u64);
    for entry in stock.shelves.iter().flat_map(|shelf| shelf.held.entries.titles()) {
        match entry.kind {
            Kind::Movie { .. } => movies += 1,
            Kind::Series(_) => series += 1,
        }
        missing += usize::from(entry.missing());
        bytes = bytes.saturating_add(entry.size_bytes);
    }
    let counted = |count: usize, noun: &str| format!("{count} {noun}{}", if count == 1 { "" } else { "s" });
    let sentence = match kind {
        Some(MediaKind::Movie) => format!("The library has {}.", counted(movies, "movie")),
        Some(MediaKind::Series) => format!("The library has {}.", counted(series, "show")),
        None => format!("The library has {} and {}.", counted(movies, "movie"), counted(series, "show")),
    };
    let mut for_model = json!({ "results": [], "total": movies + series, "movies": movies, "series": series,
        "missing": missing, "size_gb": gigabytes(bytes), "note": "name a title to see it" });
    name_failed(&mut for_model, &failed);
    Ok(CallResult { for_model, for_user: with_failed(sentence, &failed), shown: Vec::new() })
}

/// A sentence for each library that failed. Returns an error if no library answered.
fn failures(stock: &Stock<'_>, of_looks: Vec<CallFailure>) -> Result<Vec<String>, CallFailure> {
    let answers = vec![(); stock.shelves.len() - of_looks.len()];
    let failures = stock.failures.iter().cloned().chain(of_looks).collect();
    Gathered { answers, failures }.or_failure().map(|(_, failed)| failed)
}
