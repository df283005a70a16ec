//! Administration of users by the operator: lists, limits, recent conversations and changes.

use diesel::prelude::*;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::addresses::{self, StoredAddress};
use super::age_limits;
use super::rooms;
use super::users as user_rows;
use crate::conversation::digest::schedule::DigestSchedule;
use crate::conversation::people::naming::UserName;
use crate::conversation::rating_caps::{MinimumAge, RatingCaps};
use crate::conversation::transcript::{ConversationId, User, UserAddress, UserId, UserRights, UserRole};
use crate::store::audit::{self, Actor, AuditSubject, NewAuditEntry};
use crate::store::column_types::StoredEnum;
use crate::store::confirmation::code_misses::{self, CodeMisses};
use crate::store::conversation::conversations::EndReason;
use crate::store::library::quotas::{self, QuotaOverride};
use crate::store::schema::{conversations, inbound_events, turns, users};
use crate::store::{Conn, digests};

/// User, with the fields that only the operator sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserAccount {
    pub user: User,
    pub addresses: Vec<StoredAddress>,
    pub movies: UserLimit,
    pub seasons: UserLimit,
    /// Limit in gigabytes.
    pub space: UserLimit,
    pub digest: Option<DigestSchedule>,
    pub last_message_at: Option<Timestamp>,
    pub code_misses: CodeMisses,
}

/// Maximum number of movies or seasons that a user may add within the household's period, or of gigabytes that the
/// user's titles may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UserLimit {
    /// The household's limit applies.
    Household,
    Own(u32),
}

/// Loads the accounts of all users who are not forgotten, longest known first.
pub fn load_user_accounts(conn: &mut Conn) -> QueryResult<Vec<UserAccount>> {
    let users = user_rows::load_known_users(conn)?;
    users.into_iter().map(|user| load_account_details(conn, user)).collect()
}

pub fn find_user_id(conn: &mut Conn, address: impl Into<UserAddress>) -> QueryResult<Option<UserId>> {
    match addresses::find_address(conn, address)? {
        Some((_, user)) if rooms::load_room(conn, user)?.is_none() => Ok(Some(user)),
        Some(_) | None => Ok(None),
    }
}

/// Loads a user; `None` if the user is unknown or forgotten, or is a room.
pub fn find_known_user(conn: &mut Conn, id: UserId) -> QueryResult<Option<User>> {
    match rooms::load_room(conn, id)? {
        None => find_known_participant(conn, id),
        Some(_) => Ok(None),
    }
}

/// Loads a user or a room; `None` if it is unknown or forgotten.
pub fn find_known_participant(conn: &mut Conn, id: UserId) -> QueryResult<Option<User>> {
    let id: Option<UserId> = users::table
        .filter(users::id.eq(id).and(users::forgotten_at.is_null()))
        .select(users::id)
        .first(conn)
        .optional()?;
    id.map(|id| user_rows::load_user(conn, id)).transpose()
}

pub fn load_user_account(conn: &mut Conn, id: UserId) -> QueryResult<UserAccount> {
    let user = user_rows::load_user(conn, id)?;
    load_account_details(conn, user)
}

pub(in crate::store) fn load_account_details(conn: &mut Conn, user: User) -> QueryResult<UserAccount> {
    let quota = quotas::load_quota_override(conn, user.id)?;
    let last_message_at: Option<Timestamp> = inbound_events::table
        .filter(inbound_events::user_id.eq(user.id))
        .order(inbound_events::id.desc())
        .select(inbound_events::received_at)
        .first(conn)
        .optional()?;
    let user_limit = |limit: Option<u32>| limit.map_or(UserLimit::Household, UserLimit::Own);
    let code_misses = code_misses::load_code_misses(conn, user.id)?;
    let digest = digests::load_schedule(conn, user.id)?;
    Ok(UserAccount {
        code_misses,
        addresses: addresses::load_addresses(conn, user.id)?,
        user,
        movies: user_limit(quota.movies),
        seasons: user_limit(quota.seasons),
        space: user_limit(quota.space_gb),
        digest,
        last_message_at,
    })
}

/// Conversation in the list of a user's conversations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConversationOverview {
    pub name: String,
    pub started_at: Timestamp,
    pub ended_at: Option<Timestamp>,
    pub end_reason: Option<&'static str>,
    /// Number of the user's messages that were processed by turns.
    pub message_count: i64,
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = conversations)]
struct ConversationOverviewRow {
    id: ConversationId,
    name: String,
    started_at: Timestamp,
    ended_at: Option<Timestamp>,
    end_reason: Option<EndReason>,
}

/// Loads at most `limit` conversations of a user, newest first.
pub fn load_recent_conversations(
    conn: &mut Conn,
    user: UserId,
    limit: i64,
) -> QueryResult<Vec<ConversationOverview>> {
    let rows: Vec<ConversationOverviewRow> = conversations::table
        .filter(conversations::user_id.eq(user))
        .order(conversations::id.desc())
        .limit(limit)
        .select(ConversationOverviewRow::as_select())
        .load(conn)?;
    let into_overview = |row: ConversationOverviewRow| {
        let turns = turns::table.filter(turns::conversation_id.eq(row.id)).select(turns::id);
        let message_count: i64 = inbound_events::table
            .filter(inbound_events::turn_id.eq_any(turns.nullable()))
            .count()
            .get_result(conn)?;
        Ok(ConversationOverview {
            name: row.name,
            started_at: row.started_at,
            ended_at: row.ended_at,
            end_reason: row.end_reason.map(StoredEnum::as_text),
            message_count,
        })
    };
    rows.into_iter().map(into_overview).collect()
}

/// Changes of a user by the operator; `None` leaves a field as it is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UserChanges {
    pub role: Option<UserRole>,
    pub name: Option<UserName>,
    pub add: Option<bool>,
    pub delete: Option<bool>,
    pub four_k: Option<bool>,
    pub movies: Option<UserLimit>,
    pub seasons: Option<UserLimit>,
    /// Limit in gigabytes.
    pub space: Option<UserLimit>,
    /// Highest age of movies; `Some(None)` removes the cap.
    pub movie_cap: Option<Option<MinimumAge>>,
    pub show_cap: Option<Option<MinimumAge>>,
    /// Whether the user decides about titles over the caps of others.
    pub parent: Option<bool>,
    /// Time of the weekly digest; `Some(None)` turns it off.
    pub digest: Option<Option<DigestSchedule>>,
}

/// Outcome of changing a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeUserOutcome {
    Changed,
    /// The user is the last admin: no admin would be left to admit newcomers.
    LastAdmin,
}

pub fn change_user(
    conn: &mut Conn,
    user: UserId,
    changes: &UserChanges,
    actor: Actor,
    now: Timestamp,
) -> QueryResult<ChangeUserOutcome> {
    if changes.role == Some(UserRole::Member) && user_rows::is_last_admin(conn, user)? {
        return Ok(ChangeUserOutcome::LastAdmin);
    }
    let entry = NewAuditEntry {
        actor,
        kind: "set",
        subject: AuditSubject::User(user),
        detail: changes.audit_detail(),
    };
    audit::record_change(conn, &entry, now)?;
    let current = user_rows::load_user(conn, user)?.rights;
    let rights = UserRights {
        role: changes.role.unwrap_or(current.role),
        add: changes.add.unwrap_or(current.add),
        delete: changes.delete.unwrap_or(current.delete),
        four_k: changes.four_k.unwrap_or(current.four_k),
        ..current
    };
    user_rows::set_rights(conn, user, rights, now)?;
    let caps = RatingCaps {
        movies: changes.movie_cap.unwrap_or(current.caps.movies),
        shows: changes.show_cap.unwrap_or(current.caps.shows),
    };
    age_limits::set_rating_caps(conn, user, caps, now)?;
    if rights.rating_caps() != current.rating_caps() {
        // The caps of an admin apply once the admin is a member.
        age_limits::withdraw_readable_texts(conn, user, now)?;
    }
    if let Some(parent) = changes.parent {
        age_limits::set_parent(conn, user, parent, now)?;
    }
    if let Some(digest) = changes.digest {
        digests::store_schedule(conn, user, digest, now)?;
    }
    if let Some(name) = &changes.name {
        user_rows::set_name(conn, user, name, now)?;
    }
    let current = quotas::load_quota_override(conn, user)?;
    let quota = QuotaOverride {
        movies: changes.movies.map_or(current.movies, UserLimit::override_value),
        seasons: changes.seasons.map_or(current.seasons, UserLimit::override_value),
        space_gb: changes.space.map_or(current.space_gb, UserLimit::override_value),
    };
    quotas::store_quota_override(conn, user, quota, now)?;
    Ok(ChangeUserOutcome::Changed)
}

impl UserChanges {
    /// Leaves out the fields that have their new value already.
    #[must_use]
    pub fn without_current(self, account: &UserAccount) -> Self {
        let user = &account.user;
        let rights = user.rights;
        Self {
            role: self.role.filter(|role| *role != rights.role),
            name: self.name.filter(|name| user.name.as_deref() != Some(name.as_str())),
            add: self.add.filter(|add| *add != rights.add),
            delete: self.delete.filter(|delete| *delete != rights.delete),
            four_k: self.four_k.filter(|four_k| *four_k != rights.four_k),
            movies: self.movies.filter(|limit| *limit != account.movies),
            seasons: self.seasons.filter(|limit| *limit != account.seasons),
            space: self.space.filter(|limit| *limit != account.space),
            movie_cap: self.movie_cap.filter(|cap| *cap != rights.caps.movies),
            show_cap: self.show_cap.filter(|cap| *cap != rights.caps.shows),
            parent: self.parent.filter(|parent| *parent != rights.parent),
            digest: self.digest.filter(|digest| *digest != account.digest),
        }
    }

    /// Returns the changed fields for the audit log, which contains no names: a name is recorded only as changed.
    fn audit_detail(&self) -> Value {
        let limit_json =
            |limit: UserLimit| limit.override_value().map_or(json!("household"), |own| json!(own));
        let cap_json = |cap: Option<MinimumAge>| cap.map_or(json!("none"), |age| json!(age.0));
        let fields = [
            ("role", self.role.map(|role| json!(role.as_text()))),
            ("name", self.name.as_ref().map(|_| json!("changed"))),
            ("add", self.add.map(Value::from)),
            ("delete", self.delete.map(Value::from)),
            ("four_k", self.four_k.map(Value::from)),
            ("movies", self.movies.map(limit_json)),
            ("seasons", self.seasons.map(limit_json)),
            ("space_gb", self.space.map(limit_json)),
            ("movie_cap", self.movie_cap.map(cap_json)),
            ("show_cap", self.show_cap.map(cap_json)),
            ("parent", self.parent.map(Value::from)),
            (
                "digest",
                self.digest.map(|digest| digest.map_or(json!("off"), |digest| json!(digest.to_words()))),
            ),
        ];
        let changed = fields.into_iter().filter_map(|(field, value)| Some((field.to_owned(), value?)));
        Value::Object(changed.collect::<Map<_, _>>())
    }
}

impl UserLimit {
    /// Returns the user's own limit; `None` if the household's applies.
    pub fn override_value(self) -> Option<u32> {
        match self {
            Self::Household => None,
            Self::Own(limit) => Some(limit),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::users::FirstContactRole;
    use super::*;
    use crate::conversation::transcript::{PhoneNumber, UserStatus};
    use crate::store::schema::audit_log;
    use crate::store::scratch;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    fn create_admin(conn: &mut Conn, phone: &str) -> UserId {
        user_rows::ensure_user(conn, PhoneNumber::parse(phone).unwrap(), FirstContactRole::Admin, NOW)
            .unwrap()
    }

    fn demotion() -> UserChanges {
        UserChanges { role: Some(UserRole::Member), ..UserChanges::default() }
    }

    #[test]
    fn change_is_audited_with_new_values_except_the_name() {
        let mut conn = scratch();
        let sam = create_admin(&mut conn, "+15550100001");
        let changes = UserChanges {
            name: Some(UserName::parse("Sam").unwrap()),
            delete: Some(true),
            movies: Some(UserLimit::Own(3)),
            seasons: Some(UserLimit::Household),
            space: Some(UserLimit::Own(200)),
            ..UserChanges::default()
        };
        assert_eq!(
            change_user(&mut conn, sam, &changes, Actor::Shell, NOW).unwrap(),
            ChangeUserOutcome::Changed
        );
        let account = load_user_account(&mut conn, sam).unwrap();
        assert_eq!(account.user.name.as_deref(), Some("Sam"));
        assert_eq!(
            (account.user.rights.delete, account.movies, account.seasons, account.space),
            (true, UserLimit::Own(3), UserLimit::Household, UserLimit::Own(200))
        );
        let recorded: Vec<(Option<i64>, String, String)> = audit_log::table
            .select((audit_log::user_id, audit_log::subject, audit_log::detail))
            .load(&mut conn)
            .unwrap();
        let detail = r#"{"by":"shell","delete":true,"movies":3,"name":"changed","seasons":"household","space_gb":200}"#;
        assert_eq!(recorded, [(None, format!("user:{sam}"), detail.to_owned())]);
    }

    #[test]
    fn last_active_admin_cannot_be_demoted() {
        let mut conn = scratch();
        let (first, second) =
            (create_admin(&mut conn, "+15550100001"), create_admin(&mut conn, "+15550100002"));
        user_rows::set_status(&mut conn, second, UserStatus::Blocked, NOW).unwrap();
        assert_eq!(
            change_user(&mut conn, first, &demotion(), Actor::Shell, NOW).unwrap(),
            ChangeUserOutcome::LastAdmin
        );
        user_rows::set_status(&mut conn, second, UserStatus::Active, NOW).unwrap();
        assert_eq!(
            change_user(&mut conn, first, &demotion(), Actor::Shell, NOW).unwrap(),
            ChangeUserOutcome::Changed
        );
        assert_eq!(
            change_user(&mut conn, second, &demotion(), Actor::Shell, NOW).unwrap(),
            ChangeUserOutcome::LastAdmin
        );
    }
}
