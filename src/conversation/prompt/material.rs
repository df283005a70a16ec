//! Material of a request: the turn, the turns before it, and what code adds to them.

use crate::conversation::transcript::{ModelStep, ToolSpec};
use crate::conversation::turn::{ModelCallStyle, Turn};

/// Everything a request is made of.
#[derive(Debug)]
pub struct PromptMaterial<'a> {
    pub tools: Vec<ToolSpec>,
    /// Earlier turns of this conversation, oldest first.
    pub history: &'a [PastTurn],
    pub turn: &'a Turn,
    pub context: PromptContext<'a>,
    pub style: ModelCallStyle,
}

/// What the model is told beside the user's words.
#[derive(Debug, Clone)]
pub struct PromptContext<'a> {
    /// The moment in the household's zone: `Fri Nov 20 2026 21:04 America/New_York`.
    pub moment: String,
    pub user_name: Option<&'a str>,
    /// What is known of them, a sentence each.
    pub facts: &'a [String],
    /// What was changed for them earlier on the same day, in other conversations, newest first.
    pub done_today: &'a [String],
    /// What happened that the model cannot know, a sentence each.
    pub notes: &'a [String],
    /// What was said before, in other conversations, as dated lines.
    pub recalled: &'a [String],
}

/// A finished turn as later turns see it.
#[derive(Debug, Clone, PartialEq)]
pub struct PastTurn {
    pub texts: Vec<String>,
    pub steps: Vec<ModelStep>,
    /// What was answered, where code wrote it or it differs from the last step's text.
    pub answer: Option<String>,
}
