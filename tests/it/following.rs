//! Readers that leave early, lag and reconnect, also across restarts of the program: each sees the log without a gap or
//! a repetition.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::time::Duration;

use dialarr::conversation::stream_events::{
    BlockKind, ConversationChange, EventSeq, StreamBlock, StreamEvent, StreamEventKind,
};
use dialarr::conversation::transcript::{ConversationId, PhoneNumber, Responder, StopReason, TurnId, UserId};
use dialarr::conversation::turn::StepFailure;
use dialarr::engine::stream::hub::Hub;
use dialarr::engine::stream::reader::{ReadError, StreamBatch};
use dialarr::store::boot;
use dialarr::store::conversation::conversations::{self, EndReason};
use dialarr::store::conversation::record::pages::{self, ConversationPage};
use dialarr::store::conversation::record::steps::BlockRecord;
use dialarr::store::database::db::Db;
use dialarr::store::people::users::{self, FirstContactRole};
use dialarr::store::queue::inbound_messages::MessageOutcome;
use dialarr::store::stream::event_log::LogPosition;
use dialarr::store::turns::finished_turns::{self, TurnEnd};
use dialarr::store::turns::model_steps::{self, AbandonedAttempt, AttemptId, RecordedResponse};
use dialarr::store::turns::turn_lifecycle::{self, NewTurn, TurnKind, TurnPlan};
use jiff::{SignedDuration, Timestamp};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::sync::{Notify, watch};
use tokio::task::{JoinSet, yield_now};

const READERS: usize = 16;
/// Time limit of a wake-up, shorter than the time after which a feed polls.
const A_WAKE_UP: Duration = Duration::from_secs(14);
/// Retention of events in this test; each write takes one simulated second.
const EVENT_RETENTION: SignedDuration = SignedDuration::from_secs(15);

/// Number of reconnects of all readers.
const RECONNECTS: usize = 10_000;

/// Shared state of the readers and the author.
struct Stage {
    conversation: ConversationId,
    /// Engine; `None` while the program is down.
    hub: watch::Receiver<Option<Hub>>,
    /// Number of commits of the author.
    written: watch::Receiver<usize>,
    came_back: AtomicUsize,
    resets: AtomicUsize,
    /// Cursor of each reader; the end for a reader that is away.
    places: Vec<AtomicI64>,
    moved: Notify,
}

impl Stage {
    fn reaches(&self, reader: usize, place: i64) {
        self.places[reader].store(place, Ordering::SeqCst);
        self.moved.notify_waiters();
    }

    /// Waits until every connected reader has seen all events up to a cursor.
    async fn all_reach(&self, place: EventSeq) {
        loop {
            let moved = self.moved.notified();
            tokio::pin!(moved);
            moved.as_mut().enable();
            if self.places.iter().all(|at| at.load(Ordering::SeqCst) >= place.0) {
                return;
            }
            moved.await;
        }
    }
}

/// Events that a reader received since a snapshot.
struct Life {
    after: i64,
    /// First turn of the snapshot.
    oldest: TurnId,
    events: Vec<StreamEvent>,
    blocks: BTreeMap<(TurnId, StreamBlock), String>,
}

impl Life {
    fn of(place: EventSeq, snapshot: &ConversationPage) -> Self {
        let turns = &snapshot.content.turns;
        let oldest = turns.first().map_or(TurnId(0), |turn| turn.row.id);
        let blocks = turns.iter().flat_map(|turn| {
            let blocks = turn.blocks().unwrap().into_iter();
            blocks.map(|content| ((turn.row.id, content.block), content.text))
        });
        Self { after: place.0, oldest, events: Vec::new(), blocks: blocks.collect() }
    }

    fn last(&self) -> i64 {
        self.events.last().map_or(self.after, |event| event.seq.0)
    }

    /// Returns the text from a turn on.
    fn texts(&self, from: TurnId) -> BTreeMap<(TurnId, StreamBlock), &str> {
        let texts = self.blocks.iter().filter(|((turn, _), text)| *turn >= from && !text.is_empty());
        texts.map(|(key, text)| (*key, text.as_str())).collect()
    }

    fn add(&mut self, event: &StreamEvent) {
        let turn = event.turn.unwrap_or(TurnId(0));
        match &event.kind {
            StreamEventKind::BlockStart(block) => {
                self.blocks.entry((turn, *block)).or_default();
            }
            StreamEventKind::BlockDelta(block, text) => {
                self.blocks.get_mut(&(turn, *block)).unwrap().push_str(text)
            }
            StreamEventKind::StepAbandoned { step, attempt } => {
                self.blocks
                    .retain(|(of, block), _| *of != turn || (block.step, block.attempt) != (*step, *attempt));
            }
            _ => {}
        }
        self.events.push(event.clone());
    }
}

/// Reads until the conversation has ended, and reconnects on the way.
async fn follow(stage: Arc<Stage>, number: usize) -> Vec<Life> {
    let mut rng = StdRng::seed_from_u64(number as u64);
    let (mut hub, mut written) = (stage.hub.clone(), stage.written.clone());
    let (mut lives, mut cursor): (Vec<Life>, Option<EventSeq>) = (Vec::new(), None);
    loop {
        let Ok(running) = hub.wait_for(Option::is_some).await.map(|hub| hub.clone().unwrap()) else {
            panic!()
        };
        let conversation = stage.conversation;
        let mut reader = running.connect(conversation, cursor, move |conn, position| {
            pages::load_newest_page(conn, conversation, &position.streamed)
        });
        drop(running);
        if rng.random_bool(0.25) {
            // The reader leaves at an arbitrary point.
            let moment = rng.random_range(0..40);
            tokio::select! {
                biased;
                () = a_moment(moment) => {}
                batch = reader.next() => if seen(batch, &mut lives, &mut cursor, &stage) { return lives },
            }
        }
        loop {
            let batch = reader.next().await;
            let closed = matches!(batch, Err(ReadError::Closed));
            if seen(batch, &mut lives, &mut cursor, &stage) {
                stage.reaches(number, i64::MAX);
                return lives;
            }
            stage.reaches(number, cursor.map_or(0, |seq| seq.0));
            if closed || rng.random_bool(0.5) {
                break;
            }
            a_moment(rng.random_range(0..10)).await;
        }
        drop(reader);
        stage.came_back.fetch_add(1, Ordering::SeqCst);
        if rng.random_bool(0.03) {
            stage.reaches(number, i64::MAX);
            let until = written.borrow().saturating_add(rng.random_range(1..60));
            written.wait_for(|count| *count >= until).await.unwrap();
            stage.reaches(number, 0);
        } else if rng.random_bool(0.1) {
            cursor = None;
        }
    }
}

async fn a_moment(yields: usize) {
    for _ in 0..yields {
        yield_now().await;
    }
}

/// Records a batch, and returns whether it ended the conversation.
fn seen(
    batch: Result<StreamBatch<ConversationPage>, ReadError>,
    lives: &mut Vec<Life>,
    cursor: &mut Option<EventSeq>,
    stage: &Stage,
) -> bool {
    match batch {
        Err(ReadError::Closed) => false,
        Err(error) => panic!("{error:?}"),
        Ok(StreamBatch::CaughtUp) => false,
        Ok(StreamBatch::Reset) => {
            stage.resets.fetch_add(1, Ordering::SeqCst);
            assert!(cursor.take().is_some(), "a reset without a place to be gone");
            false
        }
        Ok(StreamBatch::Snapshot(place, snapshot)) => {
            assert_eq!(*cursor, None, "a snapshot that nobody asked for");
            *cursor = Some(place);
            let over = snapshot.conversation.ended_at.is_some();
            lives.push(Life::of(place, &snapshot));
            over
        }
        Ok(StreamBatch::Events(events)) => {
            let life = lives.last_mut().unwrap();
            events.iter().for_each(|event| life.add(event));
            *cursor = events.last().map(|event| event.seq);
            events.iter().any(|event| event.kind == StreamEventKind::Conversation(ConversationChange::Ended))
        }
    }
}

/// Plays the part of the engine: turns, attempts and their deltas, one commit after the other.
struct Author {
    path: String,
    db: Option<Db>,
    hub: watch::Sender<Option<Hub>>,
    written: watch::Sender<usize>,
    rng: StdRng,
    now: Timestamp,
    user: UserId,
    conversation: ConversationId,
    running: Option<Running>,
    /// All events that were ever in the log.
    log: Vec<StreamEvent>,
    /// Position in the log of the running program up to which its events are in `log`.
    kept: EventSeq,
}

/// Running attempt, and the text that was streamed of it.
struct Running {
    attempt: AttemptId,
    text: String,
    thinking: String,
}

impl Running {
    fn start(attempt: AttemptId) -> Self {
        Self { attempt, text: String::new(), thinking: String::new() }
    }
}

impl Author {
    async fn write<R: Send + 'static>(
        &mut self,
        work: impl Fn(&mut dialarr::store::Conn, Timestamp) -> dialarr::store::QueryResult<R> + Send + 'static,
    ) -> R {
        self.now += SignedDuration::from_secs(1);
        let now = self.now;
        let done = self.db.as_ref().unwrap().write(move |conn| work(conn, now)).await.unwrap();
        self.keeps_the_log();
        done
    }

    fn streams(&mut self, attempt: AttemptId, pieces: &[BlockRecord]) {
        self.now += SignedDuration::from_secs(1);
        self.db.as_ref().unwrap().event_log().append_chunks(attempt, pieces, self.now);
        self.keeps_the_log();
    }

    fn keeps_the_log(&mut self) {
        let log = self.db.as_ref().unwrap().event_log();
        let since = log.events_since(self.conversation, self.kept, 100_000);
        let since = since.expect("the author keeps up with the log");
        self.log.extend(since.events.iter().map(|event| (**event).clone()));
        self.kept = since.up_to;
        self.written.send_modify(|count| *count += 1);
    }

    fn last(&self) -> EventSeq {
        self.log.last().map_or(EventSeq(0), |event| event.seq)
    }

    /// Makes the next change in the conversation.
    async fn goes_on(&mut self) {
        let Some(mut running) = self.running.take() else { return self.begins_a_turn().await };
        let attempt = running.attempt;
        match self.rng.random_range(0..100) {
            0..78 => {
                let pieces = self.pieces(&mut running);
                self.streams(attempt, &pieces);
                self.running = Some(running);
            }
            78..86 => {
                let abandoned = AbandonedAttempt { failure: StepFailure::Permanent, message: String::new() };
                let next = AttemptId { attempt: attempt.attempt + 1, ..attempt };
                self.write(move |conn, now| {
                    model_steps::abandon_attempt(conn, attempt, &abandoned, now)?;
                    model_steps::start_attempt(conn, next, Responder::Model, "author", now)
                })
                .await;
                self.running = Some(Running::start(next));
            }
            _ => {
                if self.rng.random_bool(0.2) {
                    // The model was called again, and its response differs from the streamed one.
                    running.text.push_str(", rather");
                }
                let Running { text, thinking, .. } = running;
                let response = RecordedResponse {
                    text,
                    thinking,
                    stop: StopReason::Done,
                    calls: Vec::new(),
                    tokens: None,
                    response_id: None,
                    is_private: false,
                };
                let turn = attempt.turn;
                self.write(move |conn, now| {
                    model_steps::complete_attempt(conn, attempt, &response, now)?;
                    let end = TurnEnd::without_message(turn, MessageOutcome::Replied);
                    finished_turns::finish_turn(conn, &end, now)
                })
                .await;
            }
        }
    }

    async fn begins_a_turn(&mut self) {
        let (user, conversation) = (self.user, self.conversation);
        let begin = move |conn: &mut _, now| {
            let plan = TurnPlan::for_responder(Responder::Model);
            let new = NewTurn { user, conversation, kind: TurnKind::Chat, plan: &plan };
            let attempt =
                AttemptId { turn: turn_lifecycle::create_turn(conn, new, now)?, step: 0, attempt: 1 };
            model_steps::start_attempt(conn, attempt, Responder::Model, "author", now)?;
            Ok(attempt)
        };
        self.running = Some(Running::start(self.write(begin).await));
    }

    fn pieces(&mut self, running: &mut Running) -> Vec<BlockRecord> {
        let count = self.rng.random_range(1..8);
        let piece = |rng: &mut StdRng| {
            let part = if rng.random_bool(0.8) { BlockKind::Text } else { BlockKind::Thinking };
            let text = format!("{} ", rng.random_range(0..1_000_000));
            BlockRecord { kind: part, ord: 0, text }
        };
        let pieces: Vec<BlockRecord> = (0..count).map(|_| piece(&mut self.rng)).collect();
        for piece in &pieces {
            match piece.kind {
                BlockKind::Text => running.text.push_str(&piece.text),
                BlockKind::Thinking => running.thinking.push_str(&piece.text),
                BlockKind::ToolCall => unreachable!(),
            }
        }
        pieces
    }

    fn drops_events(&self) {
        self.db.as_ref().unwrap().event_log().drop_events_before(self.now - EVENT_RETENTION);
    }

    /// Stops the program, possibly in the middle of a reply, and starts it again.
    async fn is_restarted(&mut self) {
        let hub = self.hub.send_replace(None).unwrap();
        hub.close().await;
        drop(hub);
        self.db.take().unwrap().close().await;
        self.starts().await;
        if let Some(running) = self.running.take() {
            let next = AttemptId { attempt: running.attempt.attempt + 1, ..running.attempt };
            self.write(move |conn, now| {
                model_steps::start_attempt(conn, next, Responder::Model, "author", now)
            })
            .await;
            self.running = Some(Running::start(next));
        }
    }

    async fn starts(&mut self) {
        let db = Db::open(&self.path).unwrap();
        self.kept =
            db.read_with_position(self.conversation, |_, position| Ok(position.cursor)).await.unwrap();
        self.db = Some(db.clone());
        self.write(boot::recover_interrupted_work).await;
        self.hub.send_replace(Some(Hub::new(db)));
    }
}

async fn an_author(folder: &tempfile::TempDir) -> Author {
    let path = folder.path().join("test.db").to_str().unwrap().to_owned();
    let db = Db::open(&path).unwrap();
    let now: Timestamp = "2026-11-20T21:04:00Z".parse().unwrap();
    let begin = move |conn: &mut _| {
        let user = users::ensure_user(
            conn,
            PhoneNumber::parse("+15550100001").unwrap(),
            FirstContactRole::Member,
            now,
        )?;
        Ok((user, conversations::start_conversation(conn, user, "A talk", now)?))
    };
    let (user, conversation) = db.write(begin).await.unwrap();
    db.close().await;
    let (hub, written) = (watch::Sender::new(None), watch::Sender::new(0));
    let rng = StdRng::seed_from_u64(7);
    let (log, kept, running) = (Vec::new(), EventSeq(0), None);
    let mut author =
        Author { path, db: None, hub, written, rng, now, user, conversation, running, log, kept };
    author.starts().await;
    author
}

#[tokio::test]
async fn reader_that_lags_or_reconnects_sees_every_event_once() {
    let folder = tempfile::tempdir().unwrap();
    let mut author = an_author(&folder).await;
    let stage = Arc::new(Stage {
        conversation: author.conversation,
        hub: author.hub.subscribe(),
        written: author.written.subscribe(),
        came_back: AtomicUsize::new(0),
        resets: AtomicUsize::new(0),
        places: (0..READERS).map(|_| AtomicI64::new(0)).collect(),
        moved: Notify::new(),
    });
    let mut readers = JoinSet::new();
    for number in 0..READERS {
        readers.spawn(follow(stage.clone(), number));
    }
    while stage.came_back.load(Ordering::SeqCst) < RECONNECTS {
        author.goes_on().await;
        match author.rng.random_range(0..100) {
            0..3 => author.drops_events(),
            3 => author.is_restarted().await,
            4..40 => {
                let waiting = stage.all_reach(author.last());
                tokio::time::timeout(A_WAKE_UP, waiting).await.expect("every reader is woken");
            }
            _ => {}
        }
    }
    let conversation = author.conversation;
    author
        .write(move |conn, now| conversations::end_conversation(conn, conversation, EndReason::Cleared, now))
        .await;
    author.written.send_replace(usize::MAX);
    let all =
        tokio::time::timeout(A_WAKE_UP, readers.join_all()).await.expect("every reader comes to the end");

    let db = author.db.take().unwrap();
    let load = move |conn: &mut _, position: &LogPosition| {
        pages::load_newest_page(conn, conversation, &position.streamed)
    };
    let stored = db.read_with_position(conversation, load).await.unwrap();
    let stored = Life::of(EventSeq(0), &stored);
    let mut lives: Vec<Life> = all.into_iter().flatten().collect();
    lives.sort_by_key(Life::last);
    // The state that results from the log, up to the point at which each reader left.
    let mut whole = Life { after: 0, oldest: TurnId(0), events: Vec::new(), blocks: BTreeMap::new() };
    let mut rest = author.log.iter().peekable();
    for life in &lives {
        while let Some(event) = rest.next_if(|event| event.seq.0 <= life.last()) {
            whole.add(event);
        }
        let received = |event: &&StreamEvent| event.seq.0 > life.after && event.seq.0 <= life.last();
        assert_eq!(
            life.events.iter().collect::<Vec<_>>(),
            author.log.iter().filter(received).collect::<Vec<_>>()
        );
        assert_eq!(life.texts(life.oldest), whole.texts(life.oldest));
    }
    let unfinished = author.running.as_ref().map(|running| running.attempt.turn);
    let recorded = |(turn, _): &(TurnId, StreamBlock), _: &mut &str| Some(*turn) != unfinished;
    let mut received_texts = lives.last().unwrap().texts(stored.oldest);
    let mut stored_texts = stored.texts(stored.oldest);
    received_texts.retain(recorded);
    stored_texts.retain(recorded);
    assert_eq!(received_texts, stored_texts);
    assert!(stage.resets.load(Ordering::SeqCst) > 0, "some readers were away for too long");
}
