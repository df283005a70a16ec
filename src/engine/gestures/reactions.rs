//! Reactions that a channel reports without a message.

use jiff::Timestamp;

use super::GestureOutcome;
use crate::conversation::transcript::UserStatus;
use crate::messaging::{PlacedReaction, ReactionChange};
use crate::store::conversation::reactions;
use crate::store::people::{addresses, users};
use crate::store::{Conn, QueryResult};

/// Stores the reaction of an active user to a stored message.
pub(super) fn store_reaction(
    conn: &mut Conn,
    reaction: &PlacedReaction,
    now: Timestamp,
) -> QueryResult<GestureOutcome> {
    let Some((_, user)) = addresses::find_address(conn, &reaction.person)? else {
        return Ok(GestureOutcome::Ignored);
    };
    if users::load_user(conn, user)?.status != UserStatus::Active {
        return Ok(GestureOutcome::Ignored);
    }
    let message = (reaction.channel, reaction.message.as_str());
    let Some(target) = reactions::find_target(conn, message)? else { return Ok(GestureOutcome::Ignored) };
    if reactions::is_reported_later(conn, (user, target), reaction.number, now)? {
        return Ok(GestureOutcome::Ignored);
    }
    let number = reaction.number;
    match &reaction.change {
        ReactionChange::Placed(emoji) => {
            reactions::place_user_reaction(conn, (user, target), (emoji.as_deref(), number), now)?;
        }
        ReactionChange::Removed => reactions::remove_user_reaction(conn, (user, target), number, now)?,
    }
    Ok(GestureOutcome::Recorded)
}
