//! Message below which a pressed button is.

use diesel::prelude::*;

use super::callbacks::CallbackToken;
use crate::conversation::routing::button_press::{ButtonPress, PressedButton};
use crate::conversation::transcript::UserId;
use crate::store::Conn;
use crate::store::schema::outbox;

/// Finds the message whose button a user pressed. The token of a message changes when it is sent again after an
/// unknown outcome, which voids the buttons of the earlier copy.
pub(super) fn find_pressed_message(
    conn: &mut Conn,
    user: UserId,
    button: &PressedButton,
) -> QueryResult<ButtonPress> {
    let token: Option<Option<String>> = outbox::table
        .find(button.message)
        .filter(outbox::user_id.eq(user))
        .select(outbox::callback_word)
        .first(conn)
        .optional()?;
    let is_current = token.flatten().is_some_and(|token| {
        CallbackToken::from_stored(token) == CallbackToken::from_stored(button.token.as_str())
    });
    Ok(if is_current { ButtonPress::On(button.message) } else { ButtonPress::Void })
}
