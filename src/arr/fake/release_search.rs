//! Release searches of the fakes: copies that a test has made available, of titles that are wanted and not on disk.

use super::activity::{FakeDownload, download, parse_title_episodes};
use super::fake_server::{FakeLibraryState, FakeServer};
use super::media_fixtures::{MovieDetails, SeriesDetails, ShowEpisode};
use super::movie_json::is_available;
use super::search::same_name;
use super::series_json::{dated_episodes, episode_numbers};

const TIME_TAKEN: u32 = 30;

/// Reason for a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SearchReason {
    /// Search that a user requested, so the title may be unreleased or unmonitored.
    Asked,
    /// Search that the server starts automatically, for titles that are released and monitored.
    ByItself,
}

/// Library that is searched for copies.
pub trait ReleaseSearch: Clone + Send + Sized + 'static {
    /// Searches for all wanted copies of a title, as the server does automatically.
    fn search_wanted(library: &mut FakeLibraryState<Self>, id: i64);

    /// Searches for another copy of a failed download.
    fn find_replacement(library: &mut FakeLibraryState<Self>, title: &str);

    /// Imports a download, so that its title is on disk.
    fn import_download(library: &mut FakeLibraryState<Self>, download: &FakeDownload);
}

impl ReleaseSearch for MovieDetails {
    fn search_wanted(library: &mut FakeLibraryState<Self>, id: i64) {
        library.search_release(id, SearchReason::ByItself);
    }

    fn find_replacement(library: &mut FakeLibraryState<Self>, title: &str) {
        if let Some(id) = library.title_named(title).map(|film| film.id) {
            library.search_release(id, SearchReason::ByItself);
        }
    }

    fn import_download(library: &mut FakeLibraryState<Self>, download: &FakeDownload) {
        let id = library.title_named(&download.title).map(|film| film.id);
        if let Some(film) = id.and_then(|id| library.title_mut(id)) {
            film.size_bytes = download.size_bytes;
        }
    }
}

impl ReleaseSearch for SeriesDetails {
    fn search_wanted(library: &mut FakeLibraryState<Self>, id: i64) {
        library.search_missing(id);
    }

    fn find_replacement(library: &mut FakeLibraryState<Self>, title: &str) {
        let Some(meant) = parse_title_episodes(title) else { return };
        let Some(show) = library.title_named(meant.show) else { return };
        let (id, numbers) = (show.id, episode_numbers(show, &meant));
        library.search_episodes(id, title.to_owned(), SearchReason::ByItself, |one| {
            one.season == meant.season && numbers.contains(&one.number)
        });
    }

    fn import_download(library: &mut FakeLibraryState<Self>, download: &FakeDownload) {
        let Some(meant) = parse_title_episodes(&download.title) else { return };
        let Some(show) = library.title_named(meant.show) else { return };
        let (id, numbers) = (show.id, episode_numbers(show, &meant));
        let Some(show) = library.title_mut(id) else { return };
        for one in show.separate_episodes() {
            one.on_disk |= one.season == meant.season && numbers.contains(&one.number);
        }
        show.size_bytes += download.size_bytes;
    }
}

impl FakeLibraryState<MovieDetails> {
    /// Searches for a movie, and grabs a copy that is found.
    pub(super) fn search_release(&mut self, id: i64, reason: SearchReason) {
        let now = self.clock.now();
        let Some(index) = self.library.iter().position(|film| film.id == id) else { return };
        let title = self.library[index].title.clone();
        self.library[index].details.last_search = Some(now);
        self.record.searches.push(title.clone());
        let film = &self.library[index];
        let wanted = reason == SearchReason::Asked || (film.monitored && is_available(self, &film.details));
        // A copy that is no better than the existing one is rejected.
        let has_one = film.size_bytes > 0 || self.downloads.iter().any(|it| same_name(&it.title, &title));
        let found = self.copies.iter().position(|copy| self.title_named(copy).is_some_and(|it| it.id == id));
        if let Some(copy) = found.filter(|_| wanted && !has_one) {
            self.grab_copy(copy);
        }
    }
}

impl FakeLibraryState<SeriesDetails> {
    pub(super) fn search_missing(&mut self, id: i64) {
        if let Some(title) = self.title(id).map(|show| show.title.clone()) {
            self.search_episodes(id, format!("{title} missing"), SearchReason::ByItself, |_| true);
        }
    }

    /// Searches for the episodes of a series that `meant` selects, and grabs the copies that are found. `words` is the
    /// description in the record.
    pub(super) fn search_episodes(
        &mut self,
        id: i64,
        words: String,
        reason: SearchReason,
        meant: impl Fn(&ShowEpisode) -> bool,
    ) {
        let now = self.clock.now();
        self.record.searches.push(words);
        let Some(show) = self.title(id) else { return };
        let wanted = |one: &ShowEpisode| {
            let out = one.airs.is_some_and(|at| at <= now);
            meant(one)
                && !one.on_disk
                && (reason == SearchReason::Asked || (show.monitored && one.monitored && out))
        };
        let wanted: Vec<(u32, u32)> = dated_episodes(self, show)
            .iter()
            .filter(|one| wanted(one))
            .map(|one| (one.season, one.number))
            .collect();
        if let Some(show) = self.title_mut(id) {
            let searched = |one: &&mut ShowEpisode| wanted.contains(&(one.season, one.number));
            show.separate_episodes().iter_mut().filter(searched).for_each(|one| one.last_search = Some(now));
        }
        while let Some(copy) = self.copies.iter().position(|copy| self.copy_matches(copy, id, &wanted)) {
            self.grab_copy(copy);
        }
    }

    /// Returns whether a copy has one of these episodes, and none that is already being downloaded.
    fn copy_matches(&self, copy: &str, id: i64, wanted: &[(u32, u32)]) -> bool {
        let Some(meant) = parse_title_episodes(copy) else { return false };
        let Some(show) = self.title_named(meant.show).filter(|show| show.id == id) else { return false };
        let underway = self.downloads.iter().filter_map(|it| parse_title_episodes(&it.title)).any(|other| {
            same_name(other.show, meant.show)
                && other.season == meant.season
                && (other.episode.is_none() || meant.episode.is_none() || other.episode == meant.episode)
        });
        !underway && episode_numbers(show, &meant).any(|number| wanted.contains(&(meant.season, number)))
    }
}

impl<D> FakeLibraryState<D> {
    /// Starts to download a copy and removes it from the available copies.
    fn grab_copy(&mut self, copy: usize) {
        let mut found = download(&self.copies.remove(copy)).minutes_left(TIME_TAKEN);
        self.copies_announced += 1;
        found.release.push_str(&self.copies_announced.to_string());
        self.enqueue_download(found);
        if let Some(found) = self.downloads.last().cloned() {
            self.record_event(&found, "grabbed", None);
        }
    }
}

impl<D: ReleaseSearch> FakeServer<D> {
    /// Imports the first download of this title.
    pub fn finish_download(&self, title: &str) {
        self.lock_state().finish_download(title);
    }

    /// Processes the indexers' feeds, as happens automatically: grabs every copy of a movie or an episode that is
    /// released, monitored and not on disk.
    pub fn run_rss(&self) {
        let mut library = self.lock_state();
        let searches = library.record.searches.clone();
        for id in library.library.iter().map(|item| item.id).collect::<Vec<_>>() {
            D::search_wanted(&mut library, id);
        }
        library.record.searches = searches;
    }
}
