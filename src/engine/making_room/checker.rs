//! Checker of the open proposal, and of whether one is due: the disks are nearly full, or the last one was a month ago.

use jiff::Timestamp;

use super::{opening, phases, records};
use crate::clock::Clock;
use crate::conversation::making_room::plan::plan_proposal;
use crate::conversation::making_room::proposal::ProposalRules;
use crate::conversation::making_room::{MONTHLY_INTERVAL, PROPOSAL_INTERVAL, SpacePolicy};
use crate::engine::parts::{EngineParts, LiveParts};
use crate::messaging::outbox_relay::OutboxSignal;
use crate::store::database::db::{Db, DbError};
use crate::store::library::space_proposals;
use crate::tools::library::ArrInstances;
use crate::tools::making_room::candidates::CandidateSearch;
use crate::tools::making_room::free_space::{LowSpace, find_low_space};

/// Checker of proposals to make room.
pub struct SpaceChecker {
    db: Db,
    clock: Clock,
    live: LiveParts,
    outbox: OutboxSignal,
}

/// Time at which the last proposal was opened, and at which it was closed.
type LastProposal = Option<(Timestamp, Option<Timestamp>)>;

impl SpaceChecker {
    pub(crate) fn new(parts: &EngineParts) -> Self {
        let EngineParts { db, clock, outbox, live, .. } = parts.clone();
        Self { db, clock, live, outbox }
    }

    /// Ends the phase of the open proposal if its time is over or everything is decided, and deletes old proposals.
    pub(crate) async fn advance_proposal(&self) -> Result<(), DbError> {
        let (settings, now) = (self.live.settings(), self.clock.now());
        let before = now - settings.retention;
        let has_work = move |conn: &mut _| space_proposals::has_work(conn, before, now);
        if !self.db.read_without_snapshot(has_work).await? {
            return Ok(());
        }
        let work = move |conn: &mut _| {
            phases::advance_proposal(conn, &settings, None, now)?;
            space_proposals::delete_old_proposals(conn, before, now)
        };
        self.db.write(work).await?;
        self.outbox.notify();
        Ok(())
    }

    /// Opens a proposal if one is due. If a server does not answer, the next check tries again.
    pub(crate) async fn propose_if_due(&self) {
        if let Err(error) = self.try_to_propose().await {
            tracing::warn!(error = format!("{error:#}"), "failed to look for titles that could go");
        }
    }

    async fn try_to_propose(&self) -> anyhow::Result<()> {
        let (settings, now) = (self.live.settings(), self.clock.now());
        let policy = settings.making_room;
        if policy.min_free_gb.is_none() && !policy.monthly {
            return Ok(());
        }
        let last = self.db.read_without_snapshot(space_proposals::load_last_times).await?;
        if !may_start(last, now) {
            return Ok(());
        }
        let library = self.live.current().library.clone();
        let low = match policy.min_free_gb {
            Some(min_free_gb) => find_low_space(&library, min_free_gb).await,
            None => None,
        };
        if low.is_none() && !is_monthly_due(policy, last, now) {
            return Ok(());
        }
        self.propose(&library, low).await
    }

    async fn propose(&self, library: &ArrInstances, low: Option<LowSpace>) -> anyhow::Result<()> {
        let (settings, now) = (self.live.settings(), self.clock.now());
        let load = {
            let settings = settings.clone();
            move |conn: &mut _| records::load_space_records(conn, &settings, now)
        };
        let room = self.db.read(load).await?;
        let search = CandidateSearch { library, records: &room, now, zone: &settings.zone };
        let found = match &low {
            Some(low) => {
                let names: Vec<&str> = low.instances.iter().map(String::as_str).collect();
                search.find_in_instances(&names).await
            }
            None => search.find_candidates().await,
        };
        let candidates = match found {
            Ok(candidates) => candidates,
            Err(failure) => {
                tracing::info!(code = %failure.code, "no titles were proposed, because a server did not answer");
                return Ok(());
            }
        };
        let rules = ProposalRules {
            silence: settings.making_room.silence,
            // Some titles will be kept.
            wanted_bytes: low.map(|low| low.missing_bytes.saturating_mul(2)),
            now,
            zone: settings.zone.clone(),
        };
        let Some(plan) = plan_proposal(candidates, &rules) else { return Ok(()) };
        self.db.write(move |conn| opening::open_proposal(conn, &plan, None, &settings, now)).await?;
        self.outbox.notify();
        Ok(())
    }
}

/// Returns whether a proposal may start by itself: none is open, and the last one ended long enough ago. A time in the
/// future is from before the clock was set back.
fn may_start(last: LastProposal, now: Timestamp) -> bool {
    match last {
        None => true,
        Some((_, None)) => false,
        Some((_, Some(closed_at))) => closed_at > now || now.duration_since(closed_at) >= PROPOSAL_INTERVAL,
    }
}

fn is_monthly_due(policy: SpacePolicy, last: LastProposal, now: Timestamp) -> bool {
    policy.monthly
        && last
            .is_none_or(|(opened_at, _)| opened_at > now || now.duration_since(opened_at) >= MONTHLY_INTERVAL)
}
