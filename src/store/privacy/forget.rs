//! Erasure of a user: the user's text is erased, and the user's row is made anonymous.

use diesel::prelude::*;
use diesel::sql_types::Text;
use jiff::Timestamp;
use serde_json::json;

use super::erase::erase_user_content;
use crate::conversation::transcript::{AddressId, UserAddress, UserId, UserRole, UserStatus};
use crate::store::audit::{self, Actor, AuditSubject, NewAuditEntry};
use crate::store::codec::ms;
use crate::store::confirmation::approvals;
use crate::store::library::title_attributions;
use crate::store::people::{addresses, age_limits, users as user_rows};
use crate::store::queue::inbound_messages::{self, MessageOutcome};
use crate::store::queue::outbox::{OPEN, OutboxState};
use crate::store::queue::outbox_events::{ChangedMessage, record_changed_messages};
use crate::store::queue::suppression;
use crate::store::schema::{audit_log, outbox, users};
use crate::store::turns::turn_lifecycle;
use crate::store::{Conn, QueryResult, console_access, digests};

/// Outcome of the erasure of a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErasureOutcome {
    Erased,
    /// The user is the last admin, without whom no newcomer could be admitted.
    LastAdmin,
    /// A turn of the user is running, which would write its results after the erasure.
    Busy,
}

/// Forgets a user. The user's unsent messages are suppressed, and the user's approvals are withdrawn. Messages to
/// others that contain the user's number are erased too. A second call erases nothing more.
pub fn forget_user(
    conn: &mut Conn,
    user: UserId,
    actor: Actor,
    now: Timestamp,
) -> QueryResult<ErasureOutcome> {
    if turn_lifecycle::load_active_turn(conn, user)?.is_some() {
        return Ok(ErasureOutcome::Busy);
    }
    if user_rows::is_last_admin(conn, user)? {
        return Ok(ErasureOutcome::LastAdmin);
    }
    let entry = NewAuditEntry { actor, kind: "forget", subject: AuditSubject::User(user), detail: json!({}) };
    audit::record_change(conn, &entry, now)?;
    let addresses = addresses::load_addresses(conn, user)?;
    console_access::revoke_agent_keys(conn, user, now)?;
    approvals::withdraw_approvals(conn, user, now)?;
    // Withdraws the messages that asked admins for a decision about the user, and the user's announcements to everyone.
    for approval in approvals::load_approval_ids_about(conn, user)? {
        suppression::withdraw_messages_by_key(conn, &format!("approval:{approval}"), now)?;
    }
    suppression::withdraw_messages_by_key(conn, &format!("told:{user}"), now)?;
    // No limit is needed: a user has only a few waiting messages.
    for message in inbound_messages::load_waiting_messages(conn, user, i64::MAX)? {
        inbound_messages::finish_message(conn, message.id, MessageOutcome::Skipped("forgotten"), now)?;
    }
    anonymize_outbound_messages(conn, user, now)?;
    erase_user_content(conn, user, now)?;
    title_attributions::delete_attributions_of(conn, user)?;
    for address in &addresses {
        erase_address(conn, &address.address)?;
    }
    addresses::delete_addresses(conn, user)?;
    diesel::update(audit_log::table.filter(audit_log::user_id.eq(user)))
        .set(audit_log::detail.eq("{}"))
        .execute(conn)?;
    digests::delete_setting(conn, user)?;
    age_limits::delete_age_limit(conn, user)?;
    anonymize_user(conn, user, now)?;
    Ok(ErasureOutcome::Erased)
}

/// Replaces the recipient of the user's outbound messages by a placeholder, and suppresses the open ones, including
/// those being sent. A suppressed message is neither looked up nor resent.
fn anonymize_outbound_messages(conn: &mut Conn, user: UserId, now: Timestamp) -> QueryResult<()> {
    let changed = diesel::update(outbox::table.filter(OPEN.and(outbox::user_id.eq(user))))
        .set((outbox::state.eq(OutboxState::Suppressed), outbox::updated_at.eq(ms(now))))
        .returning(ChangedMessage::as_returning())
        .get_results(conn)?;
    record_changed_messages(conn, changed, now)?;
    diesel::update(outbox::table.filter(outbox::user_id.eq(user)))
        .set((outbox::to_addr.eq(placeholder_number(user)), outbox::address_id.eq(None::<AddressId>)))
        .execute(conn)
        .map(drop)
}

/// Erases every text that contains the number or account, with any separators, because an admin may have received or
/// written it.
fn erase_address(conn: &mut Conn, address: &UserAddress) -> QueryResult<()> {
    let digits = address.name().trim_start_matches('+');
    for (table, column, is_settled) in [
        ("outbox", "body", "state NOT IN ('queued','attempting','unknown')"),
        ("turns", "response_text", "finished_at IS NOT NULL"),
        ("inbound_events", "body", "state <> 'pending'"),
        ("blocks", "content", "type <> 'tool_call'"),
        ("conversations", "name", "ended_at IS NOT NULL"),
    ] {
        let digits_sql = without_separators_sql(column);
        let statement =
            format!("UPDATE {table} SET {column} = '' WHERE {is_settled} AND instr({digits_sql}, ?) > 0");
        diesel::sql_query(statement).bind::<Text, _>(digits).execute(conn)?;
    }
    erase_address_in_memory(conn, digits)
}

/// Erases the stored answers and the facts that contain the number or account.
fn erase_address_in_memory(conn: &mut Conn, digits: &str) -> QueryResult<()> {
    let answers = format!(
        "UPDATE agent_responses SET state = 'erased', trigger_text = '', response_text = '', summary = '', \
         topics = '[]', keywords = '[]', likeness = 0, embed_model = NULL, trigger_vec = NULL, response_vec = NULL, \
         processed_at = coalesce(processed_at, created_at), \
         revision = id + (SELECT max(revision) + 1 FROM agent_responses) \
         WHERE state <> 'erased' AND instr({}, ?) > 0",
        without_separators_sql("(trigger_text || ' ' || response_text || ' ' || summary || ' ' || keywords)")
    );
    diesel::sql_query(answers).bind::<Text, _>(digits).execute(conn)?;
    let facts = format!(
        "UPDATE user_facts SET state = 'forgotten', key = '', value = '', number = NULL, \
         ended_at = coalesce(ended_at, created_at) WHERE state <> 'forgotten' AND instr({}, ?) > 0",
        without_separators_sql("(key || ' ' || value)")
    );
    diesel::sql_query(facts).bind::<Text, _>(digits).execute(conn).map(drop)
}

/// Returns an SQL expression for a text without the separators that group the digits of phone numbers.
fn without_separators_sql(expression: &str) -> String {
    let separators = [" ", "-", ".", "(", ")"];
    separators
        .iter()
        .fold(expression.to_owned(), |text, separator| format!("replace({text}, '{separator}', '')"))
}

/// Returns the placeholder that replaces the address of a forgotten user in sent messages. `+999` is not a country code, so no message ever comes
/// from such a number.
fn placeholder_number(user: UserId) -> String {
    format!("+999{:04}", user.0)
}

fn anonymize_user(conn: &mut Conn, user: UserId, now: Timestamp) -> QueryResult<()> {
    diesel::update(users::table.find(user))
        .set((
            (users::display_name.eq(None::<String>), users::waiting_since.eq(None::<Timestamp>)),
            (users::status.eq(UserStatus::Blocked), users::role.eq(UserRole::Member)),
            (users::can_add.eq(false), users::can_delete.eq(false), users::can_4k.eq(false)),
            (users::movie_limit.eq(None::<i64>), users::season_limit.eq(None::<i64>)),
            users::space_limit.eq(None::<i64>),
            (users::code_misses.eq(0), users::code_misses_day.eq(None::<String>)),
            (users::forgotten_at.eq(ms(now)), users::updated_at.eq(ms(now))),
        ))
        .execute(conn)
        .map(drop)
}
