//! People with whom a user can watch something tonight, as a tool reads them.

use jiff::Timestamp;

use super::electorate::{can_be_asked, may_take_part};
use crate::conversation::people::naming;
use crate::conversation::transcript::{User, UserId, UserStatus};
use crate::engine::settings::HouseholdSettings;
use crate::store::people::{rooms, users, viewer_accounts};
use crate::store::votes;
use crate::store::{Conn, QueryResult};
use crate::tools::tonight::gathering::{Companion, Gathering, VoteObstacle};

/// Loads the active people of the household, the one who asks first, with their accounts at the media servers.
pub(in crate::engine) fn load_gathering(
    conn: &mut Conn,
    (asker, room): (&User, Option<UserId>),
    settings: &HouseholdSettings,
    now: Timestamp,
) -> QueryResult<Gathering> {
    let accounts = viewer_accounts::load_linked_accounts(conn)?;
    let others = users::load_known_users(conn)?.into_iter();
    let others = others.filter(|user| user.id != asker.id && user.status == UserStatus::Active && !user.test);
    let mut people = Vec::new();
    for user in std::iter::once(asker.clone()).chain(others) {
        let takes_part = match room {
            _ if user.id == asker.id => true,
            Some(room) => rooms::has_written_in(conn, user.id, room)?,
            None => !asker.test && can_be_asked(conn, settings, &user, now)?,
        };
        let own = accounts.iter().filter(|linked| linked.user == user.id);
        let own = own.map(|linked| linked.account.clone());
        people.push(Companion {
            user: user.id,
            name: naming::display_name(&user),
            is_asker: user.id == asker.id,
            caps: user.rights.rating_caps(),
            accounts: own.filter(|account| account.server.is_media_server()).collect(),
            takes_part,
        });
    }
    Ok(Gathering { people, obstacle: find_obstacle(conn, (asker, room), now)? })
}

/// Returns the reason why a user cannot start a vote, if there is one.
pub(super) fn find_obstacle(
    conn: &mut Conn,
    (user, room): (&User, Option<UserId>),
    now: Timestamp,
) -> QueryResult<Option<VoteObstacle>> {
    if let Some(open) = votes::find_open_vote(conn, room)? {
        let is_visible = may_take_part(conn, &open, user)?;
        return Ok(Some(if is_visible { VoteObstacle::AlreadyOpen } else { VoteObstacle::OthersVote }));
    }
    let has_started_too_many = votes::has_started_too_many(conn, user.id, now)?;
    Ok(has_started_too_many.then_some(VoteObstacle::TooMany))
}
