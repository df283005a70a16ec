//! Loads the records by which titles that could go are judged.

use jiff::Timestamp;

use crate::conversation::people::naming;
use crate::conversation::transcript::{User, UserStatus};
use crate::engine::reply_address::ReplyAddress;
use crate::engine::settings::HouseholdSettings;
use crate::store::library::{follows, kept_titles, space_proposals, title_attributions};
use crate::store::people::{age_limits, users, viewer_accounts};
use crate::store::queue::notifications::{self, NotificationSetting};
use crate::store::{Conn, QueryResult};
use crate::tools::making_room::{HouseholdPerson, RequestRecord, SpaceRecords};

/// Loads the records of the household.
pub(in crate::engine) fn load_space_records(
    conn: &mut Conn,
    settings: &HouseholdSettings,
    now: Timestamp,
) -> QueryResult<SpaceRecords> {
    let kept = kept_titles::load_kept_titles(conn, now)?;
    let requests = title_attributions::load_all_attributions(conn)?.into_iter().map(|attribution| {
        let (user, (instance, kind, catalog_id), at) = attribution;
        RequestRecord { instance, kind, catalog_id, user, at }
    });
    Ok(SpaceRecords {
        people: load_people(conn, settings)?,
        requests: requests.collect(),
        kept: kept.into_iter().map(|title| (title.kind, title.catalog_id)).collect(),
        followed: follows::load_followed_titles(conn)?,
        silence: settings.making_room.silence,
        open_until: space_proposals::load_open_proposal(conn)?.map(|open| open.answers_end_at),
        under_review: space_proposals::load_titles_to_review(conn)?,
    })
}

/// Loads only the titles on which an admin may decide.
pub(in crate::engine) fn load_titles_under_review(conn: &mut Conn) -> QueryResult<SpaceRecords> {
    let under_review = space_proposals::load_titles_to_review(conn)?;
    Ok(SpaceRecords { under_review, ..SpaceRecords::default() })
}

/// Loads the active users.
fn load_people(conn: &mut Conn, settings: &HouseholdSettings) -> QueryResult<Vec<HouseholdPerson>> {
    let linked = viewer_accounts::load_linked_accounts(conn)?;
    let mut people = Vec::new();
    for user in users::load_known_users(conn)? {
        if user.test || user.status != UserStatus::Active {
            continue;
        }
        let accounts = linked.iter().filter(|linked| linked.user == user.id);
        let accounts = accounts.map(|linked| linked.account.clone());
        people.push(HouseholdPerson {
            user: user.id,
            name: naming::display_name(&user),
            accounts: accounts.filter(|account| account.server.is_media_server()).collect(),
            limit: age_limits::load_user_limit(conn, &user)?.limit,
            is_reachable: is_reachable(conn, &user, settings)?,
        });
    }
    Ok(people)
}

/// Returns whether a user gets notifications, on a channel that reaches a person.
pub(super) fn is_reachable(conn: &mut Conn, user: &User, settings: &HouseholdSettings) -> QueryResult<bool> {
    if user.test || user.status != UserStatus::Active || user.opted_out {
        return Ok(false);
    }
    if notifications::load_notification_setting(conn, user.id)? == NotificationSetting::Off {
        return Ok(false);
    }
    let address = ReplyAddress::load_for_user(conn, user, &settings.senders)?;
    Ok(address.our_address().channel().is_remote())
}
