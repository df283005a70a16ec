//! Additions to a library that could not be reached: tried again until they are made, refused or a day old, and one
//! message reports the outcome. The table is the queue. A try with an unknown outcome is checked before there is
//! another.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use jiff::{SignedDuration, Timestamp};
use tokio_util::sync::CancellationToken;

use super::Engine;
use super::calling::entry;
use super::change_record;
use super::retry_outcomes::{GivenUp, failed};
use super::run::Scene;
use crate::conversation::requests as words;
use crate::conversation::requests::Trying;
use crate::conversation::transcript::{CallFailure, CallId, CallState, MediaKind, Status, Tier, ToolCall};
use crate::store::calls::Start;
use crate::store::request_groups::{self, RequestGroup};
use crate::store::requests::{self, Open};
use crate::store::{Conn, QueryResult, audit, turns};
use crate::tools::approval::{self, Decision};
use crate::tools::{Asking, Deed, Interrupted, Ran, Settled, Tool, ToolError, World};

/// Interval at which the queue is checked, in case a wake-up is lost or the clock is set.
const SWEEP: Duration = Duration::from_secs(300);
/// Pause of an addition after an error on our side.
const PAUSE: SignedDuration = SignedDuration::from_mins(5);

/// Outcome of a try, or of a check of one.
pub(super) enum Outcome {
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
            self.0.parts.db.write(move |conn| request_groups::look_at(conn, &[id], at)).await?;
        }
    }

    async fn retry_one(&self, id: i64) -> anyhow::Result<()> {
        let load = move |conn: &mut _| {
            let Some(open) = requests::open(conn, id)? else { return Ok(None) };
            let group = request_groups::load(conn, open)?;
            Ok(Some((scene_of(conn, &group.whole)?, group)))
        };
        let loaded = match self.0.parts.db.read(load).await {
            Err(error) if error.is_unreadable() => return self.give_up_unreadable(id, &error).await,
            loaded => loaded?,
        };
        let Some((scene, group)) = loaded else { return Ok(()) };
        if scene.user.status != Status::Active || scene.user.opted_out {
            let (user, now) = (group.whole.user, self.now());
            return Ok(self.0.parts.db.write(move |conn| requests::withdraw(conn, user, now)).await?);
        }
        let Some(tool) = self.0.parts.tools.get(tool_name(group.whole.wanted.kind)).cloned() else {
            let told = words::refused(&group.whole.wanted, None);
            return self.end_as_given_up(&scene, &group, GivenUp::to_all(told, "no_such_tool")).await;
        };
        let outcome = match group.whole.trying {
            Trying::Waiting => self.try_again(&scene, &group, &tool).await?,
            Trying::UnderWay => self.look_into(&scene, &group.whole, &tool).await?,
        };
        match outcome {
            Outcome::Refused(failure) if group.parts().len() > 1 => {
                self.take_back(&group).await?;
                match group.by_seasons().as_slice() {
                    [same_seasons] => self.try_earlier(same_seasons, failure, &tool).await,
                    parts => self.try_parts(parts, &tool).await,
                }
            }
            outcome => self.record_try(&scene, &group, outcome).await,
        }
    }

    /// Tries the parts of a refused group one by one, each with an outcome of its own.
    async fn try_parts(&self, parts: &[RequestGroup], tool: &Arc<dyn Tool>) -> anyhow::Result<()> {
        for part in parts {
            let scene = self.scene_of(&part.whole).await?;
            match self.try_again(&scene, part, tool).await? {
                Outcome::Refused(failure) if part.parts().len() > 1 => {
                    self.take_back(part).await?;
                    self.try_earlier(part, failure, tool).await?;
                }
                outcome => self.record_try(&scene, part, outcome).await?,
            }
        }
        Ok(())
    }

    /// Tries refused requests for the same seasons without the newest one, then without the next one. The outcome is
    /// reported with the first reason.
    async fn try_earlier(
        &self,
        group: &RequestGroup,
        failure: CallFailure,
        tool: &Arc<dyn Tool>,
    ) -> anyhow::Result<()> {
        let (mut tried, mut failure) = (group.clone(), failure);
        while let Some(earlier) = tried.without_newest(failure.for_user.as_deref()) {
            let refused = failed(&self.scene_of(&tried.whole).await?, &tried.whole, &failure.code);
            let now = self.now();
            let record = move |conn: &mut Conn| {
                audit::record_outcome(conn, &refused, now);
                Ok(())
            };
            self.0.parts.db.write(record).await?;
            let scene = self.scene_of(&earlier.whole).await?;
            match self.try_again(&scene, &earlier, tool).await? {
                Outcome::Refused(again) if earlier.parts().len() > 1 => {
                    self.take_back(&earlier).await?;
                    (tried, failure) = (earlier, again);
                }
                outcome => return self.record_try(&scene, &earlier, outcome).await,
            }
        }
        Ok(())
    }

    /// Lets the additions of a refused group wait again: none of them was made.
    async fn take_back(&self, group: &RequestGroup) -> anyhow::Result<()> {
        let (ids, now) = (group.ids(), self.now());
        Ok(self.0.parts.db.write(move |conn| request_groups::try_at(conn, &ids, now)).await?)
    }

    async fn scene_of(&self, open: &Open) -> anyhow::Result<Scene> {
        let open = open.clone();
        Ok(self.0.parts.db.read(move |conn| scene_of(conn, &open)).await?)
    }

    /// Tries a group after a new decision with the current rights and quota, and begins it only after that is recorded.
    async fn try_again(
        &self,
        scene: &Scene,
        group: &RequestGroup,
        tool: &Arc<dyn Tool>,
    ) -> anyhow::Result<Outcome> {
        let call = call_of(&group.whole);
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
        if self.start_additions(scene, group).await? == Start::NotStartable {
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
                tracing::warn!(request = group.whole.id, reason, "outcome unknown");
                Outcome::Unknown
            }
            Err(_) => Outcome::Unknown,
        })
    }

    /// Writes the intent to add, with an audit row for each call.
    async fn start_additions(&self, scene: &Scene, group: &RequestGroup) -> anyhow::Result<Start> {
        let (ids, now) = (group.ids(), self.now());
        let intent = |part: &Open| entry(scene, "write", part.call, change_record::intent(&call_of(part)));
        let intended: Vec<audit::Entry> = group.parts().iter().map(intent).collect();
        let start = move |conn: &mut _| {
            let start = request_groups::start(conn, &ids)?;
            if start == Start::Started {
                intended.iter().try_for_each(|entry| audit::record_intent(conn, entry, now))?;
            }
            Ok(start)
        };
        Ok(self.0.parts.db.write(start).await?)
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

    fn until(&self, at: Timestamp) -> Duration {
        Duration::try_from(at.duration_since(self.now())).unwrap_or_default()
    }
}

/// Loads the user of an addition and the turn that requested it.
fn scene_of(conn: &mut Conn, open: &Open) -> QueryResult<Scene> {
    let turn = turns::of_call(conn, open.call)?;
    Scene::read(conn, open.user, turn)
}

pub(super) fn tool_name(kind: MediaKind) -> &'static str {
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
