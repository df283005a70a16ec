//! Movies, shows and episodes of Plex, from its libraries.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;

use super::wire::{Item, Items, ListedTitle, Response, Section, Sections};
use crate::conversation::transcript::MediaKind;
use crate::media_servers::{ItemId, PAGE_TITLES, PlayableEpisode, ServerError, TitlePage};
use crate::server_api::{QueryParameters, ServerApi, encode};

/// Number of items in a page of a list that is read as a whole.
const PAGE_ITEMS: usize = 500;
/// Maximum number of episodes of one show.
const MAX_EPISODES: usize = 20_000;
/// Maximum number of titles that are listed from one section.
const MAX_LISTED: usize = 100_000;

/// List that was read in pages.
pub(super) struct ReadList<T> {
    pub(super) entries: Vec<T>,
    /// False if the list has more items than were read.
    pub(super) is_complete: bool,
}

/// Reads at most `max` items of a list, and converts those that are of use.
pub(super) async fn fetch_list<T>(
    api: &ServerApi,
    (path, query): (&str, QueryParameters<'_>),
    max: usize,
    convert: impl Fn(Item) -> Option<T> + Send + Sync,
) -> Result<ReadList<T>, ServerError> {
    let (mut entries, mut start) = (Vec::new(), 0);
    loop {
        let page = fetch_page(api, (path, query), start, PAGE_ITEMS).await?;
        let (total, read) = (page.total(), page.items.len());
        entries.extend(page.items.into_iter().filter_map(&convert));
        start += read;
        if read == 0 || start >= total.min(max) {
            return Ok(ReadList { entries, is_complete: start >= total });
        }
    }
}

async fn fetch_page(
    api: &ServerApi,
    (path, query): (&str, QueryParameters<'_>),
    start: usize,
    size: usize,
) -> Result<Items, ServerError> {
    let (start, size) = (start.to_string(), size.to_string());
    let mut query = query.to_vec();
    query.extend([("X-Plex-Container-Start", start.as_str()), ("X-Plex-Container-Size", size.as_str())]);
    Ok(api.get::<Response<Items>>(path, &query).await?.container)
}

/// Section of movies or shows, and the filter of its titles.
#[derive(Debug)]
struct TitleQuery {
    path: String,
    title_type: &'static str,
    /// Time in seconds from which changes count.
    changed_since: Option<String>,
}

impl TitleQuery {
    /// Returns the query for the titles of a section; `None` if it has neither movies nor shows.
    fn from_section(section: &Section, changed_since: Option<Timestamp>) -> Option<Self> {
        let title_type = match section.kind()? {
            MediaKind::Movie => "1",
            MediaKind::Series => "2",
        };
        let path = format!("library/sections/{}/all", encode(section.key.as_str()));
        let changed_since = changed_since.map(|since| since.as_second().to_string());
        Some(Self { path, title_type, changed_since })
    }

    fn parameters(&self) -> Vec<(&str, &str)> {
        // Without a stable order, pages could overlap.
        let mut query = vec![("type", self.title_type), ("includeGuids", "1"), ("sort", "addedAt:asc")];
        // The operator "at least" is the end of the key and the equals sign after it.
        query.extend(self.changed_since.as_deref().map(|since| ("updatedAt>", since)));
        query
    }

    async fn fetch_size(&self, api: &ServerApi) -> Result<usize, ServerError> {
        Ok(fetch_page(api, (&self.path, &self.parameters()), 0, 0).await?.total())
    }
}

pub(super) async fn fetch_sections(api: &ServerApi) -> Result<Vec<Section>, ServerError> {
    Ok(api.get::<Response<Sections>>("library/sections/all", &[]).await?.container.sections)
}

async fn fetch_title_queries(
    api: &ServerApi,
    changed_since: Option<Timestamp>,
) -> Result<Vec<TitleQuery>, ServerError> {
    let sections = fetch_sections(api).await?;
    Ok(sections.iter().filter_map(|section| TitleQuery::from_section(section, changed_since)).collect())
}

pub(super) async fn fetch_title_count(api: &ServerApi) -> Result<usize, ServerError> {
    let mut count = 0;
    for query in fetch_title_queries(api, None).await? {
        count += query.fetch_size(api).await?;
    }
    Ok(count)
}

/// Sections with their sizes, which the first page of a list reads and its other pages use. Clones share them.
#[derive(Debug, Clone, Default)]
pub(super) struct KnownSections(Arc<Mutex<Option<Arc<SizedSections>>>>);

#[derive(Debug)]
struct SizedSections {
    changed_since: Option<Timestamp>,
    /// Query for the titles of each section, and their number.
    sections: Vec<(TitleQuery, usize)>,
}

impl KnownSections {
    async fn load(
        &self,
        api: &ServerApi,
        start: usize,
        changed_since: Option<Timestamp>,
    ) -> Result<Arc<SizedSections>, ServerError> {
        let stored = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = stored().clone();
        if let Some(known) = known.filter(|known| start > 0 && known.changed_since == changed_since) {
            return Ok(known);
        }
        let mut sections = Vec::new();
        for query in fetch_title_queries(api, changed_since).await? {
            let size = query.fetch_size(api).await?;
            sections.push((query, size));
        }
        let read = Arc::new(SizedSections { changed_since, sections });
        *stored() = Some(read.clone());
        Ok(read)
    }
}

/// Reads a page of the titles of all sections, one section after the other.
pub(super) async fn fetch_titles(
    api: &ServerApi,
    known: &KnownSections,
    start: usize,
    changed_since: Option<Timestamp>,
) -> Result<TitlePage, ServerError> {
    let (mut titles, mut total) = (Vec::new(), 0);
    for (query, size) in &known.load(api, start, changed_since).await?.sections {
        // Part of the section that is on the page.
        let first = start.saturating_sub(total);
        let end = (start + PAGE_TITLES).saturating_sub(total).min(*size);
        if first < end {
            let page = fetch_page(api, (&query.path, &query.parameters()), first, end - first).await?;
            titles.extend(page.items.into_iter().filter_map(Item::into_server_title));
        }
        total += size;
    }
    Ok(TitlePage { titles, total })
}

/// Lists all titles of a kind, without their catalog ids.
pub(super) async fn fetch_listed_titles(
    api: &ServerApi,
    kind: MediaKind,
) -> Result<Vec<ListedTitle>, ServerError> {
    let mut titles = Vec::new();
    for section in fetch_sections(api).await?.iter().filter(|section| section.kind() == Some(kind)) {
        let Some(query) = TitleQuery::from_section(section, None) else { continue };
        let parameters = [("type", query.title_type), ("sort", "addedAt:asc")];
        let list = fetch_list(api, (&query.path, &parameters), MAX_LISTED, Item::into_listed_title).await?;
        titles.extend(list.entries);
    }
    Ok(titles)
}

/// Reads the episodes of a show that have files. `Show.episodes` of python-plexapi reads the same list.
pub(super) async fn fetch_episodes(
    api: &ServerApi,
    show: &ItemId,
) -> Result<Vec<PlayableEpisode>, ServerError> {
    let path = format!("{}/allLeaves", item_path(show));
    match fetch_list(api, (&path, &[]), MAX_EPISODES, Item::into_playable_episode).await {
        Err(ServerError::NotFound) => Ok(Vec::new()),
        list => Ok(list?.entries),
    }
}

/// Reads the seasons and numbers of the episodes of a show.
pub(super) async fn fetch_episode_numbers(
    api: &ServerApi,
    show: &ItemId,
) -> Result<BTreeSet<(u32, u32)>, ServerError> {
    let episodes = fetch_episodes(api, show).await?;
    Ok(episodes.into_iter().map(|episode| (episode.season, episode.first)).collect())
}

/// Reads the id of a movie that remains the same when its file is added again; `None` if the server does not know it.
pub(super) async fn fetch_guid(api: &ServerApi, item: &ItemId) -> Result<Option<String>, ServerError> {
    let items = match api.get::<Response<Items>>(&item_path(item), &[]).await {
        Err(ServerError::NotFound) => return Ok(None),
        response => response?.container.items,
    };
    Ok(items.into_iter().next().map(|item| item.guid).filter(|guid| !guid.is_empty()))
}

fn item_path(item: &ItemId) -> String {
    format!("library/metadata/{}", encode(item.as_str()))
}
