//! Application of tool effects to our own records, in the transaction that stores the result of their call.

use jiff::Timestamp;

use super::turn_context::TurnContext;
use crate::conversation::deletion::deletion_messages;
use crate::conversation::deletion::target::DeletionTarget;
use crate::conversation::people::naming;
use crate::conversation::routing::inbound_message::InboundEvent;
use crate::conversation::title_requests::RequestedTitle;
use crate::conversation::transcript::{CallRow, ToolArguments, User, UserId};
use crate::conversation::turn::model_action::ModelAction;
use crate::engine::reply_address::{self, ReplyAddress};
use crate::engine::settings::HouseholdSettings;
use crate::store::confirmation::approvals::{self, ApprovalKind, NewApproval};
use crate::store::conversation::reactions;
use crate::store::library::follows::{self, FollowReason, FollowedTitle};
use crate::store::library::quotas;
use crate::store::library::title_requests::{self, NewDeferredAddition};
use crate::store::memory::facts::{self, FactOutcome, FactSelector, FactSource};
use crate::store::queue::outbox;
use crate::store::turns::{calls, turn_lifecycle};
use crate::store::{Conn, QueryResult, with_savepoint};
use crate::tools::ToolEffect;

/// User and call that cause a tool effect.
#[derive(Debug, Clone)]
pub(crate) struct EffectSource {
    pub(crate) user: User,
    /// Last message of the turn.
    pub(crate) last: Option<InboundEvent>,
    pub(crate) call: CallRow,
}

impl EffectSource {
    pub(crate) fn from_call(context: &TurnContext, call: CallRow) -> Self {
        Self { user: context.user.clone(), last: context.events.last().cloned(), call }
    }
}

pub(crate) fn apply_tool_effect(
    conn: &mut Conn,
    doer: &EffectSource,
    deed: &ToolEffect,
    settings: &HouseholdSettings,
    now: Timestamp,
) -> QueryResult<()> {
    match deed {
        ToolEffect::Act(action) => {
            apply_action(conn, doer, action, settings, now);
            Ok(())
        }
        ToolEffect::Count(added) => quotas::count_additions(conn, doer.user.id, doer.call, *added, now),
        ToolEffect::AskAdmins(item) => ask_admins_for_removal(conn, doer, item, settings, now),
        ToolEffect::Request(wanted, coverage) => {
            title_requests::record_title_request(conn, doer.user.id, doer.call, (wanted, *coverage), now)
        }
        ToolEffect::Follow(wanted) => follow_title(conn, doer.user.id, wanted, FollowReason::Request, now),
        ToolEffect::Notify(wanted) => {
            follow_title(conn, doer.user.id, wanted, FollowReason::Notification, now)
        }
        ToolEffect::Unfollow(wanted) => stop_following(conn, doer.user.id, wanted, now),
        ToolEffect::Queue(wanted, arguments) => queue_addition(conn, doer, wanted, arguments, now),
        ToolEffect::Remember(fact) => {
            let said = FactSource::Stated(doer.last.as_ref().map(|event| event.id));
            if facts::record_fact(conn, doer.user.id, fact, said, now)? == FactOutcome::Full {
                // The tool has checked the limit, so another fact was stored at the same time.
                tracing::warn!(call = %doer.call, "dropped a fact beyond the limit of the user");
            }
            Ok(())
        }
        ToolEffect::Forget(kind, key) => {
            facts::forget_fact(conn, doer.user.id, FactSelector::Key(*kind, key), now).map(drop)
        }
    }
}

/// Follows each requested season, or the whole title if no seasons are given.
fn follow_title(
    conn: &mut Conn,
    user: UserId,
    wanted: &RequestedTitle,
    reason: FollowReason,
    now: Timestamp,
) -> QueryResult<()> {
    followed_titles(wanted).iter().try_for_each(|what| follows::follow_title(conn, user, what, reason, now))
}

/// Stops following the given seasons, or the whole title with all of its separately followed seasons.
fn stop_following(conn: &mut Conn, user: UserId, wanted: &RequestedTitle, now: Timestamp) -> QueryResult<()> {
    followed_titles(wanted).iter().try_for_each(|what| follows::unfollow_title(conn, user, what, now))
}

pub(crate) fn followed_titles(wanted: &RequestedTitle) -> Vec<FollowedTitle> {
    let seasons: Vec<Option<u32>> = match &wanted.seasons {
        None => vec![None],
        Some(seasons) => seasons.iter().copied().map(Some).collect(),
    };
    let follow = |season| {
        let RequestedTitle { instance, kind, catalog_id, .. } = wanted.clone();
        FollowedTitle { instance, kind, catalog_id, season }
    };
    seasons.into_iter().map(follow).collect()
}

/// Queues an addition. The library is unreachable, so the title's name is read from the result that has shown the title
/// to the user.
fn queue_addition(
    conn: &mut Conn,
    doer: &EffectSource,
    wanted: &RequestedTitle,
    arguments: &ToolArguments,
    now: Timestamp,
) -> QueryResult<()> {
    let conversation = turn_lifecycle::load_turn_of_call(conn, doer.call)?.conversation;
    let mut wanted = wanted.clone();
    if let Some((title, year)) = calls::find_shown_title(conn, conversation, wanted.kind, wanted.catalog_id)?
    {
        (wanted.title, wanted.year) = (title, year);
    }
    let new = NewDeferredAddition { user: doer.user.id, call: doer.call, title: &wanted, arguments };
    title_requests::queue_addition(conn, &new, now)
}

/// Performs an action. A failed action must not prevent the reply.
fn apply_action(
    conn: &mut Conn,
    doer: &EffectSource,
    action: &ModelAction,
    settings: &HouseholdSettings,
    now: Timestamp,
) {
    let done = with_savepoint(conn, |conn| match (action, &doer.last) {
        (ModelAction::React(emoji), Some(on)) => {
            reactions::store_own_reaction(conn, doer.user.id, on.id, emoji, now)
        }
        (ModelAction::React(_), None) => Ok(()),
        (ModelAction::SendPoster(poster), last) => {
            let way = match last {
                Some(event) => ReplyAddress::from_message(&doer.user, event),
                None => ReplyAddress::load_for_user(conn, &doer.user, settings.number.as_ref())?,
            };
            let picture =
                way.picture_message(&format!("poster:{}", doer.call), &poster.name, poster.address.as_str());
            outbox::queue_message_once(conn, &picture, now)
        }
    });
    if let Err(error) = done {
        tracing::error!(%error, call = %doer.call, ?action, "action failed");
    }
}

fn ask_admins_for_removal(
    conn: &mut Conn,
    doer: &EffectSource,
    item: &DeletionTarget,
    settings: &HouseholdSettings,
    now: Timestamp,
) -> QueryResult<()> {
    let matter = ApprovalKind::Delete(Box::new(item.clone()));
    let new = NewApproval { user: doer.user.id, kind: &matter, call: Some(doer.call) };
    let mut codes = settings.codes.approval_codes();
    let approval = approvals::request_approval(conn, &new, &mut || codes.draw(), now)?;
    if doer.user.test {
        // The approval waits in the console, since a test must not notify a real phone.
        return Ok(());
    }
    let question = deletion_messages::format_removal_request(
        &naming::display_name(&doer.user),
        item,
        approval.code.as_str(),
    );
    let key = format!("approval:{}", approval.id);
    reply_address::notify_admins(conn, settings.number.as_ref(), &key, &question, now)
}
