//! Answer with the first titles that were found.

use std::time::Duration;

use futures_util::future::join_all;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::criteria::Selection;
use super::library_marks::LibraryMarks;
use super::{DiscoveryCall, FoundList, ReasonedTitle};
use crate::conversation::transcript::{CallResult, MediaKind, MediaRef};
use crate::discovery::RequestState;
use crate::tools::formatting::{
    MAX_RESULTS, add_failed_services, append_failed_services, clean_text, clean_title, format_media_title,
    format_sentence_list, list_first_results,
};
use crate::tools::library::ArrInstances;
use crate::tools::library_cache::loaded_libraries::LoadedLibraries;

const MAX_OVERVIEW_CHARS: usize = 200;

/// Number of further titles that are looked at, in case that the library turns out to have some of the first ones.
const SPARE_TITLES: usize = 3;
/// Number of titles whose age ratings are looked up for a reader with an age limit.
const MAX_RATED: usize = 16;
/// Time limit for the ids of the shows of an answer.
const ID_TIMEOUT: Duration = Duration::from_secs(6);

/// First titles of a list, and how many there are.
#[derive(Debug, Default)]
pub(super) struct DiscoveryResult {
    titles: Vec<ReasonedTitle>,
    total: usize,
    subject: String,
    unchecked: Option<&'static str>,
    /// True if titles that the library has are listed, too.
    shows_owned: bool,
}

impl DiscoveryResult {
    /// Chooses the first titles. Those that the library has are shown in lists of a person and of what is trending, of
    /// which people want to see all, and if it has all titles that are like one.
    pub(super) fn choose(
        found: FoundList,
        marks: &LibraryMarks,
        call: &DiscoveryCall<'_>,
        library: &ArrInstances,
    ) -> Self {
        let FoundList { titles, subject, unchecked } = found;
        let is_owned = |found: &ReasonedTitle| marks.find(&found.title).is_some();
        let shows_owned = match call.selection {
            Selection::Person(_) | Selection::Trending => true,
            Selection::Like(_) => titles.iter().all(is_owned),
            Selection::Catalog => false,
        };
        let titles: Vec<ReasonedTitle> =
            titles.into_iter().filter(|found| shows_owned || marks.find(&found.title).is_none()).collect();
        let total = titles.len();
        let is_limited =
            [MediaKind::Movie, MediaKind::Series].iter().any(|kind| library.has_age_limit(*kind));
        let looked_at = if is_limited { MAX_RATED } else { MAX_RESULTS + SPARE_TITLES };
        let titles = titles.into_iter().take(looked_at).collect();
        Self { titles, total, subject, unchecked, shows_owned }
    }

    /// Adds the ids by which Sonarr knows the shows, and keeps the titles of the answer. A show whose id is not known in
    /// time stays without one.
    pub(super) async fn with_catalog_ids(
        mut self,
        library: &ArrInstances,
        marks: &LibraryMarks,
        now: Timestamp,
    ) -> Self {
        let find_id = async |found: &mut ReasonedTitle| {
            let title = &found.title;
            if title.kind == MediaKind::Movie || title.tvdb.is_some() || marks.find(title).is_some() {
                return;
            }
            let facts = library.discovery.fetch_facts((title.kind, title.tmdb), now);
            let Ok(Ok(facts)) = tokio::time::timeout(ID_TIMEOUT, facts).await else { return };
            found.title.tvdb = facts.tvdb;
            found.cannot_be_added = facts.tvdb.is_none();
        };
        join_all(self.titles.iter_mut().map(find_id)).await;
        self.drop_titles_over_limit(library, now).await;
        // A show may be known only by the id that was just read.
        let before = self.titles.len();
        self.titles.retain(|found| self.shows_owned || marks.find(&found.title).is_none());
        self.total -= before - self.titles.len();
        self.titles.truncate(MAX_RESULTS);
        self
    }

    /// Drops the titles that a reader with an age limit may not see, and those whose ratings were not looked up.
    async fn drop_titles_over_limit(&mut self, library: &ArrInstances, now: Timestamp) {
        let may_show = self.titles.iter().map(|found| library.may_show_found(&found.title, now));
        let may_show = join_all(may_show).await;
        if may_show.contains(&false) {
            let shown = self.titles.drain(..).zip(may_show).filter(|(_, may_show)| *may_show);
            self.titles = shown.map(|(found, _)| found).collect();
            self.total = self.titles.len();
        }
    }

    pub(super) fn into_call_result(self, marks: &LibraryMarks, loaded: &LoadedLibraries<'_>) -> CallResult {
        let results = self.titles.iter().map(|found| title_json(found, marks, loaded)).collect();
        let mut for_model =
            list_first_results(results, self.total, "name a genre, years or a title for others");
        if let Some(word) = self.unchecked {
            for_model["not_checked"] = json!(word);
        }
        let failed: Vec<String> =
            loaded.failures.iter().filter_map(|failure| failure.for_user.clone()).collect();
        add_failed_services(&mut for_model, &failed);
        let names: Vec<String> = self.titles.iter().map(|found| format_found(found, marks)).collect();
        let sentence = match (names.is_empty(), self.subject.as_str()) {
            (true, _) => "I found nothing like that.".to_owned(),
            (false, "You might like") => format!("You might like {}.", format_sentence_list(&names)),
            (false, subject) => format!("{subject}: {}.", format_sentence_list(&names)),
        };
        let sentence = match self.unchecked.filter(|_| !names.is_empty()) {
            Some(word) => format!("{sentence} I could not check which of them are {word}."),
            None => sentence,
        };
        let shown_count = for_model["results"].as_array().map_or(0, Vec::len);
        let shown =
            self.titles.iter().take(shown_count).flat_map(|found| shown_ids(found, marks, loaded)).collect();
        CallResult { for_model, for_user: append_failed_services(sentence, &failed), shown }
    }
}

fn title_json(found: &ReasonedTitle, marks: &LibraryMarks, loaded: &LoadedLibraries<'_>) -> Value {
    let ReasonedTitle { title, reason, cannot_be_added } = found;
    let owned = marks.find(title);
    let mut json = json!({ "type": title.kind, "title": clean_title(&title.title), "year": title.year,
        "because": reason, "in_library": owned.is_some() });
    match title.kind {
        MediaKind::Movie => json["tmdb"] = json!(title.tmdb),
        MediaKind::Series => match title.tvdb.or(owned.and_then(|owned| owned.tvdb)) {
            Some(tvdb) => json["tvdb"] = json!(tvdb),
            None if *cannot_be_added => json["cannot_be_added"] = json!(true),
            None => json["hint"] = json!("search_media gives its tvdb"),
        },
    }
    if let Some(rating) = title.rating {
        json["rating"] = json!((rating * 10.0).round() / 10.0);
    }
    if let Some(owned) = owned {
        json["id"] = json!(owned.id);
        json["instance"] = json!(owned.instance_name(loaded));
        json["on_disk"] = json!(owned.is_on_disk);
    }
    if owned.is_none() && title.request == RequestState::Requested {
        json["requested"] = json!(true);
    }
    let overview = clean_text(&title.overview, MAX_OVERVIEW_CHARS);
    if !overview.is_empty() {
        json["overview"] = json!(overview);
    }
    json
}

fn format_found(found: &ReasonedTitle, marks: &LibraryMarks) -> String {
    let title = &found.title;
    let name = format_media_title(&title.title, title.year);
    match (marks.find(title), title.request) {
        (Some(_), _) => format!("{name} (you have it)"),
        (None, RequestState::Requested) => format!("{name} (asked for)"),
        (None, RequestState::NotRequested) => name,
    }
}

fn shown_ids(found: &ReasonedTitle, marks: &LibraryMarks, loaded: &LoadedLibraries<'_>) -> Vec<MediaRef> {
    let owned = marks.find(&found.title);
    let catalog = match found.title.kind {
        MediaKind::Movie => Some(MediaRef::Tmdb(found.title.tmdb)),
        MediaKind::Series => found.title.tvdb.or(owned.and_then(|owned| owned.tvdb)).map(MediaRef::Tvdb),
    };
    catalog.into_iter().chain(owned.map(|owned| owned.media_ref(loaded))).collect()
}
