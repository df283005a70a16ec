//! List of the entries in the audit log, with the actors and subjects that they name.

use diesel::prelude::*;
use jiff::Timestamp;
use serde_json::Value;

use super::user_ref::{self, UserRef};
use super::{ResultPage, query_limit};
use crate::conversation::transcript::{ConversationId, TurnId, UserId};
use crate::store::audit::API_KEY_PREFIX;
use crate::store::codec::from_json;
use crate::store::console_access;
use crate::store::schema::{api_keys, approvals, audit_log, conversations, tool_calls, turns};
use crate::store::{Conn, QueryResult};

/// Entry of the audit log.
#[derive(Debug, Clone, PartialEq)]
pub struct AuditEntry {
    pub id: i64,
    pub at: Timestamp,
    pub actor: AuditActor,
    /// Stable identifier of the kind of change.
    pub kind: String,
    pub subject: AuditEntrySubject,
    pub detail: Value,
}

/// Actor of a change, with the name of the user or API key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AuditActor {
    User(UserRef),
    Shell,
    Console,
    /// Program that uses the API key with this name.
    Key(String),
    Dialarr,
}

/// Subject of a change, with the names needed to show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AuditEntrySubject {
    User(UserRef),
    /// Tool call, with the name of the tool.
    Call {
        tool: String,
        at: ConversationLink,
    },
    Turn(ConversationLink),
    /// Approval about this user.
    Approval(UserRef),
    Household,
    /// Access to the console.
    Console,
    /// API key, with its name.
    Key(String),
    /// Stored settings.
    Settings,
    /// Webhooks at Sonarr, Radarr and Twilio.
    Webhooks,
    /// Subject that no longer exists, in its stored form.
    Unresolved(String),
}

/// Conversation and turn in which a change was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConversationLink {
    pub conversation: ConversationId,
    pub name: String,
    pub turn: TurnId,
    pub user: UserRef,
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = audit_log)]
struct AuditEntryRow {
    id: i64,
    at: Timestamp,
    user_id: Option<UserId>,
    kind: String,
    subject: String,
    detail: String,
}

/// Loads the entries below `before`, newest first; with a `kind`, only entries of that kind.
pub fn load_audit_entries(
    conn: &mut Conn,
    kind: Option<&str>,
    before: i64,
    page_size: usize,
) -> QueryResult<ResultPage<AuditEntry>> {
    let query = audit_log::table
        .filter(audit_log::id.lt(before))
        .order(audit_log::id.desc())
        .limit(query_limit(page_size))
        .select(AuditEntryRow::as_select());
    let rows: Vec<AuditEntryRow> = match kind {
        Some(kind) => query.filter(audit_log::kind.eq(kind)).load(conn)?,
        None => query.load(conn)?,
    };
    let mut entries = Vec::with_capacity(rows.len());
    for AuditEntryRow { id, at, user_id, kind, subject, detail } in rows {
        let detail: Value = from_json("detail", &detail)?;
        let actor = match (user_id, detail["by"].as_str()) {
            (Some(user), _) => AuditActor::User(user_ref::load_user_ref(conn, user)?),
            (None, Some("shell")) => AuditActor::Shell,
            (None, Some("console")) => AuditActor::Console,
            (None, Some(actor)) => match actor.strip_prefix(API_KEY_PREFIX).and_then(|id| id.parse().ok()) {
                Some(key) => AuditActor::Key(console_access::load_api_key_name(conn, key)?),
                None => AuditActor::Dialarr,
            },
            (None, None) => AuditActor::Dialarr,
        };
        let subject = resolve_subject(conn, subject)?;
        entries.push(AuditEntry { id, at, actor, kind, subject, detail });
    }
    Ok(ResultPage::from_rows(entries, page_size, |entry| entry.id))
}

/// Resolves the subject of an entry. A subject that no longer exists is returned in its stored form.
fn resolve_subject(conn: &mut Conn, stored: String) -> QueryResult<AuditEntrySubject> {
    let subject = match (stored.as_str(), stored.split_once(':')) {
        ("household", _) => Some(AuditEntrySubject::Household),
        ("console", _) => Some(AuditEntrySubject::Console),
        ("settings", _) => Some(AuditEntrySubject::Settings),
        ("webhooks", _) => Some(AuditEntrySubject::Webhooks),
        (_, Some((kind, id))) => match id.parse() {
            Ok(id) => load_subject(conn, kind, id).optional()?.flatten(),
            Err(_) => None,
        },
        (_, None) => None,
    };
    Ok(subject.unwrap_or(AuditEntrySubject::Unresolved(stored)))
}

fn load_subject(conn: &mut Conn, kind: &str, id: i64) -> QueryResult<Option<AuditEntrySubject>> {
    Ok(match kind {
        "user" => Some(AuditEntrySubject::User(user_ref::load_user_ref(conn, UserId(id))?)),
        "turn" => Some(AuditEntrySubject::Turn(load_conversation_link(conn, TurnId(id))?)),
        "tool_call" => {
            let (tool, turn): (String, TurnId) = tool_calls::table
                .find(id)
                .select((tool_calls::tool_name, tool_calls::turn_id))
                .first(conn)?;
            Some(AuditEntrySubject::Call { tool, at: load_conversation_link(conn, turn)? })
        }
        "approval" => {
            let user: UserId = approvals::table.find(id).select(approvals::user_id).first(conn)?;
            Some(AuditEntrySubject::Approval(user_ref::load_user_ref(conn, user)?))
        }
        "api_key" => {
            Some(AuditEntrySubject::Key(api_keys::table.find(id).select(api_keys::name).first(conn)?))
        }
        _ => None,
    })
}

fn load_conversation_link(conn: &mut Conn, turn: TurnId) -> QueryResult<ConversationLink> {
    let (conversation, name, user): (ConversationId, String, UserId) = turns::table
        .inner_join(conversations::table.on(conversations::id.eq(turns::conversation_id)))
        .filter(turns::id.eq(turn))
        .select((conversations::id, conversations::name, turns::user_id))
        .first(conn)?;
    let user = user_ref::load_user_ref(conn, user)?;
    Ok(ConversationLink { conversation, name, turn, user })
}
