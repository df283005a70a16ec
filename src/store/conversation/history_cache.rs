//! Cache of finished turns, as the prompts of later turns include them. Without it, each turn would load the whole
//! window before it again.
//!
//! The writer drops a turn from the cache when it publishes a change of the turn, in the same step in which readers begin
//! to see the change. It adds a turn that ends while its state is in memory. A cached turn therefore equals the stored
//! one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::conversation::prompt::{PastTurn, SharedTurn};
use crate::conversation::stream_events::StreamEventKind;
use crate::conversation::transcript::{ModelStep, ToolCall, TurnId};
use crate::store::QueryResult;
use crate::store::stream::event_log::{EventLog, HistoryVersion, LogEntry};

/// Maximum size of the cached turns in memory. It holds the windows of about 80 conversations with short messages.
const MAX_BYTES: usize = 8 << 20;
/// Approximate size of the nodes of a JSON object in memory, without its texts.
const JSON_OBJECT_BYTES: usize = 700;
/// Approximate size of a message of a request in memory, without its texts.
const MESSAGE_BYTES: usize = 250;
/// Number of copies of the texts of a turn: in the turn itself, in its messages, and in their JSON.
const TEXT_COPIES: usize = 3;

/// Handle to the cache; clones share it.
#[derive(Debug, Clone, Default)]
pub struct HistoryCache {
    turns: Arc<Mutex<CachedTurns>>,
    event_log: EventLog,
}

#[derive(Debug, Default)]
struct CachedTurns {
    turns: BTreeMap<TurnId, CachedTurn>,
    /// Approximate size of the loaded turns in memory.
    bytes: usize,
    last_load: LoadId,
    version: HistoryVersion,
    /// Number of changes by shell commands that the cached turns reflect.
    command_changes: i64,
}

#[derive(Debug)]
enum CachedTurn {
    /// A reader is loading the turn from the database.
    Loading(LoadId),
    Loaded {
        turn: SharedTurn,
        /// Load of the last window that contained the turn.
        last_use: LoadId,
    },
}

/// Identity of a load of turns that are not cached.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LoadId(u64);

/// Turns of a window that are cached, in the order of the window.
#[derive(Debug)]
pub(super) struct CachedWindow {
    pub(super) turns: Vec<(TurnId, Option<SharedTurn>)>,
    /// Load of the others.
    pub(super) load: LoadId,
}

impl HistoryCache {
    pub(in crate::store) fn new(event_log: EventLog) -> Self {
        Self { turns: Arc::default(), event_log }
    }

    /// Returns the current version of the history.
    pub fn version(&self) -> HistoryVersion {
        self.lock_turns().version
    }

    /// Finds the cached turns of the window that `load_window` loads, with the number of changes by shell commands. It
    /// must be the first read of its transaction, because the first read chooses the state from which the caller loads
    /// the other turns. Without a transaction, they are loaded from a later state, and a turn that changes in between is not
    /// cached.
    pub(super) fn open_window(
        &self,
        load_window: impl FnOnce() -> QueryResult<(Vec<TurnId>, i64)>,
    ) -> QueryResult<CachedWindow> {
        // No change of this state is published until the turns to load are marked.
        let _visibility = self.event_log.lock_visibility();
        let (window, command_changes) = load_window()?;
        Ok(self.find_window(window, command_changes))
    }

    fn find_window(&self, window: Vec<TurnId>, command_changes: i64) -> CachedWindow {
        let mut cached = self.lock_turns();
        if cached.command_changes != command_changes {
            cached.clear();
            cached.command_changes = command_changes;
        }
        cached.last_load.0 += 1;
        let load = cached.last_load;
        let find_turn = |id: TurnId| match cached.turns.get_mut(&id) {
            Some(CachedTurn::Loaded { turn, last_use }) => {
                *last_use = load;
                (id, Some(turn.clone()))
            }
            Some(CachedTurn::Loading(_)) | None => {
                cached.turns.insert(id, CachedTurn::Loading(load));
                (id, None)
            }
        };
        CachedWindow { turns: window.into_iter().map(find_turn).collect(), load }
    }

    /// Adds a loaded turn, unless it was changed since the load began.
    pub(super) fn store_turn(&self, load: LoadId, turn: &SharedTurn) {
        let mut cached = self.lock_turns();
        if matches!(cached.turns.get(&turn.id), Some(CachedTurn::Loading(other)) if *other == load) {
            cached.insert(turn.clone());
        }
    }

    /// Drops the turns that a transaction has changed, and adds those that it has finished.
    pub(in crate::store) fn apply_changes(&self, entries: &[LogEntry]) {
        let mut cached = self.lock_turns();
        for entry in entries {
            match entry {
                LogEntry::Event(event) if changes_history(&event.kind) => {
                    event.turn.into_iter().for_each(|turn| cached.remove(turn));
                }
                LogEntry::Event(_) => {}
                LogEntry::Reset => cached.clear(),
                LogEntry::TurnFinished(turn, loaded_at) if *loaded_at == cached.version => {
                    cached.insert(turn.clone());
                }
                LogEntry::TurnFinished(..) => {}
                LogEntry::AttemptStarted(..) | LogEntry::AttemptEnded(_) | LogEntry::NumbersReserved(_) => {}
            }
        }
    }

    /// Drops all turns.
    pub(in crate::store) fn clear(&self) {
        self.lock_turns().clear();
    }

    fn lock_turns(&self) -> MutexGuard<'_, CachedTurns> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CachedTurns {
    fn insert(&mut self, turn: SharedTurn) {
        self.remove(turn.id);
        self.bytes += estimate_memory(&turn);
        self.turns.insert(turn.id, CachedTurn::Loaded { turn, last_use: self.last_load });
        self.evict_unused();
    }

    fn remove(&mut self, id: TurnId) {
        if let Some(CachedTurn::Loaded { turn, .. }) = self.turns.remove(&id) {
            self.bytes -= estimate_memory(&turn);
        }
    }

    fn clear(&mut self) {
        self.version = self.version.next();
        self.turns.clear();
        self.bytes = 0;
    }

    /// Drops the turns that windows have not contained for longest, if there are too many. A quarter is dropped, so that
    /// this is rarely necessary.
    fn evict_unused(&mut self) {
        if self.bytes <= MAX_BYTES {
            return;
        }
        let last_uses = self.turns.iter().filter_map(|(id, cached)| match cached {
            CachedTurn::Loaded { last_use, .. } => Some((*last_use, *id)),
            CachedTurn::Loading(_) => None,
        });
        for (_, id) in last_uses.collect::<BTreeSet<_>>() {
            if self.bytes <= MAX_BYTES / 4 * 3 {
                break;
            }
            self.remove(id);
        }
    }
}

/// Returns the approximate size of a turn in memory.
fn estimate_memory(turn: &SharedTurn) -> usize {
    let calls: usize = turn.steps.iter().map(|step| step.calls.len()).sum();
    size_of::<PastTurn>()
        + turn.steps.len() * (size_of::<ModelStep>() + MESSAGE_BYTES)
        + calls * (size_of::<ToolCall>() + JSON_OBJECT_BYTES + MESSAGE_BYTES)
        + 2 * MESSAGE_BYTES
        + turn.byte_size() * TEXT_COPIES
}

/// Returns whether an event changes its turn as later prompts include it.
fn changes_history(kind: &StreamEventKind) -> bool {
    match kind {
        StreamEventKind::Turn(_) | StreamEventKind::ToolCall(..) | StreamEventKind::InboundMessage(..) => {
            true
        }
        StreamEventKind::BlockStart(_)
        | StreamEventKind::BlockDelta(..)
        | StreamEventKind::BlockEnd(_)
        | StreamEventKind::StepAbandoned { .. }
        | StreamEventKind::OutboundMessage(..)
        | StreamEventKind::Prompt(..)
        | StreamEventKind::Reaction(..)
        | StreamEventKind::Conversation(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::conversation::stream_events::StreamTurnState;
    use crate::conversation::transcript::ConversationId;
    use crate::store::stream::event_log::NewEvent;

    fn past_turn(id: i64, text: &str) -> SharedTurn {
        let texts = vec![text.to_owned()];
        SharedTurn::from(PastTurn {
            id: TurnId(id),
            author: None,
            context: None,
            texts,
            steps: Vec::new(),
            answer: None,
            about_viewing: false,
        })
    }

    fn turn_event(id: i64) -> LogEntry {
        LogEntry::Event(NewEvent {
            conversation: ConversationId(1),
            turn: Some(TurnId(id)),
            at: Timestamp::UNIX_EPOCH,
            kind: StreamEventKind::Turn(StreamTurnState::Completed),
        })
    }

    /// Returns a cache with turns 1 and 2.
    fn filled_cache() -> HistoryCache {
        let cache = HistoryCache::default();
        let load = cache.find_window(vec![TurnId(1), TurnId(2)], 0).load;
        [1, 2].into_iter().for_each(|id| cache.store_turn(load, &past_turn(id, "Hi")));
        cache
    }

    /// Returns which of turns 1 and 2 are cached.
    fn cached_turns(cache: &HistoryCache) -> [bool; 2] {
        let window = cache.find_window(vec![TurnId(1), TurnId(2)], 0);
        [window.turns[0].1.is_some(), window.turns[1].1.is_some()]
    }

    #[test]
    fn changed_turn_is_loaded_again() {
        let cache = filled_cache();
        assert_eq!(cached_turns(&cache), [true, true]);
        cache.apply_changes(&[turn_event(2)]);
        assert_eq!(cached_turns(&cache), [true, false]);
        cache.apply_changes(&[LogEntry::Reset]);
        assert_eq!(cached_turns(&cache), [false, false]);
    }

    #[test]
    fn turn_that_changes_while_it_is_loaded_is_not_cached() {
        let cache = HistoryCache::default();
        let load = cache.find_window(vec![TurnId(1), TurnId(2)], 0).load;
        cache.apply_changes(&[turn_event(1)]);
        [1, 2].into_iter().for_each(|id| cache.store_turn(load, &past_turn(id, "Hi")));
        assert_eq!(cached_turns(&cache), [false, true]);
    }

    #[test]
    fn finished_turn_is_cached_unless_it_changes_afterwards() {
        let cache = HistoryCache::default();
        let loaded_at = cache.version();
        let finished = |id| LogEntry::TurnFinished(past_turn(id, "Hi"), loaded_at);
        cache.apply_changes(&[turn_event(1), finished(1), finished(2), turn_event(2)]);
        assert_eq!(cached_turns(&cache), [true, false]);
    }

    #[test]
    fn finished_turn_from_before_an_erasure_is_not_cached() {
        let cache = HistoryCache::default();
        let loaded_at = cache.version();
        cache.clear();
        cache.apply_changes(&[LogEntry::TurnFinished(past_turn(1, "Hi"), loaded_at)]);
        assert_eq!(cached_turns(&cache), [false, false]);
    }

    #[test]
    fn overtaken_load_does_not_replace_a_newer_one() {
        let cache = HistoryCache::default();
        let earlier = cache.find_window(vec![TurnId(1)], 0).load;
        cache.apply_changes(&[turn_event(1)]);
        let newer = cache.find_window(vec![TurnId(1)], 0).load;
        cache.store_turn(earlier, &past_turn(1, "before the change"));
        cache.store_turn(newer, &past_turn(1, "after the change"));
        let window = cache.find_window(vec![TurnId(1)], 0);
        assert_eq!(window.turns, [(TurnId(1), Some(past_turn(1, "after the change")))]);
    }

    #[test]
    fn change_by_a_shell_command_clears_the_cache() {
        let cache = filled_cache();
        assert_eq!(cache.find_window(vec![TurnId(1)], 1).turns, [(TurnId(1), None)]);
    }

    #[test]
    fn least_used_turn_is_dropped_at_the_size_limit() {
        let cache = filled_cache();
        let store_large_turn = |id| {
            let load = cache.find_window(vec![TurnId(id)], 0).load;
            let answer = Some("x".repeat(MAX_BYTES / 2 / TEXT_COPIES));
            cache.store_turn(load, &PastTurn { answer, ..PastTurn::clone(&past_turn(id, "Hi")) }.into());
        };
        store_large_turn(3);
        assert_eq!(cached_turns(&cache), [true, true]);
        store_large_turn(4);
        assert_eq!(cached_turns(&cache), [true, true]);
        let window = cache.find_window(vec![TurnId(3), TurnId(4)], 0).turns;
        assert_eq!([window[0].1.is_some(), window[1].1.is_some()], [false, true]);
        assert!(cache.lock_turns().bytes <= MAX_BYTES / 4 * 3);
    }
}
