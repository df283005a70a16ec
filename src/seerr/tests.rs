//! Tests of the client against the simulated Seerr.

use super::fake::{FakeSeerr, Permission, WriteFault};
use super::*;
use crate::clock::Clock;
use crate::conversation::transcript::MediaKind;

const DUNE: SeerrTitle = SeerrTitle { kind: MediaKind::Movie, tmdb: 438_631 };
const SEVERANCE: SeerrTitle = SeerrTitle { kind: MediaKind::Series, tmdb: 95_396 };

struct Server {
    fake: FakeSeerr,
    client: Seerr,
}

impl Server {
    fn start() -> Self {
        let fake =
            FakeSeerr::new("0123456789abcdef", Clock::stopped_at("2026-11-28T12:00:00Z".parse().unwrap()));
        let client = Self::client(&fake, &fake.key());
        Self { fake, client }
    }

    fn client(fake: &FakeSeerr, key: &SecretString) -> Seerr {
        let url = Url::parse("http://seerr.invalid/base").unwrap();
        let peer = fake.in_process();
        // A proxy serves the server below a path.
        let http = HttpClient::in_process(std::sync::Arc::new(move |mut request| {
            let path = request.uri().to_string().replace("/base/", "/");
            *request.uri_mut() = path.parse().unwrap();
            peer(request)
        }));
        Seerr::new(http, url, key)
    }

    fn add_user(&self, permissions: u32) -> SeerrUserId {
        SeerrUserId(self.fake.add_user("Sam", permissions))
    }

    async fn request(&self, user: SeerrUserId, new: &NewSeerrRequest) -> RequestOutcome {
        self.client.create_request(user, new).await.unwrap()
    }
}

fn movie() -> NewSeerrRequest {
    NewSeerrRequest { title: DUNE, tvdb: None, seasons: None, is_4k: false }
}

fn seasons(numbers: &[u32]) -> NewSeerrRequest {
    NewSeerrRequest { title: SEVERANCE, tvdb: Some(371_980), seasons: Some(numbers.to_vec()), is_4k: false }
}

fn refused(refusal: RequestRefusal) -> RequestOutcome {
    RequestOutcome::Refused(refusal)
}

#[tokio::test]
async fn request_acts_as_its_user_and_is_listed_for_the_user() {
    let server = Server::start();
    let sam = server.add_user(Permission::REQUEST);
    let RequestOutcome::Created(created) = server.request(sam, &seasons(&[1, 2])).await else { panic!() };
    assert_eq!((created.status, created.seasons.as_slice()), (SeerrRequestStatus::Pending, &[1, 2][..]));
    assert_eq!(server.fake.requests()[0].user, sam.0);
    let only = std::slice::from_ref(&created);
    assert_eq!(server.client.fetch_requests_of(sam).await.unwrap(), only);
    assert_eq!(server.client.fetch_requests_of(SeerrUserId(1)).await.unwrap(), []);
    assert_eq!(server.client.fetch_pending_requests().await.unwrap(), only);
    assert_eq!(server.client.fetch_request(created.id).await.unwrap().as_ref(), Some(&created));
    assert_eq!(server.client.fetch_request(SeerrRequestId(99)).await.unwrap(), None);
}

#[tokio::test]
async fn outcomes_of_requests_are_told_apart() {
    let server = Server::start();
    let (sam, guest) = (server.add_user(Permission::REQUEST | Permission::AUTO_APPROVE), server.add_user(0));
    server.fake.edit_user(sam.0, |user| user.movie_limit = Some(1));
    let RequestOutcome::Created(created) = server.request(sam, &movie()).await else { panic!() };
    assert_eq!(created.status, SeerrRequestStatus::Approved);
    assert_eq!(server.request(sam, &movie()).await, RequestOutcome::AlreadyRequested);
    let heat = NewSeerrRequest { title: SeerrTitle { tmdb: 949, ..DUNE }, ..movie() };
    assert_eq!(server.request(sam, &heat).await, refused(RequestRefusal::Quota));
    assert_eq!(server.request(guest, &heat).await, refused(RequestRefusal::NotPermitted));
    assert_eq!(server.request(SeerrUserId(77), &heat).await, refused(RequestRefusal::UnknownUser));
    server.fake.blocklist(949);
    assert_eq!(server.request(sam, &heat).await, refused(RequestRefusal::Blocklisted));
    server.request(sam, &seasons(&[1])).await;
    assert_eq!(server.request(sam, &seasons(&[1])).await, RequestOutcome::NothingNew);
    let movies = SeerrQuota { limit: Some(1), days: Some(7), used: 1 };
    assert_eq!(server.client.fetch_quotas(sam).await.unwrap().movies, movies);
}

#[tokio::test]
async fn wrong_key_is_not_an_unknown_user() {
    let server = Server::start();
    let sam = server.add_user(Permission::REQUEST);
    let client = Server::client(&server.fake, &SecretString::from("wrong"));
    let error = client.create_request(sam, &movie()).await.unwrap_err();
    assert!(matches!(error, ServerError::Unauthorized) && !error.may_have_happened());
    assert!(matches!(client.fetch_users().await.unwrap_err(), ServerError::Unauthorized));
}

#[tokio::test]
async fn request_whose_answer_is_lost_is_found_again() {
    let server = Server::start();
    let sam = server.add_user(Permission::REQUEST);
    let now = "2026-11-28T12:00:00Z".parse().unwrap();
    server.fake.fail_next_write(WriteFault::LostAnswer);
    assert!(server.client.create_request(sam, &seasons(&[1, 2])).await.unwrap_err().may_have_happened());
    let own = server.client.fetch_requests_of(sam).await.unwrap();
    let found = |new: &NewSeerrRequest| new.find_repeated(&own, now).is_some();
    assert!(found(&seasons(&[2])) && found(&seasons(&[1, 2])));
    assert!(!found(&seasons(&[2, 3])) && !found(&movie()));
    assert!(!found(&NewSeerrRequest { is_4k: true, ..seasons(&[1]) }));
}

#[tokio::test]
async fn request_that_was_declined_long_ago_does_not_count() {
    let server = Server::start();
    let sam = server.add_user(Permission::REQUEST);
    let RequestOutcome::Created(created) = server.request(sam, &movie()).await else { panic!() };
    server.fake.set_request_status(created.id.0, 3);
    let own = server.client.fetch_requests_of(sam).await.unwrap();
    let found = |now: &str| movie().find_repeated(&own, now.parse().unwrap()).is_some();
    assert!(found("2026-11-28T12:05:00Z") && !found("2026-11-30T12:05:00Z"));
}

#[tokio::test]
async fn only_a_user_with_the_right_decides_on_requests() {
    let server = Server::start();
    let (sam, pat) = (server.add_user(Permission::REQUEST), server.add_user(Permission::MANAGE_REQUESTS));
    let RequestOutcome::Created(created) = server.request(sam, &movie()).await else { panic!() };
    let decide = |user| server.client.decide_request(user, created.id, RequestDecision::Approve);
    assert_eq!(decide(sam).await.unwrap(), DecisionOutcome::NotPermitted);
    let DecisionOutcome::Decided(decided) = decide(pat).await.unwrap() else { panic!() };
    assert_eq!(decided.status, SeerrRequestStatus::Approved);
    let decision = RequestDecision::Decline;
    let gone = server.client.decide_request(pat, SeerrRequestId(99), decision).await.unwrap();
    assert_eq!(gone, DecisionOutcome::Gone);
}

#[tokio::test]
async fn issue_names_the_season_and_the_episode() {
    let server = Server::start();
    let sam = server.add_user(Permission::CREATE_ISSUES);
    assert_eq!(server.client.find_media(SEVERANCE).await.unwrap(), None);
    let media = SeerrMediaId(server.fake.add_media(MediaKind::Series, SEVERANCE.tmdb));
    assert_eq!(server.client.find_media(SEVERANCE).await.unwrap(), Some(media));
    let place = IssuePlace { season: 2, episode: 3 };
    let new = NewSeerrIssue { kind: IssueType::Audio, media, place, message: "no sound".to_owned() };
    let IssueOutcome::Created(issue) = server.client.create_issue(sam, &new).await.unwrap() else { panic!() };
    assert_eq!((issue.kind, issue.place), (IssueType::Audio, place));
    assert_eq!(server.client.fetch_issues_of(sam).await.unwrap(), [issue]);
    let refused = server.client.create_issue(server.add_user(0), &new).await.unwrap();
    assert_eq!(refused, IssueOutcome::NotPermitted);
}

#[tokio::test]
async fn users_are_read_page_by_page() {
    let server = Server::start();
    for _ in 0..120 {
        server.add_user(Permission::REQUEST);
    }
    server.fake.edit_user(2, |user| user.jellyfin_id = Some("ab-cd".to_owned()));
    let users = server.client.fetch_users().await.unwrap();
    assert_eq!(users.len(), 121);
    assert_eq!((users[1].name.as_str(), users[1].jellyfin_id.as_deref()), ("Sam", Some("abcd")));
}

#[tokio::test]
async fn show_is_found_by_its_id_at_tvdb() {
    let http = HttpClient::in_process(std::sync::Arc::new(|request| {
        assert_eq!(request.uri().query(), Some("query=tvdb%3A371980"));
        Box::pin(async {
            let body = r#"{"results":[{"id":1,"mediaType":"person"},{"id":95396,"mediaType":"tv"}]}"#;
            http::Response::new(bytes::Bytes::from(body))
        })
    }));
    let client = Seerr::new(http, Url::parse("http://seerr.invalid").unwrap(), &SecretString::from("key"));
    assert_eq!(client.find_series_by_tvdb(371_980).await.unwrap(), Some(95_396));
}
