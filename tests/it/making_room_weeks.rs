//! Two weeks of generated households whose people answer, watch and change titles while proposals to make room are open, with
//! restarts in the middle of texts.

use std::collections::BTreeMap;

use dialarr::arr::fake::media_fixtures::movie;
use dialarr::conversation::making_room::{SilenceRule, SpacePolicy};
use dialarr::media_servers::CatalogIds;
use jiff::{SignedDuration, Timestamp};

use crate::harness::{ANN, BOB, Has, Setup, TestApp};

const CAT: &str = "+15550100004";
const HOUR: i64 = 60 * 60;
const TITLES: [&str; 8] = ["Alien", "Brazil", "Casino", "Dune", "Eden", "Fargo", "Gandhi", "Heat"];

/// Pseudorandom numbers of one household.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        let index = self.below(all.len() as u64);
        all[usize::try_from(index).unwrap()]
    }
}

/// Household with what happened in it.
struct Weeks {
    app: TestApp,
    numbers: Numbers,
    viewers: [u64; 2],
    /// Ids at Jellyfin, in the order of the titles.
    movies: Vec<u64>,
    /// Title that each viewer is watching now.
    playing: BTreeMap<u64, usize>,
    /// Ids of titles that were deleted, in the order of their deletions.
    deleted: usize,
    /// Titles that changed since the last question to the admin.
    changed: Vec<i64>,
    counts: Counts,
}

/// Events of which each has to happen in some household.
#[derive(Debug, Default)]
struct Counts {
    proposals: usize,
    deletions: usize,
    keeps: usize,
    kept_after_question: usize,
    restarts: usize,
}

impl Weeks {
    async fn start(seed: u64) -> Self {
        let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15 ^ (seed + 1));
        let silence = if numbers.below(2) == 0 { SilenceRule::Stays } else { SilenceRule::MayGo };
        let policy = SpacePolicy { silence, ..SpacePolicy::default() };
        let setup = Setup::default().keyword_responder().jellyfin();
        let app = setup.with(|settings| settings.making_room = policy).start().await;
        for (name, phone, has) in
            [("Ann", ANN, Has::EveryRight), ("Bob", BOB, Has::AddRight), ("Cat", CAT, Has::AddRight)]
        {
            app.register_named_user(name, phone, has).await;
        }
        let viewers = [app.jellyfin().add_user("bobby"), app.jellyfin().add_user("cat")];
        let mut movies = Vec::new();
        for (index, title) in TITLES.iter().enumerate() {
            let id = i64::try_from(index).unwrap() + 1;
            let added = days_before(app.now(), 400);
            let size_gb = f64::from(u32::try_from(10 + 7 * index).unwrap());
            app.radarr().add(movie(title).id(id).tmdb(1000 + id).year(1990).size_gb(size_gb).added(added));
            let ids = CatalogIds { tmdb: Some(1000 + id), ..CatalogIds::default() };
            let movie = app.jellyfin().add_movie((title, 1990), ids, SignedDuration::ZERO);
            for viewer in viewers {
                if numbers.below(2) == 0 {
                    let at = days_before(app.now(), 40 + i64::try_from(numbers.below(200)).unwrap());
                    app.jellyfin().watch_at((viewer, movie), 100, at);
                }
            }
            movies.push(movie);
        }
        app.link_viewer(BOB, viewers[0]).await;
        app.link_viewer(CAT, viewers[1]).await;
        let (playing, changed) = (BTreeMap::new(), Vec::new());
        Self { app, numbers, viewers, movies, playing, deleted: 0, changed, counts: Counts::default() }
    }

    /// Lets two weeks pass.
    async fn play(mut self) -> Counts {
        for _ in 0..14 {
            for _ in 0..6 {
                self.act().await;
                self.check().await;
                self.app.pass(HOUR * i64::try_from(self.numbers.below(4)).unwrap());
            }
            self.app.days_pass(1).await;
            self.check().await;
        }
        let proposals = self.app.lines("SELECT count(*) AS line FROM space_proposals").await;
        self.counts.proposals = proposals[0].parse().unwrap();
        self.counts
    }

    async fn act(&mut self) {
        let title = usize::try_from(self.numbers.below(TITLES.len() as u64)).unwrap();
        let viewer = self.numbers.one_of(&self.viewers);
        match self.numbers.below(20) {
            0..3 => self.text(ANN, "make room").await,
            3..7 => self.review().await,
            7..11 => {
                let (phone, word) =
                    (self.numbers.one_of(&[BOB, CAT]), self.numbers.one_of(&["keep", "free", "free"]));
                let chosen = self.numbers.one_of(&["1", "2", "3", "all", "1 2"]);
                self.text(phone, &format!("{word} {chosen}")).await;
            }
            11 => {
                let phone = self.numbers_phone();
                self.text(phone, "unkeep 1").await;
            }
            12 | 13 => {
                let phone = self.numbers_phone();
                self.text(phone, &format!("keep {}", TITLES[title])).await;
            }
            14 | 15 => {
                self.app.jellyfin().start_playing(viewer, self.movies[title]);
                self.playing.insert(viewer, title);
            }
            16 | 17 => {
                self.app.jellyfin().stop_playing(viewer);
                self.playing.remove(&viewer);
            }
            18 => {
                self.grow(i64::try_from(title).unwrap() + 1);
            }
            _ => {
                self.app.restart().await;
                self.counts.restarts += 1;
            }
        }
    }

    /// Replaces the file of a title by a larger one.
    fn grow(&mut self, id: i64) {
        if !self.app.radarr().removed_ids().contains(&id) {
            self.app.radarr().edit(id, |movie| movie.size_bytes += movie.size_bytes / 2);
            self.changed.push(id);
        }
    }

    fn numbers_phone(&mut self) -> &'static str {
        self.numbers.one_of(&[BOB, CAT])
    }

    /// Sends a text. Some are interrupted by a restart of the program.
    async fn text(&mut self, phone: &str, body: &str) {
        if phone == ANN && self.numbers.below(4) == 0 {
            self.app.sms_during_restart(&[body]).await;
            self.counts.restarts += 1;
        } else {
            self.app.sms_from(phone, body).await;
        }
    }

    /// Lets the admin review. Before the yes, somebody may keep a title.
    async fn review(&mut self) {
        self.changed.clear();
        let asked = self.app.sms("review").await;
        if !asked.contains("Reply YES") {
            return;
        }
        let is_kept_now = self.numbers.below(3) == 0;
        if is_kept_now {
            let phone = self.numbers_phone();
            let reply = self.app.sms_from(phone, "keep all").await;
            self.counts.kept_after_question += usize::from(reply.starts_with("Kept until"));
            self.check().await;
        }
        if self.numbers.below(4) == 0 {
            let title = self.numbers.below(TITLES.len() as u64);
            self.grow(i64::try_from(title).unwrap() + 1);
        }
        let code =
            asked.split_once("YES ").map_or("", |(_, rest)| rest.split(' ').next().unwrap_or_default());
        let code = if code.bytes().all(|byte| byte.is_ascii_digit()) { code } else { "" };
        let answer = self.numbers.one_of(&["yes", "yes", "yes", "no"]);
        self.text(ANN, format!("{answer} {code}").trim()).await;
    }

    /// Checks the titles that were deleted since the last check: none was kept, playing or changed at that time.
    async fn check(&mut self) {
        let removed = self.app.radarr().removed_ids();
        let kept = self.app.lines("SELECT catalog_id AS line FROM kept_titles").await;
        self.counts.keeps += kept.len();
        for id in &removed[self.deleted..] {
            let title = TITLES[usize::try_from(*id).unwrap() - 1];
            assert!(!kept.contains(&(1000 + id).to_string()), "{title} was kept and deleted");
            let is_playing = self.playing.values().any(|playing| TITLES[*playing] == title);
            assert!(!is_playing, "{title} was playing and deleted");
            assert!(!self.changed.contains(id), "{title} had changed and was deleted");
            self.counts.deletions += 1;
        }
        self.deleted = removed.len();
        let open = "SELECT count(*) AS line FROM space_proposals a JOIN space_proposals b ON a.id < b.id \
                    WHERE a.closed_at IS NULL OR a.closed_at > b.opened_at";
        assert_eq!(self.app.lines(open).await, ["0"], "two proposals overlap");
    }
}

fn days_before(now: Timestamp, days: i64) -> Timestamp {
    now - SignedDuration::from_hours(24 * days)
}

#[tokio::test]
async fn two_weeks_delete_nothing_kept_playing_or_changed() {
    let mut total = Counts::default();
    for seed in 0..5 {
        let counts = Weeks::start(seed).await.play().await;
        total.proposals += counts.proposals;
        total.deletions += counts.deletions;
        total.keeps += counts.keeps;
        total.kept_after_question += counts.kept_after_question;
        total.restarts += counts.restarts;
    }
    let happened = [total.proposals, total.deletions, total.keeps, total.kept_after_question, total.restarts];
    assert!(happened.iter().all(|count| *count > 0), "{total:?}");
    assert!(total.proposals >= 5 && total.deletions >= 5, "{total:?}");
}
