//! Lookup of an open pending action for a user who answers it without having received its confirmation prompt as a
//! message.

use diesel::prelude::*;
use jiff::Timestamp;

use crate::conversation::grammar::confirmation_reply::ConfirmationCode;
use crate::conversation::transcript::{Address, CallRow, UserId};
use crate::store::Conn;
use crate::store::codec::{ms, unreadable_column};
use crate::store::schema::{outbox, pending_actions};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnswerablePrompt {
    pub user: UserId,
    pub call: CallRow,
    pub code: Option<ConfirmationCode>,
    /// Dialarr's address, from which the confirmation prompt was sent.
    pub from: Address,
    pub repeats: i64,
    /// True if the confirmation prompt was accepted for sending.
    pub is_armed: bool,
}

/// Loads the pending action with this id; `None` if it is closed or has expired.
pub fn load_answerable_prompt(
    conn: &mut Conn,
    id: i64,
    now: Timestamp,
) -> QueryResult<Option<AnswerablePrompt>> {
    type AnswerablePromptRow = (i64, i64, Option<String>, i64, Option<i64>, (String, Option<i64>));
    let row: Option<AnswerablePromptRow> = pending_actions::table
        .inner_join(outbox::table.on(outbox::id.eq(pending_actions::prompt_outbox_id)))
        .filter(pending_actions::id.eq(id))
        .select((
            pending_actions::user_id,
            pending_actions::tool_call_id,
            pending_actions::code,
            pending_actions::repeats,
            pending_actions::expires_at,
            (outbox::from_addr, outbox::accepted_at),
        ))
        .first(conn)
        .optional()?;
    let Some((user, call, code, repeats, expires_at, (from, accepted_at))) = row else { return Ok(None) };
    if expires_at.is_some_and(|at| at <= ms(now)) {
        return Ok(None);
    }
    Ok(Some(AnswerablePrompt {
        user: UserId(user),
        call: CallRow(call),
        // An unreadable code must not allow a bare yes.
        code: code
            .map(|code| ConfirmationCode::parse(&code).ok_or_else(|| unreadable_column("code")))
            .transpose()?,
        from: Address::new(from),
        repeats,
        is_armed: expires_at.is_some() && accepted_at.is_some(),
    }))
}
