//! Access to the console and the API: the hash of the password, sessions, sign-in links and API keys. Only hashes
//! are stored, Argon2id for the password and SHA-256 for the others: a copy of the database gives no access.

use diesel::prelude::*;
use jiff::Timestamp;

use super::codec::ms;
use super::column_types::stored_enum;
use super::schema::{api_keys, console_password, sessions, sign_in_links};
use super::{Conn, agent_calls};
use crate::conversation::transcript::UserId;

/// SHA-256 hash of a session token, a sign-in link or an API key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenHash(pub [u8; 32]);

/// Outcome of using a sign-in link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignInLinkOutcome {
    Redeemed,
    /// The link was used, has expired, or never existed.
    Invalid,
}

/// An API key that is not revoked, as shown to the operator.
#[derive(Debug, Clone, PartialEq, Eq, Queryable, Selectable)]
#[diesel(table_name = api_keys)]
pub struct ApiKey {
    pub id: i64,
    pub name: String,
    /// Last characters of the key, by which the operator recognizes it.
    pub ending: String,
    pub scope: KeyScope,
    /// Person for whom an agent acts with the key; `None` for a key for the API.
    #[diesel(column_name = user_id)]
    pub agent_of: Option<UserId>,
    pub created_at: Timestamp,
    pub last_used_at: Option<Timestamp>,
}

/// API key that is about to be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewApiKey {
    pub hash: TokenHash,
    pub name: String,
    pub ending: String,
    pub scope: KeyScope,
    /// Person for whom an agent acts with the key.
    pub agent_of: Option<UserId>,
}

stored_enum! {
    /// Scope of an API key.
    pub enum KeyScope {
        /// Key from before keys had scopes, which opens the routes of that time.
        Unscoped = "unscoped",
        Read = "read",
        /// Includes `Read`.
        Write = "write",
        /// Includes `Write`.
        Admin = "admin",
    }
}

/// Loads the hash of the console password, in PHC format; `None` if no password is set.
pub fn load_password_hash(conn: &mut Conn) -> QueryResult<Option<String>> {
    console_password::table.find(1).select(console_password::hash).first(conn).optional()
}

/// Replaces the password, or removes it if `hash` is `None`. Every session and sign-in link ends, so that only the operator
/// who knows the password has access.
pub fn replace_password(conn: &mut Conn, hash: Option<&str>, now: Timestamp) -> QueryResult<()> {
    diesel::delete(console_password::table.find(1)).execute(conn)?;
    if let Some(hash) = hash {
        diesel::insert_into(console_password::table)
            .values((
                console_password::id.eq(1),
                console_password::hash.eq(hash),
                console_password::changed_at.eq(ms(now)),
            ))
            .execute(conn)?;
    }
    diesel::delete(sign_in_links::table).execute(conn)?;
    diesel::delete(sessions::table).execute(conn).map(drop)
}

pub fn open_session(
    conn: &mut Conn,
    token: TokenHash,
    now: Timestamp,
    expires_at: Timestamp,
) -> QueryResult<()> {
    diesel::insert_into(sessions::table)
        .values((
            sessions::token_hash.eq(&token.0[..]),
            sessions::created_at.eq(ms(now)),
            sessions::last_seen_at.eq(ms(now)),
            sessions::expires_at.eq(ms(expires_at)),
        ))
        .execute(conn)
        .map(drop)
}

/// Returns the time of the last recorded use of a session that has not expired.
pub fn load_session_last_use(
    conn: &mut Conn,
    token: TokenHash,
    now: Timestamp,
) -> QueryResult<Option<Timestamp>> {
    sessions::table
        .find(&token.0[..])
        .filter(sessions::expires_at.gt(ms(now)))
        .select(sessions::last_seen_at)
        .first(conn)
        .optional()
}

/// Records the use of a session and extends it to `expires_at`. A session that has ended stays ended.
pub fn extend_session(
    conn: &mut Conn,
    token: TokenHash,
    now: Timestamp,
    expires_at: Timestamp,
) -> QueryResult<()> {
    let unexpired = sessions::table.find(&token.0[..]).filter(sessions::expires_at.gt(ms(now)));
    diesel::update(unexpired)
        .set((sessions::last_seen_at.eq(ms(now)), sessions::expires_at.eq(ms(expires_at))))
        .execute(conn)
        .map(drop)
}

pub fn end_session(conn: &mut Conn, token: TokenHash) -> QueryResult<()> {
    diesel::delete(sessions::table.find(&token.0[..])).execute(conn).map(drop)
}

pub fn create_sign_in_link(
    conn: &mut Conn,
    token: TokenHash,
    now: Timestamp,
    expires_at: Timestamp,
) -> QueryResult<()> {
    diesel::insert_into(sign_in_links::table)
        .values((
            sign_in_links::token_hash.eq(&token.0[..]),
            sign_in_links::created_at.eq(ms(now)),
            sign_in_links::expires_at.eq(ms(expires_at)),
        ))
        .execute(conn)
        .map(drop)
}

/// Returns whether a sign-in link is valid now. The check does not redeem the link.
pub fn is_sign_in_link_valid(conn: &mut Conn, token: TokenHash, now: Timestamp) -> QueryResult<bool> {
    let valid = sign_in_links::table
        .find(&token.0[..])
        .filter(sign_in_links::used_at.is_null().and(sign_in_links::expires_at.gt(ms(now))));
    diesel::select(diesel::dsl::exists(valid)).get_result(conn)
}

/// Redeems a sign-in link. A single statement ensures that only one of two concurrent uses of a link succeeds.
pub fn redeem_sign_in_link(
    conn: &mut Conn,
    token: TokenHash,
    now: Timestamp,
) -> QueryResult<SignInLinkOutcome> {
    let valid = sign_in_links::table
        .find(&token.0[..])
        .filter(sign_in_links::used_at.is_null().and(sign_in_links::expires_at.gt(ms(now))));
    let used = diesel::update(valid).set(sign_in_links::used_at.eq(ms(now))).execute(conn)?;
    Ok(if used == 0 { SignInLinkOutcome::Invalid } else { SignInLinkOutcome::Redeemed })
}

/// Creates an API key and returns its id.
pub fn create_api_key(conn: &mut Conn, key: &NewApiKey, now: Timestamp) -> QueryResult<i64> {
    diesel::insert_into(api_keys::table)
        .values((
            api_keys::name.eq(&key.name),
            api_keys::key_hash.eq(&key.hash.0[..]),
            api_keys::ending.eq(&key.ending),
            api_keys::scope.eq(key.scope),
            api_keys::user_id.eq(key.agent_of),
            api_keys::created_at.eq(ms(now)),
        ))
        .returning(api_keys::id)
        .get_result(conn)
}

/// Loads the API keys that are not revoked, newest first.
pub fn load_api_keys(conn: &mut Conn) -> QueryResult<Vec<ApiKey>> {
    api_keys::table
        .filter(api_keys::revoked_at.is_null())
        .order(api_keys::id.desc())
        .select(ApiKey::as_select())
        .load(conn)
}

/// Loads the API key that a caller presents, unless the key is revoked.
pub fn load_api_key(conn: &mut Conn, key: TokenHash) -> QueryResult<Option<ApiKey>> {
    api_keys::table
        .filter(api_keys::key_hash.eq(&key.0[..]).and(api_keys::revoked_at.is_null()))
        .select(ApiKey::as_select())
        .first(conn)
        .optional()
}

pub fn record_api_key_use(conn: &mut Conn, id: i64, now: Timestamp) -> QueryResult<()> {
    diesel::update(api_keys::table.find(id)).set(api_keys::last_used_at.eq(ms(now))).execute(conn).map(drop)
}

/// Loads the name that the owner gave an API key, revoked or not.
pub fn load_api_key_name(conn: &mut Conn, id: i64) -> QueryResult<String> {
    api_keys::table.find(id).select(api_keys::name).first(conn)
}

/// Revokes an API key, and ends what an agent has started with it. Returns the name of the key if it was not revoked before.
pub fn revoke_api_key(conn: &mut Conn, id: i64, now: Timestamp) -> QueryResult<Option<String>> {
    let revoked = diesel::update(api_keys::table.find(id).filter(api_keys::revoked_at.is_null()))
        .set(api_keys::revoked_at.eq(ms(now)))
        .returning(api_keys::name)
        .get_result(conn)
        .optional()?;
    if revoked.is_some() {
        agent_calls::end_calls_of_key(conn, id, now)?;
    }
    Ok(revoked)
}

/// Revokes the keys with which agents act for a person.
pub fn revoke_agent_keys(conn: &mut Conn, person: UserId, now: Timestamp) -> QueryResult<()> {
    let keys: Vec<i64> = api_keys::table
        .filter(api_keys::user_id.eq(person).and(api_keys::revoked_at.is_null()))
        .select(api_keys::id)
        .load(conn)?;
    keys.into_iter().try_for_each(|key| revoke_api_key(conn, key, now).map(drop))
}

/// Deletes expired sessions and sign-in links.
pub fn delete_expired_access(conn: &mut Conn, now: Timestamp) -> QueryResult<()> {
    diesel::delete(sessions::table.filter(sessions::expires_at.le(ms(now)))).execute(conn)?;
    diesel::delete(sign_in_links::table.filter(sign_in_links::expires_at.le(ms(now)))).execute(conn).map(drop)
}
