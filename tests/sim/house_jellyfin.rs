//! Media server of some schedules: it finds files late, forgets its titles, fails, and people watch on it.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use dialarr::clock::Clock;
use dialarr::http::HttpClient;
use dialarr::media_servers::MediaServer;
use dialarr::media_servers::fake::{FakeHousehold, FakeJellyfin, LibraryMirror};
use dialarr::media_servers::jellyfin::Jellyfin;
use dialarr::media_servers::playability::MediaServers;

use crate::house_series::NearEnd;
use crate::house_viewers::ViewerUsers;
use crate::plan::{BRAZIL, Plan};
use crate::rng::Rng;
use crate::world::{SECRET, World, pass};

/// Movies that people watch: the id in Radarr, and at TMDB.
pub(crate) const WATCHED_MOVIES: [(i64, i64); 3] = [(1, 438_631), (2, 949), (3, 348)];
/// Interval of the scans.
const SCAN_INTERVAL: Duration = Duration::from_secs(5);

/// Period in which somebody watches a movie.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Viewing {
    /// Id of the movie in Radarr.
    pub movie: i64,
    /// True times in milliseconds.
    pub from: i64,
    pub to: i64,
}

/// Jellyfin of a world, with everything that happened there.
pub(crate) struct HouseJellyfin {
    fake: FakeJellyfin,
    /// Accounts of the people; none in most schedules.
    pub viewers: ViewerUsers,
    pub viewings: Mutex<Vec<Viewing>>,
    pub near_ends: Mutex<Vec<NearEnd>>,
    /// True time at which Brazil was shown for the first time.
    pub brazil_shown_at: Mutex<Option<i64>>,
}

impl HouseJellyfin {
    pub(crate) fn new(plan: &Plan, clock: Clock) -> Self {
        let fake = FakeJellyfin::new(SECRET, clock);
        let viewers =
            if plan.has_viewers() { ViewerUsers::add(&fake.household) } else { ViewerUsers::default() };
        let (viewings, near_ends, brazil_shown_at) = (Mutex::default(), Mutex::default(), Mutex::default());
        Self { fake, viewers, viewings, near_ends, brazil_shown_at }
    }

    pub(crate) fn household(&self) -> &FakeHousehold {
        &self.fake.household
    }
}

impl World {
    /// Returns the client of the media server, behind a faulty network.
    pub(crate) fn media_servers(&self) -> MediaServers {
        let (Some(home), Some(storm)) = (&self.jellyfin, self.plan.jellyfin) else {
            return MediaServers::default();
        };
        let network = self.network_faults("jellyfin", storm).before(home.fake.in_process());
        let url = "http://jellyfin.invalid".parse().unwrap();
        let client = Jellyfin::new(HttpClient::in_process(network), url, &home.fake.key());
        MediaServers::new(vec![Arc::new(client) as Arc<dyn MediaServer>])
    }

    /// Lets the media server live, and people watch on it.
    pub(crate) fn run_jellyfin(&self) {
        let Some(home) = self.jellyfin.clone() else { return };
        let world = self.clone();
        tokio::spawn(async move {
            let mut rng = Rng::of(world.plan.seed, "jellyfin");
            let household = home.fake.household.clone();
            let viewer = household.add_user("Cleo");
            let scanned = || {
                let peers = &world.peers;
                LibraryMirror::new(peers.radarr.clone(), peers.sonarr.clone(), household.clone())
            };
            let mut mirror = scanned();
            mirror.scan();
            let mut plays = Rng::of(world.plan.seed, "plays");
            let mut series = Rng::of(world.plan.seed, "series");
            home.viewers.watch_at_first(&mut plays, &household, &mirror);
            let (mut watching, mut finds_nothing_until, mut fails_until) = (None, 0, 0);
            for tick in 0_u64.. {
                pass(SCAN_INTERVAL).await;
                let now = world.true_clock.now().as_millisecond();
                if world.calm.load(Ordering::SeqCst) {
                    (finds_nothing_until, fails_until) = (0, 0);
                } else if rng.percent(2) {
                    // Files are found late, sometimes after hours.
                    finds_nothing_until = tick + rng.one_of(&[12, 60, 400, 2_000]);
                } else if rng.percent(1) {
                    world.journal.note("Jellyfin forgets its titles");
                    mirror.forget_titles();
                    watching = None;
                } else if rng.percent(2) {
                    fails_until = tick + rng.one_of(&[2, 10, 60]);
                }
                household.set_status((tick < fails_until).then_some(503));
                if tick >= finds_nothing_until {
                    mirror.scan();
                }
                if mirror.movie(BRAZIL).is_some() {
                    home.brazil_shown_at.lock().unwrap().get_or_insert(now);
                }
                home.viewers.watch_sometimes(&mut plays, &household, &mirror);
                home.watch_series(&world, &mut series, &mirror);
                watching = home.watch(&world, &mut rng, (viewer, &mirror), watching);
            }
        });
    }
}

impl HouseJellyfin {
    /// Lets the viewer begin, go on, or end, and returns the movie that is watched.
    fn watch(
        &self,
        world: &World,
        rng: &mut Rng,
        (viewer, mirror): (u64, &LibraryMirror),
        watching: Option<i64>,
    ) -> Option<i64> {
        let (household, now) = (&self.fake.household, world.true_clock.now().as_millisecond());
        let mut viewings = self.viewings.lock().unwrap();
        let is_calm = world.calm.load(Ordering::SeqCst);
        if let Some(movie) = watching {
            let last = viewings.last_mut().unwrap();
            if !is_calm && !rng.percent(4) {
                last.to = now;
                return Some(movie);
            }
            world.journal.note(format!("nobody watches movie {movie} any more"));
            household.stop_playing(viewer);
            return None;
        }
        household.stop_playing(viewer);
        if is_calm || !rng.percent(12) {
            return None;
        }
        let (movie, tmdb) = rng.one_of(&WATCHED_MOVIES);
        household.start_playing(viewer, mirror.movie(tmdb)?);
        world.journal.note(format!("somebody watches movie {movie}"));
        viewings.push(Viewing { movie, from: now, to: now });
        Some(movie)
    }
}
