//! Series of some schedules of which the first season is there: people watch it, and are offered the second one.

use std::sync::atomic::Ordering;

use dialarr::arr::fake::media_fixtures::{FakeSeries, series};
use dialarr::media_servers::fake::LibraryMirror;

use crate::house_jellyfin::HouseJellyfin;
use crate::plan::{DOT, Plan};
use crate::rng::Rng;
use crate::world::World;

/// Id of the series at TheTVDB.
const FARGO: i64 = 269_613;
const EPISODES: u64 = 8;
/// First episode after which two or fewer are left.
const NEARLY_LAST: u64 = 6;

/// Moment at which a person had nearly watched what is there.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NearEnd {
    pub phone: &'static str,
    /// True time in milliseconds.
    pub at: i64,
}

/// Creates the series with its first season of two.
pub(crate) fn first_season() -> FakeSeries {
    let seasons = series("Fargo").year(2014).tvdb(FARGO).seasons(2).episodes(16);
    seasons.missing(8).size_gb(19.2).unmonitored_season(2)
}

impl Plan {
    /// Returns whether people watch a series whose next season is not there. The other schedules with a media server stay
    /// the same.
    pub(crate) fn has_offers(&self) -> bool {
        self.has_viewers() && self.seed % 12 == 1
    }
}

impl HouseJellyfin {
    /// Lets everybody but Dot finish episodes at random, until the faults end.
    pub(crate) fn watch_series(&self, world: &World, rng: &mut Rng, mirror: &LibraryMirror) {
        if !world.plan.has_offers() || world.calm.load(Ordering::SeqCst) {
            return;
        }
        for (user, viewer) in self.viewers.accounts().filter(|(_, viewer)| viewer.phone != DOT) {
            let (is_watching, number) = (rng.percent(5), rng.within(1, EPISODES));
            let Some(item) = mirror.episode(FARGO, (1, u32::try_from(number).unwrap())) else { continue };
            if is_watching {
                self.household().watch(user, item, 100);
            }
            if is_watching && number >= NEARLY_LAST {
                let at = world.true_clock.now().as_millisecond();
                self.near_ends.lock().unwrap().push(NearEnd { phone: viewer.phone, at });
            }
        }
    }
}
