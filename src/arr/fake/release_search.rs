//! Release searches of the fakes. They find the releases that a test has added, for wanted titles that are not on disk.

use super::activity::{FakeDownload, download, parse_title_episodes};
use super::fake_server::{FakeLibraryState, FakeServer};
use super::media_fixtures::{FakeEpisode, MovieDetails, SeriesDetails};
use super::movie_json::is_available;
use super::search::is_same_title;
use super::series_json::{episode_numbers, episodes_with_air_times};

/// Remaining download time of a grabbed release.
const GRAB_MINUTES: u32 = 30;

/// Origin of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SearchReason {
    /// A user requested the search, so the title may be unreleased or unmonitored.
    UserRequest,
    /// The server started the search, so the title must be released and monitored.
    Automatic,
}

/// Release searches for the titles of a library.
pub trait ReleaseSearch: Clone + Send + Sized + 'static {
    /// Searches for a title as the server does automatically.
    fn search_wanted(state: &mut FakeLibraryState<Self>, id: i64);

    /// Searches for another release after a download has failed.
    fn find_replacement(state: &mut FakeLibraryState<Self>, title: &str);

    /// Imports a download, which puts its title on disk.
    fn import_download(state: &mut FakeLibraryState<Self>, download: &FakeDownload);
}

impl ReleaseSearch for MovieDetails {
    fn search_wanted(state: &mut FakeLibraryState<Self>, id: i64) {
        state.search_release(id, SearchReason::Automatic);
    }

    fn find_replacement(state: &mut FakeLibraryState<Self>, title: &str) {
        if let Some(id) = state.find_title(title).map(|movie| movie.id) {
            state.search_release(id, SearchReason::Automatic);
        }
    }

    fn import_download(state: &mut FakeLibraryState<Self>, download: &FakeDownload) {
        let id = state.find_title(&download.title).map(|movie| movie.id);
        if let Some(movie) = id.and_then(|id| state.title_mut(id)) {
            movie.size_bytes = download.size_bytes;
        }
    }
}

impl ReleaseSearch for SeriesDetails {
    fn search_wanted(state: &mut FakeLibraryState<Self>, id: i64) {
        state.search_missing(id);
    }

    fn find_replacement(state: &mut FakeLibraryState<Self>, title: &str) {
        let Some(episodes) = parse_title_episodes(title) else { return };
        let Some(series) = state.find_title(episodes.series) else { return };
        let (id, numbers) = (series.id, episode_numbers(series, &episodes));
        state.search_episodes(id, title.to_owned(), SearchReason::Automatic, |episode| {
            episode.season == episodes.season && numbers.contains(&episode.number)
        });
    }

    fn import_download(state: &mut FakeLibraryState<Self>, download: &FakeDownload) {
        let Some(episodes) = parse_title_episodes(&download.title) else { return };
        let Some(series) = state.find_title(episodes.series) else { return };
        let (id, numbers) = (series.id, episode_numbers(series, &episodes));
        let Some(series) = state.title_mut(id) else { return };
        for episode in series.episodes_mut() {
            episode.on_disk |= episode.season == episodes.season && numbers.contains(&episode.number);
        }
        series.size_bytes += download.size_bytes;
    }
}

impl FakeLibraryState<MovieDetails> {
    /// Searches for a movie and grabs a release that is found.
    pub(super) fn search_release(&mut self, id: i64, reason: SearchReason) {
        let now = self.clock.now();
        let Some(index) = self.library.iter().position(|movie| movie.id == id) else { return };
        let title = self.library[index].title.clone();
        self.library[index].details.last_search = Some(now);
        self.record.searches.push(title.clone());
        let movie = &self.library[index];
        let is_wanted =
            reason == SearchReason::UserRequest || (movie.monitored && is_available(self, &movie.details));
        // A release that is no better than the existing file or download is rejected.
        let is_present = movie.size_bytes > 0
            || self.downloads.iter().any(|download| is_same_title(&download.title, &title));
        let found = self
            .releases
            .iter()
            .position(|release| self.find_title(release).is_some_and(|title| title.id == id));
        if let Some(index) = found.filter(|_| is_wanted && !is_present) {
            self.grab_release(index);
        }
    }
}

impl FakeLibraryState<SeriesDetails> {
    pub(super) fn search_missing(&mut self, id: i64) {
        if let Some(title) = self.title(id).map(|series| series.title.clone()) {
            self.search_episodes(id, format!("{title} missing"), SearchReason::Automatic, |_| true);
        }
    }

    /// Searches for the episodes of a series that `is_selected` selects, and grabs the releases that are found.
    /// `description` is the entry of the action log.
    pub(super) fn search_episodes(
        &mut self,
        id: i64,
        description: String,
        reason: SearchReason,
        is_selected: impl Fn(&FakeEpisode) -> bool,
    ) {
        let now = self.clock.now();
        self.record.searches.push(description);
        let Some(series) = self.title(id) else { return };
        let is_wanted = |episode: &FakeEpisode| {
            let has_aired = episode.airs_at.is_some_and(|at| at <= now);
            is_selected(episode)
                && !episode.on_disk
                && (reason == SearchReason::UserRequest
                    || (series.monitored && episode.monitored && has_aired))
        };
        let wanted: Vec<(u32, u32)> = episodes_with_air_times(self, series)
            .iter()
            .filter(|episode| is_wanted(episode))
            .map(|episode| (episode.season, episode.number))
            .collect();
        if let Some(series) = self.title_mut(id) {
            let searched = |episode: &&mut FakeEpisode| wanted.contains(&(episode.season, episode.number));
            series
                .episodes_mut()
                .iter_mut()
                .filter(searched)
                .for_each(|episode| episode.last_search = Some(now));
        }
        while let Some(index) =
            self.releases.iter().position(|release| self.release_matches(release, id, &wanted))
        {
            self.grab_release(index);
        }
    }

    /// Returns whether a release contains a wanted episode, and none that is being downloaded.
    fn release_matches(&self, release: &str, id: i64, wanted: &[(u32, u32)]) -> bool {
        let Some(episodes) = parse_title_episodes(release) else { return false };
        let Some(series) = self.find_title(episodes.series).filter(|series| series.id == id) else {
            return false;
        };
        let mut downloading =
            self.downloads.iter().filter_map(|download| parse_title_episodes(&download.title));
        let is_downloading = downloading.any(|other| {
            is_same_title(other.series, episodes.series)
                && other.season == episodes.season
                && (other.episode.is_none()
                    || episodes.episode.is_none()
                    || other.episode == episodes.episode)
        });
        !is_downloading
            && episode_numbers(series, &episodes).any(|number| wanted.contains(&(episodes.season, number)))
    }
}

impl<D> FakeLibraryState<D> {
    /// Starts to download a release and removes it from the available ones.
    fn grab_release(&mut self, index: usize) {
        let mut grabbed = download(&self.releases.remove(index)).minutes_left(GRAB_MINUTES);
        self.grab_count += 1;
        grabbed.release.push_str(&self.grab_count.to_string());
        self.enqueue_download(grabbed);
        if let Some(grabbed) = self.downloads.last().cloned() {
            self.record_event(&grabbed, "grabbed", None);
        }
    }
}

impl<D: ReleaseSearch> FakeServer<D> {
    /// Imports the first download of this title.
    pub fn finish_download(&self, title: &str) {
        self.lock_state().finish_download(title);
    }

    /// Simulates an RSS sync: grabs every release of a title that is released, monitored and not on disk.
    pub fn run_rss(&self) {
        let mut state = self.lock_state();
        let searches = state.record.searches.clone();
        for id in state.library.iter().map(|title| title.id).collect::<Vec<_>>() {
            D::search_wanted(&mut state, id);
        }
        state.record.searches = searches;
    }
}
