//! Deletion of old events. A reader whose cursor is before a deleted event detects the deletion by the floor of the
//! conversation, the sequence number of its last deleted event.

use std::collections::BTreeMap;

use diesel::prelude::*;
use jiff::Timestamp;

use crate::conversation::stream_events::EventSeq;
use crate::conversation::transcript::{ConversationId, UserId};
use crate::store::Conn;
use crate::store::codec::ms;
use crate::store::schema::{conversations, stream_events, turns};

/// Number of events that one transaction checks. The number is small, because incoming messages wait for the end of the
/// transaction.
const BATCH_SIZE: i64 = 500;

/// Progress of the deletion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PruneProgress {
    /// The next batch begins after this event.
    UpTo(EventSeq),
    /// All events before the time limit are deleted, except those of running turns.
    Complete,
}

/// Deletes one batch of the events after `after` that are older than `before`, except those of running turns. The
/// content of the events remains in the tables that they reference.
pub fn prune_events(conn: &mut Conn, after: EventSeq, before: Timestamp) -> QueryResult<PruneProgress> {
    let batch: Vec<(EventSeq, Timestamp)> = stream_events::table
        .filter(stream_events::seq.gt(after))
        .order(stream_events::seq)
        .limit(BATCH_SIZE)
        .select((stream_events::seq, stream_events::created_at))
        .load(conn)?;
    let old = batch.iter().take_while(|(_, at)| *at < before);
    let Some(&(up_to, _)) = old.last() else { return Ok(PruneProgress::Complete) };
    let running = turns::table.filter(turns::finished_at.is_null()).select(turns::id.nullable());
    let is_finished = stream_events::turn_id.is_null().or(stream_events::turn_id.ne_all(running));
    let is_old = stream_events::seq.gt(after).and(stream_events::seq.le(up_to));
    let deleted = diesel::delete(stream_events::table.filter(is_old.and(is_finished)))
        .returning((stream_events::conversation_id, stream_events::seq))
        .get_results(conn)?;
    raise_floors(conn, deleted)?;
    let is_all_old = batch.last().is_some_and(|(seq, _)| *seq == up_to);
    let is_full = i64::try_from(batch.len()).is_ok_and(|count| count >= BATCH_SIZE);
    Ok(if is_all_old && is_full { PruneProgress::UpTo(up_to) } else { PruneProgress::Complete })
}

/// Raises the floor of each conversation to its highest deleted event. `deleted` holds pairs of conversation and event.
pub(in crate::store) fn raise_floors(
    conn: &mut Conn,
    deleted: Vec<(ConversationId, EventSeq)>,
) -> QueryResult<()> {
    let mut floors: BTreeMap<ConversationId, EventSeq> = BTreeMap::new();
    for (conversation, seq) in deleted {
        let floor = floors.entry(conversation).or_insert(seq);
        *floor = seq.max(*floor);
    }
    for (conversation, floor) in floors {
        let with_lower_floor =
            conversations::table.find(conversation).filter(conversations::stream_floor.lt(floor));
        diesel::update(with_lower_floor).set(conversations::stream_floor.eq(floor)).execute(conn)?;
    }
    Ok(())
}

/// Forces all readers of this user's conversations, which have all ended, to reload, because the content that they
/// received is erased. An event above every cursor wakes the readers, and the floor is raised to this event.
pub(in crate::store) fn force_reload(conn: &mut Conn, user: UserId, now: Timestamp) -> QueryResult<()> {
    let ids: Vec<ConversationId> =
        conversations::table.filter(conversations::user_id.eq(user)).select(conversations::id).load(conn)?;
    let mut floors = Vec::new();
    for conversation in ids {
        let seq = diesel::insert_into(stream_events::table)
            .values((
                stream_events::conversation_id.eq(conversation),
                stream_events::kind.eq("conversation"),
                stream_events::state.eq("ended"),
                stream_events::created_at.eq(ms(now)),
            ))
            .returning(stream_events::seq)
            .get_result(conn)?;
        floors.push((conversation, seq));
    }
    raise_floors(conn, floors)
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;
    use crate::conversation::transcript::{ConversationId, PhoneNumber, Responder, TurnId};
    use crate::store::conversation::conversations::{EndReason, end_conversation, start_conversation};
    use crate::store::people::users::{self, FirstContactRole};
    use crate::store::queue::inbound_messages::MessageOutcome;
    use crate::store::scratch;
    use crate::store::stream::event_reader::{self, EventsSince};
    use crate::store::turns::turn_lifecycle::{self, NewTurn, TurnEnd, TurnKind, TurnPlan};

    const START: Timestamp = Timestamp::UNIX_EPOCH;

    /// Creates a conversation of a user, with one turn.
    fn create_conversation(conn: &mut Conn, phone: &str) -> (ConversationId, TurnId) {
        let phone = PhoneNumber::parse(phone).unwrap();
        let user = users::ensure_user(conn, &phone, FirstContactRole::Member, START).unwrap();
        let conversation = start_conversation(conn, user, "Nov 20", START).unwrap();
        let plan = TurnPlan::for_responder(Responder::Model);
        let new_turn = NewTurn { user, conversation, kind: TurnKind::Chat, plan: &plan };
        (conversation, turn_lifecycle::create_turn(conn, new_turn, START).unwrap())
    }

    /// Returns the numbers of the remaining events, or `None` if earlier events are missing.
    fn load_remaining(conn: &mut Conn, conversation: ConversationId, after: i64) -> Option<Vec<i64>> {
        match event_reader::load_events_since(conn, conversation, EventSeq(after), 100).unwrap() {
            EventsSince::Pruned => None,
            EventsSince::Events { events, .. } => Some(events.iter().map(|event| event.seq.0).collect()),
        }
    }

    #[test]
    fn pruned_events_invalidate_earlier_cursors() {
        let mut conn = scratch();
        let (finished, turn) = create_conversation(&mut conn, "+15550100001");
        let (running, _) = create_conversation(&mut conn, "+15550100002");
        let end = TurnEnd::without_message(turn, MessageOutcome::Replied);
        turn_lifecycle::finish_turn(&mut conn, &end, START).unwrap();
        let later = START + SignedDuration::from_secs(1);
        assert_eq!(prune_events(&mut conn, EventSeq(0), START), Ok(PruneProgress::Complete));
        assert_eq!(
            (load_remaining(&mut conn, finished, 0), load_remaining(&mut conn, running, 0)),
            (Some(vec![1, 2, 5]), Some(vec![3, 4]))
        );

        assert_eq!(prune_events(&mut conn, EventSeq(0), later), Ok(PruneProgress::Complete));
        assert_eq!(
            (load_remaining(&mut conn, finished, 4), load_remaining(&mut conn, finished, 5)),
            (None, Some(vec![]))
        );
        assert_eq!(
            (load_remaining(&mut conn, running, 2), load_remaining(&mut conn, running, 3)),
            (None, Some(vec![4]))
        );
        assert_eq!(load_remaining(&mut conn, finished, 6), None, "the cursor is after the last event");
    }

    #[test]
    fn pruning_deletes_in_batches() {
        let mut conn = scratch();
        let (conversation, _) = create_conversation(&mut conn, "+15550100001");
        for _ in 0..BATCH_SIZE {
            end_conversation(&mut conn, conversation, EndReason::Idle, START).unwrap();
            let reopened = (
                conversations::ended_at.eq(None::<Timestamp>),
                conversations::end_reason.eq(None::<EndReason>),
            );
            diesel::update(conversations::table).set(reopened).execute(&mut conn).unwrap();
        }
        let later = START + SignedDuration::from_secs(1);
        let mut batch_ends = vec![EventSeq(0)];
        while let PruneProgress::UpTo(seq) =
            prune_events(&mut conn, batch_ends[batch_ends.len() - 1], later).unwrap()
        {
            batch_ends.push(seq);
        }
        assert_eq!(batch_ends, [EventSeq(0), EventSeq(500), EventSeq(1_000)]);
        let rows: i64 = stream_events::table.count().get_result(&mut conn).unwrap();
        assert_eq!(rows, 1, "the event of the running turn remains");
    }
}
