//! Proposals to make room, with their titles. At most one is open.

use diesel::dsl::exists;
use diesel::prelude::*;
use jiff::Timestamp;

use super::kept_titles;
use super::quotas;
use super::space_answers;
use crate::conversation::deletion::target::DeletionTarget;
use crate::conversation::making_room::judgment::GoReason;
use crate::conversation::making_room::proposal::{Candidate, ProposalPlan};
use crate::conversation::making_room::{ProposedTitle, REVIEW_PERIOD, SilenceRule};
use crate::conversation::transcript::{CallRow, MediaKind, UserId};
use crate::store::Conn;
use crate::store::codec::{convert_integer, ms, saturating_i64};
use crate::store::column_types::stored_enum;
use crate::store::database::literal_sql::literal_sql;
use crate::store::schema::{space_proposal_titles, space_proposals, tool_call_items};

literal_sql! {
    /// Condition of the index of the open proposal.
    const OPEN = "space_proposals.closed_at IS NULL";
    /// Condition of the index of closed proposals.
    const CLOSED = "space_proposals.closed_at IS NOT NULL";
}

stored_enum! {
    /// Phase of a proposal.
    pub enum ProposalPhase {
        /// The people concerned can answer.
        Asking = "asking",
        /// An admin can review the titles that may go.
        Review = "review",
        Closed = "closed",
    }
}

stored_enum! {
    /// State of a title of a proposal.
    pub enum ProposedTitleState {
        /// The people concerned can answer.
        Asked = "asked",
        Stays = "stays",
        MayGo = "may_go",
        Deleted = "deleted",
    }
}

stored_enum! {
    /// Answer of a person about a title.
    pub enum ProposalAnswer {
        Keep = "keep",
        Free = "free",
    }
}

/// Id of a proposal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ProposalId(pub i64);

impl std::fmt::Display for ProposalId {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(formatter)
    }
}

/// Stored proposal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpaceProposal {
    pub id: ProposalId,
    /// Admin who started it; `None` if the program did.
    pub started_by: Option<UserId>,
    pub silence: SilenceRule,
    pub phase: ProposalPhase,
    pub opened_at: Timestamp,
    pub answers_end_at: Timestamp,
    pub review_ends_at: Option<Timestamp>,
}

/// Title of a proposal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredTitle {
    /// Number in the proposal, from 1.
    pub number: i64,
    pub title: ProposedTitle,
    pub reason: GoReason,
    pub last_played_at: Option<Timestamp>,
    pub state: ProposedTitleState,
}

/// Outcome of opening a proposal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenOutcome {
    Opened(ProposalId),
    AlreadyOpen,
    /// Somebody has protected one of the titles since they were read.
    Outdated,
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = space_proposals)]
struct ProposalRow {
    id: i64,
    user_id: Option<UserId>,
    silence: SilenceRule,
    phase: ProposalPhase,
    opened_at: Timestamp,
    answers_end_at: Timestamp,
    review_ends_at: Option<Timestamp>,
}

impl From<ProposalRow> for SpaceProposal {
    fn from(row: ProposalRow) -> Self {
        let ProposalRow { id, user_id, silence, phase, opened_at, answers_end_at, review_ends_at } = row;
        let (id, started_by) = (ProposalId(id), user_id);
        Self { id, started_by, silence, phase, opened_at, answers_end_at, review_ends_at }
    }
}

/// Opens a proposal, unless one is open.
pub fn open_proposal(
    conn: &mut Conn,
    plan: &ProposalPlan,
    started_by: Option<UserId>,
    now: Timestamp,
) -> QueryResult<OpenOutcome> {
    if load_open_proposal(conn)?.is_some() {
        return Ok(OpenOutcome::AlreadyOpen);
    }
    for Candidate { title, .. } in &plan.titles {
        if kept_titles::is_kept(conn, title.kind, title.catalog_id, now)? {
            return Ok(OpenOutcome::Outdated);
        }
    }
    let id: i64 = diesel::insert_into(space_proposals::table)
        .values((
            (space_proposals::user_id.eq(started_by), space_proposals::silence.eq(plan.silence)),
            (space_proposals::phase.eq(ProposalPhase::Asking), space_proposals::opened_at.eq(ms(now))),
            space_proposals::answers_end_at.eq(ms(plan.answers_end_at)),
        ))
        .returning(space_proposals::id)
        .get_result(conn)?;
    for (number, candidate) in (1_i64..).zip(&plan.titles) {
        insert_title(conn, id, number, candidate)?;
    }
    let id = ProposalId(id);
    space_answers::insert_questions(conn, id, &plan.questions)?;
    Ok(OpenOutcome::Opened(id))
}

fn insert_title(conn: &mut Conn, proposal: i64, number: i64, candidate: &Candidate) -> QueryResult<()> {
    let Candidate { title, reason, last_played_at, .. } = candidate;
    diesel::insert_into(space_proposal_titles::table)
        .values((
            (space_proposal_titles::proposal_id.eq(proposal), space_proposal_titles::number.eq(number)),
            (space_proposal_titles::instance.eq(&title.instance), space_proposal_titles::kind.eq(title.kind)),
            (
                space_proposal_titles::item_id.eq(title.item),
                space_proposal_titles::catalog_id.eq(title.catalog_id),
            ),
            (
                space_proposal_titles::title.eq(&title.title),
                space_proposal_titles::year.eq(i64::from(title.year)),
            ),
            space_proposal_titles::size_bytes.eq(saturating_i64(title.size_bytes)),
            space_proposal_titles::reason.eq(*reason),
            space_proposal_titles::last_played_at.eq(last_played_at.map(ms)),
            space_proposal_titles::state.eq(ProposedTitleState::Asked),
        ))
        .execute(conn)
        .map(drop)
}

/// Loads the open proposal.
pub fn load_open_proposal(conn: &mut Conn) -> QueryResult<Option<SpaceProposal>> {
    let row: Option<ProposalRow> =
        space_proposals::table.filter(OPEN).select(ProposalRow::as_select()).first(conn).optional()?;
    Ok(row.map(Into::into))
}

/// Loads the time at which the last proposal was opened, and the time at which it was closed.
pub fn load_last_times(conn: &mut Conn) -> QueryResult<Option<(Timestamp, Option<Timestamp>)>> {
    space_proposals::table
        .order(space_proposals::id.desc())
        .select((space_proposals::opened_at, space_proposals::closed_at))
        .first(conn)
        .optional()
}

/// Loads the titles of a proposal, in the order of their numbers.
pub fn load_titles(conn: &mut Conn, proposal: ProposalId) -> QueryResult<Vec<StoredTitle>> {
    let rows: Vec<TitleRow> = space_proposal_titles::table
        .filter(space_proposal_titles::proposal_id.eq(proposal.0))
        .order(space_proposal_titles::number)
        .select(TitleRow::as_select())
        .load(conn)?;
    rows.into_iter().map(TitleRow::into_title).collect()
}

/// Loads the titles of the open proposal that may go.
pub fn load_titles_to_review(conn: &mut Conn) -> QueryResult<Vec<ProposedTitle>> {
    let Some(open) = load_open_proposal(conn)?.filter(|open| open.phase == ProposalPhase::Review) else {
        return Ok(Vec::new());
    };
    let titles = load_titles(conn, open.id)?.into_iter();
    Ok(titles.filter(|title| title.state == ProposedTitleState::MayGo).map(|title| title.title).collect())
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = space_proposal_titles)]
struct TitleRow {
    number: i64,
    instance: String,
    kind: MediaKind,
    item_id: i64,
    catalog_id: i64,
    title: String,
    year: i64,
    size_bytes: i64,
    reason: GoReason,
    last_played_at: Option<Timestamp>,
    state: ProposedTitleState,
}

impl TitleRow {
    fn into_title(self) -> QueryResult<StoredTitle> {
        Ok(StoredTitle {
            number: self.number,
            title: ProposedTitle {
                instance: self.instance,
                kind: self.kind,
                item: self.item_id,
                catalog_id: self.catalog_id,
                title: self.title,
                year: convert_integer(self.year)?,
                size_bytes: convert_integer(self.size_bytes)?,
            },
            reason: self.reason,
            last_played_at: self.last_played_at,
            state: self.state,
        })
    }
}

/// Ends the time for answers: each title stays or may go, by its answers. Returns the titles that may go.
pub fn begin_review(
    conn: &mut Conn,
    proposal: &SpaceProposal,
    now: Timestamp,
) -> QueryResult<Vec<ProposedTitle>> {
    let mut may_go = Vec::new();
    for title in load_titles(conn, proposal.id)? {
        if title.state != ProposedTitleState::Asked {
            continue;
        }
        let is_kept = kept_titles::is_kept(conn, title.title.kind, title.title.catalog_id, now)?
            || space_answers::is_protected(conn, proposal, title.number)?;
        let state = if is_kept { ProposedTitleState::Stays } else { ProposedTitleState::MayGo };
        set_title_state(conn, proposal.id, title.number, state)?;
        if !is_kept {
            may_go.push(title.title);
        }
    }
    space_answers::suppress_questions(conn, proposal.id, now)?;
    diesel::update(space_proposals::table.find(proposal.id.0).filter(OPEN))
        .set((
            space_proposals::phase.eq(ProposalPhase::Review),
            space_proposals::review_ends_at.eq(ms(now + REVIEW_PERIOD)),
        ))
        .execute(conn)?;
    Ok(may_go)
}

pub(super) fn set_title_state(
    conn: &mut Conn,
    proposal: ProposalId,
    number: i64,
    state: ProposedTitleState,
) -> QueryResult<()> {
    diesel::update(space_proposal_titles::table.find((proposal.0, number)))
        .set(space_proposal_titles::state.eq(state))
        .execute(conn)
        .map(drop)
}

/// Marks a title of the open proposal as deleted, and gives its quota back to the users who asked for it.
pub fn settle_deleted_title(conn: &mut Conn, target: &DeletionTarget) -> QueryResult<()> {
    let Some(open) = load_open_proposal(conn)? else { return Ok(()) };
    let titles = load_titles(conn, open.id)?;
    let Some(deleted) = titles.into_iter().find(|title| title.title.is_deleted_by(target)) else {
        return Ok(());
    };
    set_title_state(conn, open.id, deleted.number, ProposedTitleState::Deleted)?;
    quotas::give_back_additions(conn, &deleted.title)
}

/// Lets the titles of a denied deletion stay, as far as they are titles under review.
pub(in crate::store) fn keep_denied_titles(conn: &mut Conn, call: CallRow) -> QueryResult<()> {
    let Some(open) = load_open_proposal(conn)?.filter(|open| open.phase == ProposalPhase::Review) else {
        return Ok(());
    };
    let whole: Vec<(String, MediaKind, i64)> = tool_call_items::table
        .filter(tool_call_items::tool_call_id.eq(call).and(tool_call_items::extent.is_null()))
        .select((tool_call_items::instance, tool_call_items::kind, tool_call_items::item_id))
        .load(conn)?;
    for title in load_titles(conn, open.id)? {
        let ProposedTitle { instance, kind, item, .. } = &title.title;
        let is_denied =
            whole.iter().any(|denied| (&denied.0, denied.1, denied.2) == (instance, *kind, *item));
        if is_denied && title.state == ProposedTitleState::MayGo {
            set_title_state(conn, open.id, title.number, ProposedTitleState::Stays)?;
        }
    }
    Ok(())
}

/// Closes a proposal. What was not deleted stays.
pub fn close_proposal(conn: &mut Conn, proposal: ProposalId, now: Timestamp) -> QueryResult<()> {
    let undecided = space_proposal_titles::table
        .filter(space_proposal_titles::proposal_id.eq(proposal.0))
        .filter(space_proposal_titles::state.ne(ProposedTitleState::Deleted));
    diesel::update(undecided)
        .set(space_proposal_titles::state.eq(ProposedTitleState::Stays))
        .execute(conn)?;
    diesel::update(space_proposals::table.find(proposal.0).filter(OPEN))
        .set((space_proposals::phase.eq(ProposalPhase::Closed), space_proposals::closed_at.eq(ms(now))))
        .execute(conn)
        .map(drop)
}

/// Returns whether a proposal is open, was closed before `before`, or a protection is over.
pub fn has_work(conn: &mut Conn, before: Timestamp, now: Timestamp) -> QueryResult<bool> {
    let is_old = CLOSED.and(space_proposals::closed_at.lt(ms(before)));
    let (open, old) = (space_proposals::table.filter(OPEN), space_proposals::table.filter(is_old));
    let has_work = exists(open).or(exists(old)).or(exists(kept_titles::ended_protections(now)));
    diesel::select(has_work).get_result(conn)
}

/// Deletes the proposals that were closed before `before`, and the protections whose period is over.
pub fn delete_old_proposals(conn: &mut Conn, before: Timestamp, now: Timestamp) -> QueryResult<()> {
    diesel::delete(space_proposals::table.filter(CLOSED.and(space_proposals::closed_at.lt(ms(before)))))
        .execute(conn)?;
    kept_titles::delete_ended_protections(conn, now)
}
