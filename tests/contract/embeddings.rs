//! Vectors of a real model: their order, their similarity, and recall with them.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use dialarr::app::App;
use dialarr::arr::fake::radarr::FakeRadarr;
use dialarr::arr::fake::sonarr::FakeSonarr;
use dialarr::clock::Clock;
use dialarr::conversation::transcript::{PhoneNumber, UserId};
use dialarr::http::build_network_client;
use dialarr::llm::embeddings::openai::OpenAiEmbedder;
use dialarr::llm::embeddings::{EmbedError, Embedder};
use dialarr::simulation::{self, SimulatedPeers};
use dialarr::store::database::db::Db;
use dialarr::store::memory::responses::{self, AnswerOwner};
use dialarr::store::memory::search::RecallRange;
use dialarr::store::people::users::{self, FirstContactRole};
use jiff::tz::TimeZone;
use serde::Deserialize;

use crate::model_conversation::{KEY, server};

const VARIABLE: &str = "DIALARR_EMBEDDINGS_URL";

/// Returns the model behind the server in the environment.
fn model() -> Result<Option<OpenAiEmbedder>> {
    let Some(server) = server(VARIABLE)? else { return Ok(None) };
    let name = "all-minilm-l6-v2".to_owned();
    Ok(Some(OpenAiEmbedder::new(&build_network_client()?, &server.join("/v1")?, Some(KEY.into()), name)?))
}

/// Computes the cosine of two unit vectors.
fn likeness(one: &[f32], other: &[f32]) -> f32 {
    one.iter().zip(other).map(|(a, b)| a * b).sum()
}

#[tokio::test]
async fn embeddings_keep_the_order_and_similarity_of_their_texts() -> Result<()> {
    let Some(model) = model()? else { return Ok(()) };
    let texts =
        ["delete game of thrones", "do not delete game of thrones", "add interstellar", "i only want 4k"]
            .map(str::to_owned);

    let vectors = model.embed(&texts).await?;

    ensure!(vectors.len() == texts.len(), "{} vectors", vectors.len());
    for (text, vector) in texts.iter().zip(&vectors) {
        ensure!(vector.len() == 384, "{text}: {} dimensions", vector.len());
        let length = likeness(vector, vector);
        ensure!((length - 1.0).abs() < 1e-5, "{text}: length {length}");
        let alone = model.embed(std::slice::from_ref(text)).await?.pop().context("a vector")?;
        ensure!(likeness(vector, &alone) > 0.999, "{text}: another vector when it is asked for alone");
    }
    let contrary = likeness(&vectors[0], &vectors[1]);
    ensure!(contrary > 0.9, "a sentence and its opposite are {contrary} alike");
    let unrelated = likeness(&vectors[2], &vectors[3]);
    ensure!(unrelated < 0.3, "a wish and a preference are {unrelated} alike");
    Ok(())
}

#[tokio::test]
async fn text_without_words_is_embedded_and_blank_text_is_not_sent() -> Result<()> {
    let Some(model) = model()? else { return Ok(()) };
    let vectors = model.embed(&["\u{1F3AC}".to_owned(), "?".to_owned()]).await?;
    ensure!(vectors.iter().all(|vector| vector.len() == 384));
    let blank = model.embed(&["  ".to_owned()]).await;
    ensure!(blank == Err(EmbedError::Blank { text: 0 }), "a blank text got {blank:?}");
    Ok(())
}

/// Row of the retrieval set, with its position in the file.
#[derive(Debug, Clone, Deserialize)]
struct Memory {
    id: String,
    user: Option<String>,
    trigger: String,
    response: String,
}

#[derive(Debug, Clone, Deserialize)]
struct Query {
    query: String,
    viewer: String,
    /// Answers of which one has to be among the first three; if there are none, recall must be empty.
    expected: Option<Vec<String>>,
}

#[derive(Debug, Deserialize)]
struct RetrievalSet {
    memories: Vec<Memory>,
    queries: Vec<Query>,
}

/// Starts the program with this model, with the set indexed.
async fn remembering(model: OpenAiEmbedder, set: &RetrievalSet, folder: &Path) -> Result<App> {
    let database = folder.join("memory.db");
    let (radarr, sonarr) = (FakeRadarr::new(), FakeSonarr::new());
    let peers = SimulatedPeers::new(Clock::System, radarr, sonarr, "https://sms.example.org");
    let db = Db::open(database.to_str().context("a path that is not UTF-8")?)?;
    let mut blueprint = peers.blueprint(simulation::simulation_settings(TimeZone::UTC), None)?;
    blueprint.embedder = Some(Arc::new(model));
    let app = App::start(db, peers.clock.clone(), blueprint).await?;
    let now = Clock::System.now();
    for memory in set.memories.clone() {
        let user = match &memory.user {
            Some(name) => Some(person(&app.db, name).await?),
            None => None,
        };
        let owner = user.map_or(AnswerOwner::Everyone, AnswerOwner::User);
        let add = move |conn: &mut _| {
            let words = (memory.trigger.as_str(), memory.response.as_str());
            responses::add_operator_answer(conn, owner, user, words, now)
        };
        app.db.write(add).await?;
    }
    let progress = app.engine.indexer.index_for_caller().await?;
    ensure!(progress.indexed == set.memories.len(), "of the set {progress:?} was learned");
    Ok(app)
}

/// Creates a user of the set.
async fn person(db: &Db, name: &str) -> Result<UserId> {
    let phone = PhoneNumber::parse(if name == "ann" { "+15550100002" } else { "+15550100003" })?;
    let now = Clock::System.now();
    Ok(db.write(move |conn| users::ensure_user(conn, &phone, FirstContactRole::Member, now)).await?)
}

#[tokio::test]
async fn sixteen_of_eighteen_questions_recall_their_answer() -> Result<()> {
    let Some(model) = model()? else { return Ok(()) };
    let Some(shared) = std::env::var_os("DIALARR_SHARED") else { return Ok(()) };
    let set = std::fs::read(Path::new(&shared).join("data/memory_set.json"))?;
    let set: RetrievalSet = serde_json::from_slice(&set)?;
    let folder = tempfile::tempdir()?;
    let app = remembering(model, &set, folder.path()).await?;

    let (mut asked, mut hits, mut missed) = (0, 0, Vec::new());
    for Query { query, viewer, expected } in &set.queries {
        let user = person(&app.db, viewer).await?;
        let recalled = app.engine.recall.recall_answers(user, query, RecallRange::default()).await?;
        let found: Vec<&Memory> = recalled
            .ranked_answers()
            .iter()
            .filter_map(|found| set.memories.iter().find(|memory| memory.trigger == found.candidate.question))
            .collect();
        ensure!(found.len() == recalled.ranked_answers().len(), "{query}: something else was found");
        for memory in &found {
            let may = memory.user.as_ref().is_none_or(|owner| owner == viewer);
            ensure!(may, "{viewer} found {} with {query:?}", memory.id);
        }
        match expected {
            None => ensure!(found.is_empty(), "{query}: {found:?} were found"),
            Some(expected) => {
                asked += 1;
                if found.iter().take(3).any(|memory| expected.contains(&memory.id)) {
                    hits += 1;
                } else {
                    missed.push(query);
                }
            }
        }
    }
    eprintln!("{hits} of {asked} questions found their answer; not {missed:?}");
    ensure!(asked == 18 && hits >= 16, "{hits} of {asked}; not {missed:?}");
    app.close().await;
    Ok(())
}
