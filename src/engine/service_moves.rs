//! Moves of Sonarr, Radarr and the carrier to another server. Ids and unknown outcomes belong to the server on which they
//! arose, so open questions end, and nothing of an earlier server is looked up on another one.

use jiff::Timestamp;

use super::reply_address::ReplyAddress;
use super::settings::HouseholdSettings;
use crate::conversation::channel_list;
use crate::conversation::deletion::deletion_messages;
use crate::conversation::library_sample::server_label;
use crate::conversation::transcript::UserId;
use crate::store::confirmation::approvals::{self, EndedApprovalSubject};
use crate::store::confirmation::pending_action::{self, CloseReason};
use crate::store::confirmation::pending_lookup;
use crate::store::people::users;
use crate::store::queue::{lookups, outbox};
use crate::store::service_identities::{self, ServiceIdentity};
use crate::store::{Conn, QueryResult};

/// Ends the work on earlier servers of the configured slots. Until [`service_identities::store_identities`] is called,
/// the same slots count as moved, so that a second call also covers the turns that began meanwhile.
pub(crate) fn end_work_on_earlier_servers(
    conn: &mut Conn,
    identities: &[ServiceIdentity],
    settings: &HouseholdSettings,
    now: Timestamp,
) -> QueryResult<()> {
    for slot in service_identities::find_moved_slots(conn, identities)? {
        tracing::warn!(slot, "a service has moved to another server");
        service_identities::void_turns(conn, slot, now)?;
        if let Some(channel) = channel_list::find_account_channel(slot) {
            lookups::give_up_lookups(conn, channel, now)?;
            if let Some(address) = settings.senders.on_channel(channel) {
                lookups::change_sender_of_queued(conn, address)?;
            }
        } else {
            close_prompts(conn, slot, settings, now)?;
            end_removal_requests(conn, slot, settings, now)?;
        }
    }
    Ok(())
}

/// Closes the confirmation prompts about titles of an instance, and notifies their users.
fn close_prompts(
    conn: &mut Conn,
    instance: &str,
    settings: &HouseholdSettings,
    now: Timestamp,
) -> QueryResult<()> {
    for (user, prompt) in pending_lookup::load_actions_on_instance(conn, instance)? {
        pending_action::close_pending_action(conn, user, CloseReason::Dropped, now)?;
        let message = deletion_messages::format_prompt_of_moved_server(server_label(instance));
        notify_user(conn, user, (&format!("moved:prompt:{prompt}"), &message), settings, now)?;
    }
    Ok(())
}

/// Ends the open removal requests about titles of an instance, and notifies their members.
fn end_removal_requests(
    conn: &mut Conn,
    instance: &str,
    settings: &HouseholdSettings,
    now: Timestamp,
) -> QueryResult<()> {
    for ended in approvals::expire_removals_on_instance(conn, instance, now)? {
        let item = match &ended.subject {
            EndedApprovalSubject::Removal(item) => Some(item.as_ref()),
            EndedApprovalSubject::Join
            | EndedApprovalSubject::UnreadableRemoval
            | EndedApprovalSubject::AccountLink(_)
            | EndedApprovalSubject::UnreadableAccountLink
            | EndedApprovalSubject::SeerrRequest
            | EndedApprovalSubject::Title => None,
        };
        let message = deletion_messages::format_removal_on_moved_server(item, server_label(instance));
        notify_user(conn, ended.user, (&format!("approval:{}:expired", ended.id), &message), settings, now)?;
    }
    Ok(())
}

fn notify_user(
    conn: &mut Conn,
    user: UserId,
    (key, message): (&str, &str),
    settings: &HouseholdSettings,
    now: Timestamp,
) -> QueryResult<()> {
    let user = users::load_user(conn, user)?;
    let address = ReplyAddress::load_for_user(conn, &user, &settings.senders)?;
    outbox::queue_message_once(conn, &address.notification_message(key, message), now)
}
