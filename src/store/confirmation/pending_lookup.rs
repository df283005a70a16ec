//! Lookups of open pending actions: by id, for the operator who answers one in the console, and by instance.

use diesel::prelude::*;
use jiff::{SignedDuration, Timestamp};

use crate::conversation::delivery_status::DeliveryStatus;
use crate::conversation::grammar::confirmation_reply::ConfirmationCode;
use crate::conversation::transcript::{Address, AddressId, CallRow, OutboxId, UserAddress, UserId};
use crate::store::Conn;
use crate::store::codec::ms;
use crate::store::schema::{outbox, pending_actions, tool_call_items, user_addresses};

/// Open pending action with the fields needed to answer it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnswerablePrompt {
    pub user: UserId,
    pub call: CallRow,
    pub code: Option<ConfirmationCode>,
    /// Dialarr's address, from which the confirmation prompt was sent.
    pub from: Address,
    /// Address to which it was sent; `None` if it is only shown.
    pub to: Option<UserAddress>,
    /// Room to which it was sent, with the id of its address; `None` for a private chat.
    pub room: Option<(UserId, AddressId)>,
    pub repeats: i64,
    /// True if the confirmation prompt was accepted for sending.
    pub is_armed: bool,
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = pending_actions)]
struct AnswerablePromptRow {
    user_id: UserId,
    tool_call_id: CallRow,
    /// An unreadable code is an error, so that it does not allow a bare yes.
    code: Option<ConfirmationCode>,
    repeats: i64,
    expires_at: Option<Timestamp>,
    #[diesel(select_expression = outbox::from_addr)]
    from_addr: Address,
    #[diesel(select_expression = user_addresses::address.nullable())]
    to: Option<UserAddress>,
    #[diesel(select_expression = outbox::accepted_at)]
    accepted_at: Option<Timestamp>,
    #[diesel(select_expression = outbox::room_id)]
    room_id: Option<UserId>,
    #[diesel(select_expression = outbox::address_id)]
    address_id: Option<AddressId>,
}

/// Loads the users and ids of prompts that a channel accepted and did not send: within `confirm_for`, or at all because it
/// failed. Prompts of channels on which a prompt opens with its acceptance are not included.
pub fn load_unsent_prompts(
    conn: &mut Conn,
    confirm_for: SignedDuration,
    now: Timestamp,
) -> QueryResult<Vec<(UserId, i64)>> {
    type Row = (UserId, i64, Address, Option<Timestamp>, Option<DeliveryStatus>);
    let unarmed: Vec<Row> = pending_actions::table
        .inner_join(outbox::table.on(outbox::id.eq(pending_actions::prompt_outbox_id)))
        .filter(pending_actions::armed_at.is_null())
        .select((
            pending_actions::user_id,
            pending_actions::id,
            outbox::from_addr,
            outbox::accepted_at,
            outbox::delivery,
        ))
        .load(conn)?;
    let is_unsent = |(_, _, from, accepted_at, delivery): &Row| {
        from.channel().opens_prompts_when_sent()
            && accepted_at.is_some_and(|at| {
                delivery.is_some_and(DeliveryStatus::has_failed) || now.duration_since(at) > confirm_for
            })
    };
    Ok(unarmed.into_iter().filter(is_unsent).map(|(user, prompt, ..)| (user, prompt)).collect())
}

/// Loads the pending action with this id; `None` if it is closed or has expired.
pub fn load_answerable_prompt(
    conn: &mut Conn,
    id: i64,
    now: Timestamp,
) -> QueryResult<Option<AnswerablePrompt>> {
    let row: Option<AnswerablePromptRow> = pending_actions::table
        .inner_join(outbox::table.on(outbox::id.eq(pending_actions::prompt_outbox_id)))
        .left_join(user_addresses::table.on(outbox::address_id.eq(user_addresses::id.nullable())))
        .filter(pending_actions::id.eq(id))
        .select(AnswerablePromptRow::as_select())
        .first(conn)
        .optional()?;
    let open = row.filter(|row| row.expires_at.is_none_or(|at| at > now));
    Ok(open.map(|row| AnswerablePrompt {
        user: row.user_id,
        call: row.tool_call_id,
        code: row.code,
        from: row.from_addr,
        to: row.to,
        room: row.room_id.zip(row.address_id),
        repeats: row.repeats,
        is_armed: row.expires_at.is_some() && row.accepted_at.is_some(),
    }))
}

/// Returns whether the pending action of a user has expired and is not closed yet.
pub fn has_expired_prompt(conn: &mut Conn, user: UserId, now: Timestamp) -> QueryResult<bool> {
    let expired = pending_actions::table
        .filter(pending_actions::user_id.eq(user).and(pending_actions::expires_at.le(ms(now))));
    diesel::select(diesel::dsl::exists(expired)).get_result(conn)
}

/// Returns whether a message asks an open confirmation prompt that a yes without a code confirms.
pub fn is_confirmed_without_code(conn: &mut Conn, message: OutboxId) -> QueryResult<bool> {
    let asked = pending_actions::table.filter(pending_actions::prompt_outbox_id.eq(message));
    let without_code = asked.filter(pending_actions::code.is_null());
    diesel::select(diesel::dsl::exists(without_code)).get_result(conn)
}

/// Returns the users with a pending action about a title of an instance, each with the id of the pending action.
pub fn load_actions_on_instance(conn: &mut Conn, instance: &str) -> QueryResult<Vec<(UserId, i64)>> {
    let is_on_instance = tool_call_items::table.filter(
        tool_call_items::tool_call_id
            .eq(pending_actions::tool_call_id)
            .and(tool_call_items::instance.eq(instance)),
    );
    pending_actions::table
        .filter(diesel::dsl::exists(is_on_instance))
        .order(pending_actions::id)
        .select((pending_actions::user_id, pending_actions::id))
        .load(conn)
}
