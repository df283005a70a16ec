//! Identity of a user, as shown in lists.

use diesel::prelude::*;
use jiff::Timestamp;

use crate::conversation::transcript::{UserAddress, UserId};
use crate::store::people::{addresses, rooms};
use crate::store::schema::users;
use crate::store::{Conn, QueryResult};

/// User as named in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserRef {
    pub id: UserId,
    pub identity: UserIdentity,
    /// True for a fictional user of the console, whose messages are shown only there.
    pub is_test: bool,
    /// True for a group chat, which is no person.
    pub is_room: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UserIdentity {
    Known {
        name: Option<String>,
        address: Option<UserAddress>,
    },
    /// Erased user, of whom only the row is left.
    Erased,
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = users)]
pub(super) struct UserRefRow {
    id: UserId,
    display_name: Option<String>,
    #[diesel(select_expression = addresses::first_address())]
    address: Option<UserAddress>,
    test: bool,
    #[diesel(select_expression = rooms::is_room())]
    is_room: bool,
    forgotten_at: Option<Timestamp>,
}

impl From<UserRefRow> for UserRef {
    fn from(row: UserRefRow) -> Self {
        let identity = match row.forgotten_at {
            None => UserIdentity::Known { name: row.display_name, address: row.address },
            Some(_) => UserIdentity::Erased,
        };
        Self { id: row.id, identity, is_test: row.test, is_room: row.is_room }
    }
}

pub fn load_user_ref(conn: &mut Conn, id: UserId) -> QueryResult<UserRef> {
    users::table.find(id).select(UserRefRow::as_select()).first(conn).map(UserRef::from)
}
