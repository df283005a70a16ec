//! Tests that a turn in memory equals the stored one after each record.

use jiff::Timestamp;
use serde_json::json;

use super::calls;
use super::model_steps::{self, AbandonedAttempt, AttemptId, NewCall, RecordedResponse};
use super::turn_lifecycle::{self, ActiveTurn, NewTurn, TurnKind, TurnPlan};
use crate::conversation::stream_events::StreamTurnState;
use crate::conversation::transcript::{
    CallFailure, CallResult, CallState, EffectLevel, FailureCode, MediaRef, ModelStep, PhoneNumber,
    Responder, StopReason, TURN_CANCELED, ToolArguments, ToolCall,
};
use crate::conversation::turn::{StepFailure, Turn, TurnUpdate};
use crate::store::conversation::conversations;
use crate::store::conversation::record::turns as record_turns;
use crate::store::people::users::{self, FirstContactRole};
use crate::store::{Conn, scratch};

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

fn begin_turn(conn: &mut Conn) -> ActiveTurn {
    let phone = PhoneNumber::parse("+15550100001").unwrap();
    let user = users::ensure_user(conn, &phone, FirstContactRole::Member, NOW).unwrap();
    let conversation = conversations::start_conversation(conn, user, "A conversation", NOW).unwrap();
    let plan = TurnPlan::for_responder(Responder::Model);
    let new = NewTurn { user, conversation, kind: TurnKind::Chat, plan: &plan };
    let id = turn_lifecycle::create_turn(conn, new, NOW).unwrap();
    ActiveTurn { id, kind: TurnKind::Chat, conversation, room: None, agent: None }
}

/// Records a response after a failed attempt, and returns its step.
fn record_step(conn: &mut Conn, active: ActiveTurn) -> ModelStep {
    let failed = AttemptId { turn: active.id, step: 0, attempt: 1 };
    let attempt = AttemptId { attempt: 2, ..failed };
    let failure = StepFailure::Transient { at: NOW, retry_after: None };
    let abandoned = AbandonedAttempt { failure, message: "busy".to_owned() };
    model_steps::start_attempt(conn, failed, Responder::Model, "a model", NOW).unwrap();
    model_steps::abandon_attempt(conn, failed, &abandoned, NOW).unwrap();
    model_steps::start_attempt(conn, attempt, Responder::Model, "a model", NOW).unwrap();
    let arguments = json!({ "query": "Dune", "limit": 3, "tags": [1.5, null] }).as_object().unwrap().clone();
    let call = |name: &str, arguments, effect| NewCall { name: name.to_owned(), arguments, effect };
    let response = RecordedResponse {
        text: "I look for it.".to_owned(),
        thinking: "Which one?".to_owned(),
        stop: StopReason::Other("tool_calls".to_owned()),
        calls: vec![
            call("find_in_library", ToolArguments::Object(arguments), EffectLevel::Read),
            call("add_movie", ToolArguments::Malformed("{\"tmdb\":".to_owned()), EffectLevel::Write),
            call("add_movie", ToolArguments::Object(serde_json::Map::new()), EffectLevel::Write),
        ],
        tokens: None,
        response_id: None,
        is_private: false,
    };
    let calls = model_steps::complete_attempt(conn, attempt, &response, NOW).unwrap();
    ModelStep { text: response.text, stop: response.stop, calls, responder: Responder::Model }
}

#[test]
fn turn_in_memory_equals_the_stored_turn_after_each_record() {
    let mut conn = scratch();
    let active = begin_turn(&mut conn);
    let stored = |conn: &mut Conn| turn_lifecycle::load_turn(conn, active).unwrap().turn;
    let mut turn: Turn = stored(&mut conn);
    let step = record_step(&mut conn, active);
    let calls: Vec<ToolCall> = step.calls.clone();
    // The failure before the response is part of the stored turn until the response is recorded.
    turn.failures = vec![StepFailure::Permanent];
    turn.apply_update(TurnUpdate::StepCompleted(step));
    assert_eq!(turn, stored(&mut conn));
    let done = CallState::Done(CallResult {
        for_model: json!([{ "title": "Dune", "year": 2021, "size_gb": 8.1 }]),
        for_user: "Dune (2021) is there.".to_owned(),
        shown: vec![MediaRef::Tmdb(438_631)],
    });
    let failed = CallState::Failed(CallFailure {
        code: FailureCode::BadArguments,
        for_model: json!({ "error": "bad arguments" }),
        for_user: None,
    });
    let canceled = CallState::Canceled(TURN_CANCELED.to_owned());
    let changes = [
        (&calls[0], CallState::Running),
        (&calls[0], done.clone()),
        (&calls[0], failed.clone()),
        (&calls[1], CallState::Created),
        (&calls[1], failed),
        (&calls[2], CallState::AwaitingConfirmation),
        (&calls[2], canceled),
        (&calls[2], done),
    ];
    for (call, state) in changes {
        calls::finish_call(&mut conn, call.row, &state, NOW).unwrap();
        turn.apply_update(TurnUpdate::CallChanged(call.row, state));
        assert_eq!(turn, stored(&mut conn));
    }
}

#[test]
fn turn_is_shown_as_waiting_until_its_next_attempt() {
    let mut conn = scratch();
    let active = begin_turn(&mut conn);
    let shown = |conn: &mut Conn| {
        record_turns::load_all_turns(conn, active.conversation).unwrap().remove(0).row.state
    };
    assert_eq!(shown(&mut conn), StreamTurnState::Created);
    record_step(&mut conn, active);
    assert_eq!(shown(&mut conn), StreamTurnState::WaitingForTools);
    let next = AttemptId { turn: active.id, step: 1, attempt: 1 };
    model_steps::start_attempt(&mut conn, next, Responder::Model, "a model", NOW).unwrap();
    assert_eq!(shown(&mut conn), StreamTurnState::InProgress);
}
