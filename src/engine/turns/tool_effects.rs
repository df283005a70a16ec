//! Applies tool effects to our own records, in the transaction that stores the result of the call.

use jiff::Timestamp;

use super::turn_context::TurnContext;
use crate::conversation::channel::ReactionSupport;
use crate::conversation::deletion::deletion_messages;
use crate::conversation::deletion::target::DeletionTarget;
use crate::conversation::people::naming;
use crate::conversation::routing::inbound_message::InboundEvent;
use crate::conversation::title_requests::RequestedTitle;
use crate::conversation::transcript::{CallFailure, CallRow, ToolArguments, User, UserId};
use crate::conversation::turn::model_action::ModelAction;
use crate::engine::approvals::{account_links, requests, title_approvals};
use crate::engine::making_room::opening;
use crate::engine::reply_address::{self, ReplyAddress};
use crate::engine::settings::HouseholdSettings;
use crate::engine::votes::opening as vote_opening;
use crate::store::audit::Actor;
use crate::store::confirmation::approvals::ApprovalKind;
use crate::store::conversation::reactions;
use crate::store::library::follows::{self, FollowReason, FollowedTitle};
use crate::store::library::quotas;
use crate::store::library::seerr_requests;
use crate::store::library::title_requests::{self, NewDeferredAddition};
use crate::store::memory::facts::{self, FactOutcome, FactSelector, FactSource};
use crate::store::people::viewer_accounts;
use crate::store::queue::outbox;
use crate::store::turns::{calls, turn_lifecycle};
use crate::store::{Conn, QueryResult, with_savepoint};
use crate::tools::{TitleVote, ToolEffect};

/// User and call that cause a tool effect.
#[derive(Debug, Clone)]
pub(crate) struct EffectSource {
    pub(crate) user: User,
    /// Last message of the turn.
    pub(crate) last_message: Option<InboundEvent>,
    pub(crate) call: CallRow,
}

impl EffectSource {
    pub(crate) fn from_call(context: &TurnContext, call: CallRow) -> Self {
        Self { user: context.user.clone(), last_message: context.events.last().cloned(), call }
    }
}

pub(crate) fn apply_tool_effect(
    conn: &mut Conn,
    source: &EffectSource,
    effect: &ToolEffect,
    settings: &HouseholdSettings,
    now: Timestamp,
) -> QueryResult<()> {
    match effect {
        ToolEffect::Act(action) => {
            apply_action(conn, source, action, settings, now);
            Ok(())
        }
        // It was started before the result of the call was stored.
        ToolEffect::StartVote(_) => Ok(()),
        ToolEffect::Count(added) => quotas::count_additions(conn, source.user.id, source.call, *added, now),
        ToolEffect::AskAdmins(item) => ask_admins_for_removal(conn, source, item, settings, now),
        ToolEffect::OpenProposal(plan) => {
            opening::open_proposal(conn, plan, Some(&source.user), settings, now)
        }
        ToolEffect::AskParents(over_cap) => {
            title_approvals::request_title(conn, (&source.user, source.call), over_cap, settings, now)
        }
        ToolEffect::Request(title, coverage) => {
            title_requests::record_title_request(conn, source.user.id, source.call, (title, *coverage), now)
        }
        ToolEffect::TrackRequest { id, is_pending } => {
            seerr_requests::track_request(conn, source.call, id.0, *is_pending)
        }
        ToolEffect::Follow(title) => follow_title(conn, source.user.id, title, FollowReason::Request, now),
        ToolEffect::Notify(title) => {
            follow_title(conn, source.user.id, title, FollowReason::Notification, now)
        }
        ToolEffect::Unfollow(title) => unfollow_title(conn, source.user.id, title, now),
        ToolEffect::Queue(title, arguments) => queue_addition(conn, source, title, arguments, now),
        ToolEffect::Remember(fact) => {
            let fact_source = FactSource::Stated(source.last_message.as_ref().map(|event| event.id));
            if facts::record_fact(conn, source.user.id, fact, fact_source, now)? == FactOutcome::Full {
                // The tool has checked the limit, so another fact was stored at the same time.
                tracing::warn!(call = %source.call, "dropped a fact beyond the limit of the user");
            }
            Ok(())
        }
        ToolEffect::MentionViewing => turn_lifecycle::mark_about_viewing(conn, source.call),
        ToolEffect::RequestAccountLink(account) => {
            account_links::request_link(conn, (&source.user, source.call), account, settings, now)
        }
        ToolEffect::UnlinkAccounts(scope) => {
            let user = source.user.id;
            viewer_accounts::unlink_accounts(conn, (user, *scope), Actor::User(user), now).map(drop)
        }
        ToolEffect::Forget(kind, key) => {
            facts::forget_fact(conn, source.user.id, FactSelector::Key(*kind, key), now).map(drop)
        }
    }
}

/// Starts the vote that a call requests, and returns the failure of the call if that is impossible.
pub(super) fn start_requested_vote(
    conn: &mut Conn,
    source: &EffectSource,
    effects: &[ToolEffect],
    settings: &HouseholdSettings,
    now: Timestamp,
) -> QueryResult<Option<CallFailure>> {
    for effect in effects {
        if let (ToolEffect::StartVote(vote), Some(event)) = (effect, &source.last_message) {
            let address = ReplyAddress::from_message(&source.user, event);
            let TitleVote { question, asked } = &**vote;
            return vote_opening::start_title_vote(
                conn,
                (&address, source.call),
                (question, asked),
                settings,
                now,
            );
        }
    }
    Ok(None)
}

/// Follows each requested season, or the whole title if no seasons are given.
fn follow_title(
    conn: &mut Conn,
    user: UserId,
    title: &RequestedTitle,
    reason: FollowReason,
    now: Timestamp,
) -> QueryResult<()> {
    followed_titles(title)
        .iter()
        .try_for_each(|followed| follows::follow_title(conn, user, followed, reason, now))
}

/// Unfollows the given seasons, or the whole title with all of its separately followed seasons.
fn unfollow_title(conn: &mut Conn, user: UserId, title: &RequestedTitle, now: Timestamp) -> QueryResult<()> {
    followed_titles(title).iter().try_for_each(|followed| follows::unfollow_title(conn, user, followed, now))
}

/// Returns one follow for each season of a title request, or one for the whole title.
pub(crate) fn followed_titles(title: &RequestedTitle) -> Vec<FollowedTitle> {
    let seasons: Vec<Option<u32>> = match &title.seasons {
        None => vec![None],
        Some(seasons) => seasons.iter().copied().map(Some).collect(),
    };
    let followed_title = |season| {
        let RequestedTitle { instance, kind, catalog_id, .. } = title.clone();
        FollowedTitle { instance, kind, catalog_id, season }
    };
    seasons.into_iter().map(followed_title).collect()
}

/// Queues an addition. The library is unreachable, so the title's name is taken from an earlier result of the
/// conversation.
fn queue_addition(
    conn: &mut Conn,
    source: &EffectSource,
    title: &RequestedTitle,
    arguments: &ToolArguments,
    now: Timestamp,
) -> QueryResult<()> {
    let conversation = turn_lifecycle::load_turn_of_call(conn, source.call)?.conversation;
    let mut title = title.clone();
    if let Some(shown) = calls::find_shown_title(conn, conversation, title.kind, title.catalog_id)? {
        (title.title, title.year) = shown;
    }
    let addition = NewDeferredAddition { user: source.user.id, call: source.call, title: &title, arguments };
    title_requests::queue_addition(conn, &addition, now)
}

/// Performs an action of the model. If the action fails, the reply is still sent.
fn apply_action(
    conn: &mut Conn,
    source: &EffectSource,
    action: &ModelAction,
    settings: &HouseholdSettings,
    now: Timestamp,
) {
    let result = with_savepoint(conn, |conn| match (action, &source.last_message) {
        (ModelAction::React(emoji), Some(message)) => {
            reactions::store_own_reaction(conn, source.user.id, message.id, emoji, now)?;
            if message.channel.profile().content.reactions == ReactionSupport::Placed {
                let (address, key) =
                    (ReplyAddress::from_message(&source.user, message), format!("reaction:{}", source.call));
                let reaction = address.reaction_message(&key, message, emoji.as_str());
                outbox::queue_message_once(conn, &reaction, now)?;
            }
            Ok(())
        }
        (ModelAction::React(_), None) => Ok(()),
        (ModelAction::SendPoster(poster), last_message) => {
            let address = match last_message {
                Some(event) => ReplyAddress::from_message(&source.user, event),
                None => ReplyAddress::load_for_user(conn, &source.user, &settings.senders)?,
            };
            if !address.our_address().channel().profile().content.pictures {
                return Ok(());
            }
            let picture = address.picture_message(
                &format!("poster:{}", source.call),
                &poster.name,
                poster.address.as_str(),
            );
            outbox::queue_message_once(conn, &picture, now)
        }
        (ModelAction::StartVote(question), Some(event)) if event.room.is_some() => {
            let address = ReplyAddress::from_message(&source.user, event);
            vote_opening::start_vote(conn, (&address, source.call), question, now)
        }
        // The tool is offered in rooms only.
        (ModelAction::StartVote(_), _) => Ok(()),
    });
    if let Err(error) = result {
        tracing::error!(%error, call = %source.call, ?action, "failed to perform an action");
    }
}

fn ask_admins_for_removal(
    conn: &mut Conn,
    source: &EffectSource,
    item: &DeletionTarget,
    settings: &HouseholdSettings,
    now: Timestamp,
) -> QueryResult<()> {
    let kind = ApprovalKind::Delete(Box::new(item.clone()));
    let approval =
        requests::request_approval(conn, (source.user.id, Some(source.call)), &kind, settings, now)?;
    if source.user.test {
        // Test users must not cause messages to real phones. Their approvals are shown in the console.
        return Ok(());
    }
    let message = deletion_messages::format_removal_request(
        &naming::display_name(&source.user),
        item,
        approval.code.as_str(),
    );
    let key = format!("approval:{}", approval.id);
    reply_address::notify_admins(conn, &settings.senders, &key, &message, now)
}
