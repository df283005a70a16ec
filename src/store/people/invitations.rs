//! Invitations, of which only a hash is stored, so that a copy of the database opens no door.

use diesel::prelude::*;
use jiff::Timestamp;
use sha2::{Digest, Sha256};

use crate::conversation::invitation::{INVITATION_VALIDITY, InvitationCode};
use crate::conversation::people::naming::UserName;
use crate::conversation::transcript::UserId;
use crate::store::Conn;
use crate::store::codec::ms;
use crate::store::schema::invitations;

/// Invitation that can be used.
#[derive(Debug, Clone, PartialEq, Eq, Queryable, Selectable)]
#[diesel(table_name = invitations)]
pub struct OpenInvitation {
    pub id: i64,
    /// Name of the invited person.
    pub name: String,
    /// Admin who invited the person; `None` if the operator did.
    pub invited_by: Option<UserId>,
}

pub fn create_invitation(
    conn: &mut Conn,
    (name, code): (&UserName, &InvitationCode),
    invited_by: Option<UserId>,
    now: Timestamp,
) -> QueryResult<()> {
    delete_expired_invitations(conn, now)?;
    diesel::insert_into(invitations::table)
        .values((
            invitations::code_hash.eq(hash_code(code)),
            invitations::name.eq(name.as_str()),
            invitations::invited_by.eq(invited_by),
            invitations::created_at.eq(ms(now)),
            invitations::expires_at.eq(ms(now + INVITATION_VALIDITY)),
        ))
        .execute(conn)
        .map(drop)
}

pub fn find_open_invitation(
    conn: &mut Conn,
    code: &InvitationCode,
    now: Timestamp,
) -> QueryResult<Option<OpenInvitation>> {
    invitations::table
        .filter(invitations::code_hash.eq(hash_code(code)))
        .filter(invitations::expires_at.gt(ms(now)).and(invitations::created_at.le(ms(now))))
        .select(OpenInvitation::as_select())
        .first(conn)
        .optional()
}

/// Deletes an invitation, because it was used or was withdrawn.
pub fn delete_invitation(conn: &mut Conn, id: i64) -> QueryResult<()> {
    diesel::delete(invitations::table.find(id)).execute(conn).map(drop)
}

/// Deletes the invitations that can no longer be used. One from the future was created before the clock was set back.
pub fn delete_expired_invitations(conn: &mut Conn, now: Timestamp) -> QueryResult<()> {
    let is_expired = invitations::expires_at.le(ms(now)).or(invitations::created_at.gt(ms(now)));
    diesel::delete(invitations::table.filter(is_expired)).execute(conn).map(drop)
}

fn hash_code(code: &InvitationCode) -> String {
    Sha256::digest(code.as_str().as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;
    use crate::store::scratch;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    #[test]
    fn invitation_ends_after_its_use_or_after_a_week() {
        let conn = &mut scratch();
        let (code, name) = (InvitationCode::from_random(7), UserName::parse("Sam").unwrap());
        create_invitation(conn, (&name, &code), None, NOW).unwrap();
        let open = find_open_invitation(conn, &code, NOW).unwrap().unwrap();
        assert_eq!((open.name.as_str(), open.invited_by), ("Sam", None));
        assert_eq!(find_open_invitation(conn, &InvitationCode::from_random(8), NOW).unwrap(), None);
        assert_eq!(find_open_invitation(conn, &code, NOW + INVITATION_VALIDITY).unwrap(), None);
        assert_eq!(find_open_invitation(conn, &code, NOW - SignedDuration::from_secs(1)).unwrap(), None);
        delete_invitation(conn, open.id).unwrap();
        assert_eq!(find_open_invitation(conn, &code, NOW).unwrap(), None);
    }
}
