//! Approvals that wait for a decision by an admin or a parent: join requests, removal requests, account links, Seerr
//! requests, and titles over a user's caps. Each approval is decided once, by its code.

use diesel::prelude::*;
use diesel::sqlite::Sqlite;
use jiff::{SignedDuration, Timestamp};

use super::approval_subjects::SubjectColumns;
use crate::conversation::deletion::target::{DeletionScope, DeletionTarget};
use crate::conversation::people::admin_commands::ApprovalCode;
use crate::conversation::seerr_requests::SeerrOffer;
use crate::conversation::title_approvals::TitleOverCap;
use crate::conversation::transcript::{CallRow, MediaKind, UserId};
use crate::conversation::viewer_accounts::{MediaServerKind, ViewerAccount};
use crate::store::Conn;
use crate::store::codec::{ms, none_if_unreadable, parse_fingerprint, unreadable_column};
use crate::store::column_types::stored_enum;
use crate::store::database::literal_sql::literal_sql;
use crate::store::schema::approvals;

/// Period for which a code is valid. After a decision, replies with the code get the outcome for the same period.
const CODE_LIFETIME: SignedDuration = SignedDuration::from_hours(24);
/// Number of wrong codes after which an open code is disabled.
const MAX_MISSES: i64 = 3;

literal_sql! {
    /// Condition of an open approval.
    pub(in crate::store) const OPEN = "approvals.state = 'open'";
}

/// Subject of an approval.
#[derive(Debug, Clone, PartialEq)]
pub enum ApprovalKind {
    Join,
    /// Removal of this item, as shown to the admins.
    Delete(Box<DeletionTarget>),
    /// Link of this account to the user.
    LinkAccount(ViewerAccount),
    /// Request for a title at a Seerr.
    SeerrRequest(SeerrOffer),
    /// Request for a title over the caps of the user.
    Title(Box<TitleOverCap>),
}

impl ApprovalKind {
    /// Returns whether this is a removal request of a member, or of the operator.
    pub fn is_removal(&self) -> bool {
        matches!(self, Self::Delete(_))
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Approval {
    pub id: i64,
    /// User that the approval is about.
    pub user: UserId,
    pub kind: ApprovalKind,
    pub code: ApprovalCode,
    /// Outcome; `None` while the approval is open.
    outcome: Option<ApprovalOutcome>,
    settled_at: Option<Timestamp>,
    settled_by: Option<UserId>,
    misses: i64,
    expires_at: Timestamp,
    /// True for a deletion that the operator requested in the name of an admin, without a message.
    pub is_by_operator: bool,
}

/// Outcome of an approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApprovalOutcome {
    Approved,
    Denied,
    Blocked,
    Expired,
    /// The user that the approval is about has left.
    Withdrawn,
    /// The approval continues under another code.
    Replaced,
}

stored_enum! {
    /// Stored part of an [`ApprovalKind`].
    pub enum StoredApprovalKind {
        Join = "join",
        Delete = "delete",
        LinkAccount = "account",
        SeerrRequest = "seerr",
        Title = "title",
    }
}

stored_enum! {
    /// State of an approval: open, or one of the outcomes.
    pub enum ApprovalState {
        Open = "open",
        Approved = "approved",
        Denied = "denied",
        Blocked = "blocked",
        Expired = "expired",
        Withdrawn = "withdrawn",
        Replaced = "replaced",
    }
}

impl ApprovalState {
    fn outcome(self) -> Option<ApprovalOutcome> {
        match self {
            Self::Open => None,
            Self::Approved => Some(ApprovalOutcome::Approved),
            Self::Denied => Some(ApprovalOutcome::Denied),
            Self::Blocked => Some(ApprovalOutcome::Blocked),
            Self::Expired => Some(ApprovalOutcome::Expired),
            Self::Withdrawn => Some(ApprovalOutcome::Withdrawn),
            Self::Replaced => Some(ApprovalOutcome::Replaced),
        }
    }
}

impl From<ApprovalOutcome> for ApprovalState {
    fn from(outcome: ApprovalOutcome) -> Self {
        match outcome {
            ApprovalOutcome::Approved => Self::Approved,
            ApprovalOutcome::Denied => Self::Denied,
            ApprovalOutcome::Blocked => Self::Blocked,
            ApprovalOutcome::Expired => Self::Expired,
            ApprovalOutcome::Withdrawn => Self::Withdrawn,
            ApprovalOutcome::Replaced => Self::Replaced,
        }
    }
}

impl Approval {
    /// Returns whether the approval has expired, even if maintenance has not ended it yet.
    pub fn has_expired(&self, now: Timestamp) -> bool {
        self.expires_at <= now
    }
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = approvals)]
struct ApprovalRow {
    id: i64,
    kind: StoredApprovalKind,
    user_id: UserId,
    code: String,
    misses: i64,
    tool_call_id: Option<CallRow>,
    instance: Option<String>,
    item_kind: Option<MediaKind>,
    item_id: Option<i64>,
    fingerprint: Option<String>,
    state: ApprovalState,
    expires_at: Timestamp,
    settled_at: Option<Timestamp>,
    settled_by: Option<UserId>,
    account_id: Option<String>,
    account_name: Option<String>,
    title: Option<String>,
    wanted: Option<String>,
}

impl ApprovalRow {
    fn into_approval(self) -> QueryResult<Approval> {
        let unreadable = || unreadable_column("approval");
        let kind = match self.kind {
            StoredApprovalKind::Join => ApprovalKind::Join,
            StoredApprovalKind::Delete => {
                let fingerprint = parse_fingerprint(&self.fingerprint.ok_or_else(unreadable)?)?;
                ApprovalKind::Delete(Box::new(DeletionTarget {
                    instance: self.instance.ok_or_else(unreadable)?,
                    kind: self.item_kind.ok_or_else(unreadable)?,
                    id: self.item_id.ok_or_else(unreadable)?,
                    // Unknown files are never deleted: a fingerprint without a size has no known files.
                    delete_files: fingerprint.size_bytes > 0,
                    scope: DeletionScope::Whole,
                    fingerprint,
                }))
            }
            StoredApprovalKind::SeerrRequest => ApprovalKind::SeerrRequest(SeerrOffer {
                request: self.item_id.ok_or_else(unreadable)?,
                requester_id: self.account_id.ok_or_else(unreadable)?,
                requester: self.account_name.ok_or_else(unreadable)?,
                title: self.title.ok_or_else(unreadable)?,
            }),
            StoredApprovalKind::Title => ApprovalKind::Title(Box::new(TitleOverCap::from_columns(
                self.instance.ok_or_else(unreadable)?,
                (self.item_kind.ok_or_else(unreadable)?, self.item_id.ok_or_else(unreadable)?),
                &self.wanted.ok_or_else(unreadable)?,
            )?)),
            StoredApprovalKind::LinkAccount => {
                let server = self.instance.as_deref().and_then(MediaServerKind::from_name);
                ApprovalKind::LinkAccount(ViewerAccount {
                    server: server.ok_or_else(unreadable)?,
                    id: self.account_id.ok_or_else(unreadable)?,
                    name: self.account_name.ok_or_else(unreadable)?,
                })
            }
        };
        Ok(Approval {
            id: self.id,
            user: self.user_id,
            kind,
            code: ApprovalCode::parse(&self.code).ok_or_else(unreadable)?,
            outcome: self.state.outcome(),
            settled_at: self.settled_at,
            settled_by: self.settled_by,
            misses: self.misses,
            expires_at: self.expires_at,
            is_by_operator: self.kind == StoredApprovalKind::Delete && self.tool_call_id.is_none(),
        })
    }
}

/// Ended approval, with the fields needed to notify its user.
#[derive(Debug, Clone, PartialEq)]
pub struct EndedApproval {
    pub id: i64,
    pub user: UserId,
    pub subject: EndedApprovalSubject,
}

/// Subject of an ended approval, which may be unreadable.
#[derive(Debug, Clone, PartialEq)]
pub enum EndedApprovalSubject {
    Join,
    Removal(Box<DeletionTarget>),
    UnreadableRemoval,
    AccountLink(ViewerAccount),
    UnreadableAccountLink,
    SeerrRequest,
    Title,
}

impl ApprovalRow {
    fn into_ended_approval(self) -> QueryResult<EndedApproval> {
        let (id, user, stored_kind) = (self.id, self.user_id, self.kind);
        let kind = none_if_unreadable(self.into_approval())?.map(|approval| approval.kind);
        let subject = match (kind, stored_kind) {
            (Some(ApprovalKind::Delete(item)), _) => EndedApprovalSubject::Removal(item),
            (Some(ApprovalKind::LinkAccount(account)), _) => EndedApprovalSubject::AccountLink(account),
            (Some(ApprovalKind::Join), _) | (None, StoredApprovalKind::Join) => EndedApprovalSubject::Join,
            (Some(ApprovalKind::SeerrRequest(_)), _) | (None, StoredApprovalKind::SeerrRequest) => {
                EndedApprovalSubject::SeerrRequest
            }
            (Some(ApprovalKind::Title(_)), _) | (None, StoredApprovalKind::Title) => {
                EndedApprovalSubject::Title
            }
            (None, StoredApprovalKind::Delete) => EndedApprovalSubject::UnreadableRemoval,
            (None, StoredApprovalKind::LinkAccount) => EndedApprovalSubject::UnreadableAccountLink,
        };
        Ok(EndedApproval { id, user, subject })
    }
}

/// Approval to request from the admins.
#[derive(Debug, Clone)]
pub struct NewApproval<'a> {
    pub user: UserId,
    pub kind: &'a ApprovalKind,
    /// Call of the member, for a removal request.
    pub call: Option<CallRow>,
}

/// Requests an approval. `draw_code` is called until it returns a free code.
pub fn request_approval(
    conn: &mut Conn,
    new: &NewApproval<'_>,
    draw_code: &mut dyn FnMut() -> ApprovalCode,
    now: Timestamp,
) -> QueryResult<Approval> {
    let code = draw_free_code(conn, draw_code, now)?;
    diesel::insert_into(approvals::table)
        .values((
            SubjectColumns::from_kind(new.kind)?,
            approvals::user_id.eq(new.user),
            approvals::code.eq(code.as_str()),
            approvals::tool_call_id.eq(new.call),
            approvals::state.eq(ApprovalState::Open),
            approvals::created_at.eq(ms(now)),
            approvals::expires_at.eq(ms(now + CODE_LIFETIME)),
        ))
        .returning(ApprovalRow::as_returning())
        .get_result(conn)
        .and_then(ApprovalRow::into_approval)
}

/// Loads the call in which an approval was requested.
pub fn load_requesting_call(conn: &mut Conn, id: i64) -> QueryResult<Option<CallRow>> {
    approvals::table.find(id).select(approvals::tool_call_id).first(conn)
}

/// Draws a code that was not in use within the last day: a late reply must not match another approval.
fn draw_free_code(
    conn: &mut Conn,
    draw_code: &mut dyn FnMut() -> ApprovalCode,
    now: Timestamp,
) -> QueryResult<ApprovalCode> {
    loop {
        let code = draw_code();
        let recent = approvals::state.eq(ApprovalState::Open).or(approvals::expires_at.gt(ms(now)));
        let conflicting: Option<i64> = approvals::table
            .filter(approvals::code.eq(code.as_str()).and(recent))
            .select(approvals::id)
            .first(conn)
            .optional()?;
        if conflicting.is_none() {
            return Ok(code);
        }
    }
}

/// Result of a search for an approval by its code.
#[derive(Debug, Clone, PartialEq)]
pub enum CodeLookup {
    Open(Approval),
    /// The approval ended within the last day, by an admin or by expiry.
    Ended(ApprovalOutcome, Option<UserId>),
    /// Too many wrong codes were received since the code was sent.
    Disabled,
    Unknown,
}

pub fn find_approval_by_code(
    conn: &mut Conn,
    code: &ApprovalCode,
    now: Timestamp,
) -> QueryResult<CodeLookup> {
    let row: Option<ApprovalRow> = approvals::table
        .filter(approvals::code.eq(code.as_str()))
        .order(approvals::id.desc())
        .select(ApprovalRow::as_select())
        .first(conn)
        .optional()?;
    let Some(approval) = row.map(ApprovalRow::into_approval).transpose()? else {
        return Ok(CodeLookup::Unknown);
    };
    let is_recent = |at: Timestamp| at > now - CODE_LIFETIME;
    Ok(match (approval.outcome, approval.settled_at) {
        (None, _) if approval.expires_at <= now => CodeLookup::Ended(ApprovalOutcome::Expired, None),
        (None, _) if is_code_disabled(&approval) => CodeLookup::Disabled,
        (None, _) => CodeLookup::Open(approval),
        (Some(outcome), Some(at)) if is_recent(at) => CodeLookup::Ended(outcome, approval.settled_by),
        (Some(_), _) => CodeLookup::Unknown,
    })
}

/// Counts a wrong code for every open approval, because the code may have been meant for any of them.
pub fn count_wrong_code(conn: &mut Conn) -> QueryResult<()> {
    diesel::update(approvals::table.filter(OPEN))
        .set(approvals::misses.eq(approvals::misses + 1))
        .execute(conn)
        .map(drop)
}

/// Outcome of settling an approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettleApprovalOutcome {
    /// This decision settled the approval.
    Settled,
    /// The approval was settled before.
    AlreadySettled,
}

pub fn settle_approval(
    conn: &mut Conn,
    id: i64,
    outcome: ApprovalOutcome,
    settled_by: Option<UserId>,
    now: Timestamp,
) -> QueryResult<SettleApprovalOutcome> {
    let settled = diesel::update(approvals::table.find(id).filter(approvals::state.eq(ApprovalState::Open)))
        .set((
            approvals::state.eq(ApprovalState::from(outcome)),
            approvals::settled_at.eq(ms(now)),
            approvals::settled_by.eq(settled_by),
        ))
        .execute(conn)?;
    Ok(if settled == 1 { SettleApprovalOutcome::Settled } else { SettleApprovalOutcome::AlreadySettled })
}

/// Links an approved removal request to the call that executes it.
pub fn link_executing_call(conn: &mut Conn, id: i64, call: CallRow) -> QueryResult<()> {
    diesel::update(approvals::table.find(id)).set(approvals::run_call_id.eq(call)).execute(conn).map(drop)
}

/// Loads the approval that `call` executes, if there is one.
pub fn load_executed_approval(conn: &mut Conn, call: CallRow) -> QueryResult<Option<Approval>> {
    approvals::table
        .filter(approvals::run_call_id.eq(call))
        .select(ApprovalRow::as_select())
        .first(conn)
        .optional()?
        .map(ApprovalRow::into_approval)
        .transpose()
}

/// Loads the removal request that `call` executes, even if its item is unreadable; `None` if there is none.
pub fn load_executed_removal_request(conn: &mut Conn, call: CallRow) -> QueryResult<Option<EndedApproval>> {
    approvals::table
        .filter(approvals::run_call_id.eq(call))
        .select(ApprovalRow::as_select())
        .first(conn)
        .optional()?
        .map(ApprovalRow::into_ended_approval)
        .transpose()
}

/// Loads all open approvals, oldest first. An unreadable approval is skipped, so that it does not block the others.
pub fn load_open_approvals(conn: &mut Conn) -> QueryResult<Vec<Approval>> {
    let rows: Vec<ApprovalRow> =
        approvals::table.filter(OPEN).order(approvals::id).select(ApprovalRow::as_select()).load(conn)?;
    rows.into_iter().filter_map(|row| none_if_unreadable(row.into_approval()).transpose()).collect()
}

/// Loads the open approvals about one user.
pub fn load_open_approvals_about(conn: &mut Conn, user: UserId) -> QueryResult<Vec<Approval>> {
    let approvals = load_open_approvals(conn)?;
    Ok(approvals.into_iter().filter(|approval| approval.user == user).collect())
}

/// Loads the ids of all approvals about a user, open or not.
pub fn load_approval_ids_about(conn: &mut Conn, user: UserId) -> QueryResult<Vec<i64>> {
    approvals::table.filter(approvals::user_id.eq(user)).select(approvals::id).load(conn)
}

/// Returns whether too many wrong codes have disabled the code of an open approval.
pub fn is_code_disabled(approval: &Approval) -> bool {
    approval.misses >= MAX_MISSES
}

/// Replaces an approval whose code was disabled by wrong codes with the same approval under another code. The expiry
/// does not change.
pub fn replace_disabled_code(
    conn: &mut Conn,
    disabled: &Approval,
    draw_code: &mut dyn FnMut() -> ApprovalCode,
    now: Timestamp,
) -> QueryResult<Approval> {
    let call: Option<CallRow> =
        approvals::table.find(disabled.id).select(approvals::tool_call_id).first(conn)?;
    diesel::update(approvals::table.find(disabled.id))
        .set(approvals::tool_call_id.eq(None::<CallRow>))
        .execute(conn)?;
    settle_approval(conn, disabled.id, ApprovalOutcome::Replaced, None, now)?;
    let replacement_request = NewApproval { user: disabled.user, kind: &disabled.kind, call };
    let replacement = request_approval(conn, &replacement_request, draw_code, now)?;
    diesel::update(approvals::table.find(replacement.id))
        .set(approvals::expires_at.eq(ms(disabled.expires_at)))
        .execute(conn)?;
    Ok(Approval { expires_at: disabled.expires_at, ..replacement })
}

/// Ends the approvals that no admin decided in time, and returns them.
pub fn expire_approvals(conn: &mut Conn, now: Timestamp) -> QueryResult<Vec<EndedApproval>> {
    let is_expired = OPEN.and(approvals::expires_at.le(ms(now)));
    end_as_expired(conn, approvals::table.filter(is_expired).into_boxed(), now)
}

/// Ends all open approvals, because the time for which they were open is unknown, and returns them.
pub fn expire_all_approvals(conn: &mut Conn, now: Timestamp) -> QueryResult<Vec<EndedApproval>> {
    end_as_expired(conn, approvals::table.filter(OPEN).into_boxed(), now)
}

/// Ends the open removal requests about titles of an instance that was moved to another server, and returns them.
pub fn expire_removals_on_instance(
    conn: &mut Conn,
    instance: &str,
    now: Timestamp,
) -> QueryResult<Vec<EndedApproval>> {
    let is_open = OPEN.and(approvals::instance.eq(instance));
    end_as_expired(conn, approvals::table.filter(is_open).into_boxed(), now)
}

fn end_as_expired(
    conn: &mut Conn,
    approvals: approvals::BoxedQuery<'_, Sqlite>,
    now: Timestamp,
) -> QueryResult<Vec<EndedApproval>> {
    let rows: Vec<ApprovalRow> =
        approvals.order(approvals::id).select(ApprovalRow::as_select()).load(conn)?;
    for row in &rows {
        settle_approval(conn, row.id, ApprovalOutcome::Expired, None, now)?;
    }
    rows.into_iter().map(ApprovalRow::into_ended_approval).collect()
}

/// Ends the open approvals about a user who has left or was blocked.
pub fn withdraw_approvals(conn: &mut Conn, user: UserId, now: Timestamp) -> QueryResult<()> {
    let open: Vec<i64> =
        approvals::table.filter(OPEN.and(approvals::user_id.eq(user))).select(approvals::id).load(conn)?;
    open.into_iter()
        .try_for_each(|id| settle_approval(conn, id, ApprovalOutcome::Withdrawn, None, now).map(drop))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::transcript::PhoneNumber;
    use crate::store::people::users::{self, FirstContactRole};
    use crate::store::scratch;

    fn time_at(hours: i64) -> Timestamp {
        Timestamp::from_second(3600 * hours).unwrap()
    }

    fn code(number: u16) -> ApprovalCode {
        ApprovalCode::new(number).unwrap()
    }

    /// Requests the admission of a newcomer, with these codes drawn in turn.
    fn request_join(conn: &mut Conn, phone: &str, codes: &[u16]) -> Approval {
        let user = users::ensure_user(
            conn,
            PhoneNumber::parse(phone).unwrap(),
            FirstContactRole::Newcomer,
            time_at(0),
        )
        .unwrap();
        let mut codes = codes.iter();
        let request = NewApproval { user, kind: &ApprovalKind::Join, call: None };
        request_approval(conn, &request, &mut || code(*codes.next().unwrap()), time_at(0)).unwrap()
    }

    #[test]
    fn code_of_an_open_approval_is_not_reused() {
        let mut conn = scratch();
        request_join(&mut conn, "+15550100001", &[4821]);
        assert_eq!(request_join(&mut conn, "+15550100002", &[4821, 4821, 17]).code, code(17));
    }

    #[test]
    fn three_wrong_codes_disable_a_code_until_it_is_replaced() {
        let mut conn = scratch();
        let approval = request_join(&mut conn, "+15550100001", &[4821]);
        for _ in 0..3 {
            assert!(matches!(
                find_approval_by_code(&mut conn, &code(4821), time_at(1)).unwrap(),
                CodeLookup::Open(_)
            ));
            count_wrong_code(&mut conn).unwrap();
        }
        assert_eq!(find_approval_by_code(&mut conn, &code(4821), time_at(1)).unwrap(), CodeLookup::Disabled);
        let replacement = replace_disabled_code(&mut conn, &approval, &mut || code(9), time_at(1)).unwrap();
        assert_eq!((replacement.user, replacement.code), (approval.user, code(9)));
        assert!(matches!(
            find_approval_by_code(&mut conn, &code(9), time_at(1)).unwrap(),
            CodeLookup::Open(_)
        ));
        assert_eq!(
            find_approval_by_code(&mut conn, &code(4821), time_at(1)).unwrap(),
            CodeLookup::Ended(ApprovalOutcome::Replaced, None)
        );
        assert_eq!(
            find_approval_by_code(&mut conn, &code(9), time_at(24)).unwrap(),
            CodeLookup::Ended(ApprovalOutcome::Expired, None)
        );
    }

    #[test]
    fn code_works_once_and_for_a_day() {
        let mut conn = scratch();
        let approval = request_join(&mut conn, "+15550100001", &[4821]);
        assert!(matches!(
            find_approval_by_code(&mut conn, &code(4821), time_at(23)).unwrap(),
            CodeLookup::Open(_)
        ));
        assert!(matches!(
            find_approval_by_code(&mut conn, &code(4821), time_at(24)).unwrap(),
            CodeLookup::Ended(ApprovalOutcome::Expired, None)
        ));
        assert_eq!(
            settle_approval(
                &mut conn,
                approval.id,
                ApprovalOutcome::Approved,
                Some(approval.user),
                time_at(2)
            )
            .unwrap(),
            SettleApprovalOutcome::Settled
        );
        assert_eq!(
            settle_approval(&mut conn, approval.id, ApprovalOutcome::Denied, Some(approval.user), time_at(2))
                .unwrap(),
            SettleApprovalOutcome::AlreadySettled
        );
        assert!(matches!(
            find_approval_by_code(&mut conn, &code(4821), time_at(3)).unwrap(),
            CodeLookup::Ended(ApprovalOutcome::Approved, Some(_))
        ));
        assert_eq!(find_approval_by_code(&mut conn, &code(4821), time_at(48)).unwrap(), CodeLookup::Unknown);
    }
}
