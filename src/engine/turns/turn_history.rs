//! History before a turn: the turns in the window of its prompt, the changes of the day, and recalled lines.

use std::sync::Arc;

use jiff::{Timestamp, Zoned};

use super::turn_context::TurnContext;
use crate::conversation::model_request::EncodedMessage;
use crate::conversation::prompt::{self, FrozenContext, PromptContext, SharedTurn};
use crate::conversation::routing::rooms::Audience;
use crate::conversation::transcript::{CallState, ConversationId, EffectLevel, TurnId, UserId};
use crate::store::conversation::history;
use crate::store::conversation::history_cache::HistoryCache;
use crate::store::people::rooms::Room;
use crate::store::{Conn, QueryResult};

/// Stored history before a turn.
#[derive(Clone)]
pub(crate) struct LoadedHistory {
    /// Past turns of the conversation, oldest first.
    pub(super) turns: Vec<SharedTurn>,
    /// Changes of the day in earlier conversations, newest first.
    pub(super) done_today: Vec<String>,
}

impl LoadedHistory {
    /// Loads the history before the next turn of a conversation, or before a new conversation. This must be the first
    /// read of its transaction, or run without one.
    pub(super) fn load(
        conn: &mut Conn,
        cache: &HistoryCache,
        (owner, conversation): (UserId, Option<ConversationId>),
        since: Timestamp,
    ) -> QueryResult<Self> {
        let turns = match conversation {
            Some(conversation) => history::load_past_turns(conn, cache, conversation)?,
            None => Vec::new(),
        };
        Ok(Self { turns, done_today: history::load_earlier_changes(conn, owner, conversation, since)? })
    }

    /// Removes what the readers of the turn's answer may not read.
    pub(super) fn limit_to_readers(&mut self, context: &TurnContext) {
        if !context.has_memory() {
            self.turns.clear();
            self.done_today.clear();
        }
        if let Some(changed_after) = context.reader_limit.changed_after {
            self.turns.retain(|turn| turn.id > changed_after);
            self.done_today.clear();
        }
    }

    /// Returns whether a call of these turns waits for a confirmation.
    pub(super) fn has_open_prompt(&self) -> bool {
        let steps = self.turns.iter().flat_map(|turn| &turn.steps);
        steps.flat_map(|step| &step.calls).any(|call| call.state == CallState::AwaitingConfirmation)
    }

    /// Removes the turns before the window of the prompt, and returns the first turn of the window. `started` is the
    /// context of a turn that was already started.
    pub(super) fn trim_to_window(&mut self, started: Option<&FrozenContext>) -> Option<TurnId> {
        prompt::trim_to_window(&mut self.turns, started);
        self.turns.first().map(|turn| turn.id)
    }
}

/// History of a prompt: the turns in its window, with their messages, and the recalled lines.
#[derive(Clone)]
pub(super) struct PromptHistory {
    loaded: LoadedHistory,
    messages: Vec<EncodedMessage>,
    recalled: Vec<String>,
}

impl PromptHistory {
    pub(super) fn new(loaded: LoadedHistory, recalled: Vec<String>) -> Self {
        Self { messages: prompt::build_past_messages(&loaded.turns), loaded, recalled }
    }

    /// Returns whether it contains lines from other conversations.
    pub(super) fn has_recalled_lines(&self) -> bool {
        !self.recalled.is_empty()
    }
}

/// Messages and actions before a turn, which do not change while the turn runs.
pub(crate) struct TurnHistory {
    /// Turns of this conversation, in the window of the prompt.
    pub(super) turns: Vec<SharedTurn>,
    /// Messages of these turns, for all requests of the turn.
    pub(super) messages: Vec<EncodedMessage>,
    /// Context of all requests of the turn.
    pub(super) context: FrozenContext,
    /// Actions in earlier conversations of the day, newest first.
    pub(super) done_today: Vec<String>,
    /// Recalled lines from any earlier conversation that relate to the current messages.
    pub(super) recalled: Vec<String>,
}

impl TurnHistory {
    /// Creates the history of a turn. The context of its first request is built for the time `now`.
    pub(super) fn new(history: PromptHistory, context: &TurnContext, now: &Zoned) -> Self {
        let PromptHistory { loaded: LoadedHistory { turns, done_today }, messages, recalled } = history;
        let frozen = context.plan.context.clone().unwrap_or_else(|| FrozenContext {
            block: build_context_block(context, (&done_today, &recalled), now),
            window_start: turns.first().map(|turn| turn.id),
        });
        Self { turns, messages, context: frozen, done_today, recalled }
    }

    /// Returns the reports of tools and code about earlier actions, newest first.
    pub(super) fn action_reports(&self) -> Arc<[String]> {
        let mut reports = Vec::new();
        for past in self.turns.iter().rev() {
            reports.extend(past.answer.clone());
            let calls = past.steps.iter().rev().flat_map(|step| step.calls.iter().rev());
            reports.extend(calls.filter(|call| call.effect_level != EffectLevel::Read).filter_map(|call| {
                match &call.state {
                    CallState::Done(result) => Some(result.for_user.clone()),
                    CallState::Created
                    | CallState::Running
                    | CallState::AwaitingConfirmation
                    | CallState::Failed(_)
                    | CallState::Canceled(_) => None,
                }
            }));
        }
        reports.extend(self.done_today.iter().cloned());
        // A recalled line also contains the user's question, which is not a report of an action.
        let answers = self
            .recalled
            .iter()
            .map(|line| line.rsplit_once("\", you answered: ").map_or(line.as_str(), |(_, answer)| answer));
        reports.extend(answers.map(str::to_owned));
        reports.into()
    }
}

fn build_context_block(
    context: &TurnContext,
    (done_today, recalled): (&[String], &[String]),
    now: &Zoned,
) -> String {
    // Everybody in a room reads the answer, so the model knows nothing about the author there.
    let facts = match context.audience() {
        Audience::Author => context.facts.prompt_lines(),
        Audience::Room | Audience::Agent => Vec::new(),
    };
    prompt::build_context_block(&PromptContext {
        moment: now.strftime("%a %b %-d %Y %H:%M %Q").to_string(),
        user_name: context.user.name.as_deref(),
        room: context.room.as_ref().map(Room::name),
        rights: context.user.rights,
        facts: &facts,
        done_today,
        notes: &context.plan.notes,
        recalled,
    })
}
