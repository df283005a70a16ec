//! Indexing of answers for recall: their topics are extracted and their vectors computed, in the background of the
//! conversation. The table is the queue; a row is never worked on twice, and a row that fails is found by text search
//! meanwhile.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::PoisonError;
use std::time::Duration;

use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::Engine;
use super::model_call::{ModelCall, ModelCallOutcome};
use crate::conversation::extraction::{self, Extraction};
use crate::conversation::facts::Fact;
use crate::conversation::prompt;
use crate::conversation::spending::{Charge, Estimate};
use crate::conversation::transcript::UserId;
use crate::llm::ModelError;
use crate::llm::embeddings::{EmbedError, Embedder};
use crate::memory::vector::Unit;
use crate::store::audit::{self, By, Entry, Subject};
use crate::store::db::DbError;
use crate::store::memory::everyone::{self, Settled};
use crate::store::memory::facts;
use crate::store::memory::learning::{self, Embedded, Learned, NotedBy, Recorded, Taken};
use crate::store::memory::responses::{self, Owner};
use crate::store::privacy::erase_answer;
use crate::store::spend::{self, Day, Reservation};
use crate::store::users;

/// Interval at which the queue is checked in case a wake-up is lost.
const SWEEP: Duration = Duration::from_secs(600);
/// Silence after an answer before anything is indexed: the conversation has the model and the database first.
const REST: Duration = Duration::from_secs(30);
/// Number of rows without vectors that are read at once.
const BATCH: i64 = 20;
/// Text that every embeddings model can read.
const HARMLESS: &str = "hello";
/// Number of tries with the model, after which code extracts as much metadata as it can.
const MAX_TRIES: u32 = 3;
/// Longest time for one call.
const PATIENCE: Duration = Duration::from_secs(30);

/// Source of the metadata about answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notes {
    /// The model if one is configured: one call for each answer.
    ByModel,
    ByCode,
}

/// Counts of one run over the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// Answers that can be found by their topics.
    pub learned: usize,
    /// Greetings and similar messages, which are not indexed.
    pub skipped: usize,
    /// Answers left for another try.
    pub failed: usize,
    /// Answers that got their vectors later than their other metadata.
    pub embedded: usize,
}

/// Users who may find an exchange that the operator adds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddedFor {
    User(UserId),
    Everyone,
}

/// Exchange that the operator adds by hand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Addition {
    pub found_by: AddedFor,
    pub question: String,
    pub answer: String,
}

/// Admin's decision on an answer that the model considers general.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// All users may find the answer.
    Share,
    Keep,
}

/// Decision whether the next row is worth a try.
enum Going {
    On,
    /// The cause that stopped this row would stop every other.
    NoFurther,
}

/// Cause for which no metadata was extracted at this try.
enum Unnoted {
    /// The day's budget has no room: code extracts the metadata.
    NoRoom,
    /// The calls under way may use up the budget.
    Crowded,
    /// The reply is of no use, or the server refuses this request.
    Useless(String),
    /// The model answers no request at the moment.
    NoAnswer(ModelError),
}

impl Unnoted {
    fn from_error(error: ModelError) -> Self {
        match error {
            ModelError::ContextTooLong | ModelError::Rejected(_) => Self::Useless(error.to_string()),
            ModelError::RateLimited { .. }
            | ModelError::Unavailable(_)
            | ModelError::Timeout
            | ModelError::Garbled(_)
            | ModelError::Unauthorized(_)
            | ModelError::QuotaSpent(_) => Self::NoAnswer(error),
        }
    }

    /// Returns whether another try of the same row may fail for the same reason: such tries are counted.
    fn counts(&self) -> bool {
        match self {
            Self::NoRoom | Self::Crowded => false,
            Self::NoAnswer(ModelError::RateLimited { .. } | ModelError::Unavailable(_)) => false,
            Self::Useless(_) | Self::NoAnswer(_) => true,
        }
    }

    /// Returns whether every other row would fail for the same reason.
    fn going(&self) -> Going {
        match self {
            Self::NoRoom | Self::Useless(_) => Going::On,
            Self::Crowded | Self::NoAnswer(_) => Going::NoFurther,
        }
    }
}

/// Metadata of a row, and whether the next row is worth a try.
type Noted = (Extraction, NotedBy, Going);

impl Engine {
    /// Indexes answers until `stop`. A row that is dropped in the middle is tried again later.
    pub async fn learn(self, stop: CancellationToken) {
        let work = async {
            self.0.open.cancelled().await;
            loop {
                tokio::select! {
                    () = self.0.answered.notified() => tokio::time::sleep(REST).await,
                    () = tokio::time::sleep(SWEEP) => {}
                }
                if let Err(error) = self.learn_now().await {
                    let error = anyhow::Error::from(error);
                    tracing::error!(error = format!("{error:#}"), "answers could not be worked on");
                }
            }
        };
        tokio::select! {
            () = work => {}
            () = stop.cancelled() => {}
            () = self.0.draining.cancelled() => {}
        }
    }

    /// Indexes answers for a caller who waits for it, and may leave: the work continues.
    pub async fn learn_for(&self) -> Result<Progress, DbError> {
        let engine = self.clone();
        // An operator who requests a run may know that the model answers again.
        self.0.notes_pause.end();
        let work = async move {
            tokio::select! {
                progress = engine.learn_now() => progress,
                () = engine.0.draining.cancelled() => Ok(Progress::default()),
            }
        };
        self.0.tasks.spawn(work).await.unwrap_or_else(|error| {
            tracing::error!(%error, "work on answers ended early");
            Ok(Progress::default())
        })
    }

    /// Works on every row that is due. Runs do not overlap: a concurrent caller waits, and finds the work done.
    pub async fn learn_now(&self) -> Result<Progress, DbError> {
        let _turn = self.0.learning.lock().await;
        let mut progress = Progress::default();
        let names = self.0.parts.db.read(users::names).await?;
        while !self.0.draining.is_cancelled() {
            let now = self.now();
            if self.0.notes_pause.lasts(now) {
                break;
            }
            // Rows are claimed one by one: text that is erased meanwhile is not sent anywhere, and each try is counted
            // as it is made.
            let taken = self.0.parts.db.write(move |conn| learning::take(conn, 1, now)).await?;
            let Some(row) = taken.first() else { break };
            match self.learn_one(row, &names, &mut progress).await? {
                Going::On => {}
                Going::NoFurther => break,
            }
        }
        if let Some(embedder) = &self.0.parts.embedder {
            self.embed_missing(&**embedder, &mut progress).await?;
        }
        Ok(progress)
    }

    /// Adds an exchange to the answers that can be found, and returns its row.
    pub async fn add_answer(&self, addition: Addition, by: By) -> Result<i64, DbError> {
        let now = self.now();
        let add = move |conn: &mut _| {
            let (owner, user, subject) = match addition.found_by {
                AddedFor::User(user) => (Owner::User(user), Some(user), Subject::User(user)),
                AddedFor::Everyone => (Owner::Everyone, None, Subject::Household),
            };
            let entry = Entry { by, kind: "memory_added", subject, detail: json!({}) };
            audit::record(conn, &entry, now)?;
            let Addition { question, answer, .. } = addition;
            responses::add(conn, owner, user, (question, answer), now)
        };
        let id = self.0.parts.db.write(add).await?;
        self.0.answered.notify_one();
        Ok(id)
    }

    /// Settles whether all users may find an answer.
    pub async fn settle_suggestion(&self, id: i64, verdict: Verdict, by: By) -> Result<Settled, DbError> {
        let now = self.now();
        let settle = move |conn: &mut _| {
            let (settled, kind) = match verdict {
                Verdict::Share => (everyone::approve(conn, id)?, "memory_shared"),
                Verdict::Keep => (everyone::refuse(conn, id)?, "memory_kept"),
            };
            if let (Settled::Done, Some(user)) = (settled, everyone::asked_by(conn, id)?) {
                let entry = Entry { by, kind, subject: Subject::User(user), detail: json!({}) };
                audit::record(conn, &entry, now)?;
            }
            Ok(settled)
        };
        self.0.parts.db.write(settle).await
    }

    /// Removes an answer from those that can be found, regardless of its owner.
    pub async fn forget_answer(&self, id: i64, by: By) -> Result<Settled, DbError> {
        let now = self.now();
        let forget = move |conn: &mut _| {
            let asked_by = everyone::asked_by(conn, id)?;
            if !erase_answer(conn, id, now)? {
                return Ok(Settled::TooLate);
            }
            let subject = asked_by.map_or(Subject::Household, Subject::User);
            let entry = Entry { by, kind: "memory_erased", subject, detail: json!({}) };
            audit::record(conn, &entry, now)?;
            Ok(Settled::Done)
        };
        self.0.parts.db.write(forget).await
    }

    async fn learn_one(
        &self,
        row: &Taken,
        names: &[String],
        progress: &mut Progress,
    ) -> Result<Going, DbError> {
        let (id, now) = (row.id, self.now());
        let of_conversation = row.turn.is_some();
        if of_conversation && !extraction::is_worth_keeping(&row.question, row.done) {
            if self.0.parts.db.write(move |conn| learning::skip(conn, id, now)).await? == Recorded::Done {
                progress.skipped += 1;
            }
            return Ok(Going::On);
        }
        let (extraction, by, going) = match self.note(row).await? {
            Ok((extraction, by)) => (extraction, by, Going::On),
            Err(unnoted) => match self.without_model(row, unnoted, progress).await? {
                ControlFlow::Continue(noted) => noted,
                ControlFlow::Break(going) => return Ok(going),
            },
        };
        let vectors = match &self.0.parts.embedder {
            Some(embedder) => {
                let embedded = self.embed(&**embedder, &row.question, &row.answer).await;
                embedded
                    .inspect_err(|error| tracing::warn!(row = id, %error, "an answer is not embedded yet"))
                    .ok()
            }
            None => None,
        };
        let general = extraction.general
            && of_conversation
            && extraction::may_be_general(&row.question, &row.answer, row.done, names);
        // A model may report many things as facts: only those in the user's own words are suggested to the operator.
        let stated = extraction.facts.iter().filter(|fact| fact.stands_in([row.question.as_str()]));
        let (user, suggested): (_, Vec<Fact>) = (row.user, stated.cloned().collect());
        let learned = Learned { extraction, by, general, vectors };
        let complete = move |conn: &mut _| {
            let recorded = learning::complete(conn, id, &learned, now)?;
            if let (Recorded::Done, Some(user)) = (recorded, user) {
                suggested.iter().try_for_each(|fact| facts::suggest(conn, user, fact, now))?;
            }
            Ok(recorded)
        };
        if self.0.parts.db.write(complete).await? == Recorded::Done {
            progress.learned += 1;
        }
        Ok(going)
    }

    /// Extracts the metadata of a row by code if the model had its tries or has no budget, and postpones the row
    /// otherwise.
    async fn without_model(
        &self,
        row: &Taken,
        unnoted: Unnoted,
        progress: &mut Progress,
    ) -> Result<ControlFlow<Going, Noted>, DbError> {
        let (id, now, going) = (row.id, self.now(), unnoted.going());
        if let Unnoted::NoAnswer(error) = &unnoted {
            self.0.notes_pause.extend(now, error.trouble().retry_after);
        }
        if matches!(unnoted, Unnoted::NoRoom) || (unnoted.counts() && row.attempt >= MAX_TRIES) {
            let extraction = extraction::by_code(&row.question, &row.answer, row.done);
            return Ok(ControlFlow::Continue((extraction, NotedBy::Code, going)));
        }
        let why = match &unnoted {
            Unnoted::NoRoom | Unnoted::Crowded => "the budget is crowded",
            Unnoted::Useless(why) => why,
            Unnoted::NoAnswer(error) => &error.to_string(),
        };
        tracing::warn!(row = id, attempt = row.attempt, why, "failed to note an answer");
        if !unnoted.counts() {
            self.0.parts.db.write(move |conn| learning::give_back(conn, id, now)).await?;
        }
        progress.failed += 1;
        Ok(ControlFlow::Break(going))
    }

    /// Extracts metadata with the model if it is enabled and the call can be charged to a user's turn, by code
    /// otherwise.
    async fn note(&self, row: &Taken) -> Result<Result<(Extraction, NotedBy), Unnoted>, DbError> {
        let by_code = || (extraction::by_code(&row.question, &row.answer, row.done), NotedBy::Code);
        let (Some(model), Some(turn), Some(user)) = (&self.0.parts.model, row.turn, row.user) else {
            return Ok(Ok(by_code()));
        };
        // After a crash in the middle of each try, code extracts the metadata without another try.
        if self.0.parts.settings.notes == Notes::ByCode || row.attempt > MAX_TRIES {
            return Ok(Ok(by_code()));
        }
        let request = prompt::extraction(&row.question, &row.answer);
        let estimate = Estimate::of(&request, self.0.parts.settings.prices);
        let day = Day::of(self.now(), &self.0.parts.settings.zone);
        let (call, budget) = (spend::Call { turn, user, day, estimate }, self.0.parts.settings.budget.half());
        let reserve = move |conn: &mut _| {
            // A try that was cut off left its reservation behind.
            spend::settle(conn, turn, Charge::Input)?;
            spend::reserve(conn, &call, budget)
        };
        match self.0.parts.db.write(reserve).await? {
            Reservation::Granted => {}
            Reservation::Crowded => return Ok(Err(Unnoted::Crowded)),
            Reservation::Exhausted => return Ok(Err(Unnoted::NoRoom)),
        }
        let asked = ModelCall { model: &**model, request: &request, estimate, timeout: PATIENCE };
        let ModelCallOutcome { response, charge } = self.call_model(asked, &mut |_| {}).await;
        self.0.parts.db.write(move |conn| spend::settle(conn, turn, charge)).await?;
        Ok(match response {
            Ok(step) => {
                self.0.notes_pause.end();
                let noted = extraction::read(&step.text).map(|noted| (noted, NotedBy::Model));
                noted.ok_or_else(|| Unnoted::Useless("the reply is not what was asked for".to_owned()))
            }
            Err(error) => Err(Unnoted::from_error(error)),
        })
    }

    /// Computes the vectors of a question and its answer in one request.
    async fn embed(
        &self,
        embedder: &dyn Embedder,
        question: &str,
        answer: &str,
    ) -> Result<Embedded, EmbedError> {
        let asked = extraction::has_meaning(question);
        let texts: Vec<String> =
            [answer].into_iter().chain(asked.then_some(question)).map(str::to_owned).collect();
        let _place = self.0.embedding_places.acquire().await;
        let vectors = tokio::time::timeout(PATIENCE, embedder.embed(&texts)).await;
        let mut vectors = vectors.unwrap_or(Err(EmbedError::Timeout))?.into_iter().map(Unit::new);
        let none = || EmbedError::Garbled("a vector is missing".to_owned());
        let response = vectors.next().flatten().ok_or_else(none)?;
        let trigger = vectors.next().flatten();
        let space = response.space(embedder.model());
        *self.0.space.lock().unwrap_or_else(PoisonError::into_inner) = Some(space.clone());
        Ok(Embedded { model: space, trigger, response })
    }

    /// Vector space of vectors that are computed now, which decides their comparability. It is unknown before the first
    /// vector.
    async fn space(&self, embedder: &dyn Embedder) -> Result<String, EmbedError> {
        let known = self.0.space.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match known {
            Some(space) => Ok(space),
            None => self.embed(embedder, "", HARMLESS).await.map(|vectors| vectors.model),
        }
    }

    /// Embeds answers that have no vectors yet, or those of another model.
    async fn embed_missing(&self, embedder: &dyn Embedder, progress: &mut Progress) -> Result<(), DbError> {
        let nothing = self.0.parts.db.read(|conn| learning::without_vectors(conn, "", 1)).await?.is_empty();
        if nothing {
            return Ok(());
        }
        let mut tried = HashSet::new();
        loop {
            let space = match self.space(embedder).await {
                Ok(space) => space,
                Err(error) => {
                    tracing::warn!(%error, "answers are found by words until they can be embedded");
                    return Ok(());
                }
            };
            let wanted = space.clone();
            let mut rows =
                self.0.parts.db.read(move |conn| learning::without_vectors(conn, &wanted, BATCH)).await?;
            rows.retain(|(id, ..)| tried.insert(*id));
            if rows.is_empty() || self.0.draining.is_cancelled() {
                return Ok(());
            }
            for (id, question, answer) in rows {
                match self.embed(embedder, &question, &answer).await {
                    Ok(vectors) => {
                        let now = self.now();
                        let embed = move |conn: &mut _| learning::embed(conn, id, &vectors, now);
                        if self.0.parts.db.write(embed).await? == Recorded::Done {
                            progress.embedded += 1;
                        }
                    }
                    Err(
                        error @ (EmbedError::Garbled(_) | EmbedError::Rejected(_) | EmbedError::Blank { .. }),
                    ) => {
                        tracing::warn!(row = id, %error, "an answer could not be embedded");
                        // A model that does not exist refuses every text: that is no fault of this one.
                        if embedder.embed(&[HARMLESS.to_owned()]).await.is_err() {
                            return Ok(());
                        }
                        let space = space.clone();
                        let count = move |conn: &mut _| learning::count_failed_embedding(conn, id, &space);
                        self.0.parts.db.write(count).await?;
                    }
                    Err(error) => {
                        tracing::warn!(%error, "answers are found by words until they can be embedded");
                        return Ok(());
                    }
                }
            }
        }
    }
}
