//! Search results of the fakes: copies that a test has made available, of titles that are wanted and not on disk.

use super::activity::{FakeDownload, download, episodes};
use super::item::{Film, Show, ShowEpisode};
use super::movie_json::is_available;
use super::radarr::FakeRadarr;
use super::search::same_name;
use super::series_json::{dated, numbers};
use super::sonarr::FakeSonarr;
use super::world::World;

const TIME_TAKEN: u32 = 30;

/// Reason for a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reason {
    /// A user requested the search, so the title may be unreleased or unmonitored.
    Asked,
    /// The server searches automatically, for titles that are released and monitored.
    ByItself,
}

/// Library that searches for another copy of a failed download.
pub(super) trait Seeks: Clone + Send + Sized + 'static {
    fn seek_again(world: &mut World<Self>, title: &str);

    /// Imports a download: its title is now on disk.
    fn arrive(world: &mut World<Self>, download: &FakeDownload);
}

impl Seeks for Film {
    fn seek_again(world: &mut World<Self>, title: &str) {
        if let Some(id) = world.named(title).map(|film| film.id) {
            world.search(id, Reason::ByItself);
        }
    }

    fn arrive(world: &mut World<Self>, download: &FakeDownload) {
        let id = world.named(&download.title).map(|film| film.id);
        if let Some(film) = world.library.iter_mut().find(|film| Some(film.id) == id) {
            film.size_bytes = download.size_bytes;
        }
    }
}

impl Seeks for Show {
    fn seek_again(world: &mut World<Self>, title: &str) {
        let Some(meant) = episodes(title) else { return };
        let Some(show) = world.named(meant.show) else { return };
        let (id, numbers) = (show.id, numbers(show, &meant));
        world.search_episodes(id, title.to_owned(), Reason::ByItself, |one| {
            one.season == meant.season && numbers.contains(&one.number)
        });
    }

    fn arrive(world: &mut World<Self>, download: &FakeDownload) {
        let Some(meant) = episodes(&download.title) else { return };
        let Some(show) = world.named(meant.show) else { return };
        let (id, numbers) = (show.id, numbers(show, &meant));
        let Some(show) = world.library.iter_mut().find(|show| show.id == id) else { return };
        for one in show.told_apart() {
            one.on_disk |= one.season == meant.season && numbers.contains(&one.number);
        }
        show.size_bytes += download.size_bytes;
    }
}

impl World<Film> {
    /// Searches for a movie and returns the number of grabbed copies.
    pub(super) fn search(&mut self, id: i64, reason: Reason) -> usize {
        let now = self.clock.now();
        let Some(place) = self.library.iter().position(|film| film.id == id) else { return 0 };
        let title = self.library[place].title.clone();
        self.library[place].details.last_search = Some(now);
        self.record.searches.push(title.clone());
        let film = &self.library[place];
        let wanted = reason == Reason::Asked || (film.monitored && is_available(self, &film.details));
        // A copy that is no better than the existing one is rejected.
        let has_one = film.size_bytes > 0 || self.downloads.iter().any(|it| same_name(&it.title, &title));
        let found = self.copies.iter().position(|copy| self.named(copy).is_some_and(|it| it.id == id));
        match found {
            Some(copy) if wanted && !has_one => {
                self.grab(copy);
                1
            }
            Some(_) | None => 0,
        }
    }
}

impl World<Show> {
    pub(super) fn search_missing(&mut self, id: i64) -> usize {
        let Some(title) = self.library.iter().find(|show| show.id == id).map(|show| show.title.clone())
        else {
            return 0;
        };
        self.search_episodes(id, format!("{title} missing"), Reason::ByItself, |_| true)
    }

    /// Searches for the episodes of a series that `meant` selects; `words` is the description in the record. Returns
    /// the number of grabbed copies.
    pub(super) fn search_episodes(
        &mut self,
        id: i64,
        words: String,
        reason: Reason,
        meant: impl Fn(&ShowEpisode) -> bool,
    ) -> usize {
        let now = self.clock.now();
        self.record.searches.push(words);
        let Some(show) = self.library.iter().find(|show| show.id == id) else { return 0 };
        let wanted = |one: &ShowEpisode| {
            let out = one.airs.is_some_and(|at| at <= now);
            meant(one)
                && !one.on_disk
                && (reason == Reason::Asked || (show.monitored && one.monitored && out))
        };
        let wanted: Vec<(u32, u32)> =
            dated(self, show).iter().filter(|one| wanted(one)).map(|one| (one.season, one.number)).collect();
        if let Some(show) = self.library.iter_mut().find(|show| show.id == id) {
            let searched = |one: &&mut ShowEpisode| wanted.contains(&(one.season, one.number));
            show.told_apart().iter_mut().filter(searched).for_each(|one| one.last_search = Some(now));
        }
        let mut grabbed = 0;
        while let Some(copy) = self.copies.iter().position(|copy| self.brings(copy, id, &wanted)) {
            self.grab(copy);
            grabbed += 1;
        }
        grabbed
    }

    /// Returns whether a copy has one of these episodes, and none that is already being downloaded.
    fn brings(&self, copy: &str, id: i64, wanted: &[(u32, u32)]) -> bool {
        let Some(meant) = episodes(copy) else { return false };
        let Some(show) = self.named(meant.show).filter(|show| show.id == id) else { return false };
        let underway = self.downloads.iter().filter_map(|it| episodes(&it.title)).any(|other| {
            same_name(other.show, meant.show)
                && other.season == meant.season
                && (other.episode.is_none() || meant.episode.is_none() || other.episode == meant.episode)
        });
        !underway && numbers(show, &meant).any(|number| wanted.contains(&(meant.season, number)))
    }
}

impl<D> World<D> {
    /// Starts to download a copy and removes it from the available copies.
    fn grab(&mut self, copy: usize) {
        let mut found = download(&self.copies.remove(copy)).minutes_left(TIME_TAKEN);
        self.copies_said += 1;
        found.release.push_str(&self.copies_said.to_string());
        self.enqueue(found);
        if let Some(found) = self.downloads.last().cloned() {
            self.note(&found, "grabbed", None);
        }
    }
}

impl FakeRadarr {
    /// Imports the first download of this title.
    pub fn finish(&self, title: &str) {
        self.lock().finish(title);
    }

    /// Processes the indexers' feeds, as happens automatically: grabs every copy of a movie that is released, monitored
    /// and not on disk.
    pub fn rss(&self) {
        let mut world = self.lock();
        let searches = world.record.searches.clone();
        for id in world.library.iter().map(|film| film.id).collect::<Vec<_>>() {
            world.search(id, Reason::ByItself);
        }
        world.record.searches = searches;
    }
}

impl FakeSonarr {
    /// Imports the first download of this title.
    pub fn finish(&self, title: &str) {
        self.lock().finish(title);
    }

    /// Processes the indexers' feeds, as happens automatically: grabs every copy of an episode that has aired, is
    /// monitored and is not on disk.
    pub fn rss(&self) {
        let mut world = self.lock();
        let searches = world.record.searches.clone();
        for id in world.library.iter().map(|show| show.id).collect::<Vec<_>>() {
            world.search_missing(id);
        }
        world.record.searches = searches;
    }
}
