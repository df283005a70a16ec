//! Users of media servers, and of a Seerr, that are linked to people.

use diesel::prelude::*;
use jiff::Timestamp;
use serde_json::json;

use crate::conversation::transcript::UserId;
use crate::conversation::viewer_accounts::{AccountScope, MediaServerKind, ViewerAccount};
use crate::store::Conn;
use crate::store::audit::{self, Actor, AuditSubject, NewAuditEntry};
use crate::store::codec::ms;
use crate::store::schema::viewer_accounts;

/// Account that is linked to a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkedAccount {
    pub user: UserId,
    pub account: ViewerAccount,
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = viewer_accounts)]
struct AccountRow {
    server: MediaServerKind,
    account_id: String,
    account_name: String,
    user_id: UserId,
}

impl From<AccountRow> for LinkedAccount {
    fn from(row: AccountRow) -> Self {
        let account = ViewerAccount { server: row.server, id: row.account_id, name: row.account_name };
        Self { user: row.user_id, account }
    }
}

/// Loads the linked accounts of everybody.
pub fn load_linked_accounts(conn: &mut Conn) -> QueryResult<Vec<LinkedAccount>> {
    let rows: Vec<AccountRow> = viewer_accounts::table
        .order((viewer_accounts::user_id, viewer_accounts::server, viewer_accounts::account_id))
        .select(AccountRow::as_select())
        .load(conn)?;
    Ok(rows.into_iter().map(LinkedAccount::from).collect())
}

/// Loads the accounts of one user.
pub fn load_accounts(conn: &mut Conn, user: UserId) -> QueryResult<Vec<ViewerAccount>> {
    let rows: Vec<AccountRow> = viewer_accounts::table
        .filter(viewer_accounts::user_id.eq(user))
        .order((viewer_accounts::server, viewer_accounts::account_id))
        .select(AccountRow::as_select())
        .load(conn)?;
    Ok(rows.into_iter().map(|row| LinkedAccount::from(row).account).collect())
}

/// Loads the account of a user at a Seerr, in whose name titles are requested.
pub fn load_seerr_account(conn: &mut Conn, user: UserId) -> QueryResult<Option<ViewerAccount>> {
    let accounts = load_accounts(conn, user)?;
    Ok(accounts.into_iter().find(|account| account.server == MediaServerKind::Seerr))
}

/// Finds the user to whom an account is linked.
pub fn find_owner(conn: &mut Conn, server: MediaServerKind, id: &str) -> QueryResult<Option<UserId>> {
    viewer_accounts::table.find((server, id)).select(viewer_accounts::user_id).first(conn).optional()
}

/// Outcome of linking an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkAccountOutcome {
    Linked,
    /// The account is one of the user's already.
    Known,
    /// The account belongs to this other user.
    OtherUser(UserId),
    /// The user is linked to another account at the Seerr, which must be unlinked first.
    OtherAccount,
}

/// Links an account to a user. It must be unlinked from another user first.
pub fn link_account(
    conn: &mut Conn,
    user: UserId,
    account: &ViewerAccount,
    actor: Actor,
    now: Timestamp,
) -> QueryResult<LinkAccountOutcome> {
    match find_owner(conn, account.server, &account.id)? {
        Some(owner) if owner == user => return Ok(LinkAccountOutcome::Known),
        Some(owner) => return Ok(LinkAccountOutcome::OtherUser(owner)),
        None => {}
    }
    if account.server == MediaServerKind::Seerr && load_seerr_account(conn, user)?.is_some() {
        return Ok(LinkAccountOutcome::OtherAccount);
    }
    diesel::insert_into(viewer_accounts::table)
        .values((
            viewer_accounts::server.eq(account.server),
            viewer_accounts::account_id.eq(&account.id),
            viewer_accounts::account_name.eq(&account.name),
            viewer_accounts::user_id.eq(user),
            viewer_accounts::linked_at.eq(ms(now)),
        ))
        .execute(conn)?;
    record_change(conn, "link_account", (user, account.server), actor, now)?;
    Ok(LinkAccountOutcome::Linked)
}

/// Outcome of unlinking accounts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnlinkAccountOutcome {
    Unlinked,
    /// The user has no such account.
    Unknown,
}

/// Unlinks one account of a user.
pub fn unlink_account(
    conn: &mut Conn,
    user: UserId,
    (server, id): (MediaServerKind, &str),
    actor: Actor,
    now: Timestamp,
) -> QueryResult<UnlinkAccountOutcome> {
    let is_own = viewer_accounts::user_id.eq(user);
    let removed = diesel::delete(viewer_accounts::table.find((server, id)).filter(is_own)).execute(conn)?;
    if removed == 0 {
        return Ok(UnlinkAccountOutcome::Unknown);
    }
    record_change(conn, "unlink_account", (user, server), actor, now)?;
    Ok(UnlinkAccountOutcome::Unlinked)
}

/// Deletes the links of a user whose data is erased.
pub(in crate::store) fn delete_accounts(conn: &mut Conn, user: UserId) -> QueryResult<()> {
    diesel::delete(viewer_accounts::table.filter(viewer_accounts::user_id.eq(user))).execute(conn).map(drop)
}

/// Unlinks the accounts of a user in a scope, who asked for it.
pub fn unlink_accounts(
    conn: &mut Conn,
    (user, scope): (UserId, AccountScope),
    actor: Actor,
    now: Timestamp,
) -> QueryResult<UnlinkAccountOutcome> {
    let mut outcome = UnlinkAccountOutcome::Unknown;
    for ViewerAccount { server, id, .. } in load_accounts(conn, user)? {
        if !scope.includes(server) {
            continue;
        }
        outcome = unlink_account(conn, user, (server, &id), actor, now)?;
    }
    Ok(outcome)
}

fn record_change(
    conn: &mut Conn,
    kind: &'static str,
    (user, server): (UserId, MediaServerKind),
    actor: Actor,
    now: Timestamp,
) -> QueryResult<()> {
    let detail = json!({ "server": server.name() });
    audit::record_change(conn, &NewAuditEntry { actor, kind, subject: AuditSubject::User(user), detail }, now)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::transcript::PhoneNumber;
    use crate::store::people::users::{self, FirstContactRole};
    use crate::store::scratch;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    fn create_user(conn: &mut Conn, phone: &str) -> UserId {
        users::ensure_user(conn, PhoneNumber::parse(phone).unwrap(), FirstContactRole::Member, NOW).unwrap()
    }

    fn account(id: &str) -> ViewerAccount {
        ViewerAccount { server: MediaServerKind::Jellyfin, id: id.to_owned(), name: "Sam".to_owned() }
    }

    fn link(conn: &mut Conn, user: UserId, id: &str) -> LinkAccountOutcome {
        link_account(conn, user, &account(id), Actor::Console, NOW).unwrap()
    }

    #[test]
    fn person_has_several_accounts_and_an_account_one_person() {
        let mut conn = scratch();
        let (ann, bob) = (create_user(&mut conn, "+15550100001"), create_user(&mut conn, "+15550100002"));
        assert_eq!(link(&mut conn, ann, "a"), LinkAccountOutcome::Linked);
        assert_eq!(link(&mut conn, ann, "tv"), LinkAccountOutcome::Linked);
        assert_eq!(link(&mut conn, ann, "a"), LinkAccountOutcome::Known);
        assert_eq!(link(&mut conn, bob, "a"), LinkAccountOutcome::OtherUser(ann));
        assert_eq!(load_accounts(&mut conn, ann).unwrap(), [account("a"), account("tv")]);
        assert_eq!(load_accounts(&mut conn, bob).unwrap(), []);
    }

    #[test]
    fn person_has_one_account_at_a_seerr_which_is_unlinked_alone() {
        let mut conn = scratch();
        let ann = create_user(&mut conn, "+15550100001");
        let at_seerr = |id: &str| ViewerAccount { server: MediaServerKind::Seerr, ..account(id) };
        let link = |conn: &mut Conn, account: &ViewerAccount| {
            link_account(conn, ann, account, Actor::Console, NOW).unwrap()
        };
        link(&mut conn, &account("a"));
        assert_eq!(link(&mut conn, &at_seerr("3")), LinkAccountOutcome::Linked);
        assert_eq!(link(&mut conn, &at_seerr("4")), LinkAccountOutcome::OtherAccount);
        assert_eq!(load_seerr_account(&mut conn, ann).unwrap(), Some(at_seerr("3")));
        unlink_accounts(&mut conn, (ann, AccountScope::MediaServers), Actor::Console, NOW).unwrap();
        assert_eq!(load_accounts(&mut conn, ann).unwrap(), [at_seerr("3")]);
        unlink_accounts(&mut conn, (ann, AccountScope::Seerr), Actor::Console, NOW).unwrap();
        assert_eq!(load_accounts(&mut conn, ann).unwrap(), []);
    }

    #[test]
    fn account_of_somebody_else_cannot_be_unlinked() {
        let mut conn = scratch();
        let (ann, bob) = (create_user(&mut conn, "+15550100001"), create_user(&mut conn, "+15550100002"));
        link(&mut conn, ann, "a");
        let id = (MediaServerKind::Jellyfin, "a");
        let unlink = |conn: &mut Conn, user| unlink_account(conn, user, id, Actor::Console, NOW).unwrap();
        assert_eq!(unlink(&mut conn, bob), UnlinkAccountOutcome::Unknown);
        assert_eq!(unlink(&mut conn, ann), UnlinkAccountOutcome::Unlinked);
        assert_eq!(link(&mut conn, bob, "a"), LinkAccountOutcome::Linked);
    }
}
