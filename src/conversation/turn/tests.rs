use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;

use super::{FallbackReply, ModelCallStyle, NextStep, StepFailure, TURN_TIME, Turn, TurnLimits, TurnReply};
use crate::conversation::transcript::{
    CallFailure, CallId, CallResult, CallRow, CallState, EffectLevel, FailureCode, MediaRef, ModelStep,
    Responder, StopReason, ToolArguments, ToolCall, TurnId,
};

const NOW: Timestamp = Timestamp::UNIX_EPOCH;
const LIMITS: TurnLimits = TurnLimits::STANDARD;

fn turn() -> Turn {
    Turn {
        id: TurnId(1),
        responder: Responder::Model,
        texts: vec!["add dune".into()],
        steps: Vec::new(),
        failures: Vec::new(),
        deadline: NOW + TURN_TIME,
        resumes: 0,
        work_failures: 0,
        cancel_requested: false,
        record: Arc::default(),
    }
}

fn text_step(text: &str) -> ModelStep {
    ModelStep { text: text.into(), stop: StopReason::Done, calls: Vec::new(), responder: Responder::Model }
}

/// Builds a step with calls named like `search_media` or `add_movie:7`. The verb determines the effect level.
fn call_step(step: u32, names: &[&str]) -> ModelStep {
    let call = |(ord, name): (usize, &&str)| {
        let (tool, argument) = name.split_once(':').unwrap_or((name, ""));
        let effect_level = match tool.split('_').next() {
            Some("add") => EffectLevel::Write,
            Some("remove") => EffectLevel::Destructive,
            _ => EffectLevel::Read,
        };
        ToolCall {
            row: CallRow(i64::from(step) * 10 + ord as i64),
            id: CallId::from_position(TurnId(1), step, ord as u32),
            step,
            name: tool.into(),
            arguments: ToolArguments::parse(json!({ "x": argument })),
            effect_level,
            state: CallState::Created,
        }
    };
    ModelStep { calls: names.iter().enumerate().map(call).collect(), ..text_step("") }
}

fn result(text: &str) -> CallResult {
    CallResult { for_model: json!({}), for_user: text.into(), shown: vec![MediaRef::Tmdb(1)] }
}

/// Executor of a turn with a scripted model and tools that respond at once.
struct ScriptedTurn {
    script: Vec<ModelStep>,
    /// Number of runs of each write.
    effects: BTreeMap<String, usize>,
}

impl ScriptedTurn {
    fn apply(&mut self, turn: &mut Turn, step: NextStep) -> Option<NextStep> {
        match step {
            NextStep::CallModel(plan) => {
                let response = self.script.get(plan.step as usize).cloned().unwrap_or_else(|| text_step(""));
                turn.steps.push(response);
            }
            // A confirmation prompt ends the turn.
            start @ NextStep::StartCalls(_) if starts_deletion(turn, &start) => return Some(start),
            NextStep::StartCalls(rows) => rows.iter().for_each(|row| self.start(turn, *row)),
            NextStep::AnswerCall(row, state) => find_call(turn, row).state = state,
            NextStep::RecoverCall(row) => {
                let call = find_call(turn, row);
                let was_run = self.effects.contains_key(&effect_key(call));
                call.state = match call.effect_level {
                    EffectLevel::Read => CallState::Created,
                    _ if was_run => CallState::Done(result("Added Dune.")),
                    _ => CallState::Created,
                };
            }
            end @ (NextStep::Reply(_) | NextStep::Cancel) => return Some(end),
        }
        None
    }

    fn start(&mut self, turn: &mut Turn, row: CallRow) {
        let call = find_call(turn, row);
        if call.state == CallState::Created {
            call.state = CallState::Running;
        }
        if call.effect_level == EffectLevel::Write {
            *self.effects.entry(effect_key(call)).or_default() += 1;
        }
        call.state = CallState::Done(result("Added Dune."));
    }
}

fn starts_deletion(turn: &mut Turn, step: &NextStep) -> bool {
    let NextStep::StartCalls(rows) = step else { return false };
    rows.iter().any(|row| find_call(turn, *row).effect_level == EffectLevel::Destructive)
}

fn effect_key(call: &ToolCall) -> String {
    format!("{}{:?}", call.name, call.arguments)
}

fn find_call(turn: &mut Turn, row: CallRow) -> &mut ToolCall {
    turn.steps.iter_mut().flat_map(|step| &mut step.calls).find(|call| call.row == row).unwrap()
}

/// Runs the script to the end. At step `crash_at`, the program crashes before the results of the started calls are
/// stored.
fn run_script(script: &[ModelStep], crash_at: Option<usize>) -> (NextStep, BTreeMap<String, usize>) {
    let mut scripted = ScriptedTurn { script: script.to_vec(), effects: BTreeMap::new() };
    let mut log = turn();
    for index in 0..100 {
        let step = log.next_step(NOW, &LIMITS);
        let started = match &step {
            NextStep::StartCalls(rows) => rows.clone(),
            _ => Vec::new(),
        };
        if let Some(end) = scripted.apply(&mut log, step) {
            return (end, scripted.effects);
        }
        if crash_at == Some(index) {
            for row in started {
                find_call(&mut log, row).state = CallState::Running;
            }
            log.resumes += 1;
        }
    }
    panic!("the turn never ends: {log:?}");
}

fn model_reply(text: &str) -> NextStep {
    NextStep::Reply(TurnReply::Model(text.into()))
}

fn tool_reply(text: &str) -> NextStep {
    NextStep::Reply(TurnReply::Tools(text.into()))
}

#[test]
fn resume_at_any_point_gives_the_same_reply_and_single_writes() {
    let scripts: [&[ModelStep]; 6] = [
        &[call_step(0, &["search_media:dune"]), call_step(1, &["add_movie:7"]), text_step("Added Dune.")],
        &[
            call_step(0, &["search_media:a", "search_media:b"]),
            call_step(1, &["add_movie:1", "add_movie:2", "add_series:3"]),
            text_step("Added all."),
        ],
        &[call_step(0, &["add_movie:7", "add_movie:7"]), text_step("Added.")],
        &[
            call_step(0, &["remove_media:1", "search_media:a", "add_movie:7", "remove_media:2"]),
            text_step("Never sent."),
        ],
        &[call_step(0, &["add_movie:7"]), text_step(""), text_step("")],
        &[text_step("{\"name\":\"x\",\"arguments\":{}}"), call_step(1, &["check_status"]), text_step("62%.")],
    ];
    for script in scripts {
        let uninterrupted = run_script(script, None);
        assert!(uninterrupted.1.values().all(|runs| *runs == 1), "{:?}", uninterrupted.1);
        for crash_at in 0..12 {
            assert_eq!(run_script(script, Some(crash_at)), uninterrupted, "crash after {crash_at}");
        }
    }
}

#[test]
fn saved_fact_is_always_reported() {
    let mut log = turn();
    log.steps = vec![call_step(0, &["add_movie:7"]), text_step("All right.")];
    let saved_fact = CallResult {
        for_model: json!({ "status": "noted", "value": "4K" }),
        for_user: "Noted: 4K quality.".into(),
        shown: Vec::new(),
    };
    log.steps[0].calls[0].state = CallState::Done(saved_fact);
    assert_eq!(log.next_step(NOW, &LIMITS), model_reply("Noted: 4K quality. All right."));
    log.steps[1] = text_step("I will remember 4k.");
    assert_eq!(log.next_step(NOW, &LIMITS), model_reply("I will remember 4k."));
    log.steps[0].calls[0].name = "remember".to_owned();
    log.steps[1] = text_step("");
    assert_eq!(log.next_step(NOW, &LIMITS), tool_reply("Noted: 4K quality."));
    log.steps[1] = ModelStep { stop: StopReason::Refused, ..text_step("") };
    let refusal = format!("Noted: 4K quality. {}", FallbackReply::Refused.text());
    assert_eq!(log.next_step(NOW, &LIMITS), tool_reply(&refusal));
    log.steps[1] = text_step("Added Dune.");
    assert!(matches!(log.next_step(NOW, &LIMITS), NextStep::CallModel(_)));
}

#[test]
fn reads_run_concurrently_and_writes_in_order() {
    let mut log = turn();
    log.steps = vec![call_step(0, &["search_media:a", "search_media:b", "add_movie:1", "add_movie:2"])];
    assert_eq!(log.next_step(NOW, &LIMITS), NextStep::StartCalls(vec![CallRow(0), CallRow(1)]));
    log.steps[0].calls[0].state = CallState::Done(result(""));
    log.steps[0].calls[1].state = CallState::Done(result(""));
    assert_eq!(log.next_step(NOW, &LIMITS), NextStep::StartCalls(vec![CallRow(2)]));
    log.steps[0].calls[2].state = CallState::Running;
    assert_eq!(log.next_step(NOW, &LIMITS), NextStep::RecoverCall(CallRow(2)));
}

#[test]
fn deletion_is_prompted_after_every_other_call_of_its_response() {
    let mut log = turn();
    log.steps = vec![call_step(0, &["remove_media:1", "search_media:a", "add_movie:7", "remove_media:2"])];
    let mut order = Vec::new();
    loop {
        let NextStep::StartCalls(rows) = log.next_step(NOW, &LIMITS) else { panic!("{order:?}") };
        order.extend(rows.iter().map(|row| row.0));
        let call = find_call(&mut log, rows[0]);
        if call.effect_level == EffectLevel::Destructive {
            break;
        }
        call.state = CallState::Done(result("Added."));
    }
    assert_eq!(order, [1, 2, 0]);
    let prompted = log.steps[0].calls[0].clone();
    assert_eq!(log.other_deletions(&prompted).map(|call| call.row.0).collect::<Vec<_>>(), [3]);
    assert_eq!(log.preamble_sentences(), ["Added."]);
}

#[test]
fn failed_call_is_reported_before_a_prompt_unless_retried() {
    let failed = |code, sentence: Option<&str>| {
        CallState::Failed(CallFailure::new(code, json!({}), sentence.map(str::to_owned)))
    };
    let mut log = turn();
    log.steps = vec![
        call_step(0, &["add_movie:1", "add_series:2"]),
        call_step(1, &["add_movie:3", "remove_media:1"]),
    ];
    log.steps[0].calls[0].state = failed(FailureCode::BadArguments, None);
    log.steps[0].calls[1].state = failed(FailureCode::WhichSeasons, Some("Dark has 3 seasons. Which ones?"));
    log.steps[1].calls[0].state = failed(FailureCode::UnknownId, None);
    assert_eq!(
        log.preamble_sentences(),
        [
            "Dark has 3 seasons. Which ones?",
            "I could not do everything else you asked for. Please text that again."
        ]
    );
    log.steps[1].calls[0].state = CallState::Done(result("Added Heat."));
    assert_eq!(log.preamble_sentences(), ["Dark has 3 seasons. Which ones?", "Added Heat."]);
}

#[test]
fn endless_tool_calls_end_with_a_reply_by_code() {
    let endless: Vec<ModelStep> =
        (0..20).map(|step| call_step(step, &[&format!("search_media:{step}")])).collect();
    let (end, _) = run_script(&endless, None);
    assert_eq!(end, tool_reply("Added Dune."));
}

#[test]
fn last_model_call_disables_tools() {
    let mut log = turn();
    for step in 0..7 {
        let mut done = call_step(step, &[&format!("search_media:{step}")]);
        done.calls[0].state = CallState::Done(result("Found."));
        log.steps.push(done);
    }
    let NextStep::CallModel(plan) = log.next_step(NOW, &LIMITS) else { panic!("no model call") };
    assert_eq!((plan.step, plan.style), (7, ModelCallStyle::Closing));
}

#[test]
fn third_identical_read_is_cached_and_the_fourth_ends_the_loop() {
    let mut log = turn();
    for step in 0..4 {
        log.steps.push(call_step(step, &["check_status"]));
        let row = CallRow(i64::from(step) * 10);
        match log.next_step(NOW, &LIMITS) {
            NextStep::StartCalls(_) if step < 2 => {
                find_call(&mut log, row).state = CallState::Done(result("62%"))
            }
            NextStep::AnswerCall(_, state) if step >= 2 => find_call(&mut log, row).state = state,
            other => panic!("step {step}: {other:?}"),
        }
    }
    let NextStep::CallModel(plan) = log.next_step(NOW, &LIMITS) else { panic!("no model call") };
    assert_eq!(plan.style, ModelCallStyle::Closing);
}

#[test]
fn empty_response_is_retried_once_and_then_replaced() {
    assert_eq!(run_script(&[text_step(""), text_step("Hello.")], None).0, model_reply("Hello."));
    assert_eq!(
        run_script(&[text_step(""), text_step("")], None).0,
        NextStep::Reply(TurnReply::Code(FallbackReply::NothingFound))
    );
    assert_eq!(
        run_script(&[call_step(0, &["add_movie:7"]), text_step(""), text_step("")], None).0,
        tool_reply("Added Dune.")
    );
}

#[test]
fn claim_without_a_change_is_never_sent() {
    let claims = [text_step("Deleted Dune."), text_step("I deleted it."), text_step("x")];
    assert_eq!(run_script(&claims, None).0, NextStep::Reply(TurnReply::Code(FallbackReply::NothingChanged)));
}

#[test]
fn failing_model_is_retried_and_then_replaced_by_the_keyword_responder() {
    let transient = |at| StepFailure::Transient { at, retry_after: None };
    let plan = |failures: &[StepFailure]| match (Turn { failures: failures.to_vec(), ..turn() })
        .next_step(NOW, &LIMITS)
    {
        NextStep::CallModel(plan) => (plan.responder, plan.delay.as_secs(), plan.attempt),
        other => panic!("{other:?}"),
    };
    assert_eq!(plan(&[transient(NOW)]), (Responder::Model, 1, 2));
    assert_eq!(plan(&[transient(NOW); 2]), (Responder::Model, 4, 3));
    assert_eq!(plan(&[transient(NOW); 3]), (Responder::Keyword, 0, 4));
    assert_eq!(plan(&[StepFailure::Permanent]), (Responder::Keyword, 0, 2));
    assert_eq!(plan(&[StepFailure::Interrupted; 3]), (Responder::Model, 0, 4));
    let long = StepFailure::Transient { at: NOW, retry_after: Some(Duration::from_secs(40)) };
    assert_eq!(plan(&[long]), (Responder::Model, 40, 2));
    let too_long = StepFailure::Transient { at: NOW, retry_after: Some(Duration::from_secs(90)) };
    assert_eq!(plan(&[too_long]), (Responder::Keyword, 0, 2));
}

#[test]
fn model_failure_after_a_write_is_answered_by_code() {
    let mut log = turn();
    log.steps = vec![call_step(0, &["add_movie:7"])];
    log.steps[0].calls[0].state = CallState::Done(result("Added Dune (2021)."));
    log.failures = vec![StepFailure::Permanent];
    assert_eq!(log.next_step(NOW, &LIMITS), tool_reply("Added Dune (2021)."));
}

#[test]
fn canceled_turn_starts_no_call_but_checks_running_ones() {
    let mut log = Turn { cancel_requested: true, ..turn() };
    log.steps = vec![call_step(0, &["add_movie:1", "add_movie:2"])];
    log.steps[0].calls[0].state = CallState::Running;
    assert_eq!(log.next_step(NOW, &LIMITS), NextStep::RecoverCall(CallRow(0)));
    log.steps[0].calls[0].state = CallState::Done(result(""));
    assert_eq!(
        log.next_step(NOW, &LIMITS),
        NextStep::AnswerCall(CallRow(1), CallState::Canceled("cleared".into()))
    );
    log.steps[0].calls[1].state = CallState::Canceled("cleared".into());
    assert_eq!(log.next_step(NOW, &LIMITS), NextStep::Cancel);
}

#[test]
fn no_call_starts_after_the_time_or_resume_limit() {
    let log = Turn { steps: vec![call_step(0, &["add_movie:1", "search_media:a"])], ..turn() };
    for late in
        [log.next_step(NOW + TURN_TIME, &LIMITS), Turn { resumes: 5, ..log.clone() }.next_step(NOW, &LIMITS)]
    {
        assert!(matches!(late, NextStep::AnswerCall(CallRow(0), CallState::Failed(_))), "{late:?}");
    }
    let mut running = log;
    running.steps[0].calls[0].state = CallState::Running;
    assert_eq!(running.next_step(NOW + TURN_TIME, &LIMITS), NextStep::RecoverCall(CallRow(0)));
    assert_eq!(
        Turn { resumes: 5, ..running.clone() }.next_step(NOW, &LIMITS),
        NextStep::RecoverCall(CallRow(0))
    );
    let many_restarts = Turn { resumes: 50, ..running.clone() };
    assert_eq!(many_restarts.next_step(NOW, &LIMITS), NextStep::RecoverCall(CallRow(0)));
    let exhausted = Turn { resumes: 9, work_failures: 9, ..running }.next_step(NOW, &LIMITS);
    assert!(matches!(exhausted, NextStep::AnswerCall(CallRow(0), CallState::Failed(_))), "{exhausted:?}");
}

#[test]
fn turn_over_its_limits_ends_with_a_fallback_reply() {
    let late = turn().next_step(NOW + TURN_TIME, &LIMITS);
    assert_eq!(late, NextStep::Reply(TurnReply::Code(FallbackReply::InternalError)));
    let exhausted = Turn { resumes: 5, ..turn() }.next_step(NOW, &LIMITS);
    assert_eq!(exhausted, NextStep::Reply(TurnReply::Code(FallbackReply::InternalError)));
}
