//! Times of recent messages, for the counts per day. Message times have no index, so that inserts stay fast. Ids
//! increase with time, so the first message of a period is found by binary search.

use diesel::prelude::*;
use jiff::Timestamp;

use super::NEWEST;
use crate::conversation::channel_list;
use crate::conversation::delivery_status::DeliveryStatus;
use crate::conversation::transcript::Address;
use crate::store::codec::ms;
use crate::store::conversation::record::delivery::DeliveryColumns;
use crate::store::schema::{inbound_events, outbox, users};
use crate::store::{Conn, QueryResult};

/// Times of inbound messages, and times with the status of outbound messages, without those of test users.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MessageTimes {
    pub received: Vec<Timestamp>,
    pub sent: Vec<(Timestamp, DeliveryStatus)>,
}

/// Loads the times of the messages dated `from` or later.
pub fn load_message_times(conn: &mut Conn, from: Timestamp) -> QueryResult<MessageTimes> {
    let newest: Option<i64> = inbound_events::table
        .filter(inbound_events::id.lt(NEWEST))
        .order(inbound_events::id.desc())
        .select(inbound_events::id)
        .first(conn)
        .optional()?;
    let first_id = find_first_id_since(newest.unwrap_or(0), from, |id| {
        inbound_events::table
            .filter(inbound_events::id.ge(id))
            .order(inbound_events::id)
            .select((inbound_events::id, inbound_events::received_at))
            .first(conn)
            .optional()
    })?;
    let received = inbound_events::table
        .filter(inbound_events::id.ge(first_id).and(inbound_events::received_at.ge(ms(from))))
        .filter(inbound_events::channel.ne(channel_list::CONSOLE))
        .select(inbound_events::received_at)
        .load(conn)?;
    let newest: Option<i64> = outbox::table
        .filter(outbox::id.lt(NEWEST))
        .order(outbox::id.desc())
        .select(outbox::id)
        .first(conn)
        .optional()?;
    let first_id = find_first_id_since(newest.unwrap_or(0), from, |id| {
        outbox::table
            .filter(outbox::id.ge(id))
            .order(outbox::id)
            .select((outbox::id, outbox::created_at))
            .first(conn)
            .optional()
    })?;
    let sent: Vec<(Timestamp, Address, DeliveryColumns)> = outbox::table
        .inner_join(users::table.on(users::id.eq(outbox::user_id)))
        .filter(outbox::id.ge(first_id).and(outbox::created_at.ge(ms(from))))
        .filter(users::test.eq(false).and(outbox::from_addr.ne(Address::console().as_str())))
        .select((outbox::created_at, outbox::from_addr, DeliveryColumns::as_select()))
        .load(conn)?;
    let time_and_status =
        |(at, from, delivery): (Timestamp, Address, DeliveryColumns)| (at, delivery.status(from.channel()));
    Ok(MessageTimes { received, sent: sent.into_iter().map(time_and_status).collect() })
}

/// Returns the smallest id from which rows are dated `from` or later. `load_row_at_or_after` returns the first row with
/// this id or a later one.
fn find_first_id_since<T: PartialOrd + Copy>(
    newest: i64,
    from: T,
    mut load_row_at_or_after: impl FnMut(i64) -> QueryResult<Option<(i64, T)>>,
) -> QueryResult<i64> {
    let (mut low, mut high) = (0, newest + 1);
    while low < high {
        let middle = low + (high - low) / 2;
        match load_row_at_or_after(middle)? {
            Some((id, at)) if at < from => low = id + 1,
            Some(_) | None => high = middle,
        }
    }
    Ok(low)
}

#[cfg(test)]
mod tests {
    use super::find_first_id_since;

    #[test]
    fn first_row_of_a_period_is_found_despite_id_gaps() {
        let rows = [(2, 10), (3, 20), (9, 20), (10, 30), (40, 50)];
        let find_first_id = |from: i64| {
            let row_at_or_after = |id| Ok(rows.iter().copied().find(|(row, _)| *row >= id));
            find_first_id_since(40, from, row_at_or_after).unwrap()
        };
        let first_row = |from: i64| rows.iter().find(|(id, _)| *id >= find_first_id(from)).map(|(id, _)| *id);
        assert_eq!(
            [0, 10, 11, 20, 21, 50, 51].map(first_row),
            [Some(2), Some(2), Some(3), Some(3), Some(10), Some(40), None]
        );
    }
}
