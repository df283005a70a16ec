//! People of some schedules with a media server who are linked to their accounts there, watch titles, and ask what they
//! and others have watched. Each person stops at a percentage of their own, by which their plays are recognized.

use dialarr::conversation::people::naming::UserName;
use dialarr::conversation::transcript::UserId;
use dialarr::conversation::viewer_accounts::{MediaServerKind, ViewerAccount};
use dialarr::media_servers::fake::{FakeHousehold, LibraryMirror};
use dialarr::store::audit::Actor;
use dialarr::store::database::db::Db;
use dialarr::store::library::quotas::{self, QuotaOverride};
use dialarr::store::people::{users, viewer_accounts};

use crate::house_jellyfin::WATCHED_MOVIES;
use crate::plan::{self, ANN, Act, BOB, CAT, DOT, DeliveryMode, PEOPLE, Plan};
use crate::records::{Records, number, word};
use crate::rng::Rng;
use crate::world::World;

/// Show of which people watch the first episode.
const WATCHED_SHOW: i64 = 371_980;

/// Person with an account at the media server.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HouseViewer {
    pub phone: &'static str,
    pub name: &'static str,
    /// Percentage at which this person, and nobody else, stops.
    percent: u8,
}

pub(crate) const VIEWERS: [HouseViewer; 4] = [
    HouseViewer { phone: ANN, name: "Ann", percent: 31 },
    HouseViewer { phone: BOB, name: "Bob", percent: 43 },
    HouseViewer { phone: CAT, name: "Cat", percent: 57 },
    HouseViewer { phone: DOT, name: "Dot", percent: 69 },
];

impl HouseViewer {
    /// Returns whether a text states what this person has watched.
    pub(crate) fn is_mentioned_in(&self, text: &str) -> bool {
        text.contains(&format!("at {}%", self.percent))
    }
}

/// Accounts of the people, in their order.
#[derive(Debug, Default)]
pub(crate) struct ViewerUsers(Vec<u64>);

impl ViewerUsers {
    pub(crate) fn add(household: &FakeHousehold) -> Self {
        Self(VIEWERS.iter().map(|viewer| household.add_user(viewer.name)).collect())
    }

    /// Returns the users of the media server with their people.
    pub(crate) fn accounts(&self) -> impl Iterator<Item = (u64, HouseViewer)> {
        self.0.iter().copied().zip(VIEWERS)
    }

    /// Lets everybody watch something.
    pub(crate) fn watch_at_first(&self, rng: &mut Rng, household: &FakeHousehold, mirror: &LibraryMirror) {
        for (user, viewer) in self.0.iter().zip(VIEWERS) {
            watch(rng, household, mirror, (*user, viewer));
        }
    }

    /// Lets somebody watch something now and then.
    pub(crate) fn watch_sometimes(&self, rng: &mut Rng, household: &FakeHousehold, mirror: &LibraryMirror) {
        for (user, viewer) in self.0.iter().zip(VIEWERS) {
            if rng.percent(5) {
                watch(rng, household, mirror, (*user, viewer));
            }
        }
    }

    fn account(&self, viewer: &HouseViewer) -> Option<ViewerAccount> {
        let position = VIEWERS.iter().position(|known| known.phone == viewer.phone)?;
        let id = format!("{:032x}", self.0.get(position)?);
        Some(ViewerAccount { server: MediaServerKind::Jellyfin, id, name: viewer.name.to_owned() })
    }
}

fn watch(
    rng: &mut Rng,
    household: &FakeHousehold,
    mirror: &LibraryMirror,
    (user, viewer): (u64, HouseViewer),
) {
    let (_, tmdb) = rng.one_of(&WATCHED_MOVIES);
    let item = if rng.percent(20) { mirror.episode(WATCHED_SHOW, (1, 1)) } else { mirror.movie(tmdb) };
    if let Some(item) = item {
        household.watch(user, item, viewer.percent);
    }
}

impl Plan {
    /// Returns whether people are linked to their accounts. The other schedules with a media server stay the same.
    pub(crate) fn has_viewers(&self) -> bool {
        self.jellyfin.is_some() && self.seed % 6 == 1
    }

    /// Adds questions about what people have watched. This part uses a separate random stream.
    pub(crate) fn add_viewing_questions(&mut self) {
        if !self.has_viewers() {
            return;
        }
        let mut rng = Rng::of(self.seed, "viewing questions");
        let moments: Vec<u64> = self.acts.iter().map(|(at, _)| *at).collect();
        for _ in 0..rng.within(4, 9) {
            let at = rng.one_of(&moments) + rng.within(0, 40_000);
            let from = rng.one_of(&PEOPLE);
            let body = match rng.below(10) {
                0..4 => "what was i watching".to_owned(),
                4..8 => format!("details {}", rng.one_of(&["Dune", "Heat", "Alien"])),
                _ => format!("what did {} watch", rng.one_of(&["Ann", "Bob", "Cat", "Dot", "anyone"])),
            };
            let way = plan::way(&mut rng, self.webhooks);
            self.acts.push((at, Act::Text { from, body, way }));
        }
        // These are asked while everybody has watched something. The model repeats an answer without a tool.
        let questions = [
            (20_000, CAT, "what was i watching"),
            (45_000, CAT, "what was that again"),
            (50_000, DOT, "details Heat"),
            (75_000, DOT, "what was that again"),
        ];
        for (at, from, body) in questions {
            let body = body.to_owned();
            self.acts.push((at, Act::Text { from, body, way: DeliveryMode::Straight }));
        }
        self.acts.sort_by_key(|(at, _)| *at);
    }
}

impl World {
    /// Links each person to their account, and gives them their names, by which the model knows who asks.
    pub(crate) async fn link_viewers(&self, db: &Db) {
        let Some(home) = self.jellyfin.as_ref().filter(|_| self.plan.has_viewers()) else { return };
        let records = Records::of(&self.database);
        for viewer in VIEWERS {
            let Some(account) = home.viewers.account(&viewer) else { continue };
            let user = records.users.iter().find(|user| word(user, "phone") == viewer.phone).unwrap();
            let (id, now) = (UserId(number(user, "id")), self.now());
            let has_no_quota = self.plan.has_offers() && viewer.phone == BOB;
            let link = move |conn: &mut _| {
                if has_no_quota {
                    let quota = QuotaOverride { movies: None, seasons: Some(0), space_gb: None };
                    quotas::store_quota_override(conn, id, quota, now)?;
                }
                users::set_name(conn, id, &UserName::parse(viewer.name).unwrap(), now)?;
                viewer_accounts::link_account(conn, id, &account, Actor::Shell, now)
            };
            db.write(link).await.unwrap();
        }
    }
}
