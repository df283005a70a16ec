//! Rows of an export: columns under readable names, with times and JSON in their own types.

use diesel::deserialize::{self, FromSql, FromSqlRow};
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Text};
use diesel::sqlite::Sqlite;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use crate::store::schema::{
    additions, agent_responses, approvals, audit_log, conversations, follows, inbound_events, llm_steps,
    notices, outbox, pending_actions, reactions, requests, tool_call_items, tool_calls, turns, usage,
    user_facts, users,
};

#[derive(Debug, FromSqlRow, Serialize)]
pub(super) struct ExportTime(Timestamp);

impl FromSql<BigInt, Sqlite> for ExportTime {
    fn from_sql(bytes: <Sqlite as diesel::backend::Backend>::RawValue<'_>) -> deserialize::Result<Self> {
        let ms = <i64 as FromSql<BigInt, Sqlite>>::from_sql(bytes)?;
        Ok(Self(Timestamp::from_millisecond(ms)?))
    }
}

#[derive(Debug, FromSqlRow, Serialize)]
pub(super) struct ExportFlag(bool);

impl FromSql<BigInt, Sqlite> for ExportFlag {
    fn from_sql(bytes: <Sqlite as diesel::backend::Backend>::RawValue<'_>) -> deserialize::Result<Self> {
        Ok(Self(<i64 as FromSql<BigInt, Sqlite>>::from_sql(bytes)? == 1))
    }
}

#[derive(Debug, FromSqlRow, Serialize)]
pub(super) struct ExportJson(Value);

impl FromSql<Text, Sqlite> for ExportJson {
    fn from_sql(bytes: <Sqlite as diesel::backend::Backend>::RawValue<'_>) -> deserialize::Result<Self> {
        let text = <String as FromSql<Text, Sqlite>>::from_sql(bytes)?;
        // The error message from serde would quote the stored text.
        serde_json::from_str(&text).map(Self).map_err(|_| "stored JSON cannot be read".into())
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
    opted_out_at: Option<ExportTime>,
    #[diesel(column_name = created_at)]
    known_since: ExportTime,
    forgotten_at: Option<ExportTime>,
    first_request: Option<String>,
}

#[derive(Debug, Queryable, Selectable, Serialize)]
#[diesel(table_name = conversations)]
pub(super) struct ExportConversationRow {
    #[serde(skip)]
    pub(super) id: i64,
    name: String,
    started_at: ExportTime,
    last_activity_at: ExportTime,
    ended_at: Option<ExportTime>,
    end_reason: Option<String>,
}

#[derive(Debug, Queryable, Selectable, Serialize)]
#[diesel(table_name = turns)]
pub(super) struct ExportTurnRow {
    #[serde(skip)]
    pub(super) id: i64,
    #[serde(skip)]
    pub(super) conversation_id: i64,
    kind: String,
    state: String,
    #[diesel(column_name = prompt)]
    plan: ExportJson,
    #[diesel(column_name = response_text)]
    answer: Option<String>,
    #[diesel(column_name = created_at)]
    begun_at: ExportTime,
    finished_at: Option<ExportTime>,
}

#[derive(Debug, Queryable, Selectable, Serialize)]
#[diesel(table_name = inbound_events)]
pub(super) struct ExportInboundRow {
    id: i64,
    #[serde(skip)]
    pub(super) turn_id: Option<i64>,
    channel: String,
    #[diesel(column_name = external_id)]
    carrier_id: String,
    #[diesel(column_name = to_addr)]
    to: String,
    body: String,
    media: Option<ExportJson>,
    #[diesel(column_name = provider_at)]
    sent_at: ExportTime,
    received_at: ExportTime,
    via: String,
    state: String,
    outcome: Option<String>,
    #[diesel(column_name = outcome_reason)]
    reason: Option<String>,
}

#[derive(Debug, Queryable, Selectable, Serialize)]
#[diesel(table_name = outbox)]
pub(super) struct ExportOutboundRow {
    id: i64,
    #[serde(skip)]
    pub(super) turn_id: Option<i64>,
    kind: String,
    #[diesel(column_name = provider_sid)]
    carrier_id: Option<String>,
    #[diesel(column_name = to_addr)]
    to: String,
    #[diesel(column_name = from_addr)]
    from: String,
    body: String,
    #[diesel(column_name = media_url)]
    picture: Option<String>,
    segments: i64,
    state: String,
    delivery: Option<String>,
    error: Option<ExportJson>,
    #[diesel(column_name = created_at)]
    written_at: ExportTime,
    accepted_at: Option<ExportTime>,
}

#[derive(Debug, Queryable, Selectable, Serialize)]
#[diesel(table_name = llm_steps)]
pub(super) struct ExportAttemptRow {
    #[serde(skip)]
    pub(super) turn_id: i64,
    pub(super) step: i64,
    pub(super) attempt: i64,
    pub(super) state: String,
    #[diesel(column_name = brain)]
    answered_by: String,
    model: String,
    finish_reason: Option<String>,
    tokens_in: Option<i64>,
    tokens_cached: Option<i64>,
    tokens_out: Option<i64>,
    error: Option<ExportJson>,
    started_at: ExportTime,
    finished_at: Option<ExportTime>,
}

#[derive(Debug, Queryable, Selectable, Serialize)]
#[diesel(table_name = tool_calls)]
pub(super) struct ExportCallRow {
    #[serde(skip)]
    pub(super) id: i64,
    #[serde(skip)]
    pub(super) turn_id: i64,
    #[serde(skip)]
    pub(super) step: i64,
    #[diesel(column_name = tool_name)]
    tool: String,
    effect: String,
    state: String,
    request: ExportJson,
    #[diesel(column_name = response)]
    result: Option<ExportJson>,
    error: Option<ExportJson>,
    created_at: ExportTime,
    started_at: Option<ExportTime>,
    finished_at: Option<ExportTime>,
}

#[derive(Debug, Queryable, Selectable, Serialize)]
#[diesel(table_name = tool_call_items)]
pub(super) struct ExportDeletionItemRow {
    #[serde(skip)]
    pub(super) tool_call_id: i64,
    instance: String,
    kind: String,
    item_id: i64,
    #[diesel(column_name = delete_files)]
    with_files: ExportFlag,
    extent: Option<ExportJson>,
    #[diesel(column_name = fingerprint)]
    item: ExportJson,
    state: String,
    result: Option<ExportJson>,
}

#[derive(Debug, Queryable, Selectable, Serialize)]
#[diesel(table_name = pending_actions)]
pub(super) struct ExportPendingActionRow {
    #[diesel(column_name = summary)]
    question: String,
    #[diesel(column_name = created_at)]
    asked_at: ExportTime,
    expires_at: Option<ExportTime>,
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
    created_at: ExportTime,
    removed_at: Option<ExportTime>,
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
    item: Option<ExportJson>,
    created_at: ExportTime,
    expires_at: ExportTime,
    settled_at: Option<ExportTime>,
}

#[derive(Debug, Queryable, Selectable, Serialize)]
#[diesel(table_name = requests)]
pub(super) struct ExportTitleRequestRow {
    instance: String,
    kind: String,
    catalog_id: i64,
    title: String,
    year: i64,
    seasons: Option<ExportJson>,
    state: String,
    #[diesel(column_name = arguments)]
    as_it_is_tried: Option<ExportJson>,
    tries: i64,
    next_try_at: Option<ExportTime>,
    #[diesel(column_name = created_at)]
    asked_at: ExportTime,
    settled_at: Option<ExportTime>,
}

#[derive(Debug, Queryable, Selectable, Serialize)]
#[diesel(table_name = follows)]
pub(super) struct ExportFollowRow {
    instance: String,
    kind: String,
    catalog_id: i64,
    season: Option<i64>,
    #[diesel(column_name = created_at)]
    since: ExportTime,
    ended_at: Option<ExportTime>,
}

#[derive(Debug, Queryable, Selectable, Serialize)]
#[diesel(table_name = notices)]
pub(super) struct ExportNotificationRow {
    matter: String,
    #[diesel(column_name = created_at)]
    told_at: ExportTime,
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
    topics: ExportJson,
    keywords: ExportJson,
    response_type: Option<String>,
    state: String,
    #[diesel(column_name = created_at)]
    said_at: ExportTime,
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
    known_since: ExportTime,
    ended_at: Option<ExportTime>,
}

#[derive(Debug, Queryable, Selectable, Serialize)]
#[diesel(table_name = additions)]
pub(super) struct ExportAdditionRow {
    kind: String,
    amount: i64,
    at: ExportTime,
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
    at: ExportTime,
    kind: String,
    subject: String,
    detail: ExportJson,
}
