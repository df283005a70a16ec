//! Reference to a user, as lists show it.

use diesel::prelude::*;

use crate::conversation::transcript::{PhoneNumber, UserId};
use crate::store::codec::unreadable_column;
use crate::store::schema::users;
use crate::store::{Conn, QueryResult};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserRef {
    pub id: UserId,
    pub identity: UserIdentity,
    /// True for a test user, created in the console to try things out: messages to a test user are only shown there.
    pub is_test: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UserIdentity {
    Known {
        name: Option<String>,
        phone: PhoneNumber,
    },
    /// Forgotten user, of whom only the row is left.
    Forgotten,
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = users)]
pub(super) struct UserRefRow {
    id: i64,
    display_name: Option<String>,
    phone: String,
    test: i64,
    forgotten_at: Option<i64>,
}

impl UserRefRow {
    pub(super) fn into_user_ref(self) -> QueryResult<UserRef> {
        let phone = PhoneNumber::parse(&self.phone).map_err(|_| unreadable_column("phone number"))?;
        let known = match self.forgotten_at {
            None => UserIdentity::Known { name: self.display_name, phone },
            Some(_) => UserIdentity::Forgotten,
        };
        Ok(UserRef { id: UserId(self.id), identity: known, is_test: self.test == 1 })
    }
}

pub fn load_user_ref(conn: &mut Conn, id: UserId) -> QueryResult<UserRef> {
    users::table.find(id.0).select(UserRefRow::as_select()).first(conn).and_then(UserRefRow::into_user_ref)
}
