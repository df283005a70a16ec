//! End of votes, and the announcement of their results.

use std::time::Duration;

use jiff::Timestamp;

use super::electorate::{may_show_in_room, may_take_part};
use crate::clock::Clock;
use crate::conversation::people::naming;
use crate::conversation::transcript::{UserId, UserStatus};
use crate::conversation::votes::vote_decision::{CountedBallot, LostVote, VoteDecision};
use crate::conversation::votes::{VoteMessage, vote_messages};
use crate::engine::parts::{EngineParts, LiveParts};
use crate::engine::reply_address::ReplyAddress;
use crate::engine::send_time::earliest_send_time;
use crate::engine::settings::HouseholdSettings;
use crate::engine::work_signal::WorkSignal;
use crate::messaging::outbox_relay::OutboxSignal;
use crate::store::database::db::{Db, DbError};
use crate::store::people::users;
use crate::store::queue::outbox::{self, NewOutboundMessage, OutboundKind};
use crate::store::votes::{self, Vote};
use crate::store::{Conn, QueryResult};

/// Maximum time between two checks for open votes, which is shorter than the period of a vote.
const CHECK_INTERVAL: Duration = Duration::from_mins(90);

/// Worker that closes votes whose time is over, and deletes those whose retention period is over.
pub struct VoteCloser {
    db: Db,
    clock: Clock,
    live: LiveParts,
    outbox: OutboxSignal,
    clock_set: WorkSignal,
}

impl VoteCloser {
    pub(crate) fn new(parts: &EngineParts) -> Self {
        let EngineParts { db, clock, live, outbox, .. } = parts.clone();
        Self { db, clock, live, outbox, clock_set: WorkSignal::default() }
    }

    /// Closes votes until the task is dropped.
    pub(crate) async fn run(&self) {
        loop {
            let wait = match self.close_due_votes().await {
                Ok(next) => next.map_or(CHECK_INTERVAL, |at| self.time_until(at).min(CHECK_INTERVAL)),
                Err(error) => {
                    tracing::error!(%error, "failed to close votes");
                    CHECK_INTERVAL
                }
            };
            tokio::select! {
                () = self.clock_set.wait() => {}
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    /// Lets the worker check the votes at once, after the clock was set.
    pub(crate) fn wake_worker(&self) {
        self.clock_set.notify();
    }

    /// Closes the votes whose time is over, and returns the time at which the next one closes.
    pub(crate) async fn close_due_votes(&self) -> Result<Option<Timestamp>, DbError> {
        let now = self.clock.now();
        let retained_from = now - self.live.settings().retention;
        let load = move |conn: &mut _| {
            Ok((votes::load_open_votes(conn)?, votes::has_votes_closed_before(conn, retained_from)?))
        };
        let (open, has_old_votes) = self.db.read_without_snapshot(load).await?;
        if has_old_votes {
            self.db.write(move |conn| votes::delete_votes_closed_before(conn, retained_from)).await?;
        }
        let next = open.iter().map(|vote| vote.closes_at).find(|at| *at > now);
        for vote in open.into_iter().filter(|vote| vote.closes_at <= now) {
            let settings = self.live.settings();
            self.db.write(move |conn| close_vote(conn, &settings, &vote, now)).await?;
            self.outbox.notify();
        }
        Ok(next)
    }

    fn time_until(&self, at: Timestamp) -> Duration {
        Duration::try_from(at.duration_since(self.clock.now())).unwrap_or_default()
    }
}

/// Closes a vote and queues the announcement of its result, once.
pub(in crate::engine) fn close_vote(
    conn: &mut Conn,
    settings: &HouseholdSettings,
    vote: &Vote,
    now: Timestamp,
) -> QueryResult<()> {
    let Some(text) = end_vote(conn, vote, now)? else { return Ok(()) };
    match vote.room {
        Some(room) => announce_in_room(conn, settings, (vote, room), &text, now),
        None => announce_to_household(conn, settings, (vote, None), &text, now),
    }
}

/// Closes a vote for a person who asked for it, and returns the result, which is the answer to this person and in a room
/// to everybody. `None` if the vote is closed already.
pub(in crate::engine) fn close_vote_for(
    conn: &mut Conn,
    settings: &HouseholdSettings,
    (vote, closer): (&Vote, UserId),
    now: Timestamp,
) -> QueryResult<Option<String>> {
    let Some(text) = end_vote(conn, vote, now)? else { return Ok(None) };
    if vote.room.is_none() {
        announce_to_household(conn, settings, (vote, Some(closer)), &text, now)?;
    }
    Ok(Some(text))
}

/// Ends a vote, stores what won, and formats the result; `None` if it has ended already.
fn end_vote(conn: &mut Conn, vote: &Vote, now: Timestamp) -> QueryResult<Option<String>> {
    let ballots = votes::load_counted_ballots(conn, vote.id)?;
    let losses = load_losses(conn, vote, &ballots)?;
    let decision = VoteDecision::from_ballots(&vote.question, &ballots, &losses);
    if !votes::close_vote(conn, vote, decision.winner, now)? {
        return Ok(None);
    }
    votes::suppress_ballot_messages(conn, vote.id, now)?;
    if let Some(room) = vote.room
        && !may_show_in_room(conn, vote, room)?
    {
        return Ok(Some(vote_messages::VOTE_IS_OVER.to_owned()));
    }
    let tie_breaker = match decision.tie_breaker {
        Some(voter) => Some(naming::display_name(&users::load_user(conn, voter)?)),
        None => None,
    };
    Ok(Some(vote_messages::format_result(&vote.question, &decision, tie_breaker.as_deref())))
}

/// Loads the last lost votes of the voters of a vote in which they could decide a tie.
fn load_losses(conn: &mut Conn, vote: &Vote, ballots: &[CountedBallot]) -> QueryResult<Vec<LostVote>> {
    let mut losses = Vec::new();
    if vote.question.checked().is_some() {
        for voter in ballots.iter().filter_map(|ballot| ballot.voter) {
            losses.extend(votes::load_last_lost_vote(conn, voter)?);
        }
    }
    Ok(losses)
}

fn announce_in_room(
    conn: &mut Conn,
    settings: &HouseholdSettings,
    (vote, room): (&Vote, UserId),
    text: &str,
    now: Timestamp,
) -> QueryResult<()> {
    let participant = users::load_user(conn, room)?;
    let address = ReplyAddress::load_for_room(conn, &participant, &settings.senders)?;
    let message = NewOutboundMessage {
        // A notification whose answer is lost would not be sent again.
        kind: OutboundKind::Reply,
        quotes: votes::load_poll_messages(conn, vote.id)?.pop(),
        vote: Some(VoteMessage::Announces(vote.id)),
        ..address.notification_message(&format!("poll:{}:result", vote.id), text)
    };
    outbox::queue_message_once(conn, &message, now)
}

/// Announces the result to everybody who was asked, except one person, outside their quiet hours.
fn announce_to_household(
    conn: &mut Conn,
    settings: &HouseholdSettings,
    (vote, except): (&Vote, Option<UserId>),
    text: &str,
    now: Timestamp,
) -> QueryResult<()> {
    for user in votes::load_asked_users(conn, vote.id)?.into_iter().filter(|user| Some(*user) != except) {
        let user = users::load_user(conn, user)?;
        // The options may be over the caps of a person who got them after the start of the vote.
        if !may_take_part(conn, vote, &user)? || user.status != UserStatus::Active || user.opted_out {
            continue;
        }
        let send_at = earliest_send_time(conn, user.id, settings, now)?;
        let address = ReplyAddress::load_for_user(conn, &user, &settings.senders)?;
        let message = NewOutboundMessage {
            vote: Some(VoteMessage::Announces(vote.id)),
            ..address.notification_message(&format!("vote:{}:result", vote.id), text)
        };
        outbox::queue_message_once_at(conn, &message, send_at, now)?;
    }
    Ok(())
}
