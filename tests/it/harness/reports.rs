//! Test helpers for the arr events from Sonarr and Radarr, and for the users who wait for them.

use bytes::Bytes;
use dialarr::conversation::transcript::{MediaKind, PhoneNumber};
use dialarr::store::library::follows::{self, FollowReason, FollowedTitle};
use dialarr::store::people::users;
use http::Request;
use serde_json::Value;

use super::TestApp;

/// Secret that arr events must present.
pub(crate) const SECRET: &str = "a-long-random-word";

/// Builds a request as the servers send it: `Basic`, with any name.
pub(crate) fn report(library: &str, event: &Value, password: &str) -> Request<Bytes> {
    use base64::Engine;

    let credentials = base64::engine::general_purpose::STANDARD.encode(format!("dialarr:{password}"));
    Request::post(format!("https://sms.example.org/webhook/{library}"))
        .header("content-type", "application/json")
        .header("authorization", format!("Basic {credentials}"))
        .body(Bytes::from(event.to_string()))
        .unwrap()
}

impl TestApp {
    /// Delivers this arr event of a library; no user is notified yet.
    pub(crate) async fn receive_event(&self, library: &str, event: &Value) {
        assert_eq!(self.request(report(library, event, SECRET)).await.status(), 200, "the report is taken");
    }

    /// Lets this many seconds pass, then sends all notifications that are due.
    pub(crate) async fn later(&self, seconds: i64) {
        self.pass(seconds);
        self.app().send_notifications_once().await.unwrap();
        self.settle().await;
    }

    /// Makes a user wait for a movie in Radarr.
    pub(crate) async fn follow_movie(&self, phone: &str, tmdb: i64) {
        self.follow_title(phone, ("radarr", MediaKind::Movie, tmdb), None).await;
    }

    /// Makes a user wait for a season of a series in Sonarr.
    pub(crate) async fn follow_season(&self, phone: &str, tvdb: i64, season: u32) {
        self.follow_title(phone, ("sonarr", MediaKind::Series, tvdb), Some(season)).await;
    }

    /// Makes a user wait for all of a series in Sonarr.
    pub(crate) async fn follow_show(&self, phone: &str, tvdb: i64) {
        self.follow_title(phone, ("sonarr", MediaKind::Series, tvdb), None).await;
    }

    async fn follow_title(
        &self,
        phone: &str,
        (instance, kind, catalog_id): (&str, MediaKind, i64),
        season: Option<u32>,
    ) {
        let (phone, now) = (PhoneNumber::parse(phone).unwrap(), self.now());
        let what = FollowedTitle { instance: instance.to_owned(), kind, catalog_id, season };
        let follow = move |conn: &mut _| {
            let user = users::find_user_by_phone(conn, &phone)?.unwrap();
            follows::follow_title(conn, user.id, &what, FollowReason::Request, now)
        };
        self.app().db.write(follow).await.unwrap();
    }
}
