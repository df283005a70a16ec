//! Cost of 500 readers of one conversation for the publisher of its deltas. The same deltas without readers and with
//! them, in turns, in one run: at full speed, and at the rate of a response.

#![expect(clippy::print_stdout, reason = "the report is what a benchmark is for")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use dialarr::conversation::stream_events::BlockKind;
use dialarr::conversation::transcript::{ConversationId, PhoneNumber, Responder};
use dialarr::engine::stream::hub::Hub;
use dialarr::engine::stream::reader::StreamBatch;
use dialarr::store::conversation::conversations;
use dialarr::store::conversation::record::steps::BlockRecord;
use dialarr::store::database::db::Db;
use dialarr::store::people::users::{self, FirstContactRole};
use dialarr::store::turns::model_steps::{self, AttemptId};
use dialarr::store::turns::turn_lifecycle::{self, NewTurn, TurnKind, TurnPlan};
use jiff::Timestamp;
use tokio::sync::Notify;
use tokio::task::JoinSet;

const READERS: usize = 500;
const ROUNDS: usize = 5;
/// Duration of each round at full speed.
const ROUND: Duration = Duration::from_secs(2);
/// Number of deltas in a batch at full speed, and the text of each.
const DELTAS: usize = 64;
const DELTA: &str = "word ";
/// Rate of a response: deltas within this time share a batch.
const TICK: Duration = Duration::from_millis(50);
const TICKS: usize = 100;
const TIMEOUT: Duration = Duration::from_secs(60);

fn main() -> Result<()> {
    tokio::runtime::Runtime::new()?.block_on(run())
}

/// Response that is being written.
struct Stage {
    db: Db,
    hub: Hub,
    conversation: ConversationId,
    attempt: AttemptId,
}

impl Stage {
    async fn open(path: &str) -> Result<Self> {
        let db = Db::open(path)?;
        let phone = PhoneNumber::parse("+15550100002")?;
        let now = Timestamp::now();
        let begin = move |conn: &mut _| {
            let user = users::ensure_user(conn, &phone, FirstContactRole::Member, now)?;
            let conversation = conversations::start_conversation(conn, user, "A talk", now)?;
            let plan = TurnPlan::for_responder(Responder::Model);
            let new = NewTurn { user, conversation, kind: TurnKind::Chat, plan: &plan };
            let attempt =
                AttemptId { turn: turn_lifecycle::create_turn(conn, new, now)?, step: 0, attempt: 1 };
            model_steps::start_attempt(conn, attempt, Responder::Model, "a model", now)?;
            Ok((conversation, attempt))
        };
        let (conversation, attempt) = db.write(begin).await?;
        Ok(Self { hub: Hub::new(db.clone()), db, conversation, attempt })
    }

    fn publish(&self, deltas: usize) {
        let piece = BlockRecord { kind: BlockKind::Text, ord: 0, text: DELTA.repeat(deltas) };
        self.db.event_log().append_chunks(self.attempt, &[piece], Timestamp::now());
    }
}

/// Readers at the end of the log, and the total number of events that they have read.
struct Crowd {
    read: Arc<AtomicUsize>,
    moved: Arc<Notify>,
    tasks: JoinSet<()>,
}

impl Crowd {
    async fn gather(stage: &Stage, count: usize) -> Result<Self> {
        let (read, moved) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
        let mut tasks = JoinSet::new();
        let ready = Arc::new(AtomicUsize::new(0));
        for _ in 0..count {
            let mut reader = stage.hub.connect(stage.conversation, None, |_, _| Ok(()));
            let (read, moved, ready) = (read.clone(), moved.clone(), ready.clone());
            tasks.spawn(async move {
                while let Ok(batch) = reader.next().await {
                    match batch {
                        StreamBatch::Events(events) => {
                            read.fetch_add(events.len(), Ordering::SeqCst);
                        }
                        StreamBatch::CaughtUp => {
                            ready.fetch_add(1, Ordering::SeqCst);
                        }
                        StreamBatch::Reset | StreamBatch::Snapshot(..) => {}
                    }
                    moved.notify_waiters();
                }
            });
        }
        let crowd = Self { read, moved, tasks };
        crowd.until(|| ready.load(Ordering::SeqCst) >= count).await?;
        Ok(crowd)
    }

    /// Waits until every reader has read `events`.
    async fn reads(&self, events: usize) -> Result<()> {
        let wanted = events * self.tasks.len();
        self.until(|| self.read.load(Ordering::SeqCst) >= wanted).await
    }

    async fn until(&self, there: impl Fn() -> bool) -> Result<()> {
        let wait = async {
            loop {
                let moved = self.moved.notified();
                tokio::pin!(moved);
                moved.as_mut().enable();
                if there() {
                    return;
                }
                moved.await;
            }
        };
        tokio::time::timeout(TIMEOUT, wait).await.context("the readers do not come after")
    }
}

async fn run() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("stream.db");
    let stage = Stage::open(path.to_str().context("a path that is not UTF-8")?).await?;
    stage.publish(1);
    let (mut alone, mut followed, mut behind) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        alone.push(full_speed(&stage, 0).await?.0);
        let (speed, after) = full_speed(&stage, READERS).await?;
        followed.push(speed);
        behind.push(after);
    }
    let (alone, followed) = (median(&mut alone), median(&mut followed));
    println!("as fast as it goes, medians of {ROUNDS} rounds of {ROUND:?} each:");
    println!("  without readers       {alone:9.0} deltas/s");
    println!("  {READERS} readers           {followed:9.0} deltas/s, ratio {:.2}", followed / alone);
    println!("  the last reader is done {:.0} ms after the last batch", median(&mut behind) * 1e3);
    println!("one response, a batch every {TICK:?}, {TICKS} times:");
    for readers in [0, READERS] {
        let mut paced = at_the_pace_of_a_response(&stage, readers).await?;
        let (median, worst) = (median(&mut paced.batches) * 1e3, most(&paced.batches) * 1e3);
        println!("  {readers:3} readers: a batch takes {median:.2} ms, {worst:.2} ms at most");
        if readers > 0 {
            let (median, worst) = (self::median(&mut paced.told) * 1e3, most(&paced.told) * 1e3);
            println!("               the last reader has it {median:.2} ms after it, {worst:.2} ms at most");
        }
    }
    Ok(())
}

/// Deltas per second, and the seconds until every reader had the last one.
async fn full_speed(stage: &Stage, readers: usize) -> Result<(f64, f64)> {
    let crowd = Crowd::gather(stage, readers).await?;
    let (start, mut batches) = (Instant::now(), 0);
    while start.elapsed() < ROUND {
        stage.publish(DELTAS);
        batches += 1;
        // Readers that fall behind the log get a snapshot instead of the events.
        crowd.reads(batches).await?;
    }
    let speed = (batches * DELTAS) as f64 / start.elapsed().as_secs_f64();
    let end = Instant::now();
    crowd.reads(batches).await?;
    Ok((speed, end.elapsed().as_secs_f64()))
}

/// Seconds of each batch, and until every reader had it.
struct Paced {
    batches: Vec<f64>,
    told: Vec<f64>,
}

async fn at_the_pace_of_a_response(stage: &Stage, readers: usize) -> Result<Paced> {
    let crowd = Crowd::gather(stage, readers).await?;
    let mut ticks = tokio::time::interval(TICK);
    let mut paced = Paced { batches: Vec::new(), told: Vec::new() };
    for tick in 1..=TICKS {
        ticks.tick().await;
        let start = Instant::now();
        stage.publish(4);
        paced.batches.push(start.elapsed().as_secs_f64());
        let published = Instant::now();
        crowd.reads(tick).await?;
        paced.told.push(published.elapsed().as_secs_f64());
    }
    ensure!(paced.batches.len() == TICKS, "a tick is missing");
    Ok(paced)
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

fn most(values: &[f64]) -> f64 {
    values.iter().copied().fold(0.0, f64::max)
}
