//! Choice of the earlier turns that a request repeats. The window grows until it is full, and is then cut to half, so
//! that most requests begin with the whole of the request before them.

use super::material::FrozenContext;
use super::shared_turn::SharedTurn;
use crate::conversation::transcript::TurnId;

/// Maximum length of the past turns. A turn is included entirely or not at all.
const MAX_BYTES: usize = 16_000;
/// Maximum number of past turns.
pub const MAX_TURNS: usize = 20;

/// Removes the turns before the window, oldest first. A turn that was already started keeps its window; a new turn
/// continues the window of the turn before it.
pub fn trim_to_window(turns: &mut Vec<SharedTurn>, started: Option<&FrozenContext>) {
    let previous = turns.iter().rev().find_map(|turn| turn.context.as_ref());
    let start = started.or(previous).and_then(|context| context.window_start).unwrap_or(TurnId(0));
    turns.retain(|turn| turn.id >= start);
    if started.is_some() {
        return;
    }
    let sizes: Vec<usize> = turns.iter().map(SharedTurn::byte_size).collect();
    let is_full = |sizes: &[usize], part: usize| {
        sizes.len() * part >= MAX_TURNS || sizes.iter().sum::<usize>() * part > MAX_BYTES
    };
    if is_full(&sizes, 1) {
        let newest = sizes.len() - 1;
        let first = (0..newest).find(|first| !is_full(&sizes[*first..], 2)).unwrap_or(newest);
        turns.drain(..first);
        let mut remaining = sizes[first..].iter();
        turns.retain(|_| remaining.next().is_some_and(|size| *size <= MAX_BYTES));
    }
}
