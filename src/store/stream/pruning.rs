//! Deletion of old events. Readers with a cursor before the deleted events detect the deletion by the floor of their
//! conversation.

use std::collections::BTreeMap;

use diesel::prelude::*;
use jiff::Timestamp;

use crate::conversation::stream_events::EventSeq;
use crate::conversation::transcript::{ConversationId, UserId};
use crate::store::Conn;
use crate::store::codec::ms;
use crate::store::schema::{conversations, stream_events, turns};

/// Number of events that one transaction checks. The number is small, since incoming messages wait for the end of the
/// transaction.
const LOOKED_AT: i64 = 500;

/// Progress of the deletion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PruneProgress {
    /// The next batch begins after this event.
    UpTo(EventSeq),
    Everything,
}

/// Deletes the oldest events after `after` that are from before `before`, unless their turn is still running. The
/// content of the events remains in the tables that they reference.
pub fn prune_events(conn: &mut Conn, after: EventSeq, before: Timestamp) -> QueryResult<PruneProgress> {
    let next: Vec<(EventSeq, Timestamp)> = stream_events::table
        .filter(stream_events::seq.gt(after))
        .order(stream_events::seq)
        .limit(LOOKED_AT)
        .select((stream_events::seq, stream_events::created_at))
        .load(conn)?;
    let old = next.iter().take_while(|(_, at)| *at < before);
    let Some(&(up_to, _)) = old.last() else { return Ok(PruneProgress::Everything) };
    let running = turns::table.filter(turns::finished_at.is_null()).select(turns::id.nullable());
    let over = stream_events::turn_id.is_null().or(stream_events::turn_id.ne_all(running));
    let piece = stream_events::seq.gt(after).and(stream_events::seq.le(up_to));
    let deleted = diesel::delete(stream_events::table.filter(piece.and(over)))
        .returning((stream_events::conversation_id, stream_events::seq))
        .get_results(conn)?;
    raise_floors(conn, deleted)?;
    let all_old = next.last().is_some_and(|(seq, _)| *seq == up_to);
    let full = i64::try_from(next.len()).is_ok_and(|count| count >= LOOKED_AT);
    Ok(if all_old && full { PruneProgress::UpTo(up_to) } else { PruneProgress::Everything })
}

/// Raises the floor of each conversation to its highest deleted event. `deleted` holds pairs of conversation and event.
pub(in crate::store) fn raise_floors(
    conn: &mut Conn,
    deleted: Vec<(ConversationId, EventSeq)>,
) -> QueryResult<()> {
    let mut highest: BTreeMap<ConversationId, EventSeq> = BTreeMap::new();
    for (conversation, seq) in deleted {
        let floor = highest.entry(conversation).or_insert(seq);
        *floor = seq.max(*floor);
    }
    for (conversation, floor) in highest {
        let lower = conversations::table.find(conversation).filter(conversations::stream_floor.lt(floor));
        diesel::update(lower).set(conversations::stream_floor.eq(floor)).execute(conn)?;
    }
    Ok(())
}

/// Forces all readers of this user's conversations, which have all ended, to reload: the content they received is to be
/// forgotten. An event above every cursor notifies them, and is itself below the floor.
pub(in crate::store) fn force_reload(conn: &mut Conn, user: UserId, now: Timestamp) -> QueryResult<()> {
    let theirs: Vec<ConversationId> =
        conversations::table.filter(conversations::user_id.eq(user)).select(conversations::id).load(conn)?;
    let mut floors = Vec::new();
    for conversation in theirs {
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
    use crate::store::conversation::conversations as talks;
    use crate::store::people::users::{self, FirstContactRole};
    use crate::store::queue::inbound_messages::MessageOutcome;
    use crate::store::scratch;
    use crate::store::stream::event_reader::{self, EventsSince};
    use crate::store::turns::turn_lifecycle;
    use crate::store::turns::turn_lifecycle::{self as turn_rows, NewTurn, TurnEnd, TurnKind, TurnPlan};

    const START: Timestamp = Timestamp::UNIX_EPOCH;

    /// Creates a conversation of a user, with one turn.
    fn a_talk(conn: &mut Conn, phone: &str) -> (ConversationId, TurnId) {
        let phone = PhoneNumber::parse(phone).unwrap();
        let user = users::ensure_user(conn, &phone, FirstContactRole::Member, START).unwrap();
        let conversation = talks::start_conversation(conn, user, "A talk", START).unwrap();
        let plan = TurnPlan::for_responder(Responder::Model);
        let new = NewTurn { user, conversation, kind: TurnKind::Chat, plan: &plan };
        (conversation, turn_rows::create_turn(conn, new, START).unwrap())
    }

    /// Returns the numbers of the remaining events, or `None` if earlier events are missing.
    fn left(conn: &mut Conn, conversation: ConversationId, after: i64) -> Option<Vec<i64>> {
        match event_reader::load_events_since(conn, conversation, EventSeq(after), 100).unwrap() {
            EventsSince::Pruned => None,
            EventsSince::Events { events, .. } => Some(events.iter().map(|event| event.seq.0).collect()),
        }
    }

    #[test]
    fn ended_events_are_pruned_and_their_readers_reset() {
        let mut conn = scratch();
        let (done, turn) = a_talk(&mut conn, "+15550100001");
        let (running, _) = a_talk(&mut conn, "+15550100002");
        let end = TurnEnd::without_message(turn, MessageOutcome::Replied);
        turn_lifecycle::finish_turn(&mut conn, &end, START).unwrap();
        let later = START + SignedDuration::from_secs(1);
        assert_eq!(prune_events(&mut conn, EventSeq(0), START), Ok(PruneProgress::Everything));
        assert_eq!(
            (left(&mut conn, done, 0), left(&mut conn, running, 0)),
            (Some(vec![1, 2, 5]), Some(vec![3, 4]))
        );

        assert_eq!(prune_events(&mut conn, EventSeq(0), later), Ok(PruneProgress::Everything));
        assert_eq!((left(&mut conn, done, 4), left(&mut conn, done, 5)), (None, Some(vec![])));
        assert_eq!((left(&mut conn, running, 2), left(&mut conn, running, 3)), (None, Some(vec![4])));
        assert_eq!(left(&mut conn, done, 6), None, "nobody was ever there");
    }

    #[test]
    fn pruning_deletes_in_batches() {
        let mut conn = scratch();
        let (conversation, _) = a_talk(&mut conn, "+15550100001");
        for _ in 0..LOOKED_AT {
            talks::end_conversation(&mut conn, conversation, talks::EndReason::Idle, START).unwrap();
            let open = (
                conversations::ended_at.eq(None::<Timestamp>),
                conversations::end_reason.eq(None::<talks::EndReason>),
            );
            diesel::update(conversations::table).set(open).execute(&mut conn).unwrap();
        }
        let later = START + SignedDuration::from_secs(1);
        let mut pieces = vec![EventSeq(0)];
        while let PruneProgress::UpTo(seq) = prune_events(&mut conn, pieces[pieces.len() - 1], later).unwrap()
        {
            pieces.push(seq);
        }
        assert_eq!(pieces, [EventSeq(0), EventSeq(500), EventSeq(1_000)]);
        let rows: i64 = stream_events::table.count().get_result(&mut conn).unwrap();
        assert_eq!(rows, 1, "the turn that runs keeps its own");
    }
}
