//! In-memory buffer of the newest events of a conversation, for readers that keep up with the log.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::conversation::stream_events::{EventSeq, StreamEvent, StreamEventKind};

/// Limits of the buffer, as a number of events and as bytes of text.
const MAX_EVENTS: usize = 512;
const MAX_EVENT_BYTES: usize = 256 << 10;

/// All events of one conversation between two cursors.
#[derive(Debug)]
pub(super) struct EventBuffer {
    after: EventSeq,
    up_to: EventSeq,
    events: VecDeque<Arc<StreamEvent>>,
    bytes: usize,
}

impl EventBuffer {
    /// Creates an empty buffer that starts after this cursor.
    pub(super) fn starting_after(cursor: EventSeq) -> Self {
        Self { after: cursor, up_to: cursor, events: VecDeque::new(), bytes: 0 }
    }

    pub(super) fn up_to(&self) -> EventSeq {
        self.up_to
    }

    /// Adds all events from the end of the buffer up to `up_to`.
    pub(super) fn extend(&mut self, events: Vec<StreamEvent>, up_to: EventSeq) {
        for event in events {
            self.bytes += event_bytes(&event);
            self.events.push_back(Arc::new(event));
        }
        self.up_to = up_to;
        while self.events.len() > MAX_EVENTS || self.bytes > MAX_EVENT_BYTES {
            let Some(oldest) = self.events.pop_front() else { break };
            self.bytes -= event_bytes(&oldest);
            self.after = oldest.seq;
        }
    }

    /// Drops the events up to `floor`, which are no longer in the log.
    pub(super) fn drop_up_to(&mut self, floor: EventSeq) {
        while let Some(oldest) = self.events.pop_front_if(|event| event.seq <= floor) {
            self.bytes -= event_bytes(&oldest);
        }
        self.after = self.after.max(floor);
    }

    /// Returns the events after a cursor, at most `limit`; `None` if the buffer starts after the cursor.
    pub(super) fn events_after(&self, cursor: EventSeq, limit: usize) -> Option<Vec<Arc<StreamEvent>>> {
        if cursor < self.after {
            return None;
        }
        let first = self.events.partition_point(|event| event.seq <= cursor);
        Some(self.events.range(first..).take(limit).cloned().collect())
    }
}

fn event_bytes(event: &StreamEvent) -> usize {
    match &event.kind {
        StreamEventKind::BlockDelta(_, text) => text.len(),
        StreamEventKind::Turn(_)
        | StreamEventKind::BlockStart(_)
        | StreamEventKind::BlockEnd(_)
        | StreamEventKind::StepAbandoned { .. }
        | StreamEventKind::ToolCall(..)
        | StreamEventKind::InboundMessage(..)
        | StreamEventKind::OutboundMessage(..)
        | StreamEventKind::Prompt(..)
        | StreamEventKind::Reaction(..)
        | StreamEventKind::Conversation(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::conversation::stream_events::{BlockKind, StreamBlock};

    fn delta(seq: i64, text: &str) -> StreamEvent {
        let block = StreamBlock { step: 0, attempt: 1, kind: BlockKind::Text, ord: 0 };
        let kind = StreamEventKind::BlockDelta(block, text.to_owned());
        StreamEvent { seq: EventSeq(seq), at: Timestamp::UNIX_EPOCH, turn: None, kind }
    }

    fn seqs(buffer: &EventBuffer, cursor: i64) -> Option<Vec<i64>> {
        Some(buffer.events_after(EventSeq(cursor), 3)?.iter().map(|event| event.seq.0).collect())
    }

    #[test]
    fn buffer_returns_events_after_a_buffered_cursor() {
        let mut buffer = EventBuffer::starting_after(EventSeq(10));
        buffer.extend([12, 15, 16, 20].map(|seq| delta(seq, "x")).into(), EventSeq(22));
        let returned = [9, 10, 12, 14, 20, 22, 30].map(|cursor| seqs(&buffer, cursor));
        let expected = [
            None,
            Some(vec![12, 15, 16]),
            Some(vec![15, 16, 20]),
            Some(vec![15, 16, 20]),
            Some(vec![]),
            Some(vec![]),
            Some(vec![]),
        ];
        assert_eq!(returned, expected);
    }

    #[test]
    fn buffer_rejects_cursors_before_pruned_events() {
        let mut buffer = EventBuffer::starting_after(EventSeq(10));
        buffer.extend([12, 15, 16].map(|seq| delta(seq, "x")).into(), EventSeq(16));
        buffer.drop_up_to(EventSeq(15));
        assert_eq!([12, 14, 15].map(|cursor| seqs(&buffer, cursor)), [None, None, Some(vec![16])]);
        assert_eq!(buffer.bytes, 1);
    }

    #[test]
    fn buffer_is_limited_by_events_and_bytes() {
        let mut buffer = EventBuffer::starting_after(EventSeq(0));
        buffer.extend((1..=600).map(|seq| delta(seq, "x")).collect(), EventSeq(600));
        assert_eq!((buffer.events.len(), seqs(&buffer, 87)), (MAX_EVENTS, None));
        buffer.extend(vec![delta(601, &"x".repeat(MAX_EVENT_BYTES))], EventSeq(601));
        assert_eq!(
            (buffer.events.len(), buffer.bytes, seqs(&buffer, 600)),
            (1, MAX_EVENT_BYTES, Some(vec![601]))
        );
    }
}
