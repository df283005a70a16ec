//! Proposals to make room in a schedule: an admin starts them and reviews, and the person who asked for the titles answers.

use dialarr::store::database::db::Db;
use diesel::RunQueryDsl;
use jiff::SignedDuration;

use crate::plan::{ANN, Act, CAT, DeliveryMode, Plan};
use crate::rng::Rng;
use crate::world::World;

/// Age of the titles that could go, in days.
const AGE_DAYS: i64 = 400;

impl Plan {
    /// Returns whether titles of the schedule could go.
    pub(crate) fn makes_room(&self) -> bool {
        self.seed % 6 == 5
            && self.jellyfin.is_none()
            && self.phone.is_none()
            && self.bot.is_none()
            && !crate::has_failed_before(self.seed)
            && !self.has_tonight()
    }

    /// Adds proposals with their answers and reviews. This part uses a separate random stream.
    pub(crate) fn add_proposals(&mut self, rng: &mut Rng, end: u64) {
        let mut at = rng.within(500, 20_000);
        let says = |plan: &mut Self, at: u64, from, body: &str| {
            plan.acts.push((at, Act::Text { from, body: body.to_owned(), way: DeliveryMode::Straight }));
        };
        for _ in 0..rng.within(1, 3) {
            says(self, at, ANN, "make room");
            at += rng.within(8_000, 60_000);
            says(self, at, CAT, rng.one_of(&["free all", "free 1", "free all", "keep 1", "keep all"]));
            at += rng.within(8_000, 60_000);
            says(self, at, CAT, rng.one_of(&["free all", "free 2", "kept", "unkeep 1"]));
            at += rng.within(5_000, 30_000);
            says(self, at, ANN, "review");
            if rng.percent(40) {
                says(
                    self,
                    at + rng.within(500, 12_000),
                    CAT,
                    rng.one_of(&["keep dune", "keep heat", "keep all"]),
                );
            }
            at += rng.within(20_000, 200_000).min(end);
        }
    }
}

/// Lets the titles count as requested by Cat, long ago.
pub(crate) async fn attribute_titles(world: &World, db: &Db) {
    if !world.plan.makes_room() {
        return;
    }
    let at = (world.now() - SignedDuration::from_hours(24 * AGE_DAYS)).as_millisecond();
    for tmdb in [438_631, 949] {
        let attribute = format!(
            "INSERT OR IGNORE INTO title_attributions (user_id, instance, kind, catalog_id, first_requested_at) \
             SELECT user_id, 'radarr', 'movie', {tmdb}, {at} FROM user_addresses WHERE address = '{CAT}'"
        );
        db.write(move |conn| diesel::sql_query(&attribute).execute(conn)).await.unwrap();
    }
}

/// Returns the time at which titles were added that could go.
pub(crate) fn added_at(now: jiff::Timestamp) -> jiff::Timestamp {
    now - SignedDuration::from_hours(24 * AGE_DAYS)
}
