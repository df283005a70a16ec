//! People of some schedules who ask what they can watch tonight, and vote about it. One of them may have a cap.

use dialarr::arr::fake::media_fixtures::{FakeMovie, movie};
use dialarr::conversation::rating_caps::{MinimumAge, RatingCaps};
use dialarr::conversation::transcript::UserId;
use dialarr::store::database::db::Db;
use dialarr::store::people::age_limits;

use crate::bot_plan::BotChats;
use crate::house_bot::ROOM;
use crate::people::{self, ReadMessage};
use crate::plan::{self, Act, DOT, PEOPLE, Plan};
use crate::records::{Records, number, word};
use crate::rng::Rng;
use crate::vote_people::write;
use crate::world::{World, pass};

/// Text that asks for a vote about titles.
const QUESTION: &str = "what can we all watch tonight";
/// Number of the titles among which people choose, so that some votes end in a tie.
const CHOSEN_OPTIONS: u64 = 2;
/// Titles over the cap.
pub(crate) const OVER_THE_CAP: [&str; 2] = ["Heat", "Alien"];
/// Cap of the person with one, in years.
pub(crate) const CAP: u8 = 13;

impl Plan {
    /// Returns whether people ask what to watch. Schedules that failed before stay the same.
    pub(crate) fn has_tonight(&self) -> bool {
        let is_bot = self.bot.as_ref().is_some_and(|bot| bot.chats == BotChats::PrivateAndGroup);
        let is_text = self.bot.is_none() && self.phone.is_none() && !self.brisk && self.seed % 8 == 3;
        !crate::has_failed_before(self.seed) && !self.brisk && (is_bot || is_text)
    }

    fn has_cap(&self) -> bool {
        self.has_tonight() && self.seed % 16 < 8
    }

    /// Adds texts that ask what to watch. This part uses a separate random stream.
    pub(crate) fn add_tonight(&mut self) {
        if !self.has_tonight() || self.bot.is_some() {
            return;
        }
        let mut rng = Rng::of(self.seed, "tonight");
        let mut at = rng.within(2_000, 60_000);
        for _ in 0..rng.within(1, 4) {
            let (from, body) = (rng.one_of(&PEOPLE), QUESTION.to_owned());
            let way = plan::way(&mut rng, self.webhooks);
            self.acts.push((at, Act::Text { from, body, way }));
            if rng.percent(50) {
                let from = rng.one_of(&PEOPLE);
                let body = "close vote".to_owned();
                self.acts.push((at + rng.within(40_000, 400_000), Act::Text { from, body, way }));
            }
            at += rng.within(60_000, 600_000);
        }
        self.acts.sort_by_key(|(at, _)| *at);
    }
}

/// Returns further movies for the votes, and gives all of them age ratings.
pub(crate) fn rated_movies() -> [FakeMovie; 5] {
    [
        movie("Dune").year(2021).tmdb(438_631).size_gb(21.4).certification("PG-13"),
        movie("Heat").year(1995).tmdb(949).size_gb(18.2).certification("R").minutes(170),
        movie("Alien").year(1979).tmdb(348).size_gb(120.0).certification("R"),
        movie("Up").year(2009).tmdb(14_160).size_gb(9.0).certification("PG").minutes(96),
        movie("Coco").year(2017).tmdb(354_912).size_gb(9.0).certification("PG"),
    ]
}

/// Lets people at the bot ask what to watch, in the group and in private chats.
pub(crate) fn ask(world: &World) {
    if !world.plan.has_tonight() {
        return;
    }
    let mut rng = Rng::of(world.plan.seed, "tonight");
    for _ in 0..rng.within(1, 4) {
        let (starter, closer) = (rng.one_of(&PEOPLE), rng.one_of(&PEOPLE));
        let (at, open_for) = (rng.ms(20_000, 500_000), rng.ms(5_000, 200_000));
        let (is_in_room, is_closed) = (rng.percent(50), rng.percent(60));
        let world = world.clone();
        world.clone().later(async move {
            pass(at).await;
            write(&world, starter, is_in_room, QUESTION);
            if is_closed {
                pass(open_for).await;
                write(&world, closer, is_in_room, "close vote");
            }
        });
    }
}

/// Lets a person who is asked by text choose a number.
pub(crate) fn answer(world: &World, rng: &mut Rng, sent: &ReadMessage) {
    let is_asked = sent.body.contains("Reply VOTE") && sent.to != ROOM.to_string();
    if !world.plan.has_tonight() || !is_asked || !rng.percent(80) {
        return;
    }
    let (number, after) = (rng.below(CHOSEN_OPTIONS) + 1, rng.ms(500, 60_000));
    let body = if rng.percent(50) { number.to_string() } else { format!("vote {number}") };
    let way = plan::way(rng, world.plan.webhooks);
    let (world, from) = (world.clone(), sent.to.clone());
    world.clone().later(async move {
        pass(after).await;
        people::text(&world, &from, &body, way);
    });
}

impl World {
    /// Gives a person a cap, in half of the schedules with votes about titles.
    pub(crate) async fn cap_a_person(&self, db: &Db) {
        if !self.plan.has_cap() {
            return;
        }
        let records = Records::of(&self.database);
        let Some(dot) = records.users.iter().find(|user| word(user, "phone") == DOT) else { return };
        let (id, now) = (UserId(number(dot, "id")), self.now());
        let caps = RatingCaps { movies: Some(MinimumAge(CAP)), shows: None };
        db.write(move |conn| age_limits::set_rating_caps(conn, id, caps, now)).await.unwrap();
    }
}
