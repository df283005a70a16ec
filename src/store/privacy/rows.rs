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
pub(super) struct Time(Timestamp);

impl FromSql<BigInt, Sqlite> for Time {
    fn from_sql(bytes: <Sqlite as diesel::backend::Backend>::RawValue<'_>) -> deserialize::Result<Self> {
        let ms = <i64 as FromSql<BigInt, Sqlite>>::from_sql(bytes)?;
        Ok(Self(Timestamp::from_millisecond(ms)?))
    }
}

#[derive(Debug, FromSqlRow, Serialize)]
pub(super) struct Yes(bool);

impl FromSql<BigInt, Sqlite> for Yes {
    fn from_sql(bytes: <Sqlite as diesel::backend::Backend>::RawValue<'_>) -> deserialize::Result<Self> {
        Ok(Self(<i64 as FromSql<BigInt, Sqlite>>::from_sql(bytes)? == 1))
    }
}

#[derive(Debug, FromSqlRow, Serialize)]
pub(super) struct Json(Value);

impl FromSql<Text, Sqlite> for Json {
    fn from_sql(bytes: <Sqlite as diesel::backend::Backend>::RawValue<'_>) -> deserialize::Result<Self> {
        let text = <String as FromSql<Text, Sqlite>>::from_sql(bytes)?;
        // The error message from serde would quote the stored text.
        serde_json::from_str(&text).map(Self).map_err(|_| "stored JSON cannot be read".into())
    }
}

#[derive(Debug, Queryable, Selectable, Serialize)]
#[diesel(table_name = users)]
pub(super) struct Person {
    phone: String,
    #[diesel(column_name = display_name)]
    name: Option<String>,
    status: String,
    role: String,
    #[diesel(column_name = can_add)]
    may_add: Yes,
    #[diesel(column_name = can_delete)]
    may_delete: Yes,
    #[diesel(column_name = can_4k)]
    may_add_4k: Yes,
    movie_limit: Option<i64>,
    season_limit: Option<i64>,
    opted_out_at: Option<Time>,
    #[diesel(column_name = created_at)]
    known_since: Time,
    forgotten_at: Option<Time>,
    first_request: Option<String>,
}

#[derive(Debug, Queryable, Selectable, Serialize)]
#[diesel(table_name = conversations)]
pub(super) struct Conversation {
    #[serde(skip)]
    pub(super) id: i64,
    name: String,
    started_at: Time,
    last_activity_at: Time,
    ended_at: Option<Time>,
    end_reason: Option<String>,
}

#[derive(Debug, Queryable, Selectable, Serialize)]
#[diesel(table_name = turns)]
pub(super) struct Turn {
    #[serde(skip)]
    pub(super) id: i64,
    #[serde(skip)]
    pub(super) conversation_id: i64,
    kind: String,
    state: String,
    #[diesel(column_name = prompt)]
    plan: Json,
    #[diesel(column_name = response_text)]
    answer: Option<String>,
    #[diesel(column_name = created_at)]
    begun_at: Time,
    finished_at: Option<Time>,
}

#[derive(Debug, Queryable, Selectable, Serialize)]
#[diesel(table_name = inbound_events)]
pub(super) struct Received {
    id: i64,
    #[serde(skip)]
    pub(super) turn_id: Option<i64>,
    channel: String,
    #[diesel(column_name = external_id)]
    carrier_id: String,
    #[diesel(column_name = to_addr)]
    to: String,
    body: String,
    media: Option<Json>,
    #[diesel(column_name = provider_at)]
    sent_at: Time,
    received_at: Time,
    via: String,
    state: String,
    outcome: Option<String>,
    #[diesel(column_name = outcome_reason)]
    reason: Option<String>,
}

#[derive(Debug, Queryable, Selectable, Serialize)]
#[diesel(table_name = outbox)]
pub(super) struct Sent {
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
    error: Option<Json>,
    #[diesel(column_name = created_at)]
    written_at: Time,
    accepted_at: Option<Time>,
}

#[derive(Debug, Queryable, Selectable, Serialize)]
#[diesel(table_name = llm_steps)]
pub(super) struct Attempt {
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
    error: Option<Json>,
    started_at: Time,
    finished_at: Option<Time>,
}

#[derive(Debug, Queryable, Selectable, Serialize)]
#[diesel(table_name = tool_calls)]
pub(super) struct Call {
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
    request: Json,
    #[diesel(column_name = response)]
    result: Option<Json>,
    error: Option<Json>,
    created_at: Time,
    started_at: Option<Time>,
    finished_at: Option<Time>,
}

#[derive(Debug, Queryable, Selectable, Serialize)]
#[diesel(table_name = tool_call_items)]
pub(super) struct Item {
    #[serde(skip)]
    pub(super) tool_call_id: i64,
    instance: String,
    kind: String,
    item_id: i64,
    #[diesel(column_name = delete_files)]
    with_files: Yes,
    extent: Option<Json>,
    #[diesel(column_name = fingerprint)]
    item: Json,
    state: String,
    result: Option<Json>,
}

#[derive(Debug, Queryable, Selectable, Serialize)]
#[diesel(table_name = pending_actions)]
pub(super) struct Question {
    #[diesel(column_name = summary)]
    question: String,
    #[diesel(column_name = created_at)]
    asked_at: Time,
    expires_at: Option<Time>,
}

#[derive(Debug, Queryable, Selectable, Serialize)]
#[diesel(table_name = reactions)]
pub(super) struct Reaction {
    author: String,
    emoji: Option<String>,
    #[diesel(column_name = event_id)]
    to_text_received: Option<i64>,
    #[diesel(column_name = outbox_id)]
    to_text_sent: Option<i64>,
    created_at: Time,
    removed_at: Option<Time>,
}

#[derive(Debug, Queryable, Selectable, Serialize)]
#[diesel(table_name = approvals)]
pub(super) struct Approval {
    kind: String,
    state: String,
    instance: Option<String>,
    item_kind: Option<String>,
    item_id: Option<i64>,
    #[diesel(column_name = fingerprint)]
    item: Option<Json>,
    created_at: Time,
    expires_at: Time,
    settled_at: Option<Time>,
}

#[derive(Debug, Queryable, Selectable, Serialize)]
#[diesel(table_name = requests)]
pub(super) struct Title {
    instance: String,
    kind: String,
    catalog_id: i64,
    title: String,
    year: i64,
    seasons: Option<Json>,
    state: String,
    #[diesel(column_name = arguments)]
    as_it_is_tried: Option<Json>,
    tries: i64,
    next_try_at: Option<Time>,
    #[diesel(column_name = created_at)]
    asked_at: Time,
    settled_at: Option<Time>,
}

#[derive(Debug, Queryable, Selectable, Serialize)]
#[diesel(table_name = follows)]
pub(super) struct Follow {
    instance: String,
    kind: String,
    catalog_id: i64,
    season: Option<i64>,
    #[diesel(column_name = created_at)]
    since: Time,
    ended_at: Option<Time>,
}

#[derive(Debug, Queryable, Selectable, Serialize)]
#[diesel(table_name = notices)]
pub(super) struct Notice {
    matter: String,
    #[diesel(column_name = created_at)]
    told_at: Time,
}

#[derive(Debug, Queryable, Selectable, Serialize)]
#[diesel(table_name = agent_responses)]
pub(super) struct Remembered {
    scope: String,
    #[diesel(column_name = trigger_text)]
    question: String,
    #[diesel(column_name = response_text)]
    answer: String,
    summary: String,
    topics: Json,
    keywords: Json,
    response_type: Option<String>,
    state: String,
    #[diesel(column_name = created_at)]
    said_at: Time,
}

#[derive(Debug, Queryable, Selectable, Serialize)]
#[diesel(table_name = user_facts)]
pub(super) struct Fact {
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
    known_since: Time,
    ended_at: Option<Time>,
}

#[derive(Debug, Queryable, Selectable, Serialize)]
#[diesel(table_name = additions)]
pub(super) struct Addition {
    kind: String,
    amount: i64,
    at: Time,
}

#[derive(Debug, Queryable, Selectable, Serialize)]
#[diesel(table_name = usage)]
pub(super) struct Usage {
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
pub(super) struct Audited {
    at: Time,
    kind: String,
    subject: String,
    detail: Json,
}
