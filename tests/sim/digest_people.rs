//! People of some schedules who get a digest that is due early in the schedule, and who ask what it would say.

use dialarr::app::App;
use dialarr::arr::fake::media_fixtures::movie;
use dialarr::conversation::digest::schedule::DigestSchedule;
use dialarr::conversation::transcript::UserId;
use dialarr::store::digests;
use jiff::civil::Weekday;
use jiff::{SignedDuration, ToSpan};

use crate::people;
use crate::plan::{DeliveryMode, PEOPLE, Plan};
use crate::records::{Records, number, word};
use crate::rng::Rng;
use crate::world::{World, pass};

/// Hour on Friday at which the digests are due, four minutes before the schedules start.
const HOUR: i8 = 21;
/// Time before a digest is due in which the start at rest would send it.
const LAST_MINUTES: SignedDuration = SignedDuration::from_mins(5);
/// Texts about the digest, which do not turn it off.
const TEXTS: [&str; 4] = ["digest", "my digest", "1", "2"];
/// Time in which a digest that is due has to be sent, with the hour in which it waits for a server.
pub(crate) const DIGEST_PERIOD: SignedDuration = SignedDuration::from_hours(12);

impl Plan {
    /// Returns whether people get a digest. The other schedules stay the same.
    pub(crate) fn has_digests(&self) -> bool {
        self.seed % 13 == 6 && !self.brisk && self.phone.is_none() && self.bot.is_none()
    }
}

impl World {
    /// Gives everybody a digest that is due now, with something to list, and lets people ask for it.
    pub(crate) async fn arrange_digests(&self, app: &App) {
        if !self.plan.has_digests() {
            return;
        }
        let comes_on = self.now().to_zoned(jiff::tz::TimeZone::UTC).date().saturating_add(2.days());
        self.peers.radarr.add(movie("Paddington in Peru").year(2024).tmdb(516_729).digital(comes_on));
        let long_ago = self.now() - SignedDuration::from_hours(24);
        for user in Records::of(&self.database).users {
            if PEOPLE.contains(&word(&user, "phone")) {
                let id = UserId(number(&user, "id"));
                let schedule = DigestSchedule::new(Weekday::Friday, HOUR);
                let set = move |conn: &mut _| digests::store_schedule(conn, id, schedule, long_ago);
                app.db.write(set).await.unwrap();
            }
        }
        let mut rng = Rng::of(self.plan.seed, "digests");
        for _ in 0..rng.below(6) {
            let (from, body, at) = (rng.one_of(&PEOPLE), rng.one_of(&TEXTS), rng.ms(5_000, 500_000));
            let world = self.clone();
            self.later(async move {
                pass(at).await;
                people::text(&world, from, body, DeliveryMode::Straight);
            });
        }
    }

    /// Waits for a digest that is about to become due, after the clock was set back.
    pub(crate) async fn pass_due_digest(&self) {
        let now = self.now().to_zoned(jiff::tz::TimeZone::UTC);
        let due = now.date().at(HOUR, 0, 0, 0).to_zoned(jiff::tz::TimeZone::UTC).unwrap();
        let wait = due.duration_since(&now);
        let is_soon = now.weekday() == Weekday::Friday && wait.is_positive() && wait < LAST_MINUTES;
        if self.plan.has_digests() && is_soon {
            pass((LAST_MINUTES + LAST_MINUTES).unsigned_abs()).await;
        }
    }
}
