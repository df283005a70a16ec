//! End of a turn: its outcome and answer, and the end of its messages and calls.

use diesel::prelude::*;
use jiff::Timestamp;

use super::calls;
use super::turn_lifecycle::{TurnKind, parse_plan_context};
use crate::conversation::prompt::PastTurn;
use crate::conversation::stream_events::{StreamEventKind, StreamTurnState};
use crate::conversation::transcript::{ModelStep, TurnId, UserId};
use crate::store::Conn;
use crate::store::codec::{ms, none_if_unreadable};
use crate::store::database::literal_sql::literal_sql;
use crate::store::database::statement_cache::cached_update;
use crate::store::memory::responses;
use crate::store::people::rooms;
use crate::store::queue::inbound_messages::{self, MessageOutcome};
use crate::store::queue::outbox::{self, NewOutboundMessage};
use crate::store::schema::turns;
use crate::store::stream::event_log::HistoryVersion;
use crate::store::stream::recording::{self, record_event};

/// End of a turn: its outcome, and the answer to send.
#[derive(Debug, Clone)]
pub struct TurnEnd {
    pub turn: TurnId,
    pub outcome: MessageOutcome,
    /// Full answer, of which `messages` contain the first page.
    pub answer: Option<String>,
    pub messages: Vec<NewOutboundMessage>,
}

impl TurnEnd {
    pub fn without_message(turn: TurnId, outcome: MessageOutcome) -> Self {
        Self { turn, outcome, answer: None, messages: Vec::new() }
    }
}

/// Finishes a turn and its messages, and queues its answer. A turn that is already finished does not change.
pub fn finish_turn(conn: &mut Conn, end: &TurnEnd, now: Timestamp) -> QueryResult<()> {
    finish(conn, end, now).map(drop)
}

/// Messages and steps of a turn in memory, as its rows contain them.
#[derive(Debug)]
pub struct TurnTranscript {
    /// Name of the author in a room; `None` in a private chat.
    pub author: Option<String>,
    pub texts: Vec<String>,
    pub steps: Vec<ModelStep>,
    /// Version of the history when the rows were loaded.
    pub loaded_at: HistoryVersion,
}

/// Finishes a turn like [`finish_turn`], and caches it for later prompts.
pub fn finish_transcribed_turn(
    conn: &mut Conn,
    end: &TurnEnd,
    transcript: TurnTranscript,
    now: Timestamp,
) -> QueryResult<()> {
    let Some(row) = finish(conn, end, now)? else { return Ok(()) };
    // What the answer mentions of viewing is erased after a day, and read from the database until then.
    if row.about_viewing {
        return Ok(());
    }
    let TurnTranscript { author, texts, steps, loaded_at } = transcript;
    let answer = end.answer.clone();
    // The stored context lacks the facts that the turn forgot.
    let Some(context) = none_if_unreadable(parse_plan_context(&row.prompt))? else { return Ok(()) };
    let past_turn = PastTurn { id: end.turn, author, context, texts, steps, answer, about_viewing: false };
    recording::record_finished_turn(past_turn, loaded_at);
    Ok(())
}

/// Columns of a turn that was just finished.
#[derive(Queryable, Selectable)]
#[diesel(table_name = turns)]
struct FinishedTurnRow {
    user_id: UserId,
    kind: TurnKind,
    prompt: String,
    about_viewing: bool,
    #[diesel(select_expression = rooms::room_of_turn())]
    room: Option<UserId>,
}

/// Finishes a turn; `None` if it was already finished.
fn finish(conn: &mut Conn, end: &TurnEnd, now: Timestamp) -> QueryResult<Option<FinishedTurnRow>> {
    let state = match end.outcome {
        MessageOutcome::Replied | MessageOutcome::Reacted | MessageOutcome::NoAnswerNeeded => {
            StreamTurnState::Completed
        }
        MessageOutcome::FailedNotified => StreamTurnState::Failed,
        MessageOutcome::Skipped(_) => StreamTurnState::Canceled,
    };
    let finished: Option<FinishedTurnRow> =
        cached_update(turns::table.find(end.turn).filter(turns::finished_at.is_null()))
            .set((
                turns::state.eq(state),
                turns::response_text.eq(&end.answer),
                turns::finished_at.eq(ms(now)),
                turns::updated_at.eq(ms(now)),
                turns::about_viewing.eq(ANSWER_IS_ABOUT_VIEWING),
            ))
            .returning(FinishedTurnRow::as_returning())
            .get_result(conn)
            .optional()?;
    let Some(row) = finished else { return Ok(None) };
    record_event(conn, end.turn, now, StreamEventKind::Turn(state))?;
    for message in &end.messages {
        outbox::queue_message(conn, message, now)?;
    }
    calls::cancel_unstarted_calls(conn, end.turn, now)?;
    // What somebody has watched is not remembered.
    if let (MessageOutcome::Replied, Some(answer), false) = (end.outcome, &end.answer, row.about_viewing) {
        responses::store_turn_answer(conn, (end.turn, row.user_id, row.kind), row.room, answer, now)?;
    }
    inbound_messages::finish_turn_messages(conn, end.turn, end.outcome, now)?;
    Ok(Some(row))
}

literal_sql! {
    /// Condition of a finished turn whose answer may mention what people have watched: a call has read it, or an earlier
    /// answer of the conversation, which this one may repeat, mentions it.
    const ANSWER_IS_ABOUT_VIEWING = "turns.about_viewing = 1 OR EXISTS (\
        SELECT 1 FROM turns AS earlier WHERE earlier.about_viewing = 1 \
        AND earlier.conversation_id = turns.conversation_id)";
}
