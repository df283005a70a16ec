//! What a movie and a show are to the fakes, and the words that build them: `movie("Dune").year(2021).size_gb(21.4)`.
//! A default is valid everywhere; say only what matters.

use jiff::civil::Date;

const GB: f64 = 1e9;
const EPISODES_IN_A_SEASON: u32 = 8;
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
    pub details: D,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Film {
    /// Whether it can be had: an unreleased film is added, but not searched for.
    pub available: bool,
    pub cinema: Option<Date>,
    pub digital: Option<Date>,
    pub physical: Option<Date>,
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
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShowSeason {
    pub number: u32,
    pub episodes: u32,
    pub monitored: bool,
}

pub fn movie(title: &str) -> FakeMovie {
    Item::with(title, Film { available: true, cinema: None, digital: None, physical: None })
}

pub fn series(title: &str) -> FakeSeries {
    let seasons = spread(1, EPISODES_IN_A_SEASON);
    let show = Show { seasons, missing: 0, ended: false, kind: "standard", specials_monitored: false };
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

    /// Each season with the number of its episodes on disk, first season first.
    pub(super) fn seasons_on_disk(&self) -> Vec<(ShowSeason, u32)> {
        let total: u32 = self.details.seasons.iter().map(|season| season.episodes).sum();
        let mut left = if self.size_bytes == 0 { 0 } else { total.saturating_sub(self.details.missing) };
        let take = |season: &ShowSeason| {
            let on_disk = season.episodes.min(left);
            left -= on_disk;
            (*season, on_disk)
        };
        self.details.seasons.iter().map(take).collect()
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
