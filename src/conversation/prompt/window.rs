//! Choice of the earlier turns that a request repeats. The window grows until it is full, and is then cut to half, so
//! that most requests begin with the whole of the request before them.

use super::material::{FrozenContext, PastTurn};
use crate::conversation::transcript::TurnId;

/// Maximum length of the past turns. A turn is included entirely or not at all.
const MAX_BYTES: usize = 16_000;
/// Maximum number of past turns.
pub const MAX_TURNS: usize = 20;

/// Removes the turns before the window, oldest first. A turn that was already started keeps its window; a new turn
/// continues the window of the turn before it.
pub fn trim_to_window(turns: &mut Vec<PastTurn>, started: Option<&FrozenContext>) {
    let previous = turns.iter().rev().find_map(|turn| turn.context.as_ref());
    let start = started.or(previous).and_then(|context| context.window_start).unwrap_or(TurnId(0));
    turns.retain(|turn| turn.id >= start);
    let is_full = |turns: &[PastTurn], part: usize| {
        turns.len() * part >= MAX_TURNS || total_bytes(turns) * part > MAX_BYTES
    };
    if started.is_none() && is_full(turns, 1) {
        while turns.len() > 1 && is_full(turns, 2) {
            turns.remove(0);
        }
        turns.retain(|turn| turn.estimated_bytes() <= MAX_BYTES);
    }
}

fn total_bytes(turns: &[PastTurn]) -> usize {
    turns.iter().map(PastTurn::estimated_bytes).sum()
}
