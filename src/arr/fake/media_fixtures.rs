//! Movies and series of the fakes, and the builders for them: `movie("Dune").year(2021).size_gb(21.4)`. Every default
//! is valid, so set only the values that matter.

use jiff::Timestamp;
use jiff::civil::Date;
use serde_json::{Value, json};

const GB: f64 = 1e9;
const EPISODES_IN_A_SEASON: u32 = 8;
/// Default time of an addition to the library: 2024-01-01T00:00:00Z.
const LONG_AGO: Timestamp = Timestamp::constant(1_704_067_200, 0);
const DEFAULT_PROFILE: &str = "HD-1080p";

pub type FakeMovie = FakeTitle<MovieDetails>;
pub type FakeSeries = FakeTitle<SeriesDetails>;

#[derive(Debug, Clone, PartialEq)]
pub struct FakeTitle<D> {
    /// Library id. Zero until the library assigns one.
    pub id: i64,
    /// TMDB or TVDB id. Zero until the catalog assigns one.
    pub catalog_id: i64,
    pub title: String,
    pub year: u16,
    pub overview: String,
    pub size_bytes: u64,
    pub monitored: bool,
    pub profile: String,
    /// Path of the folder. Empty until the library assigns one.
    pub path: String,
    /// Popularity from the catalog, for the order of search results.
    pub popularity: f64,
    pub genres: Vec<String>,
    /// Rating from 0 to 10.
    pub rating: f64,
    /// Time of the addition to the library.
    pub added: Timestamp,
    /// Quality of the files, such as `WEBDL-1080p`.
    pub file_quality: String,
    /// External address of the poster.
    pub poster: Option<String>,
    pub details: D,
}

#[derive(Debug, Clone, PartialEq)]
pub struct MovieDetails {
    /// True if the movie is released: an unreleased movie is added, but not searched for.
    pub available: bool,
    pub cinema: Option<Date>,
    pub digital: Option<Date>,
    pub physical: Option<Date>,
    /// Release from which on the library searches for the movie: `announced`, `inCinemas` or `released`.
    pub availability: &'static str,
    /// TMDB id and title of the collection.
    pub collection: Option<(i64, String)>,
    pub last_search: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct SeriesDetails {
    /// Regular seasons, without the specials, which every series has.
    pub seasons: Vec<ShowSeason>,
    /// Number of the last episodes that are not on disk. Without a size, no episode is on disk.
    pub missing: u32,
    pub ended: bool,
    /// Series type: `standard`, `daily` or `anime`.
    pub kind: &'static str,
    pub specials_monitored: bool,
    /// True if future seasons will be monitored.
    pub new_seasons: bool,
    /// Seasons whose last episode the catalog marks as a finale.
    pub finales: Vec<u32>,
    /// State of each episode. Empty while no episode differs from the others of its season.
    pub episodes: Vec<ShowEpisode>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShowSeason {
    pub number: u32,
    pub episodes: u32,
    pub monitored: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShowEpisode {
    pub season: u32,
    pub number: u32,
    pub monitored: bool,
    pub on_disk: bool,
    /// Air time. `None` for an episode that aired long ago, unless the calendar has a date.
    pub airs: Option<Timestamp>,
    pub last_search: Option<Timestamp>,
}

pub fn movie(title: &str) -> FakeMovie {
    let film = MovieDetails {
        available: true,
        cinema: None,
        digital: None,
        physical: None,
        availability: "released",
        collection: None,
        last_search: None,
    };
    FakeTitle::from_details(title, film)
}

pub fn series(title: &str) -> FakeSeries {
    let seasons = spread_episodes(1, EPISODES_IN_A_SEASON);
    let show = SeriesDetails {
        seasons,
        missing: 0,
        ended: false,
        kind: "standard",
        specials_monitored: false,
        new_seasons: true,
        finales: Vec::new(),
        episodes: Vec::new(),
    };
    FakeTitle::from_details(title, show)
}

impl<D> FakeTitle<D> {
    fn from_details(title: &str, details: D) -> Self {
        Self {
            id: 0,
            catalog_id: 0,
            title: title.to_owned(),
            year: 2020,
            overview: String::new(),
            size_bytes: 0,
            monitored: true,
            profile: DEFAULT_PROFILE.to_owned(),
            path: String::new(),
            popularity: 10.0,
            genres: Vec::new(),
            rating: 7.1,
            added: LONG_AGO,
            file_quality: "WEBDL-1080p".to_owned(),
            poster: None,
            details,
        }
    }

    pub fn id(mut self, id: i64) -> Self {
        self.id = id;
        self
    }

    pub fn year(mut self, year: u16) -> Self {
        self.year = year;
        self
    }

    pub fn overview(mut self, overview: &str) -> Self {
        overview.clone_into(&mut self.overview);
        self
    }

    /// Sets the size on disk. A movie has a file and a series has its episodes only if the size is above 0.
    pub fn size_gb(mut self, gigabytes: f64) -> Self {
        self.size_bytes = gigabytes_to_bytes(gigabytes);
        self
    }

    pub fn unmonitored(mut self) -> Self {
        self.monitored = false;
        self
    }

    /// Sets the name of the quality profile. A profile that the server lacks is created there.
    pub fn profile(mut self, name: &str) -> Self {
        name.clone_into(&mut self.profile);
        self
    }

    pub fn path(mut self, path: &str) -> Self {
        path.clone_into(&mut self.path);
        self
    }

    pub fn popularity(mut self, popularity: f64) -> Self {
        self.popularity = popularity;
        self
    }

    pub fn genres(mut self, genres: &[&str]) -> Self {
        self.genres = genres.iter().map(ToString::to_string).collect();
        self
    }

    pub fn rating(mut self, rating: f64) -> Self {
        self.rating = rating;
        self
    }

    pub fn added(mut self, at: Timestamp) -> Self {
        self.added = at;
        self
    }

    pub fn file_quality(mut self, quality: &str) -> Self {
        quality.clone_into(&mut self.file_quality);
        self
    }

    pub fn poster(mut self, url: &str) -> Self {
        self.poster = Some(url.to_owned());
        self
    }

    /// Returns the images in the list format of both servers.
    pub(super) fn images_json(&self) -> Value {
        let describe =
            |url| json!({ "coverType": "poster", "url": "/MediaCover/poster.jpg", "remoteUrl": url });
        self.poster.iter().map(describe).collect()
    }

    pub(super) fn folder_name(&self) -> String {
        let title = self.title.replace([':', '/', '?'], "");
        format!("{title} ({})", self.year)
    }
}

impl FakeMovie {
    pub fn tmdb(mut self, id: i64) -> Self {
        self.catalog_id = id;
        self
    }

    pub fn unreleased(mut self) -> Self {
        self.details.available = false;
        self
    }

    pub fn cinema(mut self, date: Date) -> Self {
        self.details.cinema = Some(date);
        self
    }

    pub fn digital(mut self, date: Date) -> Self {
        self.details.digital = Some(date);
        self
    }

    pub fn physical(mut self, date: Date) -> Self {
        self.details.physical = Some(date);
        self
    }

    pub fn collection(mut self, tmdb: i64, title: &str) -> Self {
        self.details.collection = Some((tmdb, title.to_owned()));
        self
    }
}

impl FakeSeries {
    pub fn tvdb(mut self, id: i64) -> Self {
        self.catalog_id = id;
        self
    }

    /// Sets the number of seasons, with eight episodes each.
    pub fn seasons(mut self, count: u32) -> Self {
        self.details.seasons = spread_episodes(count, count * EPISODES_IN_A_SEASON);
        self
    }

    /// Sets the number of episodes, spread over the seasons that were set before.
    pub fn episodes(mut self, total: u32) -> Self {
        let seasons = u32::try_from(self.details.seasons.len()).unwrap_or(u32::MAX);
        self.details.seasons = spread_episodes(seasons, total);
        self
    }

    /// Removes the last `count` episodes from the disk.
    pub fn missing(mut self, count: u32) -> Self {
        self.details.missing = count;
        self
    }

    pub fn ended(mut self) -> Self {
        self.details.ended = true;
        self
    }

    pub fn daily(mut self) -> Self {
        self.details.kind = "daily";
        self
    }

    pub fn anime(mut self) -> Self {
        self.details.kind = "anime";
        self
    }

    /// Adds this many special episodes to the series, on disk if the series has a size. Call this method after setting
    /// the number of regular episodes.
    pub fn specials(mut self, count: u32) -> Self {
        let (monitored, on_disk) = (self.details.specials_monitored, self.size_bytes > 0);
        let special =
            |number| ShowEpisode { season: 0, number, monitored, on_disk, airs: None, last_search: None };
        self.separate_episodes().extend((1..=count).map(special));
        self
    }

    /// Unmonitors a season and its episodes. Like all methods about individual episodes, call this method after setting
    /// the number of episodes and those on disk.
    pub fn unmonitored_season(mut self, number: u32) -> Self {
        for season in self.details.seasons.iter_mut().filter(|season| season.number == number) {
            season.monitored = false;
        }
        for episode in self.details.episodes.iter_mut().filter(|episode| episode.season == number) {
            episode.monitored = false;
        }
        self
    }

    pub fn unmonitored_episode(mut self, season: u32, number: u32) -> Self {
        self.change_episode(season, number, |episode| episode.monitored = false);
        self
    }

    pub fn off_disk(mut self, season: u32, number: u32) -> Self {
        self.change_episode(season, number, |episode| episode.on_disk = false);
        self
    }

    /// Sets the air time of an episode. An episode that has not aired is not on disk.
    pub fn airs(mut self, season: u32, number: u32, at: Timestamp) -> Self {
        self.change_episode(season, number, |episode| episode.airs = Some(at));
        self
    }

    /// Adds the next episode of a season to the catalog. The episode is not on disk.
    pub fn lists_next_episode(&mut self, season: u32, airs: Timestamp) {
        let mut episodes = self.all_episodes();
        for listed in self.details.seasons.iter_mut().filter(|listed| listed.number == season) {
            listed.episodes += 1;
            episodes.push(ShowEpisode {
                season,
                number: listed.episodes,
                monitored: listed.monitored,
                on_disk: false,
                airs: Some(airs),
                last_search: None,
            });
        }
        self.details.episodes = episodes;
    }

    /// Returns the monitored episodes by season and number, whether they are on disk or not.
    pub fn monitored_episodes(&self) -> Vec<(u32, u32)> {
        self.such_episodes(|episode| episode.monitored)
    }

    pub fn episodes_on_disk(&self) -> Vec<(u32, u32)> {
        self.such_episodes(|episode| episode.on_disk)
    }

    fn such_episodes(&self, such: impl Fn(&ShowEpisode) -> bool) -> Vec<(u32, u32)> {
        let episodes = self.all_episodes().into_iter();
        episodes.filter(such).map(|episode| (episode.season, episode.number)).collect()
    }

    /// Returns all episodes, without the specials unless the series was given any.
    pub(super) fn all_episodes(&self) -> Vec<ShowEpisode> {
        if !self.details.episodes.is_empty() {
            return self.details.episodes.clone();
        }
        let total: u32 = self.details.seasons.iter().map(|season| season.episodes).sum();
        let on_disk = if self.size_bytes == 0 { 0 } else { total.saturating_sub(self.details.missing) };
        let numbered = self.details.seasons.iter().flat_map(|season| {
            let of_season = move |number| ShowEpisode {
                season: season.number,
                number,
                monitored: season.monitored,
                on_disk: false,
                airs: None,
                last_search: None,
            };
            (1..=season.episodes).map(of_season)
        });
        (0..).zip(numbered).map(|(index, it)| ShowEpisode { on_disk: index < on_disk, ..it }).collect()
    }

    /// Lists the episodes individually, so that a change can apply to one of them.
    pub(super) fn separate_episodes(&mut self) -> &mut Vec<ShowEpisode> {
        self.details.episodes = self.all_episodes();
        &mut self.details.episodes
    }

    fn change_episode(&mut self, season: u32, number: u32, change: impl Fn(&mut ShowEpisode)) {
        let meant = |episode: &&mut ShowEpisode| (episode.season, episode.number) == (season, number);
        self.separate_episodes().iter_mut().filter(meant).for_each(change);
    }
}

pub(super) fn gigabytes_to_bytes(gigabytes: f64) -> u64 {
    (gigabytes * GB).round() as u64
}

fn spread_episodes(seasons: u32, episodes: u32) -> Vec<ShowSeason> {
    let share = |number: u32| {
        let extra = u32::from(number <= episodes % seasons.max(1));
        ShowSeason { number, episodes: episodes / seasons.max(1) + extra, monitored: true }
    };
    (1..=seasons).map(share).collect()
}
