//! First model call of a chat turn. The history for its request is loaded before the turn is created, so that the call
//! starts in the transaction that creates the turn.

use std::sync::Arc;

use jiff::Timestamp;

use super::log::model_records::StartedAttempt;
use super::log::turn_log::TurnLogs;
use super::model_step::{ModelStepRunner, PreparedCall};
use super::turn_context::TurnContext;
use super::turn_history::{PromptHistory, TurnHistory};
use crate::conversation::grammar::confirmation_reply::{self, ConfirmationReply};
use crate::conversation::grammar::keyword_grammar;
use crate::conversation::lifecycle::{self, ConversationSlot};
use crate::conversation::memory::recall::format_recall_lines;
use crate::conversation::transcript::{ConversationId, Responder, UserId};
use crate::engine::memory::recall::AnswerRecall;
use crate::engine::settings::HouseholdSettings;
use crate::store::conversation::conversations;
use crate::store::database::db::Durability;
use crate::store::memory::responses;
use crate::store::memory::search::RecallRange;
use crate::store::people::age_limits::ReaderLimit;
use crate::store::queue::due_texts;
use crate::store::turns::turn_lifecycle::TriageState;
use crate::store::{Conn, QueryResult};

/// Chat turn that the waiting messages of a user probably start.
#[derive(Debug)]
struct ExpectedTurn {
    slot: ConversationSlot,
    /// Texts of the messages.
    texts: Vec<String>,
}

impl ExpectedTurn {
    /// Loads the turn that the due messages of a user probably start. Returns `None` if they probably start none, or if
    /// they are from a room, whose turns are not prepared.
    fn load(
        conn: &mut Conn,
        user: UserId,
        settings: &HouseholdSettings,
        now: Timestamp,
    ) -> QueryResult<Option<Self>> {
        let texts = due_texts::load_due_texts(conn, user, now)?;
        if texts.is_empty() || !texts.iter().all(|text| may_start_chat(text, settings)) {
            return Ok(None);
        }
        let open = conversations::load_open_conversation(conn, user)?;
        Ok(Some(Self { slot: lifecycle::choose_slot(open, settings.idle_timeout, now), texts }))
    }

    /// Returns the conversation that the turn continues; `None` if it starts one.
    fn conversation(&self) -> Option<ConversationId> {
        match self.slot {
            ConversationSlot::Continue(id) => Some(id),
            ConversationSlot::AfterEnd(..) | ConversationSlot::New => None,
        }
    }

    /// Returns whether a created turn is the expected one, and all of its history may be read.
    fn matches(&self, context: &TurnContext, slot: ConversationSlot) -> bool {
        self.slot == slot
            && self.texts == context.turn.texts
            && context.room.is_none()
            && context.reader_limit == ReaderLimit::default()
            && context.plan.triage == TriageState::Respond
            && context.plan.responder == Responder::Model
    }
}

/// Returns whether a text may need a model: it is not empty, and no command, yes or no.
fn may_start_chat(text: &str, settings: &HouseholdSettings) -> bool {
    let reply = confirmation_reply::parse_confirmation_reply(text, None, &settings.languages);
    !text.is_empty()
        && keyword_grammar::parse_command(text).is_none()
        && !matches!(reply, ConfirmationReply::Yes | ConfirmationReply::No)
}

/// Prepared first call of an expected turn.
pub(crate) struct FirstCall {
    expected: ExpectedTurn,
    history: PromptHistory,
    /// Revision of the stored answers before the recall.
    answer_revision: i64,
    logs: Arc<TurnLogs>,
    model_steps: Arc<ModelStepRunner>,
}

impl FirstCall {
    /// Loads the history for the call of a turn that the due messages of a user probably start, and recalls earlier answers
    /// without vectors.
    pub(super) fn load(
        conn: &mut Conn,
        user: UserId,
        (logs, model_steps): (&Arc<TurnLogs>, &Arc<ModelStepRunner>),
        recall: &AnswerRecall,
        now: Timestamp,
    ) -> QueryResult<Option<Self>> {
        let settings = &model_steps.parts().settings;
        let Some(expected) = ExpectedTurn::load(conn, user, settings, now)? else { return Ok(None) };
        let mut history = logs.history_loader(user, expected.conversation())(conn)?;
        if history.has_open_prompt() {
            // The start of the turn closes the prompt, which the request has to show as closed.
            return Ok(None);
        }
        let answer_revision = responses::next_revision(conn)?;
        let range = RecallRange { before: history.trim_to_window(None), only_own_after: None };
        let answers = recall.find_by_words(conn, user, &expected.texts.join(" "), range)?;
        let recalled = format_recall_lines(&answers, &history.done_today, &settings.zone);
        let history = PromptHistory::new(history, recalled);
        let (logs, model_steps) = (logs.clone(), model_steps.clone());
        Ok(Some(Self { expected, history, answer_revision, logs, model_steps }))
    }

    /// Starts the call in the transaction that has created its turn. Returns `None` if the turn is not the expected one,
    /// if its parts were replaced, if a recalled answer may have been erased, or if the day's budget has no room. The turn
    /// then decides its first step as usual.
    pub(crate) fn start(
        &self,
        conn: &mut Conn,
        context: &TurnContext,
        slot: ConversationSlot,
        now: Timestamp,
    ) -> QueryResult<Option<StartedCall>> {
        // A turn that is created after its parts were replaced has to run on the new ones.
        let parts = self.model_steps.parts();
        if !self.expected.matches(context, slot) || !self.logs.has_current_parts(parts) {
            return Ok(None);
        }
        if self.history.has_recalled_lines() && responses::next_revision(conn)? != self.answer_revision {
            return Ok(None);
        }
        let local_time = now.to_zoned(parts.settings.zone.clone());
        let history = TurnHistory::new(self.history.clone(), context, &local_time);
        let Some((call, attempt)) = self.model_steps.prepare_first_call(context, &history, now) else {
            return Ok(None);
        };
        let started = self.logs.start_first_attempt(conn, context.user.id, &attempt, now)?;
        Ok(started.map(|attempt| StartedCall { history, call, attempt }))
    }
}

/// First call that has started together with its turn.
pub(crate) struct StartedCall {
    pub(super) history: TurnHistory,
    pub(super) call: PreparedCall,
    pub(super) attempt: StartedAttempt,
}

/// Chat turn that was just created.
pub(crate) struct StartedTurn {
    pub(crate) context: TurnContext,
    /// First call of the turn, if it has started with it.
    pub(crate) first_call: Option<StartedCall>,
}

impl StartedTurn {
    /// Returns the durability that the start of the turn needs, if its transaction decides nothing else. If the start is
    /// lost, the messages wait, and their turn starts again.
    pub(crate) fn durability(&self) -> Durability {
        self.first_call.as_ref().map_or(Durability::Unsynced, |first_call| first_call.attempt.durability())
    }
}
