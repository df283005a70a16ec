//! Clients of media servers against mocks of the published descriptions (`DIALARR_JELLYFIN_URL`, `DIALARR_PLEX_URL`), and
//! the simulated servers with independent clients, which the Python in `DIALARR_MEDIA_CLIENT` has. Without these variables
//! nothing is checked.

use std::env;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use axum::Router;
use dialarr::clock::Clock;
use dialarr::conversation::transcript::MediaKind;
use dialarr::http::HttpClient;
use dialarr::media_servers::fake::{FakeHousehold, FakeJellyfin, FakePlex};
use dialarr::media_servers::jellyfin::Jellyfin;
use dialarr::media_servers::plex::Plex;
use dialarr::media_servers::{CatalogIds, ItemId, MediaServer, ServerError, ServerTitle, ServerUserId};
use jiff::{SignedDuration, Timestamp};
use secrecy::SecretString;
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// Id in the form in which the description of Jellyfin states ids. The server accepts them without dashes too.
const ID: &str = "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0";

/// Sends every request of a client. A mock refuses a request that its description does not allow.
pub(crate) async fn ask_everything(server: &dyn MediaServer, (user, item): (&str, &str)) -> Result<()> {
    let user = ServerUserId::new(user);
    let title = |kind| {
        let (item, ids) = (ItemId::new(item), CatalogIds::default());
        ServerTitle { item, kind, ids, title: "Heat".to_owned(), year: 1995, is_playable: true }
    };
    let since = Some(Timestamp::UNIX_EPOCH);
    accept("status", server.fetch_status().await)?;
    accept("folders", server.fetch_folders().await)?;
    accept("users", server.fetch_users().await)?;
    accept("count", server.fetch_title_count().await)?;
    accept("titles", server.fetch_titles(0, None).await)?;
    accept("changed titles", server.fetch_titles(200, since).await)?;
    accept("episodes", server.fetch_episodes(&ItemId::new(item)).await)?;
    accept("sessions", server.fetch_playing().await)?;
    for kind in [MediaKind::Movie, MediaKind::Series] {
        accept("state", server.fetch_watch_state(&user, &title(kind)).await)?;
    }
    accept("states", server.fetch_watch_states(&user).await)?;
    accept("plays", server.fetch_recent_plays(&user, 5).await)?;
    accept("scan", server.request_scan("/media/movies/Heat (1995)").await)
}

/// Accepts any answer of a mock except the refusal of the request. Some of its values cannot be real ones.
fn accept<T>(request: &str, answer: Result<T, ServerError>) -> Result<()> {
    match answer {
        Ok(_) | Err(ServerError::Unreadable(_)) => Ok(()),
        Err(error) => Err(error).with_context(|| format!("{request} was refused")),
    }
}

mod jellyfin {
    use super::*;

    #[tokio::test]
    async fn requests_match_the_published_description() -> Result<()> {
        let Ok(url) = env::var("DIALARR_JELLYFIN_URL") else { return Ok(()) };
        let jellyfin = Jellyfin::new(HttpClient::network()?, url.parse()?, &SecretString::from("a-key"));
        ask_everything(&jellyfin, (ID, ID)).await
    }
}

mod plex {
    use super::*;

    #[tokio::test]
    async fn requests_match_the_published_description() -> Result<()> {
        let Ok(url) = env::var("DIALARR_PLEX_URL") else { return Ok(()) };
        let plex = Plex::new(HttpClient::network()?, url.parse()?, &SecretString::from("a-token"));
        ask_everything(&plex, ("1", "4348")).await
    }
}

/// Household of Ann and Bob. Ann has finished Heat, Bob has stopped it at 41 percent, and Ann is watching The Bear.
pub(crate) struct World {
    pub(crate) household: FakeHousehold,
    pub(crate) bob: u64,
    pub(crate) heat: u64,
}

impl World {
    pub(crate) fn new() -> Self {
        let household = FakeHousehold::new(Clock::stopped_at(Timestamp::constant(1_770_000_000, 0)));
        let (ann, bob) = (household.add_user("Ann"), household.add_user("Bob"));
        let ids = CatalogIds { tmdb: Some(949), tvdb: None, imdb: Some(113_277) };
        let heat = household.add_movie(("Heat", 1995), ids, SignedDuration::ZERO);
        household.watch(bob, heat, 41);
        household.watch(ann, heat, 100);
        let ids = CatalogIds { tvdb: Some(403_245), ..CatalogIds::default() };
        let bear = household.add_show(("The Bear", 2022), ids, SignedDuration::ZERO);
        let episode = household.add_episode(bear, (1, 1));
        household.add_missing_episode(bear, (1, 2));
        household.start_playing(ann, episode);
        Self { household, bob, heat }
    }
}

/// Runs an independent client against a simulated server, and returns what the client found.
pub(crate) async fn ask_client(python: String, server: &str, router: Router, key: &str) -> Result<Value> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    tokio::spawn(async move { axum::serve(listener, router).await });
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/.ci/contract/media_servers.py");
    let mut client = Command::new(python);
    client.args([script, server, &url, key]).stderr(Stdio::inherit());
    let output = tokio::task::spawn_blocking(move || client.output()).await?.context("run the client")?;
    ensure!(output.status.success(), "the client failed");
    Ok(serde_json::from_slice(&output.stdout)?)
}

#[tokio::test]
async fn independent_client_reads_the_simulated_jellyfin() -> Result<()> {
    let Ok(python) = env::var("DIALARR_MEDIA_CLIENT") else { return Ok(()) };
    let jellyfin = FakeJellyfin::with_household("0123456789abcdef", World::new().household);
    let found = ask_client(python, "jellyfin", jellyfin.router(), "0123456789abcdef").await?;
    let expected = json!({
        "users": ["Ann", "Bob"],
        "titles": [
            ["Heat", { "Tmdb": "949", "Imdb": "tt0113277" }, true],
            ["The Bear", { "Tvdb": "403245" }, false],
        ],
        "episodes": [[1, 1]],
        "playing": ["Episode 1"],
    });
    ensure!(found == expected, "{found}");
    Ok(())
}

#[tokio::test]
async fn independent_client_reads_the_simulated_plex() -> Result<()> {
    let Ok(python) = env::var("DIALARR_MEDIA_CLIENT") else { return Ok(()) };
    let world = World::new();
    let plex = FakePlex::with_household("0123456789abcdef", world.household.clone());
    let found = ask_client(python, "plex", plex.router(), "0123456789abcdef").await?;
    let expected = json!({
        "server": ["Home", "1.41.0.0-aaaaaaaaa"],
        "sections": {
            "Movies": ["movie", ["/media/movies"]],
            "Shows": ["show", ["/media/shows"]],
            "Music": ["artist", ["/media/music"]],
        },
        "movies": [["Heat", 1995, ["imdb://tt0113277", "tmdb://949"], format!("/media/{}.mkv", world.heat)]],
        "show": ["The Bear", ["tvdb://403245"], 1],
        "episodes": [[1, 1, "The Bear"]],
        "playing": [[["Ann"], "Episode 1", "playing"]],
        "accounts": { "0": "", "1": "Ann", plex.account_id(world.bob): "Bob" },
        "history": [["Heat", 1, 1_770_000_000.0]],
    });
    ensure!(found == expected, "{found}");
    Ok(())
}
