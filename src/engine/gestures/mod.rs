//! Gestures of people in chats, which are no messages: answers to polls, and reactions.

mod poll_answers;
mod reactions;
pub mod recorder;

/// Outcome of recording a gesture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GestureOutcome {
    Recorded,
    /// It concerns no message or vote of ours, the vote is closed, or the person may not use Dialarr.
    Ignored,
}
