//! Titles by person, mood, streaming service and more, from the sources of discovery. Each gets one reason, which code
//! writes, and a mark if the library has it.

pub(super) mod criteria;
mod finder;
mod library_marks;
mod mood;
mod result;

use std::time::Duration;

use serde_json::json;

use self::criteria::{Criteria, Selection};
use self::finder::Finder;
use self::library_marks::LibraryMarks;
use self::result::DiscoveryResult;
use super::library::ArrInstances;
use super::library_cache::loaded_libraries::LoadedLibraries;
use super::{ToolContext, ToolError, ToolOutput};
use crate::conversation::text::title::quote_text;
use crate::conversation::transcript::{CallFailure, FailureCode, MediaKind};
use crate::discovery::{DiscoveryError, FoundTitle};

/// Time limit of all requests to the sources for one call. The library is read meanwhile.
const DISCOVERY_TIMEOUT: Duration = Duration::from_secs(14);

/// Call to find titles.
#[derive(Debug)]
pub(super) struct DiscoveryCall<'a> {
    pub(super) selection: Selection<'a>,
    pub(super) criteria: Criteria,
    /// Streaming service, by its name.
    pub(super) provider: Option<&'a str>,
}

/// Outcome of a call to find titles.
#[derive(Debug)]
pub(super) enum DiscoveryOutcome {
    Found(ToolOutput),
    /// No source answered, so that only Radarr and Sonarr are left.
    NoSource,
}

/// Title that was found, with the reason for it.
#[derive(Debug, Clone, PartialEq)]
struct ReasonedTitle {
    title: FoundTitle,
    reason: String,
    /// True for a show without an id at TheTVDB, so that Sonarr cannot add it.
    cannot_be_added: bool,
}

impl ReasonedTitle {
    fn new(title: FoundTitle, reason: String) -> Self {
        Self { title, reason, cannot_be_added: false }
    }
}

/// Titles that were found, best first.
#[derive(Debug)]
struct FoundList {
    titles: Vec<ReasonedTitle>,
    /// Words about all of them, such as `With Tilda Swinton`.
    subject: String,
    /// What the titles were not checked for, such as `about a heist`.
    unchecked: Option<&'static str>,
}

/// Reason why nothing was found.
#[derive(Debug)]
enum FinderError {
    Failed(CallFailure),
    Source(DiscoveryError),
}

impl From<DiscoveryError> for FinderError {
    fn from(error: DiscoveryError) -> Self {
        Self::Source(error)
    }
}

/// Finds titles, and marks those that the library has.
pub(super) async fn find_titles(
    call: &DiscoveryCall<'_>,
    library: &ArrInstances,
    context: &ToolContext,
) -> Result<DiscoveryOutcome, ToolError> {
    if library.discovery.is_empty() {
        return Ok(DiscoveryOutcome::NoSource);
    }
    let now = context.now;
    let (loaded, found) = tokio::join!(
        LoadedLibraries::load_libraries(library, call.criteria.kind, now),
        tokio::time::timeout(DISCOVERY_TIMEOUT, ask_sources(call, library, context)),
    );
    let found = match found {
        Ok(Ok(found)) => found,
        Ok(Err(FinderError::Failed(failure))) => return Err(failure.into()),
        Ok(Err(FinderError::Source(_))) => return Ok(DiscoveryOutcome::NoSource),
        Err(_) => {
            tracing::warn!("no source of titles answered in time");
            return Ok(DiscoveryOutcome::NoSource);
        }
    };
    let marks = LibraryMarks::new(&loaded);
    let result = DiscoveryResult::choose(found, &marks, call, library);
    let result = result.with_catalog_ids(library, &marks, now).await;
    Ok(DiscoveryOutcome::Found(result.into_call_result(&marks, &loaded).into()))
}

/// Asks one source after the other, until one answers.
async fn ask_sources(
    call: &DiscoveryCall<'_>,
    library: &ArrInstances,
    context: &ToolContext,
) -> Result<FoundList, FinderError> {
    let mut last = FinderError::Source(DiscoveryError::NoSource);
    for source in library.discovery.sources() {
        let finder = Finder { source, region: library.discovery.region(), now: context.now, call };
        match finder.find(library).await {
            Ok(found) => return Ok(found),
            Err(FinderError::Source(error)) => {
                let reason = crate::telemetry::error_chain(&error);
                tracing::warn!(source = source.label(), error = reason, "failed to find titles");
                last = FinderError::Source(error);
            }
            Err(failed) => return Err(failed),
        }
    }
    Err(last)
}

fn unknown_person(name: &str) -> FinderError {
    FinderError::Failed(CallFailure::new(
        FailureCode::NotFound,
        json!({ "hint": "no such person; ask how the name is spelled" }),
        Some(format!("I found nobody named {}.", quote_text(name))),
    ))
}

fn unknown_title(name: &str) -> FinderError {
    FinderError::Failed(CallFailure::new(
        FailureCode::NotFound,
        json!({ "hint": "no such title; ask which is meant" }),
        Some(format!("I found no movie or show {}.", quote_text(name))),
    ))
}

fn unknown_provider(name: &str) -> FinderError {
    FinderError::Failed(CallFailure::new(
        FailureCode::NotFound,
        json!({ "hint": "no such streaming service in the country of the household; say so" }),
        Some(format!("I know no streaming service named {} here.", quote_text(name))),
    ))
}

/// Returns the kinds of titles that the configured instances can add.
fn addable_kinds(library: &ArrInstances) -> Vec<MediaKind> {
    let kinds =
        [(MediaKind::Movie, !library.movies.is_empty()), (MediaKind::Series, !library.series.is_empty())];
    kinds.into_iter().filter(|(_, is_addable)| *is_addable).map(|(kind, _)| kind).collect()
}
