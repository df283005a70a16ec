//! Client for Tautulli, and the simulated one, against the independent client that the Python in `DIALARR_TAUTULLI_CLIENT`
//! has, and against example answers in `DIALARR_SHARED`. No description of the API is published. Without these variables
//! nothing is checked.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::{env, fs};

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use dialarr::http::HttpClient;
use dialarr::media_servers::fake::{FakePlex, FakeTautulli};
use dialarr::media_servers::plex::Plex;
use dialarr::media_servers::tautulli::Tautulli;
use dialarr::media_servers::{CatalogIds, MediaServer, PlayProgress, ServerUserId};
use futures_util::FutureExt;
use http::{Request, Response};
use jiff::SignedDuration;
use secrecy::SecretString;
use serde_json::{Value, json};
use url::Url;

use crate::media_servers::{World, ask_client, ask_everything};

const KEY: &str = "0123456789abcdef0123456789abcdef";

/// Parameters of each request, by its command.
type Requests = BTreeMap<String, Vec<BTreeMap<String, String>>>;

/// Returns the parameters of the requests that our client sends, without the key.
async fn requests_of_our_client() -> Result<Requests> {
    let World { household, bob, heat } = World::new();
    let ronin = household.add_movie(
        ("Ronin", 1998),
        CatalogIds { tmdb: Some(8195), ..CatalogIds::default() },
        SignedDuration::ZERO,
    );
    let tautulli = FakeTautulli::with_household(KEY, household.clone());
    let plex = FakePlex::with_household("token", household);
    let sent = Arc::new(Mutex::new(Vec::new()));
    let (log, peer) = (sent.clone(), tautulli.in_process());
    let recorded = HttpClient::in_process(Arc::new(move |request: Request<Bytes>| {
        log.lock().unwrap_or_else(PoisonError::into_inner).push(request.uri().clone());
        peer(request)
    }));
    let url: Url = "http://home.invalid".parse()?;
    let client = Tautulli::new(recorded, url.clone(), &tautulli.key());
    client.fetch_status().await?;
    let plex = Plex::new(HttpClient::in_process(plex.in_process()), url, &plex.token()).with_tautulli(client);
    for movie in [heat, ronin] {
        ask_everything(&plex, (&tautulli.user_id(bob), &movie.to_string())).await?;
    }
    let mut requests = Requests::new();
    for uri in sent.lock().unwrap_or_else(PoisonError::into_inner).iter() {
        let query = uri.query().unwrap_or_default();
        let mut parameters: BTreeMap<String, String> =
            url::form_urlencoded::parse(query.as_bytes()).into_owned().collect();
        ensure!(parameters.remove("apikey").as_deref() == Some(KEY));
        let command = parameters.remove("cmd").context("a request without a command")?;
        requests.entry(command).or_default().push(parameters);
    }
    Ok(requests)
}

/// Checks that another client sends requests with the same names, and the same words where they are not ids.
fn compare_requests(ours: &Requests, theirs: &Value) -> Result<()> {
    let mut names = BTreeSet::new();
    for (command, requests) in ours {
        for (name, value) in requests.iter().flatten() {
            let known = &theirs[command][name];
            ensure!(!known.is_null(), "{command} has no parameter {name}");
            if ["grouping", "order_column", "order_dir"].contains(&name.as_str()) {
                ensure!(known.to_string().trim_matches('"') == value, "{name} is {known} and not {value}");
            }
            names.insert(name.as_str());
        }
        ensure!(theirs[command]["cmd"] == *command, "{command} is unknown");
    }
    for selection in ["rating_key", "grandparent_rating_key", "guid", "search", "user_id"] {
        ensure!(names.contains(selection), "no request had {selection}");
    }
    Ok(())
}

#[tokio::test]
async fn independent_client_reads_the_simulated_one_with_our_requests() -> Result<()> {
    let Ok(python) = env::var("DIALARR_TAUTULLI_CLIENT") else { return Ok(()) };
    let tautulli = FakeTautulli::with_household(KEY, World::new().household);
    let mut found = ask_client(python, "tautulli", tautulli.router(), KEY).await?;
    let requests = found["requests"].take();
    let expected = json!({
        "version": "v2.17.2",
        "users": { "Local": [1, 1], "Ann": [1, 1], "Bob": [1, 1] },
        "history": [["Heat", "movie", 41, 0.25, 1_770_000_000]],
        "rows": [1, 2],
        "requests": null,
    });
    ensure!(found == expected, "{found}");
    compare_requests(&requests_of_our_client().await?, &requests)
}

/// Loads the example answers by command. The history has the row of an episode too.
fn load_examples() -> Result<Option<BTreeMap<String, Value>>> {
    let shared = env::var_os("DIALARR_SHARED").map(PathBuf::from).filter(|shared| shared.is_dir());
    let Some(shared) = shared else { return Ok(None) };
    let text = fs::read_to_string(shared.join("data/tautulli/examples.json"))?;
    let mut examples: BTreeMap<String, Value> = serde_json::from_str(&text)?;
    let mut history = examples.remove("get_history_movie").context("no example of the history")?;
    let episode = examples.remove("get_history_episode_row").context("no example of an episode")?;
    let rows = history["response"]["data"]["data"].as_array_mut().context("no rows")?;
    rows.push(episode);
    examples.insert("get_history".into(), history);
    Ok(Some(examples))
}

/// Returns the paths of the fields of an answer. Elements of lists have the same path.
fn field_paths(value: &Value, path: &str, paths: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                let path = format!("{path}/{name}");
                field_paths(field, &path, paths);
                paths.insert(path);
            }
        }
        Value::Array(elements) => elements.iter().for_each(|element| field_paths(element, path, paths)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[tokio::test]
async fn simulated_one_has_only_fields_of_the_examples() -> Result<()> {
    let Some(examples) = load_examples()? else { return Ok(()) };
    let tautulli = FakeTautulli::with_household(KEY, World::new().household).in_process();
    for command in ["get_tautulli_info", "get_users", "get_history"] {
        let uri = format!("http://tautulli.invalid/api/v2?apikey={KEY}&cmd={command}");
        let response = tautulli(Request::get(uri).body(Bytes::new())?).await;
        let (mut ours, mut theirs) = (BTreeSet::new(), BTreeSet::new());
        field_paths(&serde_json::from_slice(response.body())?, "", &mut ours);
        field_paths(examples.get(command).context("no example")?, "", &mut theirs);
        let unknown: Vec<&String> = ours.difference(&theirs).collect();
        ensure!(unknown.is_empty(), "{command}: {unknown:?}");
    }
    Ok(())
}

#[tokio::test]
async fn our_client_reads_the_examples() -> Result<()> {
    let Some(examples) = load_examples()? else { return Ok(()) };
    let examples = Arc::new(examples);
    let peer = move |request: Request<Bytes>| {
        let mut query = url::form_urlencoded::parse(request.uri().query().unwrap_or_default().as_bytes());
        let command = query.find(|(name, _)| name == "cmd").map(|(_, command)| command.into_owned());
        let answer = command.and_then(|command| examples.get(&command)).unwrap_or(&Value::Null).to_string();
        async move { Response::new(Bytes::from(answer)) }.boxed()
    };
    let url: Url = "http://home.invalid".parse()?;
    let client =
        Tautulli::new(HttpClient::in_process(Arc::new(peer)), url.clone(), &SecretString::from("key"));
    ensure!(client.fetch_status().await?.version == "v2.17.2");
    let no_plex = HttpClient::in_process(Arc::new(|_| std::future::pending().boxed()));
    let plex = Plex::new(no_plex, url, &SecretString::from("token")).with_tautulli(client);
    let users: Vec<String> = plex.fetch_users().await?.into_iter().map(|user| user.name).collect();
    ensure!(users == ["Ann", "Bo"], "{users:?}");
    let plays = plex.fetch_recent_plays(&ServerUserId::new("1001"), 5).await?;
    let plays: Vec<_> = plays.iter().map(|play| (play.title.as_str(), play.episode, play.progress)).collect();
    let finished = |title, episode| (title, episode, PlayProgress::Finished);
    ensure!(plays == [finished("Severance", Some((2, 3))), finished("Heat", None)], "{plays:?}");
    Ok(())
}
