//! Made-up texts of the last 30 days for `dialarr demo`, so that the pages of the console have content.

use diesel::connection::SimpleConnection;

use super::{Conn, QueryResult};

/// Fills a new database, in which the only user is the admin.
pub fn insert_demo_history(conn: &mut Conn) -> QueryResult<()> {
    conn.batch_execute(include_str!("demo_history.sql"))
}

#[cfg(test)]
mod tests {
    use diesel::prelude::*;
    use jiff::Timestamp;

    use super::*;
    use crate::conversation::transcript::PhoneNumber;
    use crate::store::people::users::{self, FirstContactRole};
    use crate::store::schema::{inbound_events, outbox};
    use crate::store::scratch;

    #[test]
    fn history_of_the_demo_has_a_reply_to_each_text_in_order() {
        let mut conn = scratch();
        let admin = PhoneNumber::parse("+15550100101").unwrap();
        users::ensure_user(&mut conn, &admin, FirstContactRole::Member, Timestamp::now()).unwrap();

        insert_demo_history(&mut conn).unwrap();

        let received: Vec<i64> = inbound_events::table
            .order(inbound_events::id)
            .select(inbound_events::received_at)
            .load::<Timestamp>(&mut conn)
            .unwrap()
            .iter()
            .map(|at| at.as_millisecond())
            .collect();
        let replies: i64 = outbox::table.count().get_result(&mut conn).unwrap();
        assert!(received.is_sorted() && received.len() > 40, "{} texts", received.len());
        assert_eq!(usize::try_from(replies), Ok(received.len()));
        assert_eq!(users::load_known_users(&mut conn).unwrap().len(), 3);
    }
}
