//! Builders for the movies and series of the fakes, such as `movie("Dune").year(2021).size_gb(21.4)`. All fields have
//! valid defaults.

use jiff::Timestamp;
use jiff::civil::Date;
use serde_json::{Value, json};

const BYTES_PER_GB: f64 = 1e9;
const EPISODES_PER_SEASON: u32 = 8;
/// Default time of an addition to the library: 2024-01-01T00:00:00Z.
const DEFAULT_ADDED: Timestamp = Timestamp::constant(1_704_067_200, 0);
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
    /// Age rating, such as `PG-13`.
    pub certification: Option<String>,
    /// Rating from 0 to 10.
    pub rating: f64,
    /// Length of the movie, or of an episode, in minutes.
    pub minutes: u16,
    /// Time of the addition to the library.
    pub added: Timestamp,
    /// Quality of the files, such as `WEBDL-1080p`.
    pub file_quality: String,
    /// External URL of the poster.
    pub poster: Option<String>,
    pub details: D,
}

#[derive(Debug, Clone, PartialEq)]
pub struct MovieDetails {
    /// True if the movie is released. An unreleased movie can be added, but is not searched for.
    pub available: bool,
    pub cinema: Option<Date>,
    pub digital: Option<Date>,
    pub physical: Option<Date>,
    /// Release after which the library searches for the movie: `announced`, `inCinemas` or `released`.
    pub availability: &'static str,
    /// TMDB id and title of the collection.
    pub collection: Option<(i64, String)>,
    pub last_search: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct SeriesDetails {
    /// Regular seasons, without the specials, which every series has.
    pub seasons: Vec<FakeSeason>,
    /// Number of episodes at the end that are not on disk. If the size is 0, no episode is on disk.
    pub missing: u32,
    pub ended: bool,
    /// Series type: `standard`, `daily` or `anime`.
    pub series_type: &'static str,
    pub specials_monitored: bool,
    /// Id at TMDB, which Sonarr knows for most series.
    pub tmdb: Option<i64>,
    /// True if future seasons will be monitored.
    pub new_seasons: bool,
    /// Seasons whose last episode the catalog marks as a finale.
    pub finales: Vec<u32>,
    /// State of each episode. Empty until a change applies to individual episodes.
    pub episodes: Vec<FakeEpisode>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FakeSeason {
    pub number: u32,
    pub episodes: u32,
    pub monitored: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FakeEpisode {
    pub season: u32,
    pub number: u32,
    pub monitored: bool,
    pub on_disk: bool,
    /// Air time. If it is `None` and the calendar has no date, the episode aired long ago.
    pub airs_at: Option<Timestamp>,
    pub last_search: Option<Timestamp>,
}

pub fn movie(title: &str) -> FakeMovie {
    let details = MovieDetails {
        available: true,
        cinema: None,
        digital: None,
        physical: None,
        availability: "released",
        collection: None,
        last_search: None,
    };
    FakeTitle { minutes: 115, ..FakeTitle::from_details(title, details) }
}

pub fn series(title: &str) -> FakeSeries {
    let seasons = spread_episodes(1, EPISODES_PER_SEASON);
    let details = SeriesDetails {
        seasons,
        missing: 0,
        ended: false,
        series_type: "standard",
        specials_monitored: false,
        tmdb: None,
        new_seasons: true,
        finales: Vec::new(),
        episodes: Vec::new(),
    };
    FakeTitle { minutes: 45, ..FakeTitle::from_details(title, details) }
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
            certification: None,
            rating: 7.1,
            minutes: 0,
            added: DEFAULT_ADDED,
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

    /// Sets the name of the quality profile, which the server creates if it has none of that name.
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

    pub fn certification(mut self, certification: &str) -> Self {
        self.certification = Some(certification.to_owned());
        self
    }

    pub fn rating(mut self, rating: f64) -> Self {
        self.rating = rating;
        self
    }

    pub fn minutes(mut self, minutes: u16) -> Self {
        self.minutes = minutes;
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

    /// Returns the images in the format of both servers.
    pub(super) fn images_json(&self) -> Value {
        let image = |url| json!({ "coverType": "poster", "url": "/MediaCover/poster.jpg", "remoteUrl": url });
        self.poster.iter().map(image).collect()
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
    /// Sets the id at TMDB.
    pub fn tmdb(mut self, id: i64) -> Self {
        self.details.tmdb = Some(id);
        self
    }

    pub fn tvdb(mut self, id: i64) -> Self {
        self.catalog_id = id;
        self
    }

    /// Sets the number of seasons, with eight episodes each.
    pub fn seasons(mut self, count: u32) -> Self {
        self.details.seasons = spread_episodes(count, count * EPISODES_PER_SEASON);
        self
    }

    /// Sets the number of episodes, spread over the current number of seasons.
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
        self.details.series_type = "daily";
        self
    }

    pub fn anime(mut self) -> Self {
        self.details.series_type = "anime";
        self
    }

    /// Adds special episodes, on disk if the series has a size. Set the number of regular episodes first.
    pub fn specials(mut self, count: u32) -> Self {
        let (monitored, on_disk) = (self.details.specials_monitored, self.size_bytes > 0);
        let special =
            |number| FakeEpisode { season: 0, number, monitored, on_disk, airs_at: None, last_search: None };
        self.episodes_mut().extend((1..=count).map(special));
        self
    }

    /// Unmonitors a season and its episodes. Set the number of episodes and the size before any change to individual
    /// episodes.
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

    /// Removes an episode from the disk.
    pub fn missing_episode(mut self, season: u32, number: u32) -> Self {
        self.change_episode(season, number, |episode| episode.on_disk = false);
        self
    }

    /// Sets the air time of an episode. An episode that has not aired is not on disk.
    pub fn airs(mut self, season: u32, number: u32, at: Timestamp) -> Self {
        self.change_episode(season, number, |episode| episode.airs_at = Some(at));
        self
    }

    /// Adds the next episode of a season to the catalog. The episode is not on disk.
    pub fn add_next_episode(&mut self, season: u32, airs_at: Timestamp) {
        let mut episodes = self.all_episodes();
        for listed in self.details.seasons.iter_mut().filter(|listed| listed.number == season) {
            listed.episodes += 1;
            episodes.push(FakeEpisode {
                season,
                number: listed.episodes,
                monitored: listed.monitored,
                on_disk: false,
                airs_at: Some(airs_at),
                last_search: None,
            });
        }
        self.details.episodes = episodes;
    }

    /// Returns season and number of each monitored episode.
    pub fn monitored_episodes(&self) -> Vec<(u32, u32)> {
        self.filter_episodes(|episode| episode.monitored)
    }

    /// Returns season and number of each episode on disk.
    pub fn episodes_on_disk(&self) -> Vec<(u32, u32)> {
        self.filter_episodes(|episode| episode.on_disk)
    }

    fn filter_episodes(&self, matches: impl Fn(&FakeEpisode) -> bool) -> Vec<(u32, u32)> {
        let episodes = self.all_episodes().into_iter();
        episodes.filter(matches).map(|episode| (episode.season, episode.number)).collect()
    }

    /// Returns all episodes, including the specials that were added.
    pub(super) fn all_episodes(&self) -> Vec<FakeEpisode> {
        if !self.details.episodes.is_empty() {
            return self.details.episodes.clone();
        }
        let total: u32 = self.details.seasons.iter().map(|season| season.episodes).sum();
        let on_disk = if self.size_bytes == 0 { 0 } else { total.saturating_sub(self.details.missing) };
        let numbered = self.details.seasons.iter().flat_map(|season| {
            let episode = move |number| FakeEpisode {
                season: season.number,
                number,
                monitored: season.monitored,
                on_disk: false,
                airs_at: None,
                last_search: None,
            };
            (1..=season.episodes).map(episode)
        });
        (0..)
            .zip(numbered)
            .map(|(index, episode)| FakeEpisode { on_disk: index < on_disk, ..episode })
            .collect()
    }

    /// Stores the state of each episode and returns the episodes for changes.
    pub(super) fn episodes_mut(&mut self) -> &mut Vec<FakeEpisode> {
        self.details.episodes = self.all_episodes();
        &mut self.details.episodes
    }

    fn change_episode(&mut self, season: u32, number: u32, change: impl Fn(&mut FakeEpisode)) {
        let is_selected = |episode: &&mut FakeEpisode| (episode.season, episode.number) == (season, number);
        self.episodes_mut().iter_mut().filter(is_selected).for_each(change);
    }
}

pub(super) fn gigabytes_to_bytes(gigabytes: f64) -> u64 {
    (gigabytes * BYTES_PER_GB).round() as u64
}

fn spread_episodes(seasons: u32, episodes: u32) -> Vec<FakeSeason> {
    let share = |number: u32| {
        let extra = u32::from(number <= episodes % seasons.max(1));
        FakeSeason { number, episodes: episodes / seasons.max(1) + extra, monitored: true }
    };
    (1..=seasons).map(share).collect()
}
