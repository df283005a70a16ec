//! Seerr of some schedules, which decides on requests and hands them to Sonarr and Radarr, and TMDB of others. Both fail,
//! and answer the questions about titles.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use dialarr::clock::Clock;
use dialarr::conversation::transcript::{MediaKind, UserId};
use dialarr::conversation::viewer_accounts::{MediaServerKind, ViewerAccount};
use dialarr::discovery::fake::{FakeCatalog, FakeEntry, FakeTmdb};
use dialarr::discovery::{Discovery, DiscoverySource};
use dialarr::http::{HttpClient, InProcess};
use dialarr::seerr::Seerr;
use dialarr::seerr::fake::{FakeSeerr, FakeSeerrRequest, Permission};
use dialarr::store::audit::Actor;
use dialarr::store::database::db::Db;
use dialarr::store::people::viewer_accounts;
use http::Request;
use serde_json::{Value, json};

use crate::plan::{self, ANN, Act, BOB, BRAZIL, CAT, FAY, PEOPLE, Plan};
use crate::records::{Records, number, word};
use crate::rng::Rng;
use crate::world::{SECRET, World, pass};

/// Interval at which the Seerr works on its requests.
const WORK_INTERVAL: Duration = Duration::from_secs(5);
/// Age in milliseconds from which somebody decides on a request at the website, or withdraws it.
const WEBSITE_AFTER_MS: i64 = 180_000;
/// Status codes of requests.
pub(crate) const PENDING: i64 = 1;
pub(crate) const APPROVED: i64 = 2;
pub(crate) const DECLINED: i64 = 3;
const FAILED: i64 = 4;
const COMPLETED: i64 = 5;
/// Ids of Dark and Severance at TMDB and TheTVDB.
const SHOWS: [(i64, i64); 2] = [(70_523, 334_824), (95_396, 371_980)];

/// Seerr of a world, with everything that happened there outside of the program.
pub(crate) struct HouseSeerr {
    pub fake: FakeSeerr,
    /// Users, each with the phone of their person. Dot has none.
    pub users: Vec<(&'static str, i64)>,
    /// Requests that were withdrawn at the website, with the true time in milliseconds.
    pub withdrawn: Mutex<Vec<(FakeSeerrRequest, i64)>>,
    /// Ids of the requests that were decided at the website.
    pub decided_at_website: Mutex<Vec<i64>>,
}

impl HouseSeerr {
    pub(crate) fn new(clock: Clock) -> Self {
        let fake = FakeSeerr::new(SECRET, clock).with_titles(house_catalog().seerr_titles());
        let trusted = Permission::REQUEST | Permission::AUTO_APPROVE;
        let add = |phone, name, permissions| (phone, fake.add_user(name, permissions));
        let users = vec![
            add(ANN, "Ann", trusted | Permission::MANAGE_REQUESTS),
            add(BOB, "Bob", Permission::REQUEST),
            add(CAT, "Cat", trusted),
            add(FAY, "Fay", trusted),
        ];
        Self { fake, users, withdrawn: Mutex::default(), decided_at_website: Mutex::default() }
    }

    /// Returns the phone of the person who is linked to a user.
    pub(crate) fn phone_of(&self, user: i64) -> Option<&'static str> {
        self.users.iter().find(|(_, id)| *id == user).map(|(phone, _)| *phone)
    }

    /// Returns the requests that exist or existed.
    pub(crate) fn all_requests(&self) -> Vec<FakeSeerrRequest> {
        let mut requests = self.fake.requests();
        requests.extend(self.withdrawn.lock().unwrap().iter().map(|(request, _)| request.clone()));
        requests
    }

    /// Decides on old requests, or withdraws one, as people do at the website.
    fn use_website(&self, world: &World, rng: &mut Rng) {
        let now = world.true_clock.now();
        let is_old = |request: &&FakeSeerrRequest| {
            now.duration_since(request.created_at).as_millis() > i128::from(WEBSITE_AFTER_MS)
        };
        let requests = self.fake.requests();
        let Some(request) = requests.iter().find(is_old).filter(|_| rng.percent(3)) else { return };
        if rng.percent(20) {
            world.journal.note(format!("request {} is withdrawn at Seerr", request.id));
            self.withdrawn.lock().unwrap().push((request.clone(), now.as_millisecond()));
            self.fake.remove_request(request.id);
        } else if request.status == PENDING {
            let status = rng.one_of(&[APPROVED, DECLINED]);
            world.journal.note(format!("request {} becomes {status} at the website of Seerr", request.id));
            self.decided_at_website.lock().unwrap().push(request.id);
            self.fake.set_request_status(request.id, status);
        }
    }

    /// Hands approved requests to Sonarr and Radarr, which refuse some of them.
    async fn hand_over(&self, world: &World, rng: &mut Rng) {
        for request in self.fake.requests().iter().filter(|request| request.status == APPROVED) {
            let (is_on_disk, is_known) = state_of(world, request);
            if is_on_disk {
                self.fake.set_request_status(request.id, COMPLETED);
                continue;
            }
            if is_known {
                continue;
            }
            if rng.percent(8) && !world.calm.load(Ordering::SeqCst) {
                world.journal.note(format!("request {} fails at Seerr", request.id));
                self.fake.set_request_status(request.id, FAILED);
                continue;
            }
            // An addition that fails is tried again in the next round.
            add_title(world, request).await;
        }
    }
}

/// Returns whether the title of a request is on disk, and whether it is in the library.
fn state_of(world: &World, request: &FakeSeerrRequest) -> (bool, bool) {
    match request.kind {
        MediaKind::Movie => {
            let movies = world.peers.radarr.titles();
            let movie = movies.iter().find(|movie| movie.catalog_id == request.tmdb);
            (movie.is_some_and(|movie| movie.size_bytes > 0), movie.is_some())
        }
        MediaKind::Series => {
            let series = world.peers.sonarr.titles();
            let is_known = series.iter().any(|series| Some(series.catalog_id) == request.tvdb);
            (false, is_known)
        }
    }
}

/// Adds a title as a Seerr does.
async fn add_title(world: &World, request: &FakeSeerrRequest) {
    let common = json!({ "qualityProfileId": 4, "rootFolderPath": "/movies", "monitored": true });
    let (server, path, key, ids): (InProcess, _, _, Value) = match request.kind {
        MediaKind::Movie => {
            let radarr = &world.peers.radarr;
            (radarr.in_process(), "movie", radarr.api_key(), json!({ "tmdbId": request.tmdb }))
        }
        MediaKind::Series => {
            let sonarr = &world.peers.sonarr;
            let ids =
                json!({ "tvdbId": request.tvdb, "rootFolderPath": "/tv", "title": "Show", "seasons": [] });
            (sonarr.in_process(), "series", sonarr.api_key(), ids)
        }
    };
    let mut body = common;
    body.as_object_mut().unwrap().extend(ids.as_object().unwrap().clone());
    let post = Request::post(format!("http://house.invalid/api/v3/{path}"))
        .header("x-api-key", key)
        .header("content-type", "application/json")
        .body(Bytes::from(body.to_string()))
        .unwrap();
    let status = server(post).await.status();
    world.journal.note(format!("Seerr adds request {}: {status}", request.id));
}

/// Builds the titles that Seerr and TMDB know.
fn house_catalog() -> FakeCatalog {
    let catalog = FakeCatalog::default();
    let movies = [
        ("Dune", 2021, 438_631),
        ("Heat", 1995, 949),
        ("Arrival", 2016, 329_865),
        ("Sicario", 2015, 273_481),
    ];
    for (title, year, tmdb) in movies.into_iter().chain([("Tenet", 2020, 577_922), ("Brazil", 1985, BRAZIL)])
    {
        catalog.add(FakeEntry::movie((title, year), tmdb).similar_to(&[273_481, 577_922]));
    }
    for ((title, year), (tmdb, tvdb)) in [("Dark", 2017), ("Severance", 2022)].into_iter().zip(SHOWS) {
        catalog.add(FakeEntry::show((title, year), tmdb, tvdb));
    }
    let titles = [329_865, 273_481].map(|tmdb| (MediaKind::Movie, tmdb));
    catalog.add_director(137_427, "Denis Villeneuve", &titles);
    catalog
}

impl Plan {
    /// Adds a Seerr or TMDB, and questions that they answer. This part uses a separate random stream.
    pub(crate) fn add_catalogs(&mut self) {
        let mut rng = Rng::of(self.seed, "catalogs");
        match self.seed % 4 {
            3 => self.seerr = Some(rng.one_of(&[0, 25, 45])),
            1 => self.tmdb = Some(rng.one_of(&[0, 25])),
            _ => return,
        }
        let moments: Vec<u64> = self.acts.iter().map(|(at, _)| *at).collect();
        for _ in 0..rng.within(1, 3) {
            let at = rng.one_of(&moments) + rng.within(0, 40_000);
            let body = format!("recommend {}", rng.one_of(&["trending", "like Heat", "by Villeneuve"]));
            self.add_text(at, rng.one_of(&PEOPLE), body, &mut rng);
        }
        let additions = if self.seerr.is_some() { rng.within(2, 6) } else { 0 };
        for _ in 0..additions {
            let at = rng.one_of(&moments) + rng.within(0, 40_000);
            let title = rng.one_of(&["Arrival", "Sicario", "Tenet", "Dark"]);
            self.add_text(at, rng.one_of(&PEOPLE), format!("add {title}"), &mut rng);
        }
        self.acts.sort_by_key(|(at, _)| *at);
    }

    fn add_text(&mut self, at: u64, from: &'static str, body: String, rng: &mut Rng) {
        let way = plan::way(rng, self.webhooks);
        self.acts.push((at, Act::Text { from, body, way }));
    }
}

impl World {
    /// Returns the sources of titles, behind a faulty network.
    pub(crate) fn discovery(&self) -> Discovery {
        let source = match (self.requests(), &self.tmdb, self.plan.tmdb) {
            (Some(seerr), _, _) => DiscoverySource::seerr(&seerr),
            (None, Some(fake), Some(storm)) => {
                let network = self.network_faults("tmdb", storm).before(fake.in_process());
                let url = "http://tmdb.invalid/3".parse().unwrap();
                DiscoverySource::tmdb(HttpClient::in_process(network), url, &fake.token())
            }
            _ => return Discovery::default(),
        };
        Discovery::new(vec![source], "US".to_owned())
    }

    /// Returns the client of the Seerr at which titles are requested, behind a faulty network.
    pub(crate) fn requests(&self) -> Option<Seerr> {
        let (house, storm) = (self.seerr.as_ref()?, self.plan.seerr?);
        let network = self.network_faults("seerr", storm).before(house.fake.in_process());
        let url = "http://seerr.invalid".parse().unwrap();
        Some(Seerr::new(HttpClient::in_process(network), url, &house.fake.key()))
    }

    /// Lets the Seerr work, and people decide at its website.
    pub(crate) fn run_seerr(&self) {
        let Some(house) = self.seerr.clone() else { return };
        let world = self.clone();
        tokio::spawn(async move {
            let mut rng = Rng::of(world.plan.seed, "seerr");
            let mut fails_until = 0;
            for tick in 0_u64.. {
                pass(WORK_INTERVAL).await;
                if world.calm.load(Ordering::SeqCst) {
                    fails_until = 0;
                } else {
                    house.use_website(&world, &mut rng);
                    if rng.percent(1) {
                        fails_until = tick + rng.one_of(&[2, 10, 60]);
                    }
                }
                house.fake.set_status((tick < fails_until).then_some(503));
                house.hand_over(&world, &mut rng).await;
            }
        });
    }

    /// Links each person to their user of the Seerr.
    pub(crate) async fn link_requesters(&self, db: &Db) {
        let Some(house) = &self.seerr else { return };
        let records = Records::of(&self.database);
        for (phone, id) in house.users.clone() {
            let user = records.users.iter().find(|user| word(user, "phone") == phone).unwrap();
            let (user, now) = (UserId(number(user, "id")), self.now());
            let account = ViewerAccount {
                server: MediaServerKind::Seerr,
                id: id.to_string(),
                name: format!("user {id}"),
            };
            let link =
                move |conn: &mut _| viewer_accounts::link_account(conn, user, &account, Actor::Shell, now);
            db.write(link).await.unwrap();
        }
    }
}

/// Creates the Seerr and the TMDB of a plan.
pub(crate) fn create_catalogs(plan: &Plan, clock: &Clock) -> (Option<Arc<HouseSeerr>>, Option<FakeTmdb>) {
    let seerr = plan.seerr.map(|_| Arc::new(HouseSeerr::new(clock.clone())));
    (seerr, plan.tmdb.map(|_| FakeTmdb::new(SECRET, house_catalog())))
}
