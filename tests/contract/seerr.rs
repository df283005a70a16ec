//! Client of Seerr against a mock of the published description (`DIALARR_SEERR_URL`), and the simulated Seerr with an
//! independent client, which the Python in `DIALARR_SEERR_CLIENT` has. Without these variables nothing is checked.

use std::env;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use dialarr::clock::Clock;
use dialarr::conversation::transcript::MediaKind;
use dialarr::discovery::fake::{FakeCatalog, FakeEntry};
use dialarr::discovery::{DiscoverFilter, DiscoveryError, DiscoverySource, YearRange};
use dialarr::http::HttpClient;
use dialarr::seerr::fake::{FakeSeerr, Permission};
use dialarr::seerr::{
    IssuePlace, IssueType, NewSeerrIssue, NewSeerrRequest, RequestDecision, Seerr, SeerrMediaId,
    SeerrRequestId, SeerrTitle, SeerrUserId,
};
use dialarr::server_api::ServerError;
use jiff::Timestamp;
use secrecy::SecretString;
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// Accepts any answer of a mock except the refusal of the request. Some of its values cannot be real ones.
fn accept<T>(request: &str, answer: Result<T, ServerError>) -> Result<()> {
    match answer {
        Ok(_) | Err(ServerError::Unreadable(_)) => Ok(()),
        Err(error) => Err(error).with_context(|| format!("{request} was refused")),
    }
}

fn accept_titles<T>(request: &str, answer: Result<T, DiscoveryError>) -> Result<()> {
    match answer {
        Ok(_) => Ok(()),
        Err(DiscoveryError::Server(error)) => accept::<()>(request, Err(error)),
        Err(error) => Err(error).with_context(|| format!("{request} was refused")),
    }
}

mod description {
    use super::*;

    #[tokio::test]
    async fn questions_about_titles_match_the_published_description() -> Result<()> {
        let Ok(url) = env::var("DIALARR_SEERR_URL") else { return Ok(()) };
        let seerr = Seerr::new(HttpClient::network()?, url.parse()?, &SecretString::from("a-key"));
        let (source, now) = (DiscoverySource::seerr(&seerr), Timestamp::UNIX_EPOCH);
        accept("status", seerr.fetch_status().await)?;
        accept("key", source.check_key().await)?;
        accept_titles("search", source.search("heat", now).await)?;
        accept_titles("credits", source.fetch_credits(380, now).await)?;
        accept_titles("trending", source.fetch_trending(now).await)?;
        let filter = DiscoverFilter {
            genres: vec![28, 80],
            keywords: vec![9_672, 10_051],
            years: YearRange::parse("1990-1999"),
            min_rating: Some(7.5),
            max_minutes: Some(120),
            provider: Some((8, "US".to_owned())),
        };
        for kind in [MediaKind::Movie, MediaKind::Series] {
            accept_titles("recommendations", source.fetch_recommendations((kind, 949), now).await)?;
            accept_titles("list", source.discover(kind, &filter, now).await)?;
            accept_titles("services", source.fetch_providers(kind, "US", now).await)?;
            accept_titles("facts", source.fetch_facts((kind, 949), "US", now).await)?;
        }
        Ok(())
    }

    #[tokio::test]
    async fn requests_for_titles_match_the_published_description() -> Result<()> {
        let Ok(url) = env::var("DIALARR_SEERR_URL") else { return Ok(()) };
        let seerr = Seerr::new(HttpClient::network()?, url.parse()?, &SecretString::from("a-key"));
        let user = SeerrUserId(3);
        let movie = NewSeerrRequest {
            title: SeerrTitle { kind: MediaKind::Movie, tmdb: 949 },
            tvdb: None,
            seasons: None,
            is_4k: false,
        };
        let seasons = NewSeerrRequest {
            title: SeerrTitle { kind: MediaKind::Series, tmdb: 95_396 },
            tvdb: Some(371_980),
            seasons: Some(vec![1, 2]),
            is_4k: true,
        };
        accept("users", seerr.fetch_users().await)?;
        accept("quota", seerr.fetch_quotas(user).await)?;
        accept("movie", seerr.create_request(user, &movie).await)?;
        accept("seasons", seerr.create_request(user, &seasons).await)?;
        accept("own requests", seerr.fetch_requests_of(user).await)?;
        accept("changed requests", seerr.fetch_changed_requests().await)?;
        accept("pending requests", seerr.fetch_pending_requests().await)?;
        accept("request", seerr.fetch_request(SeerrRequestId(41)).await)?;
        for decision in [RequestDecision::Approve, RequestDecision::Decline] {
            accept("decision", seerr.decide_request(user, SeerrRequestId(41), decision).await)?;
        }
        accept("show", seerr.find_series_by_tvdb(371_980).await)?;
        accept("media", seerr.find_media(movie.title).await)?;
        let issue = NewSeerrIssue {
            kind: IssueType::Audio,
            media: SeerrMediaId(17),
            place: IssuePlace { season: 1, episode: 2 },
            message: "The audio is broken.".to_owned(),
        };
        accept("issue", seerr.create_issue(user, &issue).await)?;
        accept("issues", seerr.fetch_issues_of(user).await)
    }
}

#[tokio::test]
async fn independent_client_reads_the_simulated_seerr() -> Result<()> {
    let Ok(python) = env::var("DIALARR_SEERR_CLIENT") else { return Ok(()) };
    let catalog = FakeCatalog::default();
    catalog.add(FakeEntry::movie(("Heat", 1995), 949).genres(&[28, 80]).rated(7.9, 60.0).on(8));
    catalog.add(FakeEntry::show(("Dark", 2017), 70_523, 334_824).genres(&[18]).rated(8.4, 30.0));
    catalog.add_actor(380, "Robert De Niro", &[(MediaKind::Movie, 949)]);
    catalog.add_provider(8, "Netflix");
    let fake = FakeSeerr::new("a-key", Clock::System).with_titles(catalog.seerr_titles());
    let sam = fake.add_user("Sam", Permission::REQUEST);
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    let server = tokio::spawn(async move { axum::serve(listener, fake.router()).await });
    let mut command = Command::new(python);
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/.ci/contract/seerr_client.py");
    command.args([script, &url, "a-key", &sam.to_string()]).stdout(Stdio::piped()).stderr(Stdio::inherit());
    let output = tokio::task::spawn_blocking(move || command.output()).await??;
    server.abort();
    ensure!(output.status.success(), "the client failed");
    let answers: Value = serde_json::from_slice(&output.stdout)?;
    assert_eq!(
        answers,
        json!({
            "found": ["Heat"], "trending": ["Heat", "Dark"], "movies": ["Heat"], "credits": ["Heat"], "tvdb": 334_824,
            "users": ["Owner", "Sam"], "asked": 1, "used": 1, "decided": 2, "listed": [949],
        })
    );
    Ok(())
}
