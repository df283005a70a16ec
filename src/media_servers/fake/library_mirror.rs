//! Scan of the simulated libraries: a media server shows what Sonarr and Radarr have on disk.

use std::collections::BTreeMap;

use jiff::SignedDuration;

use super::household::FakeHousehold;
use crate::arr::fake::radarr::FakeRadarr;
use crate::arr::fake::sonarr::FakeSonarr;
use crate::conversation::catalog_ids::CatalogIds;
use crate::conversation::transcript::MediaKind;

/// Files of simulated libraries that a simulated media server shows.
#[derive(Debug)]
pub struct LibraryMirror {
    radarr: FakeRadarr,
    sonarr: FakeSonarr,
    household: FakeHousehold,
    /// Items of the media server, by kind and catalog id.
    titles: BTreeMap<(MediaKind, i64), MirroredTitle>,
}

#[derive(Debug)]
struct MirroredTitle {
    item: u64,
    /// Item of each episode.
    episodes: BTreeMap<(u32, u32), u64>,
}

impl LibraryMirror {
    pub fn new(radarr: FakeRadarr, sonarr: FakeSonarr, household: FakeHousehold) -> Self {
        Self { radarr, sonarr, household, titles: BTreeMap::new() }
    }

    /// Lets the media server find new files, and forget deleted ones.
    pub fn scan(&mut self) {
        let mut files: BTreeMap<(MediaKind, i64), Vec<(u32, u32)>> = BTreeMap::new();
        for movie in self.radarr.titles().into_iter().filter(|movie| movie.size_bytes > 0) {
            let key = (MediaKind::Movie, movie.catalog_id);
            files.insert(key, Vec::new());
            self.show_title(key, (&movie.title, movie.year));
        }
        for series in self.sonarr.titles() {
            let (key, episodes) = ((MediaKind::Series, series.catalog_id), series.episodes_on_disk());
            if !episodes.is_empty() {
                self.show_title(key, (&series.title, series.year));
                self.show_episodes(key, &episodes);
                files.insert(key, episodes);
            }
        }
        self.forget_missing(&files);
    }

    /// Lets the media server forget everything, as after the loss of its database. The next scan finds the files again, with
    /// other ids.
    pub fn forget_titles(&mut self) {
        for title in std::mem::take(&mut self.titles).into_values() {
            self.household.remove_title(title.item);
        }
    }

    /// Returns the item of a movie that the media server shows.
    pub fn movie(&self, tmdb: i64) -> Option<u64> {
        self.titles.get(&(MediaKind::Movie, tmdb)).map(|title| title.item)
    }

    /// Returns the item of an episode that the media server shows.
    pub fn episode(&self, tvdb: i64, episode: (u32, u32)) -> Option<u64> {
        self.titles.get(&(MediaKind::Series, tvdb))?.episodes.get(&episode).copied()
    }

    fn show_title(&mut self, key: (MediaKind, i64), title: (&str, u16)) {
        let household = &self.household;
        self.titles.entry(key).or_insert_with(|| {
            let ids = CatalogIds::of_library(key.0, key.1);
            let item = match key.0 {
                MediaKind::Movie => household.add_movie(title, ids, SignedDuration::ZERO),
                MediaKind::Series => household.add_show(title, ids, SignedDuration::ZERO),
            };
            MirroredTitle { item, episodes: BTreeMap::new() }
        });
    }

    fn show_episodes(&mut self, key: (MediaKind, i64), episodes: &[(u32, u32)]) {
        let Some(title) = self.titles.get_mut(&key) else { return };
        for episode in episodes {
            let (household, show) = (&self.household, title.item);
            title.episodes.entry(*episode).or_insert_with(|| household.add_episode(show, *episode));
        }
    }

    fn forget_missing(&mut self, files: &BTreeMap<(MediaKind, i64), Vec<(u32, u32)>>) {
        let household = &self.household;
        self.titles.retain(|key, title| match files.get(key) {
            Some(episodes) => {
                let gone: Vec<(u32, u32)> =
                    title.episodes.keys().filter(|episode| !episodes.contains(episode)).copied().collect();
                for episode in gone {
                    title.episodes.remove(&episode);
                    household.remove_episode(title.item, episode);
                }
                true
            }
            None => {
                household.remove_title(title.item);
                false
            }
        });
    }
}
