//! Test helpers for a program that requests titles at a Seerr.

use dialarr::arr::fake::media_fixtures::{movie, series};
use dialarr::conversation::transcript::PhoneNumber;
use dialarr::conversation::viewer_accounts::{MediaServerKind, ViewerAccount};
use dialarr::seerr::fake::Permission;
use dialarr::store::audit::Actor;
use dialarr::store::people::{users, viewer_accounts};
use serde_json::{Value, json};

use super::ANN;
use super::model::{adds_movie, calls, says};
use super::world::World;

pub(crate) const DUNE: i64 = 438_631;
pub(crate) const HEAT: i64 = 949;
/// Ids of Severance at TMDB and TheTVDB.
pub(crate) const SEVERANCE: (i64, i64) = (95_396, 371_980);
/// Rights of a user whose requests are approved at once.
pub(crate) const TRUSTED: u32 = Permission::REQUEST | Permission::AUTO_APPROVE;

/// Program with a Seerr, at which Ann is the user Sam.
pub(crate) struct Home {
    pub(crate) world: World,
    pub(crate) sam: i64,
}

impl Home {
    pub(crate) async fn start(permissions: u32) -> Self {
        let home = Self::unlinked(permissions).await;
        link(&home.world, ANN, home.sam).await;
        home
    }

    pub(crate) async fn unlinked(permissions: u32) -> Self {
        let world = World::start_with_seerr().await;
        world.radarr().add_to_catalog(movie("Dune").year(2021).tmdb(DUNE));
        world.radarr().add_to_catalog(movie("Heat").year(1995).tmdb(HEAT));
        let severance = series("Severance").year(2022).tvdb(SEVERANCE.1).tmdb(SEVERANCE.0).seasons(2);
        world.sonarr().add_to_catalog(severance);
        let sam = world.seerr().add_user("Sam", permissions);
        Self { world, sam }
    }

    /// Lets Ann ask for Dune, and returns the last message to her, if there is one.
    pub(crate) async fn asks_for_dune(&self) -> String {
        self.asks_for("dune", DUNE).await
    }

    pub(crate) async fn asks_for(&self, title: &str, tmdb: i64) -> String {
        let [searches, adds] = adds_movie(title, tmdb);
        self.world.model_plays([searches, adds, says(""), says("")]);
        self.world.sms(&format!("add {title}")).await.pop().unwrap_or_default()
    }

    /// Lets Ann ask for seasons of Severance, and returns the last message to her.
    pub(crate) async fn asks_for_seasons(&self, seasons: Value) -> String {
        let adds = calls("add_series", json!({ "tvdb": SEVERANCE.1, "seasons": seasons }));
        let searches = calls("search_media", json!({ "query": "severance" }));
        self.world.model_plays([searches, adds, says(""), says("")]);
        self.world.sms("add severance seasons 1 and 2").await.pop().unwrap()
    }

    /// Returns the user and the TMDB id of each request.
    pub(crate) fn requests(&self) -> Vec<(i64, i64)> {
        self.world.seerr().requests().iter().map(|request| (request.user, request.tmdb)).collect()
    }

    pub(crate) fn last(&self) -> String {
        self.world.messages_to(ANN).pop().unwrap()
    }
}

/// Links a person to a user of the Seerr, as an operator does.
pub(crate) async fn link(world: &World, phone: &str, id: i64) {
    let (phone, now) = (PhoneNumber::parse(phone).unwrap(), world.now());
    let account =
        ViewerAccount { server: MediaServerKind::Seerr, id: id.to_string(), name: "Sam".to_owned() };
    let link = move |conn: &mut _| {
        let user = users::find_user_by_phone(conn, &phone)?.unwrap();
        viewer_accounts::link_account(conn, user.id, &account, Actor::Console, now).map(drop)
    };
    world.write_database(link).await;
}
