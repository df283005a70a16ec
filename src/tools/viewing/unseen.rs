//! Recommendations from the library: titles on disk that the user has not watched, ranked by the genres of those that
//! the user has.

use std::collections::BTreeSet;

use serde_json::json;

use super::{ViewerTitles, describe_gap, load_titles};
use crate::conversation::routing::rooms::Audience;
use crate::conversation::transcript::{CallResult, MediaKind, MediaRef};
use crate::media_servers::{WatchEvidence, WatchState};
use crate::tools::formatting::{
    MAX_RESULTS, add_failed_services, append_failed_services, clean_title, format_media_title,
    format_sentence_list, list_first_results,
};
use crate::tools::library::{ArrInstances, InstanceResults};
use crate::tools::library_cache::entries::{CachedTitle, CachedTitles};
use crate::tools::library_cache::loaded_libraries::LoadedLibraries;
use crate::tools::taste::GenreProfile;
use crate::tools::{ToolContext, ToolEffect, ToolError, ToolOutput};

/// Maximum number of genres that are reported for a title.
const MAX_GENRES: usize = 3;

/// Criteria of a recommendation from the library.
#[derive(Debug, Clone, Copy)]
pub(in crate::tools) struct LibraryRequest<'a> {
    pub(in crate::tools) kind: Option<MediaKind>,
    pub(in crate::tools) genre: Option<&'a str>,
}

/// Title on disk with its library.
struct Candidate<'a> {
    entries: &'a CachedTitles,
    entry: &'a CachedTitle,
    /// Index of the library.
    library: usize,
}

impl Candidate<'_> {
    fn kind(&self) -> MediaKind {
        self.entry.media_kind()
    }

    fn genres(&self) -> Vec<String> {
        self.entries.genre_names(self.entry.genres).map(str::to_owned).collect()
    }
}

/// Recommends titles of the library that the user has not watched. In a room, and for a user without an account, it is
/// not considered what was watched.
pub(in crate::tools) async fn recommend_from_library(
    request: LibraryRequest<'_>,
    library: &ArrInstances,
    context: &ToolContext,
) -> Result<ToolOutput, ToolError> {
    let own = context.viewers.choose(None, library).unwrap_or_default();
    let own = if context.audience == Audience::Author { own } else { Vec::new() };
    let (loaded, viewers) = tokio::join!(
        LoadedLibraries::load_libraries(library, request.kind, context.now),
        load_titles(&own, library, context),
    );
    let responses =
        InstanceResults { responses: vec![(); loaded.libraries.len()], failures: loaded.failures.clone() };
    let (_, failed) = responses.or_failure()?;
    let state = |candidate: &Candidate<'_>| title_state(&viewers, candidate);
    let candidates = on_disk(&loaded);
    let watched: Vec<&Candidate<'_>> =
        candidates.iter().filter(|candidate| state(candidate).is_some_and(is_watched)).collect();
    let profile = match watched.is_empty() {
        true => GenreProfile::from_libraries(&loaded.cached_titles()),
        false => {
            GenreProfile::from_titles(watched.iter().map(|candidate| (candidate.entries, candidate.entry)))
        }
    };
    let is_unseen = |candidate: &&Candidate<'_>| match state(candidate) {
        Some(state) => matches!(state, WatchState::Never | WatchState::NoFinishedPlay),
        None => true,
    };
    let has_genre = |candidate: &&Candidate<'_>| {
        request
            .genre
            .is_none_or(|genre| candidate.entry.genres.intersects(candidate.entries.matching_genres(genre)))
    };
    let mut ranked: Vec<(f64, &Candidate<'_>)> = candidates
        .iter()
        .filter(is_unseen)
        .filter(has_genre)
        .map(|candidate| (profile.score(f64::from(candidate.entry.rating), &candidate.genres()), candidate))
        .collect();
    ranked.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    let ranked: Vec<&Candidate<'_>> = ranked.into_iter().map(|(_, candidate)| candidate).collect();
    let result = unseen_result(&ranked, &loaded, (&viewers, !watched.is_empty()), &failed);
    Ok(match viewers.is_empty() {
        true => result.into(),
        false => ToolOutput::with_effect(result, ToolEffect::MentionViewing),
    })
}

/// Returns the titles on disk, each once.
fn on_disk<'a>(loaded: &'a LoadedLibraries<'_>) -> Vec<Candidate<'a>> {
    let mut seen = BTreeSet::new();
    let all = loaded.libraries.iter().enumerate().flat_map(|(library, loaded)| {
        let entries = &loaded.cached.entries;
        entries.titles().iter().map(move |entry| Candidate { entries, entry, library })
    });
    all.filter(|candidate| candidate.entry.is_on_disk())
        .filter(|candidate| seen.insert((candidate.kind(), candidate.entry.catalog)))
        .collect()
}

/// Returns the state of a title; `None` if nothing is known about the person.
fn title_state(viewers: &[ViewerTitles], candidate: &Candidate<'_>) -> Option<WatchState> {
    let ids = candidate.entry.catalog_ids();
    viewers.first().map(|viewer| viewer.watched.state(candidate.kind(), &ids))
}

fn is_watched(state: WatchState) -> bool {
    matches!(state, WatchState::Finished { .. } | WatchState::Started { .. })
}

fn unseen_result(
    ranked: &[&Candidate<'_>],
    loaded: &LoadedLibraries<'_>,
    (viewers, has_watched): (&[ViewerTitles], bool),
    failed: &[String],
) -> CallResult {
    let first = &ranked[..ranked.len().min(MAX_RESULTS)];
    let results = first.iter().map(|candidate| {
        let CachedTitle { id, ref title, year, rating, .. } = *candidate.entry;
        json!({ "type": candidate.kind(), "id": id, "instance": loaded.libraries[candidate.library].instance.name(),
            "title": clean_title(title), "year": year, "rating": rating,
            "genres": candidate.genres().iter().take(MAX_GENRES).collect::<Vec<_>>() })
    });
    let mut for_model = list_first_results(results.collect(), ranked.len(), "name a genre for others");
    for_model["note"] = json!(match (viewers, has_watched) {
        ([], _) => "on disk; it is not known what the user has watched",
        (_, true) => "on disk, not watched by the user, ranked by the genres of what they watched",
        (_, false) => "on disk, not watched by the user, ranked by the genres of the library",
    });
    let evidence = viewers.iter().map(|viewer| viewer.watched.evidence).max().unwrap_or_default();
    if let Some(gap) = describe_gap(evidence) {
        for_model["incomplete"] = json!(gap);
    }
    add_failed_services(&mut for_model, failed);
    let titles: Vec<String> = first
        .iter()
        .map(|candidate| format_media_title(&candidate.entry.title, candidate.entry.year))
        .collect();
    let sentence = match (titles.is_empty(), viewers) {
        (true, _) if evidence == WatchEvidence::NotAnswered => {
            "I can't see right now what you have watched. Please ask again later.".to_owned()
        }
        (true, _) if evidence == WatchEvidence::NotRecorded => {
            "I can't tell, because not everything that you watch is recorded.".to_owned()
        }
        (true, _) => "Nothing of that kind is left in the library.".to_owned(),
        (false, []) => format!("In the library: {}.", format_sentence_list(&titles)),
        (false, _) => format!("You have not seen {}.", format_sentence_list(&titles)),
    };
    let shown_count = for_model["results"].as_array().map_or(0, Vec::len);
    let shown: Vec<MediaRef> = first
        .iter()
        .take(shown_count)
        .map(|candidate| loaded.libraries[candidate.library].media_ref(candidate.entry.id))
        .collect();
    CallResult { for_model, for_user: append_failed_services(sentence, failed), shown }
}
