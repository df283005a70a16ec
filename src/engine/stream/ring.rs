//! Last events of a conversation in memory: enough for readers who keep up, and no more.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::conversation::stream::{Event, Seq, What};

/// Limits of the events in memory, in number and in bytes.
const EVENTS: usize = 512;
const BYTES: usize = 256 << 10;

/// Every event of one conversation after one cursor and up to another.
#[derive(Debug)]
pub(super) struct Ring {
    after: Seq,
    up_to: Seq,
    events: VecDeque<Arc<Event>>,
    bytes: usize,
}

impl Ring {
    /// Empty ring that begins after this cursor.
    pub(super) fn from(place: Seq) -> Self {
        Self { after: place, up_to: place, events: VecDeque::new(), bytes: 0 }
    }

    pub(super) fn up_to(&self) -> Seq {
        self.up_to
    }

    /// Adds the next events, which include all events up to `up_to`.
    pub(super) fn add(&mut self, events: Vec<Event>, up_to: Seq) {
        for event in events {
            self.bytes += bytes(&event);
            self.events.push_back(Arc::new(event));
        }
        self.up_to = up_to;
        while self.events.len() > EVENTS || self.bytes > BYTES {
            let Some(oldest) = self.events.pop_front() else { break };
            self.bytes -= bytes(&oldest);
            self.after = oldest.seq;
        }
    }

    /// Drops the events that are no longer in the log.
    pub(super) fn forget(&mut self, floor: Seq) {
        while let Some(oldest) = self.events.pop_front_if(|event| event.seq <= floor) {
            self.bytes -= bytes(&oldest);
        }
        self.after = self.after.max(floor);
    }

    /// Returns the events after a cursor, at most `limit`; `None` if some of them are not in the ring.
    pub(super) fn since(&self, place: Seq, limit: usize) -> Option<Vec<Arc<Event>>> {
        if place < self.after {
            return None;
        }
        let first = self.events.partition_point(|event| event.seq <= place);
        Some(self.events.range(first..).take(limit).cloned().collect())
    }
}

fn bytes(event: &Event) -> usize {
    match &event.what {
        What::BlockDelta(_, text) => text.len(),
        What::Turn(_)
        | What::BlockStart(_)
        | What::BlockEnd(_)
        | What::StepAbandoned { .. }
        | What::ToolCall(..)
        | What::TextIn(..)
        | What::TextOut(..)
        | What::Question(..)
        | What::Reaction(..)
        | What::Conversation(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::conversation::stream::{Block, Part};

    fn delta(seq: i64, text: &str) -> Event {
        let block = Block { step: 0, attempt: 1, part: Part::Text, ord: 0 };
        let what = What::BlockDelta(block, text.to_owned());
        Event { seq: Seq(seq), at: Timestamp::UNIX_EPOCH, turn: None, what }
    }

    fn seqs(ring: &Ring, place: i64) -> Option<Vec<i64>> {
        Some(ring.since(Seq(place), 3)?.iter().map(|event| event.seq.0).collect())
    }

    #[test]
    fn it_tells_what_follows_a_place_it_knows_and_nothing_of_others() {
        let mut ring = Ring::from(Seq(10));
        ring.add([12, 15, 16, 20].map(|seq| delta(seq, "x")).into(), Seq(22));
        let told = [9, 10, 12, 14, 20, 22, 30].map(|place| seqs(&ring, place));
        let expected = [
            None,
            Some(vec![12, 15, 16]),
            Some(vec![15, 16, 20]),
            Some(vec![15, 16, 20]),
            Some(vec![]),
            Some(vec![]),
            Some(vec![]),
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn it_drops_what_is_gone_and_sends_those_before_it_elsewhere() {
        let mut ring = Ring::from(Seq(10));
        ring.add([12, 15, 16].map(|seq| delta(seq, "x")).into(), Seq(16));
        ring.forget(Seq(15));
        assert_eq!([12, 14, 15].map(|place| seqs(&ring, place)), [None, None, Some(vec![16])]);
        assert_eq!(ring.bytes, 1);
    }

    #[test]
    fn it_keeps_neither_too_many_events_nor_too_many_bytes() {
        let mut ring = Ring::from(Seq(0));
        ring.add((1..=600).map(|seq| delta(seq, "x")).collect(), Seq(600));
        assert_eq!((ring.events.len(), seqs(&ring, 87)), (EVENTS, None));
        ring.add(vec![delta(601, &"x".repeat(BYTES))], Seq(601));
        assert_eq!((ring.events.len(), ring.bytes, seqs(&ring, 600)), (1, BYTES, Some(vec![601])));
    }
}
