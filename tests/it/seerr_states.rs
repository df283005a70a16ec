//! States of requests at a Seerr: messages to the requesters, offers to the admins, and decisions by text.

use bytes::Bytes;
use dialarr::conversation::transcript::UserId;
use dialarr::conversation::viewer_accounts::{MediaServerKind, ViewerAccount};
use dialarr::seerr::fake::{Permission, WriteFault};
use dialarr::store::audit::Actor;
use dialarr::store::people::viewer_accounts;
use http::Request;

use crate::harness::model::{adds_movie, says};
use crate::harness::reports::SECRET;
use crate::harness::seerr::{DUNE, HEAT, Home, SEVERANCE, link};
use crate::harness::{ANN, BOB};

const MINUTE: u64 = 60;
const DECLINED: i64 = 3;
const FAILED: i64 = 4;
const NOTED: &str = "OK, I'll pass that on to Seerr.";

/// Program with a Seerr at which Ann may request, and Bob, an admin, may decide as Pat.
struct House {
    home: Home,
    pat: i64,
}

impl House {
    async fn start() -> Self {
        let home = Home::start(Permission::REQUEST).await;
        home.world.register_admin(BOB).await;
        let pat = home.world.seerr().add_user("Pat", Permission::MANAGE_REQUESTS);
        link(&home.world, BOB, pat).await;
        Self { home, pat }
    }

    /// Lets a guest without a phone request Heat, and returns the code of the offer to Bob.
    async fn offered_code(&self) -> String {
        let guest = self.home.world.seerr().add_user("Kim", Permission::REQUEST);
        self.home.world.seerr().request_movie(guest, HEAT);
        self.home.world.pass(2 * MINUTE).await;
        code_of(&self.last_to_bob())
    }

    fn last_to_bob(&self) -> String {
        self.home.world.messages_to(BOB).pop().unwrap_or_default()
    }

    /// Sends a message from Bob, and returns the reply.
    async fn bob(&self, body: &str) -> String {
        self.home.world.sms_from(BOB, body).await.pop().unwrap()
    }

    /// Returns the status of the newest request, and the user who decided it.
    fn decision(&self) -> (i64, Option<i64>) {
        let request = self.home.world.seerr().requests().pop().unwrap();
        (request.status, request.decided_by)
    }

    fn decision_posts(&self) -> usize {
        let calls = self.home.world.seerr().calls();
        calls.iter().filter(|call| call.ends_with("/approve") || call.ends_with("/decline")).count()
    }
}

fn code_of(offer: &str) -> String {
    let (_, rest) = offer.split_once("APPROVE ").unwrap_or_else(|| panic!("no code: {offer}"));
    rest.chars().take(4).collect()
}

#[tokio::test(start_paused = true)]
async fn decision_at_seerr_is_told_once_to_the_requester() {
    let mut house = House::start().await;
    assert_eq!(house.home.asks_for_dune().await, "Asked for Dune (2021). An admin has to approve it.");
    house.home.world.pass(3 * MINUTE).await;
    let before = house.home.world.messages_to(ANN);
    let request = house.home.world.seerr().requests()[0].id;
    house.home.world.seerr().set_request_status(request, 2);
    house.home.world.pass(2 * MINUTE).await;
    assert_eq!(house.home.last(), "Your request for Dune (2021) was approved.");
    house.home.world.kill().await;
    house.home.world.start_again().await;
    house.home.world.pass(5 * MINUTE).await;
    assert_eq!(house.home.world.messages_to(ANN).len(), before.len() + 1);
    house.home.world.seerr().set_request_status(request, FAILED);
    house.home.world.pass(3 * MINUTE).await;
    assert_eq!(
        house.home.last(),
        "Seerr could not get Dune (2021), which you asked for. An admin has to check it."
    );
    assert_eq!(house.home.world.messages_to(ANN).len(), before.len() + 2);
}

#[tokio::test(start_paused = true)]
async fn turning_quiet_hours_off_sends_waiting_request_states() {
    let house = House::start().await;
    house.home.asks_for_dune().await;
    house.home.world.sms("quiet 21-7").await;
    let request = house.home.world.seerr().requests()[0].id;
    house.home.world.seerr().set_request_status(request, 2);
    house.home.world.pass(5 * MINUTE).await;
    let approved = "Your request for Dune (2021) was approved.";
    assert!(!house.home.world.messages_to(ANN).contains(&approved.to_owned()));
    house.home.world.sms("quiet off").await;
    house.home.world.pass(MINUTE).await;
    assert!(house.home.world.messages_to(ANN).contains(&approved.to_owned()));
}

#[tokio::test(start_paused = true)]
async fn declined_request_is_told_once_and_no_longer_followed() {
    let house = House::start().await;
    house.home.asks_for_dune().await;
    let request = house.home.world.seerr().requests()[0].id;
    house.home.world.seerr().set_request_status(request, DECLINED);
    house.home.world.pass(5 * MINUTE).await;
    let told = house.home.world.messages_to(ANN);
    let declined = "Your request for Dune (2021) was declined.";
    assert_eq!(told.iter().filter(|text| text.as_str() == declined).count(), 1);
    assert_eq!(house.home.world.follows().await, Vec::<String>::new());
    assert_eq!(house.home.world.requests().await, ["+15550100002 given_up radarr Dune (2021)"]);
}

#[tokio::test]
async fn requests_page_shows_a_request_that_waits_at_seerr() {
    let app = crate::harness::Setup::default().seerr().start().await;
    app.radarr().add_to_catalog(dialarr::arr::fake::media_fixtures::movie("Dune").year(2021).tmdb(DUNE));
    let owner = 1;
    app.seerr().edit_user(owner, |user| user.permissions = Permission::REQUEST);
    let now = app.now();
    let link = move |conn: &mut _| {
        let account =
            ViewerAccount { server: MediaServerKind::Seerr, id: "1".to_owned(), name: "Ann".to_owned() };
        viewer_accounts::link_account(conn, UserId(1), &account, Actor::Console, now).map(drop)
    };
    app.app().db.write(link).await.unwrap();
    let [searches, adds] = adds_movie("dune", DUNE);
    app.model_plays([searches, adds, says(""), says("")]);
    app.sms("add dune").await;
    let page = app.browser().await.get("/requests").await;
    page.assert_shows(200, "an admin has to decide in Seerr");
}

#[tokio::test(start_paused = true)]
async fn withdrawn_request_is_not_read_any_more() {
    let house = House::start().await;
    house.home.asks_for_dune().await;
    let request = house.home.world.seerr().requests()[0].id;
    house.home.world.seerr().remove_request(request);
    house.home.world.pass(3 * MINUTE).await;
    let states = house.home.world.lines("SELECT seerr_state AS line FROM requests").await;
    assert_eq!(states, ["gone"]);
}

#[tokio::test(start_paused = true)]
async fn admin_approves_the_request_of_a_guest_by_text() {
    let house = House::start().await;
    let code = house.offered_code().await;
    assert_eq!(
        house.last_to_bob(),
        format!("Kim asks for Heat (1995) in Seerr. Reply APPROVE {code} or DENY {code}")
    );
    assert_eq!(house.bob(&format!("approve {code}")).await, NOTED);
    house.home.world.pass(2 * MINUTE).await;
    assert_eq!(house.decision(), (2, Some(house.pat)));
    assert_eq!((house.decision_posts(), house.last_to_bob().as_str()), (1, NOTED));
    let again = house.bob(&format!("approve {code}")).await;
    assert!(again.starts_with("That was already approved"), "{again}");
}

#[tokio::test(start_paused = true)]
async fn request_by_text_is_offered_with_its_seasons_and_denied() {
    let house = House::start().await;
    house.home.asks_for_seasons(serde_json::json!([1])).await;
    house.home.world.pass(2 * MINUTE).await;
    let offer = house.last_to_bob();
    assert!(offer.starts_with("Sam asks for Severance (2022), season 1 in Seerr."), "{offer}");
    house.bob(&format!("deny {}", code_of(&offer))).await;
    house.home.world.pass(3 * MINUTE).await;
    assert_eq!(house.decision(), (DECLINED, Some(house.pat)));
    assert_eq!(house.home.last(), "Your request for Severance (2022), season 1 was declined.");
    assert_eq!(house.home.world.seerr().requests()[0].tmdb, SEVERANCE.0);
}

#[tokio::test(start_paused = true)]
async fn admin_without_a_link_decides_nothing_and_never_as_the_owner() {
    let home = Home::start(Permission::REQUEST).await;
    home.world.register_admin(BOB).await;
    home.asks_for_dune().await;
    home.world.pass(2 * MINUTE).await;
    let house = House { home, pat: 0 };
    let code = code_of(&house.last_to_bob());
    let reply = house.bob(&format!("approve {code}")).await;
    assert!(reply.starts_with("You are not linked to Seerr"), "{reply}");
    house.home.world.pass(3 * MINUTE).await;
    assert_eq!((house.decision(), house.decision_posts()), ((1, None), 0));
}

#[tokio::test(start_paused = true)]
async fn lost_answer_and_restart_lead_to_no_second_decision() {
    let mut house = House::start().await;
    let code = house.offered_code().await;
    house.home.world.seerr().fail_next_write(WriteFault::LostAnswer);
    house.bob(&format!("approve {code}")).await;
    house.home.world.kill().await;
    house.home.world.start_again().await;
    house.home.world.pass(5 * MINUTE).await;
    assert_eq!((house.decision(), house.decision_posts()), ((2, Some(house.pat)), 1));
    assert_eq!(house.home.world.seerr().requests()[0].tmdb, HEAT);
}

#[tokio::test(start_paused = true)]
async fn admin_who_may_not_decide_at_seerr_is_told_so() {
    let house = House::start().await;
    let code = house.offered_code().await;
    house.home.world.seerr().edit_user(house.pat, |user| user.permissions = Permission::REQUEST);
    house.bob(&format!("approve {code}")).await;
    house.home.world.pass(3 * MINUTE).await;
    assert_eq!(house.last_to_bob(), "Seerr does not let you decide on Heat (1995). Nothing was changed.");
    assert_eq!(house.decision(), (1, None));
}

#[tokio::test(start_paused = true)]
async fn request_is_offered_once_and_its_code_ends_with_a_decision_at_seerr() {
    let mut house = House::start().await;
    let code = house.offered_code().await;
    let offers = house.home.world.messages_to(BOB).len();
    house.home.world.kill().await;
    house.home.world.start_again().await;
    house.home.world.pass(5 * MINUTE).await;
    assert_eq!(house.home.world.messages_to(BOB).len(), offers);
    let request = house.home.world.seerr().requests()[0].id;
    house.home.world.seerr().set_request_status(request, DECLINED);
    house.home.world.pass(2 * MINUTE).await;
    assert_eq!(house.bob(&format!("approve {code}")).await, "That request was withdrawn.");
    house.home.world.pass(2 * MINUTE).await;
    assert_eq!(house.decision_posts(), 0);
}

#[tokio::test(start_paused = true)]
async fn webhook_with_the_secret_lets_the_requests_be_read_at_once() {
    let house = House::start().await;
    house.home.world.pass(MINUTE).await;
    let hint = |authorization: Option<&str>| {
        let request = Request::post("/webhooks/seerr");
        let request = match authorization {
            Some(value) => request.header("authorization", value),
            None => request,
        };
        request
            .body(Bytes::from_static(b"{\"notification_type\":\"MEDIA_APPROVED\",\"request_id\":\"1\"}"))
            .unwrap()
    };
    assert_eq!(house.home.world.deliver(hint(None)).await, 401);
    assert_eq!(house.home.world.deliver(hint(Some("wrong"))).await, 401);
    house.home.world.seerr().request_movie(house.home.sam, DUNE);
    assert_eq!(house.home.world.deliver(hint(Some(SECRET))).await, 200);
    house.home.world.pass_ms(500).await;
    let offers = "SELECT kind || ' ' || state AS line FROM approvals";
    assert_eq!(house.home.world.lines(offers).await, ["seerr open"]);
}
