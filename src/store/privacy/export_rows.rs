//! Rows of an export outside conversations: columns under readable names, with times and JSON in their own types.

use diesel::deserialize::{self, FromSql, FromSqlRow};
use diesel::prelude::*;
use diesel::sql_types::BigInt;
use diesel::sqlite::Sqlite;
use serde::Serialize;

use crate::conversation::transcript::CallRow;
use crate::store::conversation::record::columns::{StoredJson, StoredTime};
use crate::store::schema::{
    additions, agent_responses, approvals, audit_log, follows, notices, reactions, requests, tool_call_items,
    usage, user_facts, users,
};

#[derive(Debug, FromSqlRow, Serialize)]
pub(super) struct ExportFlag(bool);

impl FromSql<BigInt, Sqlite> for ExportFlag {
    fn from_sql(bytes: <Sqlite as diesel::backend::Backend>::RawValue<'_>) -> deserialize::Result<Self> {
        Ok(Self(<i64 as FromSql<BigInt, Sqlite>>::from_sql(bytes)? == 1))
    }
}

#[derive(Debug, Queryable, Selectable, Serialize)]
#[diesel(table_name = users)]
pub(super) struct ExportUserRow {
    phone: String,
    #[diesel(column_name = display_name)]
    name: Option<String>,
    status: String,
    role: String,
    #[diesel(column_name = can_add)]
    may_add: ExportFlag,
    #[diesel(column_name = can_delete)]
    may_delete: ExportFlag,
    #[diesel(column_name = can_4k)]
    may_add_4k: ExportFlag,
    movie_limit: Option<i64>,
    season_limit: Option<i64>,
    opted_out_at: Option<StoredTime>,
    #[diesel(column_name = created_at)]
    known_since: StoredTime,
    forgotten_at: Option<StoredTime>,
    first_request: Option<String>,
}

#[derive(Debug, Queryable, Selectable, Serialize)]
#[diesel(table_name = tool_call_items)]
pub(super) struct ExportDeletionItemRow {
    #[serde(skip)]
    pub(super) tool_call_id: CallRow,
    instance: String,
    kind: String,
    item_id: i64,
    #[diesel(column_name = delete_files)]
    with_files: ExportFlag,
    extent: Option<StoredJson>,
    #[diesel(column_name = fingerprint)]
    item: StoredJson,
    state: String,
    result: Option<StoredJson>,
}

#[derive(Debug, Queryable, Selectable, Serialize)]
#[diesel(table_name = reactions)]
pub(super) struct ExportReactionRow {
    author: String,
    emoji: Option<String>,
    #[diesel(column_name = event_id)]
    to_text_received: Option<i64>,
    #[diesel(column_name = outbox_id)]
    to_text_sent: Option<i64>,
    created_at: StoredTime,
    removed_at: Option<StoredTime>,
}

#[derive(Debug, Queryable, Selectable, Serialize)]
#[diesel(table_name = approvals)]
pub(super) struct ExportApprovalRow {
    kind: String,
    state: String,
    instance: Option<String>,
    item_kind: Option<String>,
    item_id: Option<i64>,
    #[diesel(column_name = fingerprint)]
    item: Option<StoredJson>,
    created_at: StoredTime,
    expires_at: StoredTime,
    settled_at: Option<StoredTime>,
}

#[derive(Debug, Queryable, Selectable, Serialize)]
#[diesel(table_name = requests)]
pub(super) struct ExportTitleRequestRow {
    instance: String,
    kind: String,
    catalog_id: i64,
    title: String,
    year: i64,
    seasons: Option<StoredJson>,
    state: String,
    #[diesel(column_name = arguments)]
    as_it_is_tried: Option<StoredJson>,
    tries: i64,
    next_try_at: Option<StoredTime>,
    #[diesel(column_name = created_at)]
    asked_at: StoredTime,
    settled_at: Option<StoredTime>,
}

#[derive(Debug, Queryable, Selectable, Serialize)]
#[diesel(table_name = follows)]
pub(super) struct ExportFollowRow {
    instance: String,
    kind: String,
    catalog_id: i64,
    season: Option<i64>,
    #[diesel(column_name = created_at)]
    since: StoredTime,
    ended_at: Option<StoredTime>,
}

#[derive(Debug, Queryable, Selectable, Serialize)]
#[diesel(table_name = notices)]
pub(super) struct ExportNotificationRow {
    matter: String,
    #[diesel(column_name = created_at)]
    told_at: StoredTime,
}

#[derive(Debug, Queryable, Selectable, Serialize)]
#[diesel(table_name = agent_responses)]
pub(super) struct ExportAnswerRow {
    scope: String,
    #[diesel(column_name = trigger_text)]
    question: String,
    #[diesel(column_name = response_text)]
    answer: String,
    summary: String,
    topics: StoredJson,
    keywords: StoredJson,
    response_type: Option<String>,
    state: String,
    #[diesel(column_name = created_at)]
    said_at: StoredTime,
}

#[derive(Debug, Queryable, Selectable, Serialize)]
#[diesel(table_name = user_facts)]
pub(super) struct ExportFactRow {
    kind: String,
    #[diesel(column_name = key)]
    about: String,
    value: String,
    number: Option<i64>,
    state: String,
    source: String,
    #[diesel(column_name = event_id)]
    said_in_text: Option<i64>,
    #[diesel(column_name = created_at)]
    known_since: StoredTime,
    ended_at: Option<StoredTime>,
}

#[derive(Debug, Queryable, Selectable, Serialize)]
#[diesel(table_name = additions)]
pub(super) struct ExportAdditionRow {
    kind: String,
    amount: i64,
    at: StoredTime,
}

#[derive(Debug, Queryable, Selectable, Serialize)]
#[diesel(table_name = usage)]
pub(super) struct ExportUsageRow {
    day: String,
    model_calls: i64,
    tokens_in: i64,
    tokens_cached: i64,
    tokens_out: i64,
    cost_micros: i64,
    segments: i64,
}

#[derive(Debug, Queryable, Selectable, Serialize)]
#[diesel(table_name = audit_log)]
pub(super) struct ExportAuditRow {
    at: StoredTime,
    kind: String,
    subject: String,
    detail: StoredJson,
}
