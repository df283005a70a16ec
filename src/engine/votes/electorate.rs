//! People who can be asked in a vote, and those who may read its options.

use jiff::Timestamp;

use crate::conversation::transcript::{User, UserId, UserStatus};
use crate::engine::reply_address::ReplyAddress;
use crate::engine::send_time::earliest_send_time;
use crate::engine::settings::HouseholdSettings;
use crate::store::people::age_limits;
use crate::store::queue::notifications::{self, NotificationSetting};
use crate::store::votes::{self, Vote};
use crate::store::{Conn, QueryResult};

/// Returns whether a person can be asked now: somebody who gets notifications and has no quiet hours.
pub(in crate::engine) fn can_be_asked(
    conn: &mut Conn,
    settings: &HouseholdSettings,
    user: &User,
    now: Timestamp,
) -> QueryResult<bool> {
    if user.status != UserStatus::Active || user.opted_out || user.test {
        return Ok(false);
    }
    let address = ReplyAddress::load_for_user(conn, user, &settings.senders)?;
    let setting = notifications::load_notification_setting(conn, user.id)?;
    let send_at = earliest_send_time(conn, user.id, settings, now)?;
    let has_channel = address.our_address().channel().is_remote();
    Ok(has_channel && setting != NotificationSetting::Off && send_at <= now)
}

/// Returns whether a person may read the options of a vote and choose. Options that are free text may be over the caps of
/// a person. A vote about titles is for the people who are asked.
pub(in crate::engine) fn may_take_part(conn: &mut Conn, vote: &Vote, user: &User) -> QueryResult<bool> {
    match (vote.question.checked(), vote.room) {
        (_, Some(room)) => may_show_in_room(conn, vote, room),
        (None, None) => Ok(vote.started_by == user.id || user.rights.rating_caps().is_unlimited()),
        (Some(limit), None) => Ok(limit.allows(user.rights.rating_caps()) && is_asked(conn, vote, user.id)?),
    }
}

/// Returns whether everybody in a room may read the options of a vote there. Options that are free text were shown there
/// before.
pub(in crate::engine) fn may_show_in_room(conn: &mut Conn, vote: &Vote, room: UserId) -> QueryResult<bool> {
    match vote.question.checked() {
        Some(limit) => Ok(limit.allows(age_limits::load_room_limit(conn, room)?.limit.caps)),
        None => Ok(true),
    }
}

fn is_asked(conn: &mut Conn, vote: &Vote, user: UserId) -> QueryResult<bool> {
    Ok(vote.started_by == user || votes::load_asked_users(conn, vote.id)?.contains(&user))
}

/// Loads the people whose choices a vote in private chats waits for: those who were asked, and the starter of a vote about
/// titles, whose question is the reply of a turn that may be running.
pub(in crate::engine) fn load_awaited_users(conn: &mut Conn, vote: &Vote) -> QueryResult<Vec<UserId>> {
    let mut awaited = votes::load_asked_users(conn, vote.id)?;
    if vote.question.checked().is_some() && !awaited.contains(&vote.started_by) {
        awaited.push(vote.started_by);
    }
    Ok(awaited)
}
