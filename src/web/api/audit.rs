//! Audit route: recorded changes with their authors.

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use super::database_unavailable;
use super::extract::QueryParams;
use super::paging::{Page, PageCursor};
use crate::store::console::audit::{self, AuditActor, AuditEntry, AuditEntrySubject, ConversationLink};
use crate::web::auth::Caller;
use crate::web::console_state::ConsoleState;
use crate::web::problem::ProblemDetails;
use crate::web::sse_snapshot::format_iso;

/// Recorded change.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AuditEntry)]
pub(super) struct AuditEntryJson {
    id: i64,
    #[schema(format = DateTime)]
    at: String,
    /// Word for the change.
    #[schema(example = "approve")]
    kind: String,
    actor: AuditActorJson,
    subject: AuditSubjectJson,
    /// Details, which depend on the kind.
    #[schema(value_type = Object)]
    detail: Value,
}

/// Author of a change.
#[derive(Debug, Serialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
#[schema(as = AuditActor)]
enum AuditActorJson {
    User {
        user: i64,
    },
    /// Operator at the shell.
    Shell,
    /// Operator in the console.
    Console,
    /// Program with the API key of this name.
    Key {
        name: String,
    },
    Dialarr,
}

/// Subject of a change.
#[derive(Debug, Serialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
#[schema(as = AuditSubject)]
enum AuditSubjectJson {
    User {
        user: i64,
    },
    ToolCall {
        tool: String,
        user: i64,
        conversation: i64,
        turn: i64,
    },
    Turn {
        user: i64,
        conversation: i64,
        turn: i64,
    },
    /// Request of this user that waits for an admin.
    Approval {
        user: i64,
    },
    Household,
    Console,
    Key {
        name: String,
    },
    Settings,
    Webhooks,
    /// Subject that no longer exists, as it was recorded.
    Other {
        subject: String,
    },
}

impl AuditEntryJson {
    fn from_entry(entry: AuditEntry) -> Self {
        let mut detail = entry.detail;
        if let Value::Object(fields) = &mut detail {
            // The actor names the author.
            fields.remove("by");
        }
        Self {
            id: entry.id,
            at: format_iso(entry.at),
            kind: entry.kind,
            actor: entry.actor.into(),
            subject: entry.subject.into(),
            detail,
        }
    }
}

impl From<AuditActor> for AuditActorJson {
    fn from(actor: AuditActor) -> Self {
        match actor {
            AuditActor::User(user) => Self::User { user: user.id.0 },
            AuditActor::Shell => Self::Shell,
            AuditActor::Console => Self::Console,
            AuditActor::Key(name) => Self::Key { name },
            AuditActor::Dialarr => Self::Dialarr,
        }
    }
}

impl From<AuditEntrySubject> for AuditSubjectJson {
    fn from(subject: AuditEntrySubject) -> Self {
        match subject {
            AuditEntrySubject::User(user) => Self::User { user: user.id.0 },
            AuditEntrySubject::Call { tool, at: ConversationLink { conversation, turn, user, .. } } => {
                Self::ToolCall { tool, user: user.id.0, conversation: conversation.0, turn: turn.0 }
            }
            AuditEntrySubject::Turn(ConversationLink { conversation, turn, user, .. }) => {
                Self::Turn { user: user.id.0, conversation: conversation.0, turn: turn.0 }
            }
            AuditEntrySubject::Approval(user) => Self::Approval { user: user.id.0 },
            AuditEntrySubject::Household => Self::Household,
            AuditEntrySubject::Console => Self::Console,
            AuditEntrySubject::Key(name) => Self::Key { name },
            AuditEntrySubject::Settings => Self::Settings,
            AuditEntrySubject::Webhooks => Self::Webhooks,
            AuditEntrySubject::Unresolved(subject) => Self::Other { subject },
        }
    }
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct AuditParams {
    /// Only changes of this kind.
    kind: Option<String>,
    /// Only entries older than this cursor: the `next` of another page.
    before: Option<i64>,
    /// Number of entries to return.
    #[param(minimum = 1, maximum = 100, default = 50)]
    limit: Option<usize>,
}

/// List recorded changes, newest first
#[utoipa::path(
    get,
    path = "/audit",
    tag = "audit",
    operation_id = "list_audit_entries",
    params(AuditParams),
    responses((status = 200, description = "A page of changes", body = Page<AuditEntryJson>))
)]
pub(super) async fn list_audit_entries(
    State(console): State<ConsoleState>,
    _caller: Caller,
    QueryParams(params): QueryParams<AuditParams>,
) -> Result<Json<Page<AuditEntryJson>>, ProblemDetails> {
    let cursor = PageCursor::from_params(params.before, params.limit)?;
    let load = move |conn: &mut _| {
        audit::load_audit_entries(conn, params.kind.as_deref(), cursor.before, cursor.page_size)
    };
    let page = console.db.read(load).await.map_err(database_unavailable)?;
    Ok(Json(Page::from_results(page, AuditEntryJson::from_entry)))
}
