//! Additions to a library that could not be reached: tried again until they are made, refused or a day old, and one
//! message reports the outcome. The table is the queue. A try with an unknown outcome is checked before there is
//! another.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::calling::{OUTCOME_UNKNOWN, entry};
use super::change_record::{self, OutcomeSource};
use super::deeds::{self, Doer};
use super::ending::WayBack;
use super::run::Scene;
use super::telling::leaves_at;
use super::{Engine, Settings};
use crate::conversation::requests as words;
use crate::conversation::transcript::{
    CallFailure, CallId, CallState, MediaKind, Status, Tier, ToolCall, User,
};
use crate::store::calls::Start;
use crate::store::requests::{self, End, Open, Settling, Trying};
use crate::store::{Conn, QueryResult, audit, follows, outbox, turns, users};
use crate::tools::approval::{self, Decision};
use crate::tools::{Asking, Deed, Interrupted, Ran, Settled, Tool, ToolError, World};

/// Interval at which the queue is checked, in case a wake-up is lost or the clock is set.
const SWEEP: Duration = Duration::from_secs(300);
/// Pause of an addition after an error on our side.
const PAUSE: SignedDuration = SignedDuration::from_mins(5);
/// Pause between two checks of the outcome of a try.
const LOOK_PAUSE: SignedDuration = SignedDuration::from_mins(2);

/// Outcome of a try, or of a check of one.
enum Outcome {
    Ran(Ran),
    Refused(CallFailure),
    /// The addition was certainly not made.
    NotMade,
    /// The addition may have been made.
    Unknown,
}

impl Engine {
    /// Tries the additions that are due until `stop`. A try that is dropped is checked at the next start.
    pub async fn retry(self, stop: CancellationToken) {
        tokio::select! {
            () = self.0.open.cancelled() => {}
            () = stop.cancelled() => return,
        }
        while !stop.is_cancelled() && !self.0.draining.is_cancelled() {
            let wait = match self.retry_due().await {
                Ok(next) => next.map_or(SWEEP, |at| self.until(at).min(SWEEP)),
                Err(error) => {
                    tracing::error!(error = format!("{error:#}"), "what is queued could not be read");
                    SWEEP
                }
            };
            tokio::select! {
                () = self.0.retries.notified() => {}
                () = tokio::time::sleep(wait) => {}
                () = stop.cancelled() => {}
                () = self.0.draining.cancelled() => {}
            }
        }
    }

    /// Tries everything that is due, one after another, and returns the time at which the next addition is due.
    async fn retry_due(&self) -> anyhow::Result<Option<Timestamp>> {
        loop {
            let now = self.now();
            let next = self.0.parts.db.read(requests::next).await?;
            let Some((id, _)) = next.filter(|(_, at)| *at <= now && !self.0.draining.is_cancelled()) else {
                return Ok(next.map(|(_, at)| at));
            };
            let failure = match AssertUnwindSafe(self.retry_one(id)).catch_unwind().await {
                Ok(Ok(())) => continue,
                Ok(Err(error)) => format!("{error:#}"),
                Err(_) => "it panicked".to_owned(),
            };
            tracing::error!(request = id, error = failure, "a queued addition could not be tried");
            let at = self.now() + PAUSE;
            self.0.parts.db.write(move |conn| requests::look_at(conn, id, at)).await?;
        }
    }

    async fn retry_one(&self, id: i64) -> anyhow::Result<()> {
        let load = move |conn: &mut _| {
            let Some(open) = requests::open(conn, id)? else { return Ok(None) };
            Ok(Some((turns::of_call(conn, open.call)?, open)))
        };
        let Some((turn, open)) = self.0.parts.db.read(load).await? else { return Ok(()) };
        let scene = self.scene(open.user, turn).await?;
        if scene.user.status != Status::Active || scene.user.opted_out {
            let (user, now) = (open.user, self.now());
            return Ok(self.0.parts.db.write(move |conn| requests::withdraw(conn, user, now)).await?);
        }
        let Some(tool) = self.0.parts.tools.get(tool_name(open.wanted.kind)).cloned() else {
            let told = words::refused(&open.wanted, None);
            let note = failed(&scene, &open, "no_such_tool");
            return self.end_as_given_up(&scene, &open, (told.clone(), told), note).await;
        };
        let outcome = match open.trying {
            Trying::Waiting => self.try_again(&scene, &open, &tool).await?,
            Trying::UnderWay => self.look_into(&scene, &open, &tool).await?,
        };
        self.record_try(&scene, open, outcome).await
    }

    /// Tries an addition after a new decision with the current rights and quota, and begins it only after that is
    /// recorded.
    async fn try_again(&self, scene: &Scene, open: &Open, tool: &Arc<dyn Tool>) -> anyhow::Result<Outcome> {
        let call = call_of(open);
        let uses = match tool.check(&call.arguments) {
            Ok(uses) => uses,
            Err(failure) => return Ok(Outcome::Refused(failure)),
        };
        // The title was shown when the call was first made, in messages that may be erased by now.
        let cleared = match approval::decide(&tool.spec(), &call, &uses, scene.user.rights, &uses.refs) {
            Decision::Run(cleared) => cleared,
            Decision::Refuse(failure) => return Ok(Outcome::Refused(failure)),
            Decision::Ask => anyhow::bail!("ask about an addition"),
        };
        let (id, now) = (open.id, self.now());
        let intended = entry(scene, "write", open.call, change_record::intent(&call));
        let start = move |conn: &mut _| {
            let start = requests::start(conn, id)?;
            if start == Start::Started {
                audit::record_intent(conn, &intended, now)?;
            }
            Ok(start)
        };
        if self.0.parts.db.write(start).await? == Start::NotStartable {
            return Ok(Outcome::Unknown);
        }
        let world = World { asking: Asking::Before, ..self.world(scene, Tier::Write).await? };
        let ended = tokio::time::timeout(tool.timeout(), tool.run(&cleared, &world)).await;
        Ok(match ended {
            Ok(Ok(ran)) if ran.deeds.iter().any(|deed| matches!(deed, Deed::Queue(..))) => Outcome::NotMade,
            Ok(Ok(ran)) => Outcome::Ran(ran),
            Ok(Err(ToolError::TellModel(failure))) => Outcome::Refused(failure),
            Ok(Err(ToolError::Fatal(error))) => return Err(error),
            Ok(Err(ToolError::Unknown(reason))) => {
                tracing::warn!(request = open.id, reason, "outcome unknown");
                Outcome::Unknown
            }
            Err(_) => Outcome::Unknown,
        })
    }

    async fn look_into(&self, scene: &Scene, open: &Open, tool: &Arc<dyn Tool>) -> anyhow::Result<Outcome> {
        self.0.parts.clock.sleep(self.0.parts.settings.pace.grace).await;
        let world = self.world(scene, Tier::Write).await?;
        let settled = tool.settle(Interrupted::Call(&open.arguments), &world);
        Ok(match tokio::time::timeout(tool.timeout(), settled).await {
            Ok(Ok(Settled::Done(ran))) => Outcome::Ran(ran),
            Ok(Ok(Settled::NotDone)) => Outcome::NotMade,
            Ok(Ok(Settled::Unknown) | Err(_)) | Err(_) => Outcome::Unknown,
        })
    }

    async fn record_try(&self, scene: &Scene, open: Open, outcome: Outcome) -> anyhow::Result<()> {
        let id = open.id;
        // The clock may have been set during the try, which shifts the stored wait.
        let current = self.0.parts.db.read(move |conn| requests::open(conn, id)).await?;
        let now = self.now();
        let asked_at = current.map_or(open.asked_at, |current| current.asked_at);
        let tries = match open.trying {
            Trying::Waiting => open.tries + 1,
            Trying::UnderWay => open.tries,
        };
        let next = words::next_try(asked_at, tries, now);
        let write = match (outcome, next) {
            (Outcome::Ran(ran), _) => return self.end_as_added(scene, &open, ran).await,
            (Outcome::Refused(failure), _) => {
                let note = failed(scene, &open, &failure.code);
                let told = words::refused(&open.wanted, failure.for_user.as_deref());
                // The reason for the refusal may concern only this one user.
                let to_others = words::refused(&open.wanted, None);
                return self.end_as_given_up(scene, &open, (told, to_others), note).await;
            }
            (Outcome::NotMade, None) => {
                let note = failed(scene, &open, "not_reached_for_a_day");
                let told = words::given_up(&open.wanted);
                return self.end_as_given_up(scene, &open, (told.clone(), told), note).await;
            }
            (Outcome::Unknown, None) => {
                let note = failed(scene, &open, OUTCOME_UNKNOWN);
                let told = words::never_known(&open.wanted);
                return self.end_as_given_up(scene, &open, (told.clone(), told), note).await;
            }
            (Outcome::NotMade, Some(next)) => {
                self.0.parts.db.write(move |conn| requests::try_at(conn, id, next)).await
            }
            (Outcome::Unknown, Some(_)) => {
                // A try that has just begun is checked at once.
                let at = match open.trying {
                    Trying::Waiting => now,
                    Trying::UnderWay => now + LOOK_PAUSE,
                };
                self.0.parts.db.write(move |conn| requests::look_at(conn, id, at)).await
            }
        };
        Ok(write?)
    }

    /// Ends an addition that is in the library: the call's effects on our records are applied, and its user is
    /// notified.
    async fn end_as_added(&self, scene: &Scene, open: &Open, ran: Ran) -> anyhow::Result<()> {
        let Ran { result, deeds } = ran;
        let wanted = deeds.iter().find_map(|deed| match deed {
            Deed::Request(wanted, _) => Some(wanted.clone()),
            Deed::Act(_) | Deed::Count(_) | Deed::AskAdmins(_) => None,
            Deed::Follow(_) | Deed::Notify(_) | Deed::Unfollow(_) | Deed::Queue(..) => None,
            Deed::Remember(_) | Deed::Forget(..) => None,
        });
        let wanted = wanted.unwrap_or_else(|| open.wanted.clone());
        let was_added = deeds.iter().any(|deed| matches!(deed, Deed::Count(_)));
        let told = match was_added {
            true => words::added(&wanted),
            false => words::there_in_vain(&wanted, &result).unwrap_or_else(|| words::was_there(&wanted)),
        };
        let tool = tool_name(open.wanted.kind);
        let note = change_record::outcome(scene, open.call, OutcomeSource::Response, tool, &result);
        let (doer, settings, now) = (Doer::of(scene, open.call), self.0.parts.settings.clone(), self.now());
        let open = open.clone();
        let end = move |conn: &mut _| {
            if requests::settle(conn, open.id, &End::Added(&wanted), now)? == Settling::Withdrawn {
                // If the user was erased meanwhile, no title is stored; their quota usage counts all the same.
                audit::record_outcome(conn, &audit::Entry { detail: json!({}), ..note }, now);
                let mut counted = deeds.iter().filter(|deed| matches!(deed, Deed::Count(_)));
                return counted.try_for_each(|deed| deeds::perform(conn, &doer, deed, &settings, now));
            }
            audit::record_outcome(conn, &note, now);
            // The request itself was settled above.
            for deed in deeds.iter().filter(|deed| !matches!(deed, Deed::Request(..))) {
                deeds::perform(conn, &doer, deed, &settings, now)?;
            }
            tell(conn, &doer.user, &settings, (open.id, &told), now)?;
            // If the call has started a follow, more is to come, and the followers are notified later.
            if deeds.iter().any(|deed| matches!(deed, Deed::Follow(_))) {
                return Ok(());
            }
            tell_followers(conn, &open, &settings, &words::ready(&wanted), now)
        };
        self.0.parts.db.write(end).await?;
        self.0.parts.outbox.ring();
        Ok(())
    }

    async fn end_as_given_up(
        &self,
        scene: &Scene,
        open: &Open,
        (told, to_others): (String, String),
        note: audit::Entry,
    ) -> anyhow::Result<()> {
        let (user, settings) = (scene.user.clone(), self.0.parts.settings.clone());
        let (open, now) = (open.clone(), self.now());
        let end = move |conn: &mut _| {
            if requests::settle(conn, open.id, &End::GivenUp, now)? == Settling::Withdrawn {
                return Ok(());
            }
            audit::record_outcome(conn, &note, now);
            tell(conn, &user, &settings, (open.id, &told), now)?;
            if requests::may_come(conn, &open.wanted)? {
                return Ok(());
            }
            tell_followers(conn, &open, &settings, &to_others, now)
        };
        self.0.parts.db.write(end).await?;
        self.0.parts.outbox.ring();
        Ok(())
    }

    fn until(&self, at: Timestamp) -> Duration {
        Duration::try_from(at.duration_since(self.now())).unwrap_or_default()
    }
}

/// Audit row of an addition that was not made, or that has an unknown outcome.
fn failed(scene: &Scene, open: &Open, reason: &str) -> audit::Entry {
    change_record::failed_write(scene, open.call, tool_name(open.wanted.kind), reason)
}

/// Notifies a user once of the outcome of their request: even a user without notifications, since it was promised, but
/// outside their quiet hours.
fn tell(
    conn: &mut Conn,
    user: &User,
    settings: &Settings,
    (request, told): (i64, &str),
    now: Timestamp,
) -> QueryResult<()> {
    let way = WayBack::to_user(conn, user, settings.number.as_ref())?;
    let at = leaves_at(conn, user.id, settings, now)?;
    outbox::queue_once_for(conn, &way.notice(&format!("request:{request}"), told), at, now)
}

/// Notifies all other followers of exactly this title of its outcome, and ends their follows.
fn tell_followers(
    conn: &mut Conn,
    open: &Open,
    settings: &Settings,
    told: &str,
    now: Timestamp,
) -> QueryResult<()> {
    let mut followers = Vec::new();
    for what in deeds::followed(&open.wanted) {
        followers.extend(follows::end(conn, &what, now)?);
    }
    followers.sort_unstable_by_key(|user| user.0);
    followers.dedup();
    for user in followers.into_iter().filter(|user| *user != open.user) {
        let person = users::get(conn, user)?;
        if person.status == Status::Active && !person.opted_out {
            tell(conn, &person, settings, (open.id, told), now)?;
        }
    }
    Ok(())
}

fn tool_name(kind: MediaKind) -> &'static str {
    match kind {
        MediaKind::Movie => "add_movie",
        MediaKind::Series => "add_series",
    }
}

/// Rebuilds the call as it was made.
fn call_of(open: &Open) -> ToolCall {
    ToolCall {
        row: open.call,
        id: CallId::stored(""),
        step: 0,
        name: tool_name(open.wanted.kind).to_owned(),
        arguments: open.arguments.clone(),
        tier: Tier::Write,
        state: CallState::Created,
    }
}
