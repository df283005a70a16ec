//! Handle of a fake server, with which a test or the demo can set up, change, inspect and break its state.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use serde_json::json;

use super::activity::{FakeDownload, HistoryFixture, download};
use super::connect_api::ConnectEntries;
use super::media_fixtures::FakeTitle;
use super::request_guard::{RequestFault, RequestGuard};
use super::responses::{RequestQuery, ValidationFailure};
use super::search::{same_name, split_year};
use crate::clock::Clock;

/// Start of the catalog ids that are assigned automatically, above those of well-known titles.
const FIRST_MADE_UP_ID: i64 = 9_000_000;
const FIRST_PROFILE: i64 = 4;
const DEFAULT_PROFILES: [&str; 2] = ["HD-1080p", "Ultra-HD"];
const DEFAULT_FREE_BYTES: u64 = 1_200_000_000_000;

/// Fake Sonarr or Radarr. Clones share the same server.
#[derive(Debug, Clone)]
pub struct FakeServer<D> {
    pub(super) identity: &'static ServerIdentity,
    pub(super) gate: RequestGuard,
    library: Arc<Mutex<FakeLibraryState<D>>>,
}

/// Values by which the two servers differ.
#[derive(Debug)]
pub struct ServerIdentity {
    pub name: &'static str,
    pub version: &'static str,
    pub api_key: &'static str,
    /// Root folder of a new server.
    pub root: &'static str,
    /// Path of the titles below that of the API.
    pub path: &'static str,
    /// Names of a title's catalog id and of its library id.
    pub catalog_id: &'static str,
    pub library_id: &'static str,
    /// Service that the catalog is requested from.
    pub catalog_service: &'static str,
    /// Event of the history for the deletion of a file.
    pub file_deleted: &'static str,
    /// Connect events that only this server has.
    pub events: &'static [&'static str],
}

/// State of a server, which only the fakes can read.
#[derive(Debug)]
pub struct FakeLibraryState<D> {
    pub(super) library: Vec<FakeTitle<D>>,
    /// Every title that a search can find, including the library.
    pub(super) catalog: Vec<FakeTitle<D>>,
    pub(super) profiles: Vec<(i64, String)>,
    /// Names of the profiles that allow 4K.
    pub(super) four_k_profiles: Vec<String>,
    pub(super) roots: Vec<FakeRoot>,
    pub(super) downloads: Vec<FakeDownload>,
    /// Calendar entries that are not a title's own date.
    pub(super) calendar: Vec<CalendarFixture>,
    pub(super) history: Vec<HistoryFixture>,
    pub(super) record: ActionRecord,
    /// Titles for which another copy can be found. The next field counts the copies that were grabbed.
    pub(super) copies: Vec<String>,
    pub(super) copies_announced: usize,
    /// Catalog ids of the suggested titles.
    pub(super) suggested: Vec<i64>,
    /// Catalog ids of the popular titles, and then of those that no list may add.
    pub(super) popular: Vec<i64>,
    pub(super) excluded: Vec<i64>,
    pub(super) ailments: Vec<[String; 3]>,
    pub(super) replaces_failed: bool,
    pub(super) last_command: u32,
    pub(super) last_download: usize,
    /// Catalog id and profile of each title that was added through the API.
    pub(super) added: Vec<(i64, String)>,
    pub(super) removed: Vec<i64>,
    pub(super) connections: ConnectEntries,
    pub(super) clock: Clock,
    last_id: i64,
}

/// Actions through the API, in order and as text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ActionRecord {
    /// Searches such as `Dune`, `The Bear S02`, `The Bear S02E03`, `The Bear missing`.
    pub searches: Vec<String>,
    /// Titles of the downloads that were removed from the queue.
    pub discarded: Vec<String>,
    /// Names of releases that are never fetched again.
    pub blocklist: Vec<String>,
    /// Deleted files such as `Dune` or `The Bear S02E03`.
    pub deleted_files: Vec<String>,
}

#[derive(Debug, Clone)]
pub(super) struct FakeRoot {
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
        let library = FakeLibraryState {
            library: Vec::new(),
            catalog: Vec::new(),
            profiles: number_names(&DEFAULT_PROFILES),
            four_k_profiles: vec!["Ultra-HD".to_owned()],
            roots: vec![FakeRoot { path: identity.root.to_owned(), free_bytes: Some(DEFAULT_FREE_BYTES) }],
            downloads: Vec::new(),
            calendar: Vec::new(),
            history: Vec::new(),
            record: ActionRecord::default(),
            copies: Vec::new(),
            copies_announced: 0,
            suggested: Vec::new(),
            popular: Vec::new(),
            excluded: Vec::new(),
            ailments: Vec::new(),
            replaces_failed: true,
            last_command: 0,
            last_download: 0,
            added: Vec::new(),
            removed: Vec::new(),
            connections: ConnectEntries::default(),
            clock,
            last_id: 0,
        };
        Self { identity, gate: RequestGuard::new(identity), library: Arc::new(Mutex::new(library)) }
    }

    /// Returns the API key that the server requires.
    pub fn api_key(&self) -> &'static str {
        self.identity.api_key
    }

    /// Adds a title to the library, where it can also be searched for. Returns its library id.
    pub fn add(&self, item: FakeTitle<D>) -> i64 {
        self.lock_state().add_title(item)
    }

    /// Adds a title to the catalog but not to the library. Returns its catalog id.
    pub fn add_to_catalog(&self, item: FakeTitle<D>) -> i64 {
        self.lock_state().add_to_catalog(item)
    }

    /// Replaces the quality profiles, in this order.
    pub fn set_profiles(&self, names: &[&str]) {
        self.lock_state().profiles = number_names(names);
    }

    /// Allows 4K in the quality profile of this name.
    pub fn allows_four_k(&self, name: &str) {
        self.lock_state().four_k_profiles.push(name.to_owned());
    }

    /// Adds a root folder. A folder that is not accessible has no free space to report.
    pub fn root_folder(&self, path: &str, free_bytes: Option<u64>) {
        self.lock_state().roots.push(FakeRoot { path: path.to_owned(), free_bytes });
    }

    /// Adds a download in progress. Examples are `Dune`, `The Bear S02E03` or, for a season pack, `The Bear S02`. A
    /// title that is not in the library gives a download that belongs to no title.
    pub fn add_download(&self, title: &str, percent: u32, minutes_left: u32) {
        self.add_to_queue(download(title).percent(percent).minutes_left(minutes_left));
    }

    /// Adds a finished download that was not imported for this reason.
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

    /// Adds an import. Titles are those of `add_download`.
    pub fn add_import(&self, title: &str, at: Timestamp) {
        self.lock_state().record_import(title, at);
    }

    /// Makes the next search for this title find a copy and start to download it. Calling this twice makes two copies
    /// available.
    pub fn can_find(&self, title: &str) {
        self.lock_state().copies.push(title.to_owned());
    }

    /// Returns the actions through the API other than additions and deletions of whole titles.
    pub fn action_record(&self) -> ActionRecord {
        self.lock_state().record.clone()
    }

    /// Sets whether the server automatically searches for another copy after one has failed. The default is true.
    pub fn replaces_failed(&self, replaces: bool) {
        self.lock_state().replaces_failed = replaces;
    }

    /// Adds a health problem of the server. The level is `notice`, `warning` or `error`.
    pub fn add_health_problem(&self, level: &str, source: &str, message: &str) {
        self.lock_state().ailments.push([level, source, message].map(str::to_owned));
    }

    pub fn clear_health_problems(&self) {
        self.lock_state().ailments.clear();
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
        let library = self.lock_state();
        library.added.iter().rfind(|(id, _)| *id == catalog_id).map(|(_, profile)| profile.clone())
    }

    /// Returns a title of the library.
    pub fn item(&self, id: i64) -> Option<FakeTitle<D>> {
        self.lock_state().title(id).cloned()
    }

    /// Returns the current state of the library.
    pub fn items(&self) -> Vec<FakeTitle<D>> {
        self.lock_state().library.clone()
    }

    /// Returns the number of write requests that arrived, regardless of their outcome.
    pub fn post_count(&self) -> usize {
        self.gate.write_count()
    }

    /// Returns the number of requests for the whole library.
    pub fn listing_count(&self) -> usize {
        self.gate.list_count()
    }

    /// Changes a title of the library without using the API.
    pub fn edit(&self, id: i64, change: impl FnOnce(&mut FakeTitle<D>)) {
        if let Some(item) = self.lock_state().title_mut(id) {
            change(item);
        }
    }

    /// Removes a title from the library without using the API. A search can still find the title.
    pub fn remove(&self, id: i64) {
        self.lock_state().library.retain(|item| item.id != id);
    }

    /// Makes the next API request return this status without carrying out the request.
    pub fn fail_next(&self, status: u16) {
        self.gate.queue_fault(RequestFault::Status(status));
    }

    pub fn fail_next_n(&self, count: usize, status: u16) {
        (0..count).for_each(|_| self.fail_next(status));
    }

    /// Makes the next API request hang without a response and without any effect.
    pub fn hang_next(&self) {
        self.gate.queue_fault(RequestFault::Hang);
    }

    /// Makes the next API request return an HTML page for browsers, as a proxy or a wrong URL does.
    pub fn html_next(&self) {
        self.gate.queue_fault(RequestFault::Html);
    }

    /// Cuts off the next response in the middle.
    pub fn halve_next(&self) {
        self.gate.queue_fault(RequestFault::Half);
    }

    /// Carries out the next API request, but never responds.
    pub fn lose_next_answer(&self) {
        self.gate.queue_fault(RequestFault::LoseAnswer);
    }

    /// Carries out the next API request, but returns this status, as a proxy does after a timeout.
    pub fn do_next_but_answer(&self, status: u16) {
        self.gate.queue_fault(RequestFault::DoneBut(status));
    }

    /// Lets the next API request succeed. A fault that is added after this call applies to the request after that one.
    pub fn spare_next(&self) {
        self.gate.queue_fault(RequestFault::Nothing);
    }

    /// Lets the next request that changes data succeed.
    pub fn spare_next_write(&self) {
        self.gate.fail_write(RequestFault::Nothing);
    }

    /// Makes the next request that changes data return this status without carrying out the request.
    pub fn fail_next_write(&self, status: u16) {
        self.gate.fail_write(RequestFault::Status(status));
    }

    /// Makes every request that changes data below this path return this status, without carrying out the request.
    pub fn fail_writes_to(&self, path: &'static str, status: u16) {
        self.gate.fail_writes_to(path, status);
    }

    /// Makes the next request that changes data hang without a response and without any effect.
    pub fn hang_next_write(&self) {
        self.gate.fail_write(RequestFault::Hang);
    }

    /// Carries out the next request that changes data, but returns this status.
    pub fn do_next_write_but_answer(&self, status: u16) {
        self.gate.fail_write(RequestFault::DoneBut(status));
    }

    /// Carries out the next request that changes data, regardless of the requests before it, but never responds.
    pub fn lose_next_write_answer(&self) {
        self.gate.fail_write(RequestFault::LoseAnswer);
    }

    /// Sets whether the server is down. While down, the server returns the response of a starting server to every
    /// request.
    pub fn set_down(&self, down: bool) {
        self.gate.set_down(down);
    }

    pub(super) fn lock_state(&self) -> MutexGuard<'_, FakeLibraryState<D>> {
        self.library.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<D: Clone> FakeLibraryState<D> {
    /// Adds a title. An id that is already in use is replaced by a new one, because the servers never use an id twice.
    pub(super) fn add_title(&mut self, mut item: FakeTitle<D>) -> i64 {
        item.catalog_id = self.add_to_catalog(item.clone());
        if item.id <= 0 || self.library.iter().any(|other| other.id == item.id) {
            item.id = self.last_id + 1;
        }
        self.last_id = self.last_id.max(item.id);
        if item.path.is_empty() {
            let root = self.roots.first().map_or("", |root| root.path.as_str());
            item.path = format!("{root}/{}", item.folder_name());
        }
        if self.profile_id(&item.profile).is_none() {
            let id = self.profiles.iter().map(|(id, _)| id + 1).max().unwrap_or(FIRST_PROFILE);
            self.profiles.push((id, item.profile.clone()));
        }
        let id = item.id;
        self.library.push(item);
        id
    }

    fn add_to_catalog(&mut self, mut item: FakeTitle<D>) -> i64 {
        if item.catalog_id == 0 {
            let highest = self.catalog.iter().map(|other| other.catalog_id).max();
            item.catalog_id = highest.unwrap_or(0).max(FIRST_MADE_UP_ID) + 1;
        }
        let id = item.catalog_id;
        if !self.catalog.iter().any(|other| other.catalog_id == id) {
            self.catalog.push(item);
        }
        id
    }

    /// Adds a title that a client requested. No part of the title is on disk.
    pub(super) fn add_by_request(&mut self, mut item: FakeTitle<D>, profile: i64, root: &str) -> i64 {
        item.id = 0;
        item.size_bytes = 0;
        item.path = format!("{}/{}", root.trim_end_matches('/'), item.folder_name());
        self.profile_name(profile).unwrap_or_default().clone_into(&mut item.profile);
        self.added.push((item.catalog_id, item.profile.clone()));
        item.added = self.clock.now();
        self.add_title(item)
    }

    /// Checks the profile and the root folder of an addition, and returns the failures.
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
        let same = |known: &FakeRoot| known.path.trim_end_matches('/') == root.trim_end_matches('/');
        if !self.roots.iter().any(same) {
            failures.push(ValidationFailure {
                property: "RootFolderPath",
                message: format!("Root folder '{root}' does not exist"),
                attempted: json!(root),
                code: "RootFolderExistsValidator",
            });
        }
        failures
    }

    /// Returns the downloads in the ascending order that the query requests.
    pub(super) fn in_queue_order(&self, query: &RequestQuery) -> Vec<&FakeDownload> {
        let mut downloads: Vec<_> = self.downloads.iter().collect();
        if query.get("sortKey").is_some_and(|key| key == "title") {
            downloads.sort_by_key(|download| &download.title);
        } else {
            downloads.sort_by_key(|download| download.minutes_left.unwrap_or(u32::MAX));
        }
        downloads
    }

    pub(super) fn remove_title(&mut self, id: i64) -> Option<FakeTitle<D>> {
        let index = self.library.iter().position(|item| item.id == id)?;
        Some(self.library.remove(index))
    }

    /// Returns the title of this name in the library, with or without its year.
    pub(super) fn title_named(&self, title: &str) -> Option<&FakeTitle<D>> {
        let (name, year) = split_year(title);
        let whole = self.library.iter().find(|item| same_name(&item.title, title));
        let of_year = |item: &&FakeTitle<D>| same_name(&item.title, name) && year == Some(item.year);
        whole.or_else(|| self.library.iter().find(of_year))
    }

    pub(super) fn title(&self, id: i64) -> Option<&FakeTitle<D>> {
        self.library.iter().find(|item| item.id == id)
    }

    pub(super) fn title_mut(&mut self, id: i64) -> Option<&mut FakeTitle<D>> {
        self.library.iter_mut().find(|item| item.id == id)
    }

    pub(super) fn in_library(&self, catalog_id: i64) -> Option<&FakeTitle<D>> {
        self.library.iter().find(|item| item.catalog_id == catalog_id)
    }

    pub(super) fn profile_id(&self, name: &str) -> Option<i64> {
        self.profiles.iter().find(|(_, other)| other == name).map(|(id, _)| *id)
    }

    pub(super) fn profile_name(&self, id: i64) -> Option<&str> {
        self.profiles.iter().find(|(other, _)| *other == id).map(|(_, name)| name.as_str())
    }
}

fn number_names(names: &[&str]) -> Vec<(i64, String)> {
    (FIRST_PROFILE..).zip(names.iter().map(ToString::to_string)).collect()
}
