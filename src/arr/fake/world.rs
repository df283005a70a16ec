//! The handle of a fake server: what a test or the demo can put into its world, change, watch and break.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use serde_json::json;

use super::activity::{FakeDownload, Happened, download};
use super::answers::{Asked, Failure};
use super::connections::Connections;
use super::gate::{Fault, Gate};
use super::item::Item;
use super::search::{same_name, split_year};
use crate::clock::Clock;

/// Catalogue ids that nobody gave start here, above those of well-known titles.
const FIRST_MADE_UP_ID: i64 = 9_000_000;
const FIRST_PROFILE: i64 = 4;
const DEFAULT_PROFILES: [&str; 2] = ["HD-1080p", "Ultra-HD"];
const DEFAULT_FREE_BYTES: u64 = 1_200_000_000_000;

/// One fake server; clones are the same server.
#[derive(Debug, Clone)]
pub struct Fake<D> {
    pub(super) app: App,
    pub(super) gate: Gate,
    world: Arc<Mutex<World<D>>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum App {
    Radarr,
    Sonarr,
}

#[derive(Debug)]
pub(super) struct World<D> {
    pub library: Vec<Item<D>>,
    /// Everything that can be found, the library included.
    pub catalog: Vec<Item<D>>,
    pub profiles: Vec<(i64, String)>,
    /// Names of the profiles that allow 4K.
    pub four_k_profiles: Vec<String>,
    pub roots: Vec<Root>,
    pub downloads: Vec<FakeDownload>,
    /// Calendar entries that are no item's own date.
    pub calendar: Vec<Dated>,
    pub history: Vec<Happened>,
    pub record: Record,
    /// Titles of which another copy can be found, and how many there were of each.
    pub copies: Vec<String>,
    pub copies_said: usize,
    /// Catalogue ids of what it would suggest.
    pub suggested: Vec<i64>,
    /// Of what many see, and of what no list may add.
    pub popular: Vec<i64>,
    pub excluded: Vec<i64>,
    pub ailments: Vec<[String; 3]>,
    pub replaces_failed: bool,
    /// The last words of each command.
    pub commands: Vec<(&'static str, String)>,
    pub last_download: usize,
    /// Catalogue id and profile of what was added through the API.
    pub added: Vec<(i64, String)>,
    pub removed: Vec<i64>,
    pub connections: Connections,
    pub clock: Clock,
    last_id: i64,
}

/// What was done through the API, in order and in words.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Record {
    /// `Dune`, `The Bear S02`, `The Bear S02E03`, `The Bear missing`.
    pub searches: Vec<String>,
    /// Titles of the downloads that were taken out of the queue.
    pub discarded: Vec<String>,
    /// Names of releases that are never fetched again.
    pub blocklist: Vec<String>,
    /// `Dune` or `The Bear S02E03`.
    pub deleted_files: Vec<String>,
}

#[derive(Debug, Clone)]
pub(super) struct Root {
    pub path: String,
    pub free_bytes: Option<u64>,
}

#[derive(Debug, Clone)]
pub(super) struct Dated {
    pub title: String,
    pub at: Timestamp,
}

impl<D: Clone> Fake<D> {
    pub(super) fn empty(app: App, clock: Clock) -> Self {
        let world = World {
            library: Vec::new(),
            catalog: Vec::new(),
            profiles: numbered(&DEFAULT_PROFILES),
            four_k_profiles: vec!["Ultra-HD".to_owned()],
            roots: vec![Root { path: app.root().to_owned(), free_bytes: Some(DEFAULT_FREE_BYTES) }],
            downloads: Vec::new(),
            calendar: Vec::new(),
            history: Vec::new(),
            record: Record::default(),
            copies: Vec::new(),
            copies_said: 0,
            suggested: Vec::new(),
            popular: Vec::new(),
            excluded: Vec::new(),
            ailments: Vec::new(),
            replaces_failed: true,
            commands: Vec::new(),
            last_download: 0,
            added: Vec::new(),
            removed: Vec::new(),
            connections: Connections::default(),
            clock,
            last_id: 0,
        };
        Self { app, gate: Gate::new(app), world: Arc::new(Mutex::new(world)) }
    }

    /// The API key that it asks for.
    pub fn key(&self) -> &'static str {
        self.app.key()
    }

    /// Puts an item into the library, where it can be searched for too; gives its library id.
    pub fn add(&self, item: Item<D>) -> i64 {
        self.lock().add(item)
    }

    /// Makes an item findable that is not in the library; gives its catalogue id.
    pub fn catalog(&self, item: Item<D>) -> i64 {
        self.lock().enroll(item)
    }

    /// Replaces the quality profiles, in this order.
    pub fn profiles(&self, names: &[&str]) {
        self.lock().profiles = numbered(names);
    }

    /// Lets the quality profile of this name allow 4K.
    pub fn allows_four_k(&self, name: &str) {
        self.lock().four_k_profiles.push(name.to_owned());
    }

    /// Adds a root folder; one that is not accessible has no free space to tell.
    pub fn root_folder(&self, path: &str, free_bytes: Option<u64>) {
        self.lock().roots.push(Root { path: path.to_owned(), free_bytes });
    }

    /// A download in progress. `Dune`, `The Bear S02E03` or, for a season pack, `The Bear S02`; what is not in the library
    /// is a download that belongs to nothing.
    pub fn download(&self, title: &str, percent: u32, minutes_left: u32) {
        self.queue(download(title).percent(percent).minutes_left(minutes_left));
    }

    /// Finished, and not imported for this reason.
    pub fn stuck(&self, title: &str, reason: &str) {
        self.queue(download(title).stuck(reason));
    }

    pub fn failed(&self, title: &str, reason: &str) {
        self.queue(download(title).failed(reason));
    }

    pub fn queue(&self, download: FakeDownload) {
        self.lock().enqueue(download);
    }

    pub fn clear_queue(&self) {
        self.lock().downloads.clear();
    }

    /// Something finished downloading; titles are those of `download`.
    pub fn imported(&self, title: &str, at: Timestamp) {
        self.lock().imported(title, at);
    }

    /// The next search that is for this title finds a copy and begins to download it. Said twice, there are two copies.
    pub fn can_find(&self, title: &str) {
        self.lock().copies.push(title.to_owned());
    }

    /// What was done through the API besides additions and deletions of whole titles.
    pub fn record(&self) -> Record {
        self.lock().record.clone()
    }

    /// Whether it looks for another copy by itself after one has failed; at first it does.
    pub fn replaces_failed(&self, replaces: bool) {
        self.lock().replaces_failed = replaces;
    }

    /// It finds this wrong with itself; the level is `notice`, `warning` or `error`.
    pub fn ail(&self, level: &str, source: &str, message: &str) {
        self.lock().ailments.push([level, source, message].map(str::to_owned));
    }

    pub fn heal(&self) {
        self.lock().ailments.clear();
    }

    /// Catalogue ids of what was added through the API, in order.
    pub fn additions(&self) -> Vec<i64> {
        self.lock().added.iter().map(|(id, _)| *id).collect()
    }

    /// Library ids of what was deleted through the API, in order.
    pub fn removals(&self) -> Vec<i64> {
        self.lock().removed.clone()
    }

    /// The name of the profile with which a catalogue id was added through the API.
    pub fn added_profile(&self, catalog_id: i64) -> Option<String> {
        let world = self.lock();
        world.added.iter().rfind(|(id, _)| *id == catalog_id).map(|(_, profile)| profile.clone())
    }

    /// An item of the library.
    pub fn item(&self, id: i64) -> Option<Item<D>> {
        self.lock().library.iter().find(|item| item.id == id).cloned()
    }

    /// The library as it is.
    pub fn items(&self) -> Vec<Item<D>> {
        self.lock().library.clone()
    }

    /// How many write requests arrived, whatever became of them.
    pub fn posts(&self) -> usize {
        self.gate.writes()
    }

    /// How often somebody asked for all that the library holds.
    pub fn listings(&self) -> usize {
        self.gate.lists()
    }

    /// Changes an item of the library behind everyone's back.
    pub fn edit(&self, id: i64, change: impl FnOnce(&mut Item<D>)) {
        if let Some(item) = self.lock().library.iter_mut().find(|item| item.id == id) {
            change(item);
        }
    }

    /// Takes an item out of the library behind everyone's back; it stays findable.
    pub fn remove(&self, id: i64) {
        self.lock().library.retain(|item| item.id != id);
    }

    /// Answers the next API request with this status and does nothing.
    pub fn fail_next(&self, status: u16) {
        self.gate.fail(Fault::Status(status));
    }

    pub fn fail_next_n(&self, count: usize, status: u16) {
        (0..count).for_each(|_| self.fail_next(status));
    }

    /// Never answers the next API request, and does nothing.
    pub fn hang_next(&self) {
        self.gate.fail(Fault::Hang);
    }

    /// Answers the next API request with a page for people, as a proxy or a wrong URL does.
    pub fn html_next(&self) {
        self.gate.fail(Fault::Html);
    }

    /// Breaks the next answer off in the middle.
    pub fn halve_next(&self) {
        self.gate.fail(Fault::Half);
    }

    /// Does what the next API request asks for, and never answers.
    pub fn lose_next_answer(&self) {
        self.gate.fail(Fault::LoseAnswer);
    }

    /// Does what the next API request asks for and answers with this status, as a proxy does that would not wait.
    pub fn do_next_but_answer(&self, status: u16) {
        self.gate.fail(Fault::DoneBut(status));
    }

    /// Nothing goes wrong with the next API request: a fault asked for after this meets the one behind it.
    pub fn spare_next(&self) {
        self.gate.fail(Fault::Nothing);
    }

    /// Nothing goes wrong with the next request that changes something.
    pub fn spare_next_write(&self) {
        self.gate.fail_write(Fault::Nothing);
    }

    /// Answers the next request that changes something with this status and does nothing.
    pub fn fail_next_write(&self, status: u16) {
        self.gate.fail_write(Fault::Status(status));
    }

    /// Answers every request that changes something below this path with this status, and does nothing.
    pub fn fail_writes_to(&self, path: &'static str, status: u16) {
        self.gate.fail_writes_to(path, status);
    }

    /// Never answers the next request that changes something, and does nothing.
    pub fn hang_next_write(&self) {
        self.gate.fail_write(Fault::Hang);
    }

    /// Does what the next request that changes something asks for, and answers with this status.
    pub fn do_next_write_but_answer(&self, status: u16) {
        self.gate.fail_write(Fault::DoneBut(status));
    }

    /// Does what the next request that changes something asks for, whatever is asked before it, and never answers.
    pub fn lose_next_write_answer(&self) {
        self.gate.fail_write(Fault::LoseAnswer);
    }

    /// While it is down, every request is answered as by a server that is starting.
    pub fn down(&self, down: bool) {
        self.gate.set_down(down);
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, World<D>> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<D: Clone> World<D> {
    /// An id that is taken is given anew, because the servers never use one twice.
    pub(super) fn add(&mut self, mut item: Item<D>) -> i64 {
        item.catalog_id = self.enroll(item.clone());
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

    fn enroll(&mut self, mut item: Item<D>) -> i64 {
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

    /// Adds what a client asked for; nothing of it is on disk.
    pub(super) fn add_by_request(&mut self, mut item: Item<D>, profile: i64, root: &str) -> i64 {
        item.id = 0;
        item.size_bytes = 0;
        item.path = format!("{}/{}", root.trim_end_matches('/'), item.folder_name());
        self.profile_name(profile).unwrap_or_default().clone_into(&mut item.profile);
        self.added.push((item.catalog_id, item.profile.clone()));
        item.added = self.clock.now();
        self.add(item)
    }

    /// What is wrong with where an addition would go.
    pub(super) fn check(&self, profile: i64, root: Option<&str>) -> Vec<Failure> {
        let mut failures = Vec::new();
        if self.profile_name(profile).is_none() {
            failures.push(Failure {
                property: "QualityProfileId",
                message: "Quality Profile does not exist".to_owned(),
                attempted: json!(profile),
                code: "QualityProfileExistsValidator",
            });
        }
        let root = root.unwrap_or_default();
        let same = |known: &Root| known.path.trim_end_matches('/') == root.trim_end_matches('/');
        if !self.roots.iter().any(same) {
            failures.push(Failure {
                property: "RootFolderPath",
                message: format!("Root folder '{root}' does not exist"),
                attempted: json!(root),
                code: "RootFolderExistsValidator",
            });
        }
        failures
    }

    /// The downloads in the ascending order that the query asks for.
    pub(super) fn in_queue_order(&self, query: &Asked) -> Vec<&FakeDownload> {
        let mut downloads: Vec<_> = self.downloads.iter().collect();
        if query.get("sortKey").is_some_and(|key| key == "title") {
            downloads.sort_by_key(|download| &download.title);
        } else {
            downloads.sort_by_key(|download| download.minutes_left.unwrap_or(u32::MAX));
        }
        downloads
    }

    pub(super) fn take(&mut self, id: i64) -> Option<Item<D>> {
        let place = self.library.iter().position(|item| item.id == id)?;
        Some(self.library.remove(place))
    }

    /// The library's item of this title, with or without its year.
    pub(super) fn named(&self, title: &str) -> Option<&Item<D>> {
        let (name, year) = split_year(title);
        let whole = self.library.iter().find(|item| same_name(&item.title, title));
        let of_year = |item: &&Item<D>| same_name(&item.title, name) && year == Some(item.year);
        whole.or_else(|| self.library.iter().find(of_year))
    }

    pub(super) fn in_library(&self, catalog_id: i64) -> Option<&Item<D>> {
        self.library.iter().find(|item| item.catalog_id == catalog_id)
    }

    pub(super) fn profile_id(&self, name: &str) -> Option<i64> {
        self.profiles.iter().find(|(_, other)| other == name).map(|(id, _)| *id)
    }

    pub(super) fn profile_name(&self, id: i64) -> Option<&str> {
        self.profiles.iter().find(|(other, _)| *other == id).map(|(_, name)| name.as_str())
    }
}

impl App {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Radarr => "Radarr",
            Self::Sonarr => "Sonarr",
        }
    }

    pub(super) fn version(self) -> &'static str {
        match self {
            Self::Radarr => "6.3.0.10514",
            Self::Sonarr => "4.0.19.2979",
        }
    }

    pub(super) fn key(self) -> &'static str {
        match self {
            Self::Radarr => "facade00facade00facade00facade01",
            Self::Sonarr => "facade00facade00facade00facade02",
        }
    }

    fn root(self) -> &'static str {
        match self {
            Self::Radarr => "/movies",
            Self::Sonarr => "/tv",
        }
    }
}

fn numbered(names: &[&str]) -> Vec<(i64, String)> {
    (FIRST_PROFILE..).zip(names.iter().map(ToString::to_string)).collect()
}
