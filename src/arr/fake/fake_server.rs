//! Fake server handle. Tests and the demo use it to set up and inspect the state and to inject faults.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use serde_json::json;

use super::activity::{FakeDownload, HistoryFixture, download};
use super::connect_api::ConnectEntries;
use super::media_fixtures::FakeTitle;
use super::posters::FakePoster;
use super::request_guard::{RequestFault, RequestGuard};
use super::responses::{RequestQuery, ValidationFailure};
use super::search::{is_same_title, split_year};
use crate::clock::Clock;

/// First catalog id that is assigned automatically, above the real ones in tests.
const FIRST_GENERATED_ID: i64 = 9_000_000;
const FIRST_PROFILE: i64 = 4;
const DEFAULT_PROFILES: [&str; 2] = ["HD-1080p", "Ultra-HD"];
const DEFAULT_FREE_BYTES: u64 = 1_200_000_000_000;

/// Fake Sonarr or Radarr. Clones share the same server.
#[derive(Debug, Clone)]
pub struct FakeServer<D> {
    pub(super) identity: &'static ServerIdentity,
    pub(super) guard: RequestGuard,
    state: Arc<Mutex<FakeLibraryState<D>>>,
}

/// Constants by which Sonarr and Radarr differ.
#[derive(Debug)]
pub struct ServerIdentity {
    pub name: &'static str,
    pub version: &'static str,
    pub api_key: &'static str,
    /// Root folder of a new server.
    pub root: &'static str,
    /// API path of the titles.
    pub path: &'static str,
    /// JSON name of a title's catalog id.
    pub catalog_id: &'static str,
    /// JSON name of a title's library id.
    pub library_id: &'static str,
    /// Service that provides the catalog.
    pub catalog_service: &'static str,
    /// Name of the history event for a deleted file.
    pub file_deleted: &'static str,
    /// Connect events that only this server supports.
    pub events: &'static [&'static str],
}

/// State of a fake server.
#[derive(Debug)]
pub struct FakeLibraryState<D> {
    pub(super) library: Vec<FakeTitle<D>>,
    /// Every title that a search can find, including the library.
    pub(super) catalog: Vec<FakeTitle<D>>,
    pub(super) profiles: Vec<(i64, String)>,
    /// Names of the profiles that allow 4K.
    pub(super) four_k_profiles: Vec<String>,
    pub(super) root_folders: Vec<FakeRootFolder>,
    pub(super) downloads: Vec<FakeDownload>,
    /// Calendar entries in addition to the dates of the titles.
    pub(super) calendar: Vec<CalendarFixture>,
    pub(super) history: Vec<HistoryFixture>,
    pub(super) record: ActionRecord,
    /// Titles of the releases that a search can find.
    pub(super) releases: Vec<String>,
    /// Number of releases that were grabbed.
    pub(super) grab_count: usize,
    /// Catalog ids of the suggested titles.
    pub(super) suggested: Vec<i64>,
    /// Catalog ids of the popular titles.
    pub(super) popular: Vec<i64>,
    /// Catalog ids of the titles that lists must not add.
    pub(super) excluded: Vec<i64>,
    /// Level, source and message of each health problem.
    pub(super) health_problems: Vec<[String; 3]>,
    pub(super) replaces_failed: bool,
    /// Country whose age ratings Radarr shows, as in its settings.
    pub(super) certification_country: &'static str,
    pub(super) last_command: u32,
    pub(super) last_download: usize,
    /// Catalog id and profile of each title that was added through the API.
    pub(super) added: Vec<(i64, String)>,
    pub(super) removed: Vec<i64>,
    pub(super) connect_entries: ConnectEntries,
    pub(super) poster: FakePoster,
    pub(super) clock: Clock,
    last_id: i64,
}

/// Log of the actions through the API.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ActionRecord {
    /// Searches such as `Dune`, `The Bear S02`, `The Bear S02E03`, `The Bear missing`.
    pub searches: Vec<String>,
    /// Titles of the downloads that were removed from the queue.
    pub discarded: Vec<String>,
    /// Names of releases that are never grabbed again.
    pub blocklist: Vec<String>,
    /// Deleted files such as `Dune` or `The Bear S02E03`.
    pub deleted_files: Vec<String>,
}

#[derive(Debug, Clone)]
pub(super) struct FakeRootFolder {
    pub path: String,
    pub free_bytes: Option<u64>,
}

#[derive(Debug, Clone)]
pub(super) struct CalendarFixture {
    pub title: String,
    pub at: Timestamp,
}

impl<D: Clone> FakeServer<D> {
    pub(super) fn empty(identity: &'static ServerIdentity, clock: Clock) -> Self {
        let state = FakeLibraryState {
            library: Vec::new(),
            catalog: Vec::new(),
            profiles: number_profiles(&DEFAULT_PROFILES),
            four_k_profiles: vec!["Ultra-HD".to_owned()],
            root_folders: vec![FakeRootFolder {
                path: identity.root.to_owned(),
                free_bytes: Some(DEFAULT_FREE_BYTES),
            }],
            downloads: Vec::new(),
            calendar: Vec::new(),
            history: Vec::new(),
            record: ActionRecord::default(),
            releases: Vec::new(),
            grab_count: 0,
            suggested: Vec::new(),
            popular: Vec::new(),
            excluded: Vec::new(),
            health_problems: Vec::new(),
            replaces_failed: true,
            certification_country: "us",
            last_command: 0,
            last_download: 0,
            added: Vec::new(),
            removed: Vec::new(),
            connect_entries: ConnectEntries::default(),
            poster: FakePoster::default(),
            clock,
            last_id: 0,
        };
        Self { identity, guard: RequestGuard::new(identity), state: Arc::new(Mutex::new(state)) }
    }

    /// Sets the response to requests for posters.
    pub fn set_poster(&self, poster: FakePoster) {
        self.lock_state().poster = poster;
    }

    /// Returns the API key that the server requires.
    pub fn api_key(&self) -> &'static str {
        self.identity.api_key
    }

    /// Adds a title to the library and the catalog. Returns its library id.
    pub fn add(&self, title: FakeTitle<D>) -> i64 {
        self.lock_state().add_title(title)
    }

    /// Adds a title to the catalog but not to the library. Returns its catalog id.
    pub fn add_to_catalog(&self, title: FakeTitle<D>) -> i64 {
        self.lock_state().add_to_catalog(title)
    }

    /// Replaces the quality profiles with profiles of the given names.
    pub fn set_profiles(&self, names: &[&str]) {
        self.lock_state().profiles = number_profiles(names);
    }

    /// Allows 4K in the quality profile of this name.
    pub fn allow_four_k(&self, name: &str) {
        self.lock_state().four_k_profiles.push(name.to_owned());
    }

    /// Adds a root folder. A folder with no `free_bytes` is not accessible.
    pub fn add_root_folder(&self, path: &str, free_bytes: Option<u64>) {
        self.lock_state().root_folders.push(FakeRootFolder { path: path.to_owned(), free_bytes });
    }

    /// Adds a download in progress. Examples of titles are `Dune`, `The Bear S02E03` and, for a season pack,
    /// `The Bear S02`. They need not be in the library.
    pub fn add_download(&self, title: &str, percent: u32, minutes_left: u32) {
        self.add_to_queue(download(title).percent(percent).minutes_left(minutes_left));
    }

    /// Adds a finished download that cannot be imported.
    pub fn add_stuck_download(&self, title: &str, reason: &str) {
        self.add_to_queue(download(title).stuck(reason));
    }

    pub fn add_failed_download(&self, title: &str, reason: &str) {
        self.add_to_queue(download(title).failed(reason));
    }

    pub fn add_to_queue(&self, download: FakeDownload) {
        self.lock_state().enqueue_download(download);
    }

    pub fn clear_queue(&self) {
        self.lock_state().downloads.clear();
    }

    /// Adds an import to the history. Titles have the same formats as in `add_download`.
    pub fn add_import(&self, title: &str, at: Timestamp) {
        self.lock_state().record_import(title, at);
    }

    /// Adds a release that a search for this title finds and grabs once.
    pub fn add_release(&self, title: &str) {
        self.lock_state().releases.push(title.to_owned());
    }

    /// Returns the log of actions through the API, without additions and deletions of titles.
    pub fn action_record(&self) -> ActionRecord {
        self.lock_state().record.clone()
    }

    /// Sets whether the server searches for another release after one has failed. The default is true.
    /// Sets the country whose age ratings Radarr shows, such as `de`.
    pub fn set_certification_country(&self, country: &'static str) {
        self.lock_state().certification_country = country;
    }

    pub fn set_replaces_failed(&self, replaces: bool) {
        self.lock_state().replaces_failed = replaces;
    }

    /// Adds a health problem of the server. The level is `notice`, `warning` or `error`.
    pub fn add_health_problem(&self, level: &str, source: &str, message: &str) {
        self.lock_state().health_problems.push([level, source, message].map(str::to_owned));
    }

    pub fn clear_health_problems(&self) {
        self.lock_state().health_problems.clear();
    }

    /// Returns the catalog ids of the titles that were added through the API, in order.
    pub fn added_ids(&self) -> Vec<i64> {
        self.lock_state().added.iter().map(|(id, _)| *id).collect()
    }

    /// Returns the library ids of the titles that were deleted through the API, in order.
    pub fn removed_ids(&self) -> Vec<i64> {
        self.lock_state().removed.clone()
    }

    /// Returns the name of the profile with which a catalog id was added through the API.
    pub fn added_profile(&self, catalog_id: i64) -> Option<String> {
        let state = self.lock_state();
        state.added.iter().rfind(|(id, _)| *id == catalog_id).map(|(_, profile)| profile.clone())
    }

    /// Returns a title of the library by its library id.
    pub fn title(&self, id: i64) -> Option<FakeTitle<D>> {
        self.lock_state().title(id).cloned()
    }

    /// Returns all titles of the library.
    pub fn titles(&self) -> Vec<FakeTitle<D>> {
        self.lock_state().library.clone()
    }

    /// Returns all titles of the catalog, with those of the library.
    pub fn catalog_titles(&self) -> Vec<FakeTitle<D>> {
        self.lock_state().catalog.clone()
    }

    /// Returns the number of write requests, including failed ones.
    pub fn post_count(&self) -> usize {
        self.guard.write_count()
    }

    /// Returns the number of requests for the whole library.
    pub fn listing_count(&self) -> usize {
        self.guard.list_count()
    }

    /// Changes a title of the library without using the API.
    pub fn edit(&self, id: i64, change: impl FnOnce(&mut FakeTitle<D>)) {
        if let Some(title) = self.lock_state().title_mut(id) {
            change(title);
        }
    }

    /// Removes a title from the library without using the API. A search can still find the title.
    pub fn remove(&self, id: i64) {
        self.lock_state().library.retain(|title| title.id != id);
    }

    /// Makes the next API request fail with this status, without any effect.
    pub fn fail_next(&self, status: u16) {
        self.guard.queue_fault(RequestFault::Status(status));
    }

    pub fn fail_next_n(&self, count: usize, status: u16) {
        (0..count).for_each(|_| self.fail_next(status));
    }

    /// Makes the next API request hang without a response and without any effect.
    pub fn hang_next(&self) {
        self.guard.queue_fault(RequestFault::Hang);
    }

    /// Makes the next API request return an HTML page, as with a wrong URL.
    pub fn return_html_next(&self) {
        self.guard.queue_fault(RequestFault::Html);
    }

    /// Truncates the body of the next response.
    pub fn truncate_next(&self) {
        self.guard.queue_fault(RequestFault::Truncated);
    }

    /// Carries out the next API request without ever responding.
    pub fn drop_next_response(&self) {
        self.guard.queue_fault(RequestFault::DropResponse);
    }

    /// Carries out the next API request, but returns this status, as a proxy does after a timeout.
    pub fn complete_next_with_status(&self, status: u16) {
        self.guard.queue_fault(RequestFault::CompletedWithStatus(status));
    }

    /// Queues no fault for the next API request, so that a fault queued later applies to the one after it.
    pub fn allow_next(&self) {
        self.guard.queue_fault(RequestFault::NoFault);
    }

    /// Queues no fault for the next write.
    pub fn allow_next_write(&self) {
        self.guard.fail_write(RequestFault::NoFault);
    }

    /// Makes the next write fail with this status, without any effect.
    pub fn fail_next_write(&self, status: u16) {
        self.guard.fail_write(RequestFault::Status(status));
    }

    /// Makes every write to a path with this ending fail with this status, without any effect.
    pub fn fail_writes_to(&self, path: &'static str, status: u16) {
        self.guard.fail_writes_to(path, status);
    }

    /// Makes the next write hang without a response and without any effect.
    pub fn hang_next_write(&self) {
        self.guard.fail_write(RequestFault::Hang);
    }

    /// Carries out the next write, but returns this status.
    pub fn complete_next_write_with_status(&self, status: u16) {
        self.guard.fail_write(RequestFault::CompletedWithStatus(status));
    }

    /// Carries out the next write without ever responding.
    pub fn drop_next_write_response(&self) {
        self.guard.fail_write(RequestFault::DropResponse);
    }

    /// Sets whether the server is down. A server that is down returns the 503 response of a starting server.
    pub fn set_down(&self, down: bool) {
        self.guard.set_down(down);
    }

    pub(super) fn lock_state(&self) -> MutexGuard<'_, FakeLibraryState<D>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<D: Clone> FakeLibraryState<D> {
    /// Adds a title. Assigns a new id if the id is missing or in use.
    pub(super) fn add_title(&mut self, mut title: FakeTitle<D>) -> i64 {
        title.catalog_id = self.add_to_catalog(title.clone());
        if title.id <= 0 || self.library.iter().any(|other| other.id == title.id) {
            title.id = self.last_id + 1;
        }
        self.last_id = self.last_id.max(title.id);
        if title.path.is_empty() {
            let root = self.root_folders.first().map_or("", |root| root.path.as_str());
            title.path = format!("{root}/{}", title.folder_name());
        }
        if self.profile_id(&title.profile).is_none() {
            let id = self.profiles.iter().map(|(id, _)| id + 1).max().unwrap_or(FIRST_PROFILE);
            self.profiles.push((id, title.profile.clone()));
        }
        let id = title.id;
        self.library.push(title);
        id
    }

    fn add_to_catalog(&mut self, mut title: FakeTitle<D>) -> i64 {
        if title.catalog_id == 0 {
            let highest = self.catalog.iter().map(|other| other.catalog_id).max();
            title.catalog_id = highest.unwrap_or(0).max(FIRST_GENERATED_ID) + 1;
        }
        let id = title.catalog_id;
        if !self.catalog.iter().any(|other| other.catalog_id == id) {
            self.catalog.push(title);
        }
        id
    }

    /// Adds a title that a client requested, without files.
    pub(super) fn add_by_request(&mut self, mut title: FakeTitle<D>, profile: i64, root: &str) -> i64 {
        title.id = 0;
        title.size_bytes = 0;
        title.path = format!("{}/{}", root.trim_end_matches('/'), title.folder_name());
        self.profile_name(profile).unwrap_or_default().clone_into(&mut title.profile);
        self.added.push((title.catalog_id, title.profile.clone()));
        title.added = self.clock.now();
        self.add_title(title)
    }

    /// Returns the validation failures of an addition for its profile and root folder.
    pub(super) fn validate_addition(&self, profile: i64, root: Option<&str>) -> Vec<ValidationFailure> {
        let mut failures = Vec::new();
        if self.profile_name(profile).is_none() {
            failures.push(ValidationFailure {
                property: "QualityProfileId",
                message: "Quality Profile does not exist".to_owned(),
                attempted: json!(profile),
                code: "QualityProfileExistsValidator",
            });
        }
        let root = root.unwrap_or_default();
        let is_requested =
            |folder: &FakeRootFolder| folder.path.trim_end_matches('/') == root.trim_end_matches('/');
        if !self.root_folders.iter().any(is_requested) {
            failures.push(ValidationFailure {
                property: "RootFolderPath",
                message: format!("Root folder '{root}' does not exist"),
                attempted: json!(root),
                code: "RootFolderExistsValidator",
            });
        }
        failures
    }

    /// Returns the downloads in ascending order by the sort key of the query.
    pub(super) fn sorted_downloads(&self, query: &RequestQuery) -> Vec<&FakeDownload> {
        let mut downloads: Vec<_> = self.downloads.iter().collect();
        if query.get("sortKey").is_some_and(|key| key == "title") {
            downloads.sort_by_key(|download| &download.title);
        } else {
            downloads.sort_by_key(|download| download.minutes_left.unwrap_or(u32::MAX));
        }
        downloads
    }

    pub(super) fn remove_title(&mut self, id: i64) -> Option<FakeTitle<D>> {
        let index = self.library.iter().position(|title| title.id == id)?;
        Some(self.library.remove(index))
    }

    /// Returns the title of this name in the library. The name may end with the year.
    pub(super) fn find_title(&self, query: &str) -> Option<&FakeTitle<D>> {
        let (name, year) = split_year(query);
        let exact = self.library.iter().find(|title| is_same_title(&title.title, query));
        let has_year = |title: &&FakeTitle<D>| is_same_title(&title.title, name) && year == Some(title.year);
        exact.or_else(|| self.library.iter().find(has_year))
    }

    pub(super) fn title(&self, id: i64) -> Option<&FakeTitle<D>> {
        self.library.iter().find(|title| title.id == id)
    }

    pub(super) fn title_mut(&mut self, id: i64) -> Option<&mut FakeTitle<D>> {
        self.library.iter_mut().find(|title| title.id == id)
    }

    pub(super) fn find_by_catalog_id(&self, catalog_id: i64) -> Option<&FakeTitle<D>> {
        self.library.iter().find(|title| title.catalog_id == catalog_id)
    }

    pub(super) fn profile_id(&self, name: &str) -> Option<i64> {
        self.profiles.iter().find(|(_, other)| other == name).map(|(id, _)| *id)
    }

    pub(super) fn profile_name(&self, id: i64) -> Option<&str> {
        self.profiles.iter().find(|(other, _)| *other == id).map(|(_, name)| name.as_str())
    }
}

fn number_profiles(names: &[&str]) -> Vec<(i64, String)> {
    (FIRST_PROFILE..).zip(names.iter().map(ToString::to_string)).collect()
}
