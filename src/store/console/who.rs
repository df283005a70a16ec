//! Reference to a user, as lists show it.

use diesel::prelude::*;

use crate::conversation::transcript::{PhoneNumber, UserId};
use crate::store::codec::unreadable;
use crate::store::schema::users;
use crate::store::{Conn, QueryResult};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Who {
    pub id: UserId,
    pub known: Known,
    /// True for a test user, created in the console to try things out: messages to a test user are only shown there.
    pub is_test: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Known {
    As {
        name: Option<String>,
        phone: PhoneNumber,
    },
    /// Forgotten user, of whom only the row is left.
    Forgotten,
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = users)]
pub(super) struct Row {
    id: i64,
    display_name: Option<String>,
    phone: String,
    test: i64,
    forgotten_at: Option<i64>,
}

impl Row {
    pub(super) fn read(self) -> QueryResult<Who> {
        let phone = PhoneNumber::parse(&self.phone).map_err(|_| unreadable("phone number"))?;
        let known = match self.forgotten_at {
            None => Known::As { name: self.display_name, phone },
            Some(_) => Known::Forgotten,
        };
        Ok(Who { id: UserId(self.id), known, is_test: self.test == 1 })
    }
}

pub fn by_id(conn: &mut Conn, id: UserId) -> QueryResult<Who> {
    users::table.find(id.0).select(Row::as_select()).first(conn).and_then(Row::read)
}
