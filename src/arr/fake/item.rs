//! What a movie and a show are to the fakes, and the words that build them: `movie("Dune").year(2021).size_gb(21.4)`.
//! A default is valid everywhere; say only what matters.

use jiff::Timestamp;
use jiff::civil::Date;
use serde_json::{Value, json};

const GB: f64 = 1e9;
const EPISODES_IN_A_SEASON: u32 = 8;
/// 2024-01-01T00:00:00Z.
const LONG_AGO: Timestamp = Timestamp::constant(1_704_067_200, 0);
const DEFAULT_PROFILE: &str = "HD-1080p";

pub type FakeMovie = Item<Film>;
pub type FakeSeries = Item<Show>;

#[derive(Debug, Clone, PartialEq)]
pub struct Item<D> {
    /// 0 until the library gives one.
    pub id: i64,
    /// The TMDB or TVDB id; 0 until the catalogue gives one.
    pub catalog_id: i64,
    pub title: String,
    pub year: u16,
    pub overview: String,
    pub size_bytes: u64,
    pub monitored: bool,
    pub profile: String,
    /// Empty until the library gives one.
    pub path: String,
    /// For the order of search results; the catalogue says it.
    pub popularity: f64,
    pub genres: Vec<String>,
    /// From 0 to 10.
    pub rating: f64,
    /// When the library got it.
    pub added: Timestamp,
    /// What its files are like: `WEBDL-1080p`.
    pub file_quality: String,
    /// Where its picture is, outside.
    pub poster: Option<String>,
    pub details: D,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Film {
    /// Whether it can be had: an unreleased film is added, but not searched for.
    pub available: bool,
    pub cinema: Option<Date>,
    pub digital: Option<Date>,
    pub physical: Option<Date>,
    /// From when on the library looks for it: `announced`, `inCinemas` or `released`.
    pub availability: &'static str,
    /// Its TMDB id and title.
    pub collection: Option<(i64, String)>,
    pub last_search: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Show {
    /// Without the specials, which every show has.
    pub seasons: Vec<ShowSeason>,
    /// How many of the last episodes are not on disk; without a size none is.
    pub missing: u32,
    pub ended: bool,
    /// `standard`, `daily` or `anime`.
    pub kind: &'static str,
    pub specials_monitored: bool,
    /// Whether seasons to come will be wanted.
    pub new_seasons: bool,
    /// The seasons whose last episode the catalogue marks as a finale.
    pub finales: Vec<u32>,
    /// Empty while no episode differs from the others of its season; from then on the truth about each.
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
    /// `None` for one that aired long ago, unless the calendar says when.
    pub airs: Option<Timestamp>,
    pub last_search: Option<Timestamp>,
}

pub fn movie(title: &str) -> FakeMovie {
    let film = Film {
        available: true,
        cinema: None,
        digital: None,
        physical: None,
        availability: "released",
        collection: None,
        last_search: None,
    };
    Item::with(title, film)
}

pub fn series(title: &str) -> FakeSeries {
    let seasons = spread(1, EPISODES_IN_A_SEASON);
    let show = Show {
        seasons,
        missing: 0,
        ended: false,
        kind: "standard",
        specials_monitored: false,
        new_seasons: true,
        finales: Vec::new(),
        episodes: Vec::new(),
    };
    Item::with(title, show)
}

impl<D> Item<D> {
    fn with(title: &str, details: D) -> Self {
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

    /// What it fills on the disk; a movie has a file and a show has its episodes only if this is more than 0.
    pub fn size_gb(mut self, gigabytes: f64) -> Self {
        self.size_bytes = bytes(gigabytes);
        self
    }

    pub fn unmonitored(mut self) -> Self {
        self.monitored = false;
        self
    }

    /// The name of its quality profile; a name that the server lacks is made there.
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

    /// The pictures as both servers list them.
    pub(super) fn images(&self) -> Value {
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

    /// This many seasons of eight episodes each.
    pub fn seasons(mut self, count: u32) -> Self {
        self.details.seasons = spread(count, count * EPISODES_IN_A_SEASON);
        self
    }

    /// The number of episodes, spread over the seasons that were said before.
    pub fn episodes(mut self, total: u32) -> Self {
        let seasons = u32::try_from(self.details.seasons.len()).unwrap_or(u32::MAX);
        self.details.seasons = spread(seasons, total);
        self
    }

    /// The last `count` episodes are not on disk.
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

    /// Gives the show this many special episodes, on disk if the show has a size. Call it after how many regular episodes
    /// there are.
    pub fn specials(mut self, count: u32) -> Self {
        let (monitored, on_disk) = (self.details.specials_monitored, self.size_bytes > 0);
        let special =
            |number| ShowEpisode { season: 0, number, monitored, on_disk, airs: None, last_search: None };
        self.told_apart().extend((1..=count).map(special));
        self
    }

    /// Neither the season nor its episodes are wanted. Like all that is about single episodes, say it after how many there
    /// are and what is on disk.
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

    /// What has not aired is not on disk.
    pub fn airs(mut self, season: u32, number: u32, at: Timestamp) -> Self {
        self.change_episode(season, number, |episode| episode.airs = Some(at));
        self
    }

    /// The catalogue lists the next episode of a season, which is not on disk.
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

    /// The wanted episodes by season and number, whether they are on disk or not.
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

    /// Without the specials, unless the show was given any.
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
        (0..).zip(numbered).map(|(place, it)| ShowEpisode { on_disk: place < on_disk, ..it }).collect()
    }

    /// The episodes to be changed one by one.
    pub(super) fn told_apart(&mut self) -> &mut Vec<ShowEpisode> {
        self.details.episodes = self.all_episodes();
        &mut self.details.episodes
    }

    fn change_episode(&mut self, season: u32, number: u32, change: impl Fn(&mut ShowEpisode)) {
        let meant = |episode: &&mut ShowEpisode| (episode.season, episode.number) == (season, number);
        self.told_apart().iter_mut().filter(meant).for_each(change);
    }
}

pub(super) fn bytes(gigabytes: f64) -> u64 {
    (gigabytes * GB).round() as u64
}

fn spread(seasons: u32, episodes: u32) -> Vec<ShowSeason> {
    let share = |number: u32| {
        let extra = u32::from(number <= episodes % seasons.max(1));
        ShowSeason { number, episodes: episodes / seasons.max(1) + extra, monitored: true }
    };
    (1..=seasons).map(share).collect()
}
