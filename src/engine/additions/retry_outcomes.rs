//! Recording of the outcomes of retried additions. The user is notified when the outcome is final.

use jiff::{SignedDuration, Timestamp};

use crate::clock::Clock;
use crate::conversation::title_requests as request_messages;
use crate::conversation::title_requests::{DeferredAdditionState, RequestedTitle};
use crate::conversation::transcript::{CallFailure, FailureCode, MediaKind, User, UserStatus};
use crate::engine::parts::{EngineParts, LiveParts};
use crate::engine::reply_address::ReplyAddress;
use crate::engine::send_time::earliest_send_time;
use crate::engine::settings::HouseholdSettings;
use crate::engine::turns::change_record::{self, OutcomeSource};
use crate::engine::turns::tool_effects::{self, EffectSource};
use crate::engine::turns::turn_context::TurnContext;
use crate::messaging::outbox_relay::OutboxSignal;
use crate::store::database::db::{Db, DbError};
use crate::store::library::follows;
use crate::store::library::request_groups::{self, CloseGroupOutcome, RequestGroup};
use crate::store::library::title_requests::{self, DeferredAddition, TitleRequestOutcome};
use crate::store::people::users;
use crate::store::queue::outbox;
use crate::store::{Conn, QueryResult, audit};
use crate::tools::{ToolEffect, ToolOutput};

/// Interval at which the unknown outcome of an attempt is checked.
const OUTCOME_CHECK_INTERVAL: SignedDuration = SignedDuration::from_mins(2);

/// Outcome of an attempt to add a title, or of the check of an earlier attempt.
pub(super) enum RetryOutcome {
    Added(ToolOutput),
    Refused(CallFailure),
    /// The title was certainly not added.
    NotAdded,
    /// The title may have been added.
    Unknown,
}

/// Recorder of attempts and final outcomes of queued additions.
pub(super) struct RetryRecorder {
    db: Db,
    clock: Clock,
    live: LiveParts,
    outbox: OutboxSignal,
}

impl RetryRecorder {
    pub(super) fn new(parts: &EngineParts) -> Self {
        let EngineParts { db, clock, outbox, live, .. } = parts.clone();
        Self { db, clock, live, outbox }
    }

    pub(super) async fn record_attempt(
        &self,
        context: &TurnContext,
        group: &RequestGroup,
        outcome: RetryOutcome,
    ) -> anyhow::Result<()> {
        let (id, addition) = (group.merged.id, &group.merged);
        // The clock may have been set during the attempt, which shifts the stored times.
        let current = self.db.read(move |conn| title_requests::load_open_addition(conn, id)).await?;
        let now = self.clock.now();
        let requested_at = current.map_or(addition.requested_at, |current| current.requested_at);
        let attempts = match addition.state {
            DeferredAdditionState::Waiting => addition.tries + 1,
            DeferredAdditionState::InProgress => addition.tries,
        };
        let (ids, next) = (group.all_ids(), request_messages::next_try_at(requested_at, attempts, now));
        let abandoned = match (outcome, next) {
            (RetryOutcome::Added(output), _) => return self.record_added(context, group, output).await,
            (RetryOutcome::NotAdded, Some(next)) => {
                let write = move |conn: &mut _| request_groups::schedule_next_try(conn, &ids, next);
                return Ok(self.db.write(write).await?);
            }
            (RetryOutcome::Unknown, Some(_)) => {
                // An attempt that was just made is checked at once.
                let at = match addition.state {
                    DeferredAdditionState::Waiting => now,
                    DeferredAdditionState::InProgress => now + OUTCOME_CHECK_INTERVAL,
                };
                let write = move |conn: &mut _| request_groups::schedule_next_check(conn, &ids, at);
                return Ok(self.db.write(write).await?);
            }
            (RetryOutcome::Refused(failure), _) => AbandonedAddition::from_refusal(group, failure),
            (RetryOutcome::NotAdded, None) => {
                let message = request_messages::format_given_up(&addition.title);
                AbandonedAddition::with_shared_message(message, FailureCode::NotReachedForADay)
            }
            (RetryOutcome::Unknown, None) => {
                let message = request_messages::format_outcome_unknown(&addition.title);
                AbandonedAddition::with_shared_message(message, FailureCode::OutcomeUnknown)
            }
        };
        self.record_abandoned(context, group, abandoned).await
    }

    /// Ends additions whose title is in the library: applies the tool effects and notifies the user.
    async fn record_added(
        &self,
        context: &TurnContext,
        group: &RequestGroup,
        output: ToolOutput,
    ) -> anyhow::Result<()> {
        let ToolOutput { result, effects } = output;
        let title = requested_title(&effects).unwrap_or(&group.merged.title).clone();
        let was_added = effects.iter().any(|effect| matches!(effect, ToolEffect::Count(_)));
        let sentence = match was_added {
            _ if request_messages::is_left_to_seerr(&result) => result.for_user.clone(),
            true => request_messages::format_added(&title),
            false => request_messages::format_not_monitored(&title, &result)
                .unwrap_or_else(|| request_messages::format_already_there(&title)),
        };
        let message =
            [Some(sentence), group.refusal.clone()].into_iter().flatten().collect::<Vec<_>>().join(" ");
        let tool = tool_name(title.kind);
        let audit_entry = |part: &DeferredAddition| {
            change_record::outcome_entry(context, part.call, OutcomeSource::Response, tool, &result)
        };
        let entries: Vec<audit::NewAuditEntry> = group.parts().iter().map(audit_entry).collect();
        let source = EffectSource::from_call(context, group.merged.call);
        let (group, settings, now) = (group.clone(), self.live.settings(), self.clock.now());
        let end = move |conn: &mut Conn| {
            let CloseGroupOutcome::MergedInto(id) =
                request_groups::close_group(conn, &group, &TitleRequestOutcome::Added(&title), now)?
            else {
                // If the user was erased meanwhile, no title is stored, but the quota usage still counts.
                for entry in &entries {
                    audit::record_outcome(conn, &entry.without_detail(), now);
                }
                let mut counted = effects.iter().filter(|effect| matches!(effect, ToolEffect::Count(_)));
                return counted.try_for_each(|effect| {
                    tool_effects::apply_tool_effect(conn, &source, effect, &settings, now)
                });
            };
            entries.iter().for_each(|entry| audit::record_outcome(conn, entry, now));
            // The title request is already closed.
            for effect in effects.iter().filter(|effect| !matches!(effect, ToolEffect::Request(..))) {
                tool_effects::apply_tool_effect(conn, &source, effect, &settings, now)?;
            }
            notify_requester(conn, &source.user, &settings, (id, &message), now)?;
            // If the call has started a follow, the followers are notified when the files are imported.
            if effects.iter().any(|effect| matches!(effect, ToolEffect::Follow(_))) {
                return Ok(());
            }
            notify_followers(
                conn,
                (id, &group.merged),
                &settings,
                &request_messages::format_ready(&title),
                now,
            )
        };
        self.db.write(end).await?;
        self.outbox.notify();
        Ok(())
    }

    /// Ends additions that were not made, or that have an unknown outcome, and notifies the user and the followers.
    pub(super) async fn record_abandoned(
        &self,
        context: &TurnContext,
        group: &RequestGroup,
        abandoned: AbandonedAddition,
    ) -> anyhow::Result<()> {
        let (user, settings) = (context.user.clone(), self.live.settings());
        let entries: Vec<audit::NewAuditEntry> = group
            .parts()
            .iter()
            .map(|part| failed_addition_entry(context, part, &abandoned.reason))
            .collect();
        let (group, now) = (group.clone(), self.clock.now());
        let end = move |conn: &mut _| {
            let CloseGroupOutcome::MergedInto(id) =
                request_groups::close_group(conn, &group, &TitleRequestOutcome::GivenUp, now)?
            else {
                return Ok(());
            };
            entries.iter().for_each(|entry| audit::record_outcome(conn, entry, now));
            notify_requester(conn, &user, &settings, (id, &abandoned.requester_message), now)?;
            if title_requests::may_still_arrive(conn, &group.merged.title)? {
                return Ok(());
            }
            notify_followers(conn, (id, &group.merged), &settings, &abandoned.follower_message, now)
        };
        self.db.write(end).await?;
        self.outbox.notify();
        Ok(())
    }

    /// Gives up an addition whose row or turn cannot be parsed, and notifies the user once. The row remains stored.
    pub(super) async fn give_up_unreadable(&self, id: i64, error: &DbError) -> anyhow::Result<()> {
        tracing::error!(request = id, %error, "gave up an unreadable addition");
        let (settings, now) = (self.live.settings(), self.clock.now());
        let end = move |conn: &mut Conn| {
            let Some(request) = title_requests::load_unreadable_request(conn, id)? else { return Ok(()) };
            title_requests::settle_title_request(conn, id, &TitleRequestOutcome::GivenUp, now)?;
            let user = users::load_user(conn, request.user)?;
            if user.status != UserStatus::Active || user.opted_out {
                return Ok(());
            }
            let message = request_messages::format_unreadable(&request.title, request.state);
            notify_requester(conn, &user, &settings, (id, &message), now)
        };
        self.db.write(end).await?;
        self.outbox.notify();
        Ok(())
    }
}

/// Returns the name of the tool that adds titles of this kind.
pub(super) fn tool_name(kind: MediaKind) -> &'static str {
    match kind {
        MediaKind::Movie => "add_movie",
        MediaKind::Series => "add_series",
    }
}

/// Returns the title request among the effects of an addition, with the title's name in the library.
fn requested_title(effects: &[ToolEffect]) -> Option<&RequestedTitle> {
    effects.iter().find_map(|effect| match effect {
        ToolEffect::Request(title, _) => Some(title),
        ToolEffect::Act(_) | ToolEffect::StartVote(_) | ToolEffect::Count(_) => None,
        ToolEffect::AskAdmins(_) | ToolEffect::AskParents(_) | ToolEffect::OpenProposal(_) => None,
        ToolEffect::TrackRequest { .. } => None,
        ToolEffect::Follow(_) | ToolEffect::Notify(_) | ToolEffect::Unfollow(_) | ToolEffect::Queue(..) => {
            None
        }
        ToolEffect::Remember(_) | ToolEffect::Forget(..) => None,
        ToolEffect::MentionViewing | ToolEffect::RequestAccountLink(_) | ToolEffect::UnlinkAccounts(_) => {
            None
        }
    })
}

/// Addition that is no longer retried: its title was not added, or the outcome is unknown.
pub(super) struct AbandonedAddition {
    requester_message: String,
    /// Message to the other followers of the title.
    follower_message: String,
    /// Reason for the audit log.
    reason: FailureCode,
}

impl AbandonedAddition {
    pub(super) fn with_shared_message(message: String, reason: FailureCode) -> Self {
        Self { follower_message: message.clone(), requester_message: message, reason }
    }

    fn from_refusal(group: &RequestGroup, failure: CallFailure) -> Self {
        let title = &group.merged.title;
        let reason = group.refusal.as_deref().or(failure.for_user.as_deref());
        Self {
            requester_message: request_messages::format_refused(title, reason),
            // The reason for the refusal may concern only the requester.
            follower_message: request_messages::format_refused(title, None),
            reason: failure.code,
        }
    }
}

/// Returns the audit entry of an addition that was not made, or that has an unknown outcome.
pub(super) fn failed_addition_entry(
    context: &TurnContext,
    addition: &DeferredAddition,
    reason: &FailureCode,
) -> audit::NewAuditEntry {
    change_record::failed_write_entry(context, addition.call, tool_name(addition.title.kind), reason)
}

/// Notifies a user once of the outcome of their request, outside their quiet hours. Users who turned notifications off
/// are also notified, because the message was promised.
fn notify_requester(
    conn: &mut Conn,
    user: &User,
    settings: &HouseholdSettings,
    (request, message): (i64, &str),
    now: Timestamp,
) -> QueryResult<()> {
    let address = ReplyAddress::load_for_user(conn, user, &settings.senders)?;
    let at = earliest_send_time(conn, user.id, settings, now)?;
    outbox::queue_message_once_at(
        conn,
        &address.notification_message(&format!("request:{request}"), message),
        at,
        now,
    )
}

/// Notifies all other followers of exactly this title of the outcome, and ends their follows.
fn notify_followers(
    conn: &mut Conn,
    (request, addition): (i64, &DeferredAddition),
    settings: &HouseholdSettings,
    message: &str,
    now: Timestamp,
) -> QueryResult<()> {
    let mut followers = Vec::new();
    for title in tool_effects::followed_titles(&addition.title) {
        followers.extend(follows::end_follows(conn, &title, now)?);
    }
    followers.sort_unstable_by_key(|user| user.0);
    followers.dedup();
    for user in followers.into_iter().filter(|user| *user != addition.user) {
        let user = users::load_user(conn, user)?;
        // The title may be over the caps of a follower.
        let may_learn = user.rights.rating_caps().is_unlimited();
        if may_learn && user.status == UserStatus::Active && !user.opted_out {
            notify_requester(conn, &user, settings, (request, message), now)?;
        }
    }
    Ok(())
}
