//! Recording of the outcome of a try of a waiting addition. The user is notified once the outcome is final.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use crate::clock::Clock;
use crate::conversation::title_requests as words;
use crate::conversation::title_requests::{DeferredAdditionState, RequestedTitle};
use crate::conversation::transcript::{CallFailure, FailureCode, MediaKind, User, UserStatus};
use crate::engine::notifications::send_time::earliest_send_time;
use crate::engine::parts::EngineParts;
use crate::engine::reply_address::ReplyAddress;
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

/// Pause between two checks of the outcome of a try.
const CHECK_PAUSE: SignedDuration = SignedDuration::from_mins(2);

/// Outcome of trying an addition, or of checking an earlier try.
pub(super) enum RetryOutcome {
    Added(ToolOutput),
    Refused(CallFailure),
    /// The addition was certainly not made.
    NotMade,
    /// The addition may have been made.
    Unknown,
}

/// Recorder of tries.
pub(super) struct RetryRecorder {
    db: Db,
    clock: Clock,
    settings: Arc<HouseholdSettings>,
    outbox: OutboxSignal,
}

impl RetryRecorder {
    pub(super) fn new(parts: &EngineParts) -> Self {
        let EngineParts { db, clock, settings, outbox, .. } = parts.clone();
        Self { db, clock, settings, outbox }
    }

    pub(super) async fn record_try(
        &self,
        context: &TurnContext,
        group: &RequestGroup,
        outcome: RetryOutcome,
    ) -> anyhow::Result<()> {
        let (id, open) = (group.whole.id, &group.whole);
        // The clock may have been set during the try, which shifts the stored wait.
        let current = self.db.read(move |conn| title_requests::load_open_addition(conn, id)).await?;
        let now = self.clock.now();
        let asked_at = current.map_or(open.asked_at, |current| current.asked_at);
        let tries = match open.state {
            DeferredAdditionState::Waiting => open.tries + 1,
            DeferredAdditionState::InProgress => open.tries,
        };
        let (ids, next) = (group.all_ids(), words::next_try_at(asked_at, tries, now));
        let given_up = match (outcome, next) {
            (RetryOutcome::Added(ran), _) => return self.end_addition_as_added(context, group, ran).await,
            (RetryOutcome::NotMade, Some(next)) => {
                let write = move |conn: &mut _| request_groups::schedule_next_try(conn, &ids, next);
                return Ok(self.db.write(write).await?);
            }
            (RetryOutcome::Unknown, Some(_)) => {
                // A try that has just begun is checked without a pause.
                let at = match open.state {
                    DeferredAdditionState::Waiting => now,
                    DeferredAdditionState::InProgress => now + CHECK_PAUSE,
                };
                let write = move |conn: &mut _| request_groups::schedule_next_check(conn, &ids, at);
                return Ok(self.db.write(write).await?);
            }
            (RetryOutcome::Refused(failure), _) => GivenUp::from_refusal(group, failure),
            (RetryOutcome::NotMade, None) => {
                GivenUp::to_all(words::format_given_up(&open.wanted), FailureCode::NotReachedForADay)
            }
            (RetryOutcome::Unknown, None) => {
                GivenUp::to_all(words::format_outcome_unknown(&open.wanted), FailureCode::OutcomeUnknown)
            }
        };
        self.end_addition_as_given_up(context, group, given_up).await
    }

    /// Ends additions that are in the library: applies the effects of the call to our records, and notifies their user.
    async fn end_addition_as_added(
        &self,
        context: &TurnContext,
        group: &RequestGroup,
        ran: ToolOutput,
    ) -> anyhow::Result<()> {
        let ToolOutput { result, effects: deeds } = ran;
        let wanted = requested_title(&deeds).unwrap_or(&group.whole.wanted).clone();
        let was_added = deeds.iter().any(|deed| matches!(deed, ToolEffect::Count(_)));
        let told = match was_added {
            true => words::format_added(&wanted),
            false => words::format_not_monitored(&wanted, &result)
                .unwrap_or_else(|| words::format_already_there(&wanted)),
        };
        let told = [Some(told), group.refusal.clone()].into_iter().flatten().collect::<Vec<_>>().join(" ");
        let tool = tool_name(wanted.kind);
        let note = |part: &DeferredAddition| {
            change_record::outcome_entry(context, part.call, OutcomeSource::Response, tool, &result)
        };
        let notes: Vec<audit::NewAuditEntry> = group.parts().iter().map(note).collect();
        let doer = EffectSource::from_call(context, group.whole.call);
        let (group, settings, now) = (group.clone(), self.settings.clone(), self.clock.now());
        let end = move |conn: &mut Conn| {
            let CloseGroupOutcome::Into(id) =
                request_groups::close_group(conn, &group, &TitleRequestOutcome::Added(&wanted), now)?
            else {
                // If the user was erased meanwhile, no title is stored, but the quota usage still counts.
                for note in notes {
                    audit::record_outcome(conn, &audit::NewAuditEntry { detail: json!({}), ..note }, now);
                }
                let mut counted = deeds.iter().filter(|deed| matches!(deed, ToolEffect::Count(_)));
                return counted
                    .try_for_each(|deed| tool_effects::apply_tool_effect(conn, &doer, deed, &settings, now));
            };
            notes.iter().for_each(|note| audit::record_outcome(conn, note, now));
            // The request itself was settled above.
            for deed in deeds.iter().filter(|deed| !matches!(deed, ToolEffect::Request(..))) {
                tool_effects::apply_tool_effect(conn, &doer, deed, &settings, now)?;
            }
            notify_requester(conn, &doer.user, &settings, (id, &told), now)?;
            // If the call has started a follow, imports are still to come, and the followers are notified later.
            if deeds.iter().any(|deed| matches!(deed, ToolEffect::Follow(_))) {
                return Ok(());
            }
            notify_followers(conn, (id, &group.whole), &settings, &words::format_ready(&wanted), now)
        };
        self.db.write(end).await?;
        self.outbox.notify();
        Ok(())
    }

    pub(super) async fn end_addition_as_given_up(
        &self,
        context: &TurnContext,
        group: &RequestGroup,
        given_up: GivenUp,
    ) -> anyhow::Result<()> {
        let (user, settings) = (context.user.clone(), self.settings.clone());
        let notes: Vec<audit::NewAuditEntry> =
            group.parts().iter().map(|part| failed_addition_entry(context, part, &given_up.reason)).collect();
        let (group, now) = (group.clone(), self.clock.now());
        let end = move |conn: &mut _| {
            let CloseGroupOutcome::Into(id) =
                request_groups::close_group(conn, &group, &TitleRequestOutcome::GivenUp, now)?
            else {
                return Ok(());
            };
            notes.iter().for_each(|note| audit::record_outcome(conn, note, now));
            notify_requester(conn, &user, &settings, (id, &given_up.told), now)?;
            if title_requests::may_still_arrive(conn, &group.whole.wanted)? {
                return Ok(());
            }
            notify_followers(conn, (id, &group.whole), &settings, &given_up.to_others, now)
        };
        self.db.write(end).await?;
        self.outbox.notify();
        Ok(())
    }

    /// Gives up an addition whose row or turn cannot be read, and sends one notification of the failure. The row
    /// remains stored.
    pub(super) async fn give_up_unreadable(&self, id: i64, error: &DbError) -> anyhow::Result<()> {
        tracing::error!(request = id, %error, "gave up an unreadable addition");
        let (settings, now) = (self.settings.clone(), self.clock.now());
        let end = move |conn: &mut Conn| {
            let Some(lost) = title_requests::unreadable_request(conn, id)? else { return Ok(()) };
            title_requests::settle_title_request(conn, id, &TitleRequestOutcome::GivenUp, now)?;
            let user = users::load_user(conn, lost.user)?;
            if user.status != UserStatus::Active || user.opted_out {
                return Ok(());
            }
            let told = words::format_unreadable(&lost.wanted, lost.trying);
            notify_requester(conn, &user, &settings, (id, &told), now)
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
fn requested_title(deeds: &[ToolEffect]) -> Option<&RequestedTitle> {
    deeds.iter().find_map(|deed| match deed {
        ToolEffect::Request(wanted, _) => Some(wanted),
        ToolEffect::Act(_) | ToolEffect::Count(_) | ToolEffect::AskAdmins(_) => None,
        ToolEffect::Follow(_) | ToolEffect::Notify(_) | ToolEffect::Unfollow(_) | ToolEffect::Queue(..) => {
            None
        }
        ToolEffect::Remember(_) | ToolEffect::Forget(..) => None,
    })
}

/// End of additions that were not made, or that have an unknown outcome.
pub(super) struct GivenUp {
    /// Message to the user of the request.
    told: String,
    /// Message to other followers of the title.
    to_others: String,
    /// Reason in the audit log.
    reason: FailureCode,
}

impl GivenUp {
    pub(super) fn to_all(told: String, reason: FailureCode) -> Self {
        Self { to_others: told.clone(), told, reason }
    }

    fn from_refusal(group: &RequestGroup, failure: CallFailure) -> Self {
        let wanted = &group.whole.wanted;
        let why = group.refusal.as_deref().or(failure.for_user.as_deref());
        // The reason for the refusal may concern only this user.
        let to_others = words::format_refused(wanted, None);
        Self { told: words::format_refused(wanted, why), to_others, reason: failure.code }
    }
}

/// Audit row of an addition that was not made, or that has an unknown outcome.
pub(super) fn failed_addition_entry(
    context: &TurnContext,
    open: &DeferredAddition,
    reason: &FailureCode,
) -> audit::NewAuditEntry {
    change_record::failed_write_entry(context, open.call, tool_name(open.wanted.kind), reason)
}

/// Notifies a user once of the outcome of their request, outside their quiet hours. Users without notifications are
/// also notified, since this message was promised.
fn notify_requester(
    conn: &mut Conn,
    user: &User,
    settings: &HouseholdSettings,
    (request, told): (i64, &str),
    now: Timestamp,
) -> QueryResult<()> {
    let way = ReplyAddress::load_for_user(conn, user, settings.number.as_ref())?;
    let at = earliest_send_time(conn, user.id, settings, now)?;
    outbox::queue_message_once_at(
        conn,
        &way.notification_message(&format!("request:{request}"), told),
        at,
        now,
    )
}

/// Notifies all other followers of exactly this title of the outcome, and ends their follows.
fn notify_followers(
    conn: &mut Conn,
    (request, open): (i64, &DeferredAddition),
    settings: &HouseholdSettings,
    told: &str,
    now: Timestamp,
) -> QueryResult<()> {
    let mut followers = Vec::new();
    for what in tool_effects::followed_titles(&open.wanted) {
        followers.extend(follows::end_follows(conn, &what, now)?);
    }
    followers.sort_unstable_by_key(|user| user.0);
    followers.dedup();
    for user in followers.into_iter().filter(|user| *user != open.user) {
        let person = users::load_user(conn, user)?;
        if person.status == UserStatus::Active && !person.opted_out {
            notify_requester(conn, &person, settings, (request, told), now)?;
        }
    }
    Ok(())
}
