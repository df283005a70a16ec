//! Duration of recall among 100,000 answers of one installation, by both vectors of 384 dimensions and by words.
//! Measured with all answers owned by one user, and by ten users. `MEMORY_ROWS` sets their number. The vectors are
//! random, and so are the words; the word frequencies follow Zipf's law. Each answer has metadata of a model, which is
//! searched too.

#![expect(clippy::print_stdout, reason = "the report is what a benchmark is for")]

use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use async_trait::async_trait;
use dialarr::app::App;
use dialarr::arr::fake::demo_library::create_demo_servers;
use dialarr::clock::Clock;
use dialarr::conversation::memory::answer_metadata::{self, TurnEffect};
use dialarr::conversation::transcript::{PhoneNumber, UserId};
use dialarr::llm::embeddings::{EmbedError, Embedder};
use dialarr::memory::vector::UnitVector;
use dialarr::simulation::{self, SimulatedPeers};
use dialarr::store::database::db::Db;
use dialarr::store::memory::indexing_queue::{
    self, AnnotationSource, BatchScope, EmbeddedAnswer, IndexingResult,
};
use dialarr::store::memory::responses::{self, AnswerOwner, AnswerSource, NewAnswer};
use dialarr::store::memory::search::RecallRange;
use dialarr::store::people::users::{self, FirstContactRole};
use dialarr::store::privacy::erase_user_content;
use dialarr::store::text_index::{self, TextIndexProgress};
use jiff::tz::TimeZone;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

const ROWS: usize = 100_000;
const DIMS: usize = 384;
const PEOPLE: usize = 10;
const SEARCHES: usize = 200;
const VOCABULARY: usize = 20_000;
const MODEL: &str = "made-up";
/// Number of rows in one transaction.
const BATCH: usize = 500;

/// Embedder of random vectors, without a delay.
struct MadeUp;

#[async_trait]
impl Embedder for MadeUp {
    fn model(&self) -> &str {
        MODEL
    }

    async fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, EmbedError> {
        Ok(texts.iter().map(|text| numbers(&mut StdRng::seed_from_u64(seed(text)))).collect())
    }
}

fn seed(text: &str) -> u64 {
    text.bytes().fold(7, |seed, byte| seed.wrapping_mul(31).wrapping_add(byte.into()))
}

fn numbers(rng: &mut StdRng) -> Vec<f32> {
    (0..DIMS).map(|_| rng.random_range(-1.0..1.0)).collect()
}

/// Returns random words; the first of the vocabulary are the most frequent.
fn sentence(rng: &mut StdRng, words: usize) -> String {
    let word = |rng: &mut StdRng| {
        let rank = (VOCABULARY as f64).powf(rng.random_range(0.0..1.0)) as usize;
        format!("word{rank}")
    };
    (0..words).map(|_| word(rng)).collect::<Vec<_>>().join(" ")
}

fn main() -> Result<()> {
    dialarr::http::install_tls();
    let rows = std::env::var("MEMORY_ROWS").ok().and_then(|rows| rows.parse().ok()).unwrap_or(ROWS);
    tokio::runtime::Runtime::new()?.block_on(async {
        round("all of one person", 1, rows).await?;
        round("of ten people", PEOPLE, rows).await
    })
}

async fn round(what: &str, people: usize, rows: usize) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let database = folder.path().join("memory.db");
    let database = database.to_str().context("a path that is not UTF-8")?;
    let (radarr, sonarr) = create_demo_servers(Clock::System.now());
    let peers = SimulatedPeers::new(Clock::System, radarr, sonarr, "https://sms.example.org");
    let mut blueprint = peers.blueprint(simulation::simulation_settings(TimeZone::UTC), None)?;
    blueprint.embedder = Some(Arc::new(MadeUp));
    // Random vectors are dissimilar: without a floor each search ranks its full share of rows.
    blueprint.settings.similarity_floor = 0.0;
    let app = App::start(Db::open(database)?, peers.clock.clone(), blueprint).await?;
    let viewers = fill(&app.db, people, rows).await?;
    let before = resident()?;

    let first = Instant::now();
    app.engine.recall.recall_answers(viewers[0], "word1 word2", RecallRange::default()).await?;
    let first = first.elapsed();
    let mut times = Vec::with_capacity(SEARCHES);
    let mut rng = StdRng::seed_from_u64(3);
    let mut found = 0;
    for n in 0..SEARCHES {
        let query = sentence(&mut rng, 8);
        let start = Instant::now();
        let recalled = app
            .engine
            .recall
            .recall_answers(viewers[n % viewers.len()], &query, RecallRange::default())
            .await?;
        // The first search of each user loads their vectors.
        if n >= viewers.len() {
            times.push(start.elapsed());
        }
        found += recalled.ranked_answers().len();
    }
    ensure!(found > SEARCHES, "only {found} answers were found");
    times.sort_unstable();
    let at = |percent: usize| times[(times.len() * percent / 100).min(times.len() - 1)].as_secs_f64() * 1e3;
    println!(
        "{rows} answers, {what}: median {:.1} ms, p99 {:.1} ms; the first search {:.2} s; {:.0} MiB more than before it",
        at(50),
        at(99),
        first.as_secs_f64(),
        resident()? - before,
    );
    let (one, now) = (viewers[0], Clock::System.now());
    let start = Instant::now();
    app.db.write(move |conn| erase_user_content(conn, one, now)).await?;
    println!("  one person's {} answers forgotten in {:.2} s", rows / people, start.elapsed().as_secs_f64());
    app.drain_turns().await;
    app.close().await;
    Ok(())
}

/// Writes answers as the program does, alternating between the users.
async fn fill(db: &Db, people: usize, rows: usize) -> Result<Vec<UserId>> {
    let now = Clock::System.now();
    let mut viewers = Vec::new();
    for n in 0..people {
        let phone = PhoneNumber::parse(&format!("+1555010{n:04}"))?;
        viewers.push(
            db.write(move |conn| users::ensure_user(conn, &phone, FirstContactRole::Member, now)).await?,
        );
    }
    let mut rng = StdRng::seed_from_u64(1);
    let start = Instant::now();
    for batch in 0..rows.div_ceil(BATCH) {
        let made: Vec<(UserId, String, String, EmbeddedAnswer)> = (batch * BATCH
            ..rows.min((batch + 1) * BATCH))
            .filter_map(|n| {
                let (trigger, response) =
                    (UnitVector::new(numbers(&mut rng))?, UnitVector::new(numbers(&mut rng))?);
                let vectors = EmbeddedAnswer { model: MODEL.to_owned(), trigger: Some(trigger), response };
                let words = (sentence(&mut rng, 8), sentence(&mut rng, 20));
                Some((viewers[n % people], words.0, words.1, vectors))
            })
            .collect();
        db.write(move |conn| {
            for (at, (user, question, answer, vectors)) in made.iter().cloned().enumerate() {
                let source = format!("bench:{batch}:{at}");
                let mut extraction =
                    answer_metadata::extract_without_model(&question, &answer, TurnEffect::NoToolCall);
                extraction.summary = answer.split(' ').take(10).collect::<Vec<_>>().join(" ");
                extraction.topics = question.split(' ').take(3).map(str::to_owned).collect();
                let learned = IndexingResult {
                    metadata: extraction,
                    source: AnnotationSource::Model,
                    is_shareable: false,
                    vectors: Some(vectors),
                };
                let owner = AnswerOwner::User(user);
                let new = NewAnswer {
                    source: AnswerSource::Other(source),
                    owner,
                    user: Some(user),
                    agent: MODEL.into(),
                    question,
                    answer,
                };
                responses::store_answer(conn, &new, now)?;
                let taken = indexing_queue::claim_indexing_jobs(conn, BatchScope::AllUsers, i64::MAX, now)?;
                for row in taken.jobs {
                    indexing_queue::complete_indexing_job(conn, row.id, &learned, now)?;
                }
            }
            while text_index::index_new_text(conn)? == TextIndexProgress::More {}
            Ok(())
        })
        .await?;
    }
    println!("{rows} answers written in {:.0} s", start.elapsed().as_secs_f64());
    Ok(viewers)
}

/// Resident memory of this process in MiB.
fn resident() -> Result<f64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
    let kib: f64 = line.trim().trim_end_matches(" kB").trim().parse()?;
    Ok(kib / 1024.0)
}
