//! Library, downloads and progress of requests, as the console and the API show them to the operator.

use std::collections::HashMap;

use bytes::Bytes;
use jiff::Timestamp;
use jiff::civil::Date;

use super::entries::{CachedTitle, CachedTitles, TitleKind};
use super::loaded_libraries::LoadedLibraries;
use super::query::{LibraryQuery, SortOrder, StatusFilter};
use crate::arr::changes::SeriesSearch;
use crate::arr::common_api::CommonApi;
use crate::arr::{ArrError, Download, DownloadContent, DownloadState};
use crate::conversation::catalog_ids::CatalogIds;
use crate::conversation::deletion::target::{DeletionScope, DeletionTarget};
use crate::conversation::title_requests::RequestedTitle;
use crate::conversation::transcript::{CallFailure, MediaKind};
use crate::telemetry;
use crate::tools::activity::{fetch_queues, format_state, format_time_left, percent_done};
use crate::tools::formatting::{clean_error_message, clean_title, format_media_title};
use crate::tools::instance_ref::InstanceRef;
use crate::tools::library::{ArrInstances, InstanceResults};
use crate::tools::ranking::TitleQuery;

/// Title in the library of an instance.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TitleId {
    /// Name of the instance, such as `radarr-4k`.
    pub instance: &'static str,
    pub kind: MediaKind,
    pub id: i64,
}

/// Title as a list shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TitleOverview {
    pub id: TitleId,
    /// TMDB id of a movie, TheTVDB id of a series.
    pub catalog_id: i64,
    /// Ids by which media servers know the title.
    pub ids: CatalogIds,
    pub title: String,
    /// Release year. Zero if unknown.
    pub year: u16,
    pub size_bytes: u64,
    /// Name of the quality profile. `None` before the profiles were loaded.
    pub quality: Option<String>,
    pub added: Option<Date>,
    pub availability: TitleAvailability,
}

/// Part of a title that is on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TitleAvailability {
    /// Everything that was released and is monitored.
    Complete,
    Episodes {
        on_disk: u32,
        all: u32,
    },
    Missing,
    /// The title is not released yet.
    Unreleased,
    /// Nothing is on disk, and the instance does not search for it.
    NotMonitored,
}

impl TitleAvailability {
    /// Returns whether any of the title is on disk.
    pub fn is_on_disk(self) -> bool {
        match self {
            Self::Complete | Self::Episodes { .. } => true,
            Self::Missing | Self::Unreleased | Self::NotMonitored => false,
        }
    }
}

/// Criteria of a list of titles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OverviewQuery {
    pub text: String,
    pub kind: Option<MediaKind>,
    pub only: Option<StatusFilter>,
    pub sort: SortOrder,
    /// Index of the first title.
    pub offset: usize,
    pub limit: usize,
}

/// Part of a list of titles.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TitlePage {
    pub titles: Vec<TitleOverview>,
    /// Number of matching titles, and their size.
    pub total: usize,
    pub total_bytes: u64,
    /// Sentences about instances that could not be read.
    pub failures: Vec<String>,
}

/// Download in the queue of an instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DownloadOverview {
    pub title: String,
    /// Title in the library to which the download belongs.
    pub content: Option<TitleId>,
    /// State in words, such as `stuck: no files found are eligible for import`.
    pub state: String,
    pub problem: Option<String>,
    pub percent: u8,
    pub time_left: Option<String>,
    pub size_bytes: u64,
}

/// Downloads of all instances.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DownloadList {
    pub downloads: Vec<DownloadOverview>,
    pub failures: Vec<String>,
}

/// Progress of a requested title that was added to its library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestProgress {
    Downloading {
        percent: u8,
        time_left: Option<String>,
    },
    /// A download does not continue by itself.
    Problem(String),
    Searching,
    Unreleased,
    NotMonitored,
    Partial {
        on_disk: u32,
        all: u32,
    },
    Ready,
    /// The title was deleted from the library.
    Removed,
    /// The instance could not be read, or is not configured.
    Unknown,
}

/// Index of titles and downloads in which the progress of requests is looked up.
#[derive(Debug, Default)]
pub struct RequestIndex {
    titles: HashMap<(String, MediaKind, i64), TitleOverview>,
    downloads: HashMap<TitleId, DownloadOverview>,
    /// Instances whose library was read.
    read_instances: Vec<&'static str>,
    pub failures: Vec<String>,
}

pub async fn load_title_page(library: &ArrInstances, query: OverviewQuery, now: Timestamp) -> TitlePage {
    let loaded = LoadedLibraries::load_libraries(library, query.kind, now).await;
    let cached: Vec<&CachedTitles> = loaded.cached_titles();
    let criteria = LibraryQuery {
        only: query.only,
        sort: Some(query.sort),
        ..LibraryQuery::by_title(TitleQuery::new(&query.text))
    };
    let matches = criteria.select_titles(&cached, query.offset.saturating_add(query.limit));
    let overview = |found: &super::query::TitleMatch<'_>| title_overview(&loaded, found.library, found.entry);
    TitlePage {
        titles: matches.iter().skip(query.offset).take(query.limit).map(overview).collect(),
        total: matches.len(),
        total_bytes: matches.iter().map(|found| found.entry.size_bytes).fold(0, u64::saturating_add),
        failures: failure_sentences(&loaded.failures),
    }
}

/// Loads the queues of all instances, the most urgent downloads first.
pub async fn load_downloads(library: &ArrInstances) -> DownloadList {
    let InstanceResults { responses, failures } = fetch_queues(library).await;
    let mut downloads: Vec<DownloadOverview> = responses
        .iter()
        .flat_map(|(instance, queue)| queue.iter().map(|download| download_overview(instance, download)))
        .collect();
    downloads.sort_by_key(|download| (download.problem.is_none(), std::cmp::Reverse(download.percent)));
    DownloadList { downloads, failures: failure_sentences(&failures) }
}

impl RequestIndex {
    pub async fn load(library: &ArrInstances, now: Timestamp) -> Self {
        let (loaded, queue) =
            tokio::join!(LoadedLibraries::load_libraries(library, None, now), load_downloads(library));
        let mut index = Self { failures: failure_sentences(&loaded.failures), ..Self::default() };
        for (position, titles) in loaded.cached_titles().into_iter().enumerate() {
            index.read_instances.push(loaded.libraries[position].instance.name());
            for entry in titles.titles() {
                let title = title_overview(&loaded, position, entry);
                let key = (title.id.instance.to_owned(), title.id.kind, title.catalog_id);
                index.titles.insert(key, title);
            }
        }
        for download in queue.downloads {
            if let Some(content) = download.content.clone() {
                // The most urgent download of a title comes first.
                index.downloads.entry(content).or_insert(download);
            }
        }
        for failure in queue.failures {
            if !index.failures.contains(&failure) {
                index.failures.push(failure);
            }
        }
        index
    }

    /// Returns the title of a request, if it is in its library.
    pub fn find_title(&self, requested: &RequestedTitle) -> Option<&TitleOverview> {
        self.titles.get(&(requested.instance.clone(), requested.kind, requested.catalog_id))
    }

    pub fn find_progress(&self, requested: &RequestedTitle) -> RequestProgress {
        if !self.read_instances.contains(&requested.instance.as_str()) {
            return RequestProgress::Unknown;
        }
        let Some(title) = self.find_title(requested) else { return RequestProgress::Removed };
        if let Some(download) = self.downloads.get(&title.id) {
            return match &download.problem {
                Some(problem) => RequestProgress::Problem(problem.clone()),
                None => RequestProgress::Downloading {
                    percent: download.percent,
                    time_left: download.time_left.clone(),
                },
            };
        }
        match title.availability {
            TitleAvailability::Complete => RequestProgress::Ready,
            TitleAvailability::Episodes { on_disk, all } => RequestProgress::Partial { on_disk, all },
            TitleAvailability::Missing => RequestProgress::Searching,
            TitleAvailability::Unreleased => RequestProgress::Unreleased,
            TitleAvailability::NotMonitored => RequestProgress::NotMonitored,
        }
    }
}

fn title_overview(loaded: &LoadedLibraries<'_>, library: usize, entry: &CachedTitle) -> TitleOverview {
    let instance = loaded.libraries[library].instance;
    TitleOverview {
        id: TitleId { instance: instance.name(), kind: instance.kind(), id: entry.id },
        catalog_id: entry.catalog,
        ids: entry.catalog_ids(),
        title: clean_title(&entry.title),
        year: entry.year,
        size_bytes: entry.size_bytes,
        quality: profile_name(instance.common_api(), entry.profile),
        added: entry.added,
        availability: availability(entry),
    }
}

fn profile_name(api: CommonApi<'_>, profile: i64) -> Option<String> {
    api.known_profiles().into_iter().find(|known| known.id == profile).map(|known| clean_title(&known.name))
}

fn availability(entry: &CachedTitle) -> TitleAvailability {
    match entry.kind {
        TitleKind::Movie { has_file: true, .. } => TitleAvailability::Complete,
        TitleKind::Series(episodes) if episodes.on_disk > 0 && episodes.missing == 0 => {
            TitleAvailability::Complete
        }
        TitleKind::Series(episodes) if episodes.on_disk > 0 => {
            TitleAvailability::Episodes { on_disk: episodes.on_disk, all: episodes.all }
        }
        TitleKind::Movie { .. } | TitleKind::Series(_) if !entry.monitored => TitleAvailability::NotMonitored,
        TitleKind::Movie { available: false, .. } => TitleAvailability::Unreleased,
        TitleKind::Series(episodes) if episodes.missing == 0 => TitleAvailability::Unreleased,
        TitleKind::Movie { .. } | TitleKind::Series(_) => TitleAvailability::Missing,
    }
}

fn download_overview(instance: &'static str, download: &Download) -> DownloadOverview {
    let content = match &download.content {
        DownloadContent::Movie(id) => Some(TitleId { instance, kind: MediaKind::Movie, id: *id }),
        DownloadContent::Episodes { series, .. } => {
            Some(TitleId { instance, kind: MediaKind::Series, id: *series })
        }
        DownloadContent::Nothing => None,
    };
    let problem = match &download.state {
        DownloadState::Stuck(reason) | DownloadState::Failed(reason) => Some(clean_error_message(reason)),
        DownloadState::ClientDown => Some("the download program does not answer".to_owned()),
        DownloadState::Downloading
        | DownloadState::Queued
        | DownloadState::Paused
        | DownloadState::Delayed
        | DownloadState::Importing => None,
    };
    DownloadOverview {
        title: clean_title(&download.title),
        content,
        state: format_state(&download.state),
        problem,
        percent: percent_done(download),
        time_left: download.time_left.map(format_time_left),
        size_bytes: download.size_bytes.max(0.0) as u64,
    }
}

/// Reason why a title cannot be read or changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TitleLookupError {
    /// No instance has this name, or it has no title with this id.
    Unknown,
    Unreachable,
}

/// Fetches a title and freezes it as the target of a deletion with its files.
pub async fn freeze_title(
    library: &ArrInstances,
    instance: &str,
    kind: MediaKind,
    id: i64,
) -> Result<DeletionTarget, TitleLookupError> {
    let instance = find_instance(library, instance, kind)?;
    let fingerprint = instance.fetch_fingerprint(id).await.map_err(|error| lookup_error(&error))?;
    let fingerprint = fingerprint.ok_or(TitleLookupError::Unknown)?;
    Ok(DeletionTarget {
        instance: instance.name().to_owned(),
        kind,
        id,
        delete_files: fingerprint.size_bytes > 0,
        scope: DeletionScope::Whole,
        fingerprint,
    })
}

/// Starts a search for what is missing of a title, and returns its name.
pub async fn search_title(
    library: &ArrInstances,
    instance: &str,
    kind: MediaKind,
    id: i64,
) -> Result<String, TitleLookupError> {
    let instance = find_instance(library, instance, kind)?;
    let fingerprint = instance.fetch_fingerprint(id).await.map_err(|error| lookup_error(&error))?;
    let fingerprint = fingerprint.ok_or(TitleLookupError::Unknown)?;
    let searched = match instance {
        InstanceRef::Movies(instance) => instance.client.search_movie(id).await,
        InstanceRef::Series(instance) => instance.client.search_series(&SeriesSearch::Missing(id)).await,
    };
    searched.map_err(|error| lookup_error(&error))?;
    Ok(format_media_title(&fingerprint.title, fingerprint.year))
}

/// Fetches the poster of a title as a small image; `None` if the instance or the poster does not exist.
pub async fn fetch_poster(
    library: &ArrInstances,
    instance: &str,
    id: i64,
) -> Result<Option<Bytes>, ArrError> {
    let movies = library.movies.iter().map(InstanceRef::Movies);
    let mut instances = movies.chain(library.series.iter().map(InstanceRef::Series));
    match instances.find(|known| known.name() == instance) {
        Some(known) => known.common_api().fetch_poster_image(id).await,
        None => Ok(None),
    }
}

fn find_instance<'a>(
    library: &'a ArrInstances,
    name: &str,
    kind: MediaKind,
) -> Result<InstanceRef<'a>, TitleLookupError> {
    InstanceRef::find_by_name(library, kind, Some(name)).map_err(|_| TitleLookupError::Unknown)
}

fn lookup_error(error: &ArrError) -> TitleLookupError {
    tracing::warn!(error = telemetry::error_chain(error), "failed to read or search a title for the console");
    TitleLookupError::Unreachable
}

/// Returns the sentences about failures that a person may read.
fn failure_sentences(failures: &[CallFailure]) -> Vec<String> {
    failures.iter().filter_map(|failure| failure.for_user.clone()).collect()
}
