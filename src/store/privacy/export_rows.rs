//! Rows of an export that are not messages or turns. Field names are the keys of the exported JSON.

use diesel::prelude::*;
use jiff::Timestamp;
use serde::Serialize;

use crate::conversation::memory::answer_metadata::ResponseType;
use crate::conversation::memory::recall::RecallScope;
use crate::conversation::people::facts::FactKind;
use crate::conversation::transcript::{CallRow, MediaKind, QuotaKind, UserRole, UserStatus};
use crate::conversation::viewer_accounts::MediaServerKind;
use crate::store::column_types::StoredJson;
use crate::store::confirmation::approvals::{ApprovalState, StoredApprovalKind};
use crate::store::confirmation::deletion_items::DeletionItemPhase;
use crate::store::conversation::reactions::ReactionAuthor;
use crate::store::digests::DigestLineKind;
use crate::store::library::space_proposals::ProposalAnswer;
use crate::store::library::title_requests::RequestState;
use crate::store::memory::facts::{FactState, StoredFactSource};
use crate::store::memory::responses::AnswerState;
use crate::store::schema::{
    additions, agent_responses, approvals, approved_titles, audit_log, ballots, digest_lines,
    digest_settings, follows, kept_titles, notices, reactions, requests, space_proposal_answers,
    space_proposal_titles, title_attributions, tool_call_items, usage, user_addresses, user_facts, users,
    viewer_accounts, votes,
};

#[derive(Debug, Queryable, Selectable, Serialize)]
#[diesel(table_name = users)]
pub(super) struct ExportUserRow {
    #[diesel(column_name = display_name)]
    name: Option<String>,
    status: UserStatus,
    role: UserRole,
    #[diesel(column_name = can_add)]
    may_add: bool,
    #[diesel(column_name = can_delete)]
    may_delete: bool,
    #[diesel(column_name = can_4k)]
    may_add_4k: bool,
    movie_limit: Option<i64>,
    season_limit: Option<i64>,
    #[diesel(column_name = space_limit)]
    space_limit_gb: Option<i64>,
    /// Highest age ratings, in years.
    movie_cap: Option<i64>,
    show_cap: Option<i64>,
    /// Whether the user decides about titles over the caps of others.
    parent: bool,
    #[diesel(column_name = created_at)]
    known_since: Timestamp,
    forgotten_at: Option<Timestamp>,
    first_request: Option<String>,
}

/// Title over the caps that a parent approved.
#[derive(Debug, Queryable, Selectable, Serialize)]
#[diesel(table_name = approved_titles)]
pub(super) struct ExportApprovedTitleRow {
    kind: MediaKind,
    catalog_id: i64,
    approved_at: Timestamp,
}

/// Weekly digest of the user.
#[derive(Debug, Queryable, Selectable, Serialize)]
#[diesel(table_name = digest_settings)]
pub(super) struct ExportDigestRow {
    /// Day of the week, from 1 for Monday on.
    weekday: i64,
    hour: i64,
    set_at: Timestamp,
    last_due_at: Option<Timestamp>,
}

/// Matter of a line of a digest.
#[derive(Debug, Queryable, Selectable, Serialize)]
#[diesel(table_name = digest_lines)]
pub(super) struct ExportDigestLineRow {
    #[diesel(column_name = outbox_id)]
    text_sent: i64,
    number: i64,
    kind: DigestLineKind,
    reference: i64,
    title: String,
}

#[derive(Debug, Queryable, Selectable, Serialize)]
#[diesel(table_name = user_addresses)]
pub(super) struct ExportAddressRow {
    address: String,
    opted_out_at: Option<Timestamp>,
    #[diesel(column_name = created_at)]
    known_since: Timestamp,
}

#[derive(Debug, Queryable, Selectable, Serialize)]
#[diesel(table_name = tool_call_items)]
pub(super) struct ExportDeletionItemRow {
    #[serde(skip)]
    pub(super) tool_call_id: CallRow,
    instance: String,
    kind: MediaKind,
    item_id: i64,
    #[diesel(column_name = delete_files)]
    with_files: bool,
    extent: Option<StoredJson>,
    #[diesel(column_name = fingerprint)]
    item: StoredJson,
    state: DeletionItemPhase,
    result: Option<StoredJson>,
}

#[derive(Debug, Queryable, Selectable, Serialize)]
#[diesel(table_name = reactions)]
pub(super) struct ExportReactionRow {
    author: ReactionAuthor,
    emoji: Option<String>,
    #[diesel(column_name = event_id)]
    to_text_received: Option<i64>,
    #[diesel(column_name = outbox_id)]
    to_text_sent: Option<i64>,
    created_at: Timestamp,
    removed_at: Option<Timestamp>,
}

#[derive(Debug, Queryable, Selectable, Serialize)]
#[diesel(table_name = approvals)]
pub(super) struct ExportApprovalRow {
    kind: StoredApprovalKind,
    state: ApprovalState,
    instance: Option<String>,
    item_kind: Option<MediaKind>,
    item_id: Option<i64>,
    #[diesel(column_name = fingerprint)]
    item: Option<StoredJson>,
    account_id: Option<String>,
    account_name: Option<String>,
    title: Option<String>,
    wanted: Option<StoredJson>,
    created_at: Timestamp,
    expires_at: Timestamp,
    settled_at: Option<Timestamp>,
}

#[derive(Debug, Queryable, Selectable, Serialize)]
#[diesel(table_name = viewer_accounts)]
pub(super) struct ExportViewerAccountRow {
    server: MediaServerKind,
    account_id: String,
    account_name: String,
    linked_at: Timestamp,
}

#[derive(Debug, Queryable, Selectable, Serialize)]
#[diesel(table_name = requests)]
pub(super) struct ExportTitleRequestRow {
    instance: String,
    kind: MediaKind,
    catalog_id: i64,
    title: String,
    year: i64,
    seasons: Option<StoredJson>,
    state: RequestState,
    #[diesel(column_name = arguments)]
    as_it_is_tried: Option<StoredJson>,
    tries: i64,
    next_try_at: Option<Timestamp>,
    #[diesel(column_name = created_at)]
    asked_at: Timestamp,
    settled_at: Option<Timestamp>,
}

#[derive(Debug, Queryable, Selectable, Serialize)]
#[diesel(table_name = title_attributions)]
pub(super) struct ExportTitleAttributionRow {
    instance: String,
    kind: MediaKind,
    catalog_id: i64,
    first_requested_at: Timestamp,
}

#[derive(Debug, Queryable, Selectable, Serialize)]
#[diesel(table_name = follows)]
pub(super) struct ExportFollowRow {
    instance: String,
    kind: MediaKind,
    catalog_id: i64,
    season: Option<i64>,
    #[diesel(column_name = created_at)]
    since: Timestamp,
    ended_at: Option<Timestamp>,
}

#[derive(Debug, Queryable, Selectable, Serialize)]
#[diesel(table_name = notices)]
pub(super) struct ExportNotificationRow {
    matter: String,
    #[diesel(column_name = created_at)]
    told_at: Timestamp,
}

#[derive(Debug, Queryable, Selectable, Serialize)]
#[diesel(table_name = agent_responses)]
pub(super) struct ExportAnswerRow {
    scope: RecallScope,
    #[diesel(column_name = trigger_text)]
    question: String,
    #[diesel(column_name = response_text)]
    answer: String,
    summary: String,
    topics: StoredJson,
    keywords: StoredJson,
    response_type: Option<ResponseType>,
    state: AnswerState,
    #[diesel(column_name = created_at)]
    said_at: Timestamp,
}

#[derive(Debug, Queryable, Selectable, Serialize)]
#[diesel(table_name = user_facts)]
pub(super) struct ExportFactRow {
    kind: FactKind,
    #[diesel(column_name = key)]
    about: String,
    value: String,
    number: Option<i64>,
    state: FactState,
    source: StoredFactSource,
    #[diesel(column_name = event_id)]
    said_in_text: Option<i64>,
    #[diesel(column_name = created_at)]
    known_since: Timestamp,
    ended_at: Option<Timestamp>,
}

#[derive(Debug, Queryable, Selectable, Serialize)]
#[diesel(table_name = additions)]
pub(super) struct ExportAdditionRow {
    kind: QuotaKind,
    amount: i64,
    at: Timestamp,
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
    at: Timestamp,
    kind: String,
    subject: String,
    detail: StoredJson,
}

#[derive(Debug, Queryable, Selectable, Serialize)]
#[diesel(table_name = votes)]
pub(super) struct ExportVoteRow {
    question: String,
    options: StoredJson,
    created_at: Timestamp,
    closes_at: Timestamp,
    closed_at: Option<Timestamp>,
    reasons: Option<StoredJson>,
    checked_kind: Option<MediaKind>,
    /// Lowest age rating of the people who were asked, in years.
    checked_cap: Option<i64>,
    winner: Option<i64>,
}

#[derive(Debug, Queryable, Selectable, Serialize)]
#[diesel(table_name = kept_titles)]
pub(super) struct ExportKeptTitleRow {
    kind: MediaKind,
    title: String,
    year: i64,
    kept_at: Timestamp,
    kept_until_at: Timestamp,
}

#[derive(Debug, Queryable, Selectable, Serialize)]
#[diesel(table_name = space_proposal_answers)]
pub(super) struct ExportProposalAnswerRow {
    #[diesel(select_expression = space_proposal_titles::title)]
    title: String,
    answer: Option<ProposalAnswer>,
    answered_at: Option<Timestamp>,
}

#[derive(Debug, Queryable, Selectable, Serialize)]
#[diesel(table_name = ballots)]
pub(super) struct ExportBallotRow {
    #[diesel(select_expression = votes::question)]
    question: String,
    choice: Option<i64>,
    updated_at: Timestamp,
}
