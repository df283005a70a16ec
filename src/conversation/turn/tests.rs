use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;

use super::{Answer, AskStyle, Excuse, Failure, Limits, Step, TURN_TIME, Turn};
use crate::conversation::transcript::{
    Arguments, Brain, CallFailure, CallId, CallResult, CallRow, CallState, MediaRef, ModelStep, Stop, Tier,
    ToolCall, TurnId,
};

const NOW: Timestamp = Timestamp::UNIX_EPOCH;
const LIMITS: Limits = Limits::STANDARD;

fn turn() -> Turn {
    Turn {
        id: TurnId(1),
        brain: Brain::Model,
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

fn says(text: &str) -> ModelStep {
    ModelStep { text: text.into(), stop: Stop::Done, calls: Vec::new(), brain: Brain::Model }
}

/// A step of calls, named like `search_media`, `add_movie:7`; the tier follows the verb.
fn calls(step: u32, names: &[&str]) -> ModelStep {
    let call = |(ord, name): (usize, &&str)| {
        let (tool, argument) = name.split_once(':').unwrap_or((name, ""));
        let tier = match tool.split('_').next() {
            Some("add") => Tier::Write,
            Some("remove") => Tier::Destructive,
            _ => Tier::Read,
        };
        ToolCall {
            row: CallRow(i64::from(step) * 10 + ord as i64),
            id: CallId::mint(TurnId(1), step, ord as u32),
            step,
            name: tool.into(),
            arguments: Arguments::parse(json!({ "x": argument })),
            tier,
            state: CallState::Created,
        }
    };
    ModelStep { calls: names.iter().enumerate().map(call).collect(), ..says("") }
}

fn result(said: &str) -> CallResult {
    CallResult { for_model: json!({}), for_user: said.into(), shown: vec![MediaRef::Tmdb(1)] }
}

/// Plays a scripted model and instant tools over the log, stopping after `steps` changes of it.
struct World {
    script: Vec<ModelStep>,
    /// How often each write ran.
    effects: BTreeMap<String, usize>,
}

impl World {
    fn apply(&mut self, turn: &mut Turn, step: Step) -> Option<Step> {
        match step {
            Step::AskModel(ask) => {
                let said = self.script.get(ask.step as usize).cloned().unwrap_or_else(|| says(""));
                turn.steps.push(said);
            }
            // A question ends the turn.
            asks @ Step::StartCalls(_) if asks_a_question(turn, &asks) => return Some(asks),
            Step::StartCalls(rows) => rows.iter().for_each(|row| self.start(turn, *row)),
            Step::AnswerCall(row, state) => find(turn, row).state = state,
            Step::SettleCall(row) => {
                let call = find(turn, row);
                let done = self.effects.contains_key(&key(call));
                call.state = match call.tier {
                    Tier::Read => CallState::Created,
                    _ if done => CallState::Done(result("Added Dune.")),
                    _ => CallState::Created,
                };
            }
            end @ (Step::Reply(_) | Step::Stop) => return Some(end),
        }
        None
    }

    fn start(&mut self, turn: &mut Turn, row: CallRow) {
        let call = find(turn, row);
        if call.state == CallState::Created {
            call.state = CallState::Running;
        }
        if call.tier == Tier::Write {
            *self.effects.entry(key(call)).or_default() += 1;
        }
        call.state = CallState::Done(result("Added Dune."));
    }
}

fn asks_a_question(turn: &mut Turn, step: &Step) -> bool {
    let Step::StartCalls(rows) = step else { return false };
    rows.iter().any(|row| find(turn, *row).tier == Tier::Destructive)
}

fn key(call: &ToolCall) -> String {
    format!("{}{:?}", call.name, call.arguments)
}

fn find(turn: &mut Turn, row: CallRow) -> &mut ToolCall {
    turn.steps.iter_mut().flat_map(|step| &mut step.calls).find(|call| call.row == row).unwrap()
}

/// Runs to the end; with `crash_at`, the write in progress at that point loses its record.
fn play(script: &[ModelStep], crash_at: Option<usize>) -> (Step, BTreeMap<String, usize>) {
    let mut world = World { script: script.to_vec(), effects: BTreeMap::new() };
    let mut log = turn();
    for at in 0..100 {
        let step = log.next(NOW, &LIMITS);
        let started = match &step {
            Step::StartCalls(rows) => rows.clone(),
            _ => Vec::new(),
        };
        if let Some(end) = world.apply(&mut log, step) {
            return (end, world.effects);
        }
        if crash_at == Some(at) {
            for row in started {
                find(&mut log, row).state = CallState::Running;
            }
            log.resumes += 1;
        }
    }
    panic!("the turn never ends: {log:?}");
}

fn model(text: &str) -> Step {
    Step::Reply(Answer::Model(text.into()))
}

fn tools(text: &str) -> Step {
    Step::Reply(Answer::Tools(text.into()))
}

#[test]
fn resuming_from_any_point_gives_the_same_reply_and_runs_each_write_once() {
    let scripts: [&[ModelStep]; 6] = [
        &[calls(0, &["search_media:dune"]), calls(1, &["add_movie:7"]), says("Added Dune.")],
        &[
            calls(0, &["search_media:a", "search_media:b"]),
            calls(1, &["add_movie:1", "add_movie:2", "add_series:3"]),
            says("Added all."),
        ],
        &[calls(0, &["add_movie:7", "add_movie:7"]), says("Added.")],
        &[
            calls(0, &["remove_media:1", "search_media:a", "add_movie:7", "remove_media:2"]),
            says("Never sent."),
        ],
        &[calls(0, &["add_movie:7"]), says(""), says("")],
        &[says("{\"name\":\"x\",\"arguments\":{}}"), calls(1, &["check_status"]), says("62%.")],
    ];
    for script in scripts {
        let whole = play(script, None);
        assert!(whole.1.values().all(|runs| *runs == 1), "{:?}", whole.1);
        for crash_at in 0..12 {
            assert_eq!(play(script, Some(crash_at)), whole, "crash after {crash_at}");
        }
    }
}

#[test]
fn a_fact_that_was_noted_is_told_whatever_the_model_says() {
    let mut log = turn();
    log.steps = vec![calls(0, &["add_movie:7"]), says("All right.")];
    let noted = CallResult {
        for_model: json!({ "status": "noted", "value": "4K" }),
        for_user: "Noted: 4K quality.".into(),
        shown: Vec::new(),
    };
    log.steps[0].calls[0].state = CallState::Done(noted);
    assert_eq!(log.next(NOW, &LIMITS), model("Noted: 4K quality. All right."));
    log.steps[1] = says("I will remember 4k.");
    assert_eq!(log.next(NOW, &LIMITS), model("I will remember 4k."));
    log.steps[1] = ModelStep { stop: Stop::Refused, ..says("") };
    let refusal = format!("Noted: 4K quality. {}", Excuse::Refused.text());
    assert_eq!(log.next(NOW, &LIMITS), tools(&refusal));
    log.steps[1] = says("Added Dune.");
    assert!(matches!(log.next(NOW, &LIMITS), Step::AskModel(_)));
}

#[test]
fn reads_run_together_and_writes_one_by_one_in_order() {
    let mut log = turn();
    log.steps = vec![calls(0, &["search_media:a", "search_media:b", "add_movie:1", "add_movie:2"])];
    assert_eq!(log.next(NOW, &LIMITS), Step::StartCalls(vec![CallRow(0), CallRow(1)]));
    log.steps[0].calls[0].state = CallState::Done(result(""));
    log.steps[0].calls[1].state = CallState::Done(result(""));
    assert_eq!(log.next(NOW, &LIMITS), Step::StartCalls(vec![CallRow(2)]));
    log.steps[0].calls[2].state = CallState::Running;
    assert_eq!(log.next(NOW, &LIMITS), Step::SettleCall(CallRow(2)));
}

#[test]
fn deletion_is_asked_about_after_every_other_call_of_its_response() {
    let mut log = turn();
    log.steps = vec![calls(0, &["remove_media:1", "search_media:a", "add_movie:7", "remove_media:2"])];
    let mut order = Vec::new();
    loop {
        let Step::StartCalls(rows) = log.next(NOW, &LIMITS) else { panic!("{order:?}") };
        order.extend(rows.iter().map(|row| row.0));
        let call = find(&mut log, rows[0]);
        if call.tier == Tier::Destructive {
            break;
        }
        call.state = CallState::Done(result("Added."));
    }
    assert_eq!(order, [1, 2, 0]);
    let asked = log.steps[0].calls[0].clone();
    assert_eq!(log.other_deletions(&asked).map(|call| call.row.0).collect::<Vec<_>>(), [3]);
    assert_eq!(log.sentences_before_question(), ["Added."]);
}

#[test]
fn failed_call_is_reported_before_a_question_unless_retried() {
    let failed = |code: &str, sentence: Option<&str>| {
        CallState::Failed(CallFailure {
            code: code.to_owned(),
            for_model: json!({}),
            for_user: sentence.map(str::to_owned),
        })
    };
    let mut log = turn();
    log.steps =
        vec![calls(0, &["add_movie:1", "add_series:2"]), calls(1, &["add_movie:3", "remove_media:1"])];
    log.steps[0].calls[0].state = failed("bad_arguments", None);
    log.steps[0].calls[1].state = failed("which_seasons", Some("Dark has 3 seasons. Which ones?"));
    log.steps[1].calls[0].state = failed("unknown_id", None);
    assert_eq!(
        log.sentences_before_question(),
        [
            "Dark has 3 seasons. Which ones?",
            "I could not do everything else you asked for. Please text that again."
        ]
    );
    log.steps[1].calls[0].state = CallState::Done(result("Added Heat."));
    assert_eq!(log.sentences_before_question(), ["Dark has 3 seasons. Which ones?", "Added Heat."]);
}

#[test]
fn a_model_that_only_calls_tools_is_stopped_and_answered_for() {
    let endless: Vec<ModelStep> =
        (0..20).map(|step| calls(step, &[&format!("search_media:{step}")])).collect();
    let (end, _) = play(&endless, None);
    assert_eq!(end, tools("Added Dune."));
}

#[test]
fn the_last_model_call_asks_for_plain_words() {
    let mut log = turn();
    for step in 0..7 {
        let mut done = calls(step, &[&format!("search_media:{step}")]);
        done.calls[0].state = CallState::Done(result("Found."));
        log.steps.push(done);
    }
    let Step::AskModel(ask) = log.next(NOW, &LIMITS) else { panic!("no question") };
    assert_eq!((ask.step, ask.style), (7, AskStyle::Closing));
}

#[test]
fn the_same_read_a_third_time_gets_the_earlier_result_and_a_fourth_ends_the_loop() {
    let mut log = turn();
    for step in 0..4 {
        log.steps.push(calls(step, &["check_status"]));
        let row = CallRow(i64::from(step) * 10);
        match log.next(NOW, &LIMITS) {
            Step::StartCalls(_) if step < 2 => find(&mut log, row).state = CallState::Done(result("62%")),
            Step::AnswerCall(_, state) if step >= 2 => find(&mut log, row).state = state,
            other => panic!("step {step}: {other:?}"),
        }
    }
    let Step::AskModel(ask) = log.next(NOW, &LIMITS) else { panic!("no question") };
    assert_eq!(ask.style, AskStyle::Closing);
}

#[test]
fn a_model_that_stays_silent_is_asked_once_more_and_then_spoken_for() {
    assert_eq!(play(&[says(""), says("Hello.")], None).0, model("Hello."));
    assert_eq!(play(&[says(""), says("")], None).0, Step::Reply(Answer::Code(Excuse::NothingFound)));
    assert_eq!(play(&[calls(0, &["add_movie:7"]), says(""), says("")], None).0, tools("Added Dune."));
}

#[test]
fn a_claim_without_a_change_is_never_sent() {
    let claims = [says("Deleted Dune."), says("I deleted it."), says("x")];
    assert_eq!(play(&claims, None).0, Step::Reply(Answer::Code(Excuse::NothingChanged)));
}

#[test]
fn a_failing_model_is_tried_again_and_then_replaced_by_the_keyword_brain() {
    let transient = |at| Failure::Transient { at, retry_after: None };
    let ask = |failures: &[Failure]| match (Turn { failures: failures.to_vec(), ..turn() }).next(NOW, &LIMITS)
    {
        Step::AskModel(ask) => (ask.brain, ask.after.as_secs(), ask.attempt),
        other => panic!("{other:?}"),
    };
    assert_eq!(ask(&[transient(NOW)]), (Brain::Model, 1, 2));
    assert_eq!(ask(&[transient(NOW); 2]), (Brain::Model, 4, 3));
    assert_eq!(ask(&[transient(NOW); 3]), (Brain::Keyword, 0, 4));
    assert_eq!(ask(&[Failure::Lasting]), (Brain::Keyword, 0, 2));
    assert_eq!(ask(&[Failure::Interrupted; 3]), (Brain::Model, 0, 4));
    let long = Failure::Transient { at: NOW, retry_after: Some(Duration::from_secs(40)) };
    assert_eq!(ask(&[long]), (Brain::Model, 40, 2));
    let too_long = Failure::Transient { at: NOW, retry_after: Some(Duration::from_secs(90)) };
    assert_eq!(ask(&[too_long]), (Brain::Keyword, 0, 2));
}

#[test]
fn a_model_that_dies_after_a_write_leaves_the_truth_to_code() {
    let mut log = turn();
    log.steps = vec![calls(0, &["add_movie:7"])];
    log.steps[0].calls[0].state = CallState::Done(result("Added Dune (2021)."));
    log.failures = vec![Failure::Lasting];
    assert_eq!(log.next(NOW, &LIMITS), tools("Added Dune (2021)."));
}

#[test]
fn a_turn_taken_back_runs_nothing_more_but_settles_what_runs() {
    let mut log = Turn { cancel_requested: true, ..turn() };
    log.steps = vec![calls(0, &["add_movie:1", "add_movie:2"])];
    log.steps[0].calls[0].state = CallState::Running;
    assert_eq!(log.next(NOW, &LIMITS), Step::SettleCall(CallRow(0)));
    log.steps[0].calls[0].state = CallState::Done(result(""));
    assert_eq!(log.next(NOW, &LIMITS), Step::AnswerCall(CallRow(1), CallState::Canceled("cleared".into())));
    log.steps[0].calls[1].state = CallState::Canceled("cleared".into());
    assert_eq!(log.next(NOW, &LIMITS), Step::Stop);
}

#[test]
fn out_of_time_or_of_resumes_no_call_is_started_any_more() {
    let log = Turn { steps: vec![calls(0, &["add_movie:1", "search_media:a"])], ..turn() };
    for late in [log.next(NOW + TURN_TIME, &LIMITS), Turn { resumes: 5, ..log.clone() }.next(NOW, &LIMITS)] {
        assert!(matches!(late, Step::AnswerCall(CallRow(0), CallState::Failed(_))), "{late:?}");
    }
    let mut running = log;
    running.steps[0].calls[0].state = CallState::Running;
    assert_eq!(running.next(NOW + TURN_TIME, &LIMITS), Step::SettleCall(CallRow(0)));
    assert_eq!(Turn { resumes: 5, ..running.clone() }.next(NOW, &LIMITS), Step::SettleCall(CallRow(0)));
    let many_restarts = Turn { resumes: 50, ..running.clone() };
    assert_eq!(many_restarts.next(NOW, &LIMITS), Step::SettleCall(CallRow(0)));
    let tired = Turn { resumes: 9, work_failures: 9, ..running }.next(NOW, &LIMITS);
    assert!(matches!(tired, Step::AnswerCall(CallRow(0), CallState::Failed(_))), "{tired:?}");
}

#[test]
fn out_of_time_or_of_resumes_the_turn_ends_honestly() {
    let late = turn().next(NOW + TURN_TIME, &LIMITS);
    assert_eq!(late, Step::Reply(Answer::Code(Excuse::WentWrong)));
    let tired = Turn { resumes: 5, ..turn() }.next(NOW, &LIMITS);
    assert_eq!(tired, Step::Reply(Answer::Code(Excuse::WentWrong)));
}
