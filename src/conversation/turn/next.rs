//! What a turn does next, from its log and the time alone.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::claims::Evidence;
use super::judgement::{self, Verdict};
use super::{Answer, Ask, AskStyle, Excuse, Failure, Limits, Nudge, Step, Turn};
use crate::conversation::action::{self, Emoji};
use crate::conversation::facts;
use crate::conversation::requests;
use crate::conversation::transcript::{
    Brain, CLEARED, CallFailure, CallResult, CallState, ModelStep, Tier, ToolCall,
};
use crate::conversation::trouble::Pace;

/// How soon the model is asked again. A turn has no time for a longer pause, so one that the server asks for ends the
/// model's part in it.
const MODEL_PACE: Pace = Pace { first: Duration::from_secs(1), factor: 4, longest: Duration::from_secs(120) };

impl Turn {
    pub fn next(&self, now: Timestamp, limits: &Limits) -> Step {
        if let Some(step) = self.unfinished_calls(now, limits) {
            return step;
        }
        if self.cancel_requested {
            return Step::Stop;
        }
        if self.is_given_up(limits) {
            return self.close(Excuse::WentWrong);
        }
        match self.steps.last() {
            Some(step) if step.calls.is_empty() => self.judge(step, now, limits),
            _ => self.ask(AskStyle::Open, now, limits),
        }
    }

    /// Every call is answered before anything else happens.
    fn unfinished_calls(&self, now: Timestamp, limits: &Limits) -> Option<Step> {
        let step = self.steps.last()?;
        let mut open: Vec<&ToolCall> = step
            .calls
            .iter()
            .filter(|call| matches!(call.state, CallState::Created | CallState::Running))
            .collect();
        // A question ends the turn, so whatever needs none comes first.
        open.sort_by_key(|call| call.tier == Tier::Destructive);
        let first = open.first()?;
        if first.state == CallState::Running {
            // What was begun is looked into even by a turn that is given up, so that its end tells the truth; only
            // what keeps failing beyond that is not.
            return Some(if self.is_beyond_checking(limits) {
                Step::AnswerCall(first.row, outcome_unknown())
            } else {
                Step::SettleCall(first.row)
            });
        }
        if self.is_given_up(limits) || now >= self.deadline {
            return Some(Step::AnswerCall(first.row, refused("limit", "the time for this is over")));
        }
        if self.cancel_requested {
            return Some(Step::AnswerCall(first.row, CallState::Canceled(CLEARED.into())));
        }
        if let Some(state) = self.answer_without_running(first, limits) {
            return Some(Step::AnswerCall(first.row, state));
        }
        if first.tier != Tier::Read {
            return Some(Step::StartCalls(vec![first.row]));
        }
        let mut together: Vec<&ToolCall> = Vec::new();
        for call in open {
            let joins = call.tier == Tier::Read
                && call.state == CallState::Created
                && together.len() < limits.parallel_reads
                && !together.iter().any(|other| other.asks_the_same_as(call))
                && self.answer_without_running(call, limits).is_none();
            if !joins {
                break;
            }
            together.push(call);
        }
        Some(Step::StartCalls(together.iter().map(|call| call.row).collect()))
    }

    /// Calls over a limit, repeats, and calls in the turn's last response are not run.
    fn answer_without_running(&self, call: &ToolCall, limits: &Limits) -> Option<CallState> {
        let before: Vec<&ToolCall> = self.calls().take_while(|other| other.row != call.row).collect();
        if self.steps.len() >= limits.model_calls || before.len() >= limits.tool_calls {
            return Some(refused("limit", "no more tool calls in this turn; answer with what you have"));
        }
        let held = |other: &&ToolCall| other.state == CallState::Held;
        if before.iter().any(held) {
            return Some(refused("not_run", "the user is being asked about a deletion first"));
        }
        let done =
            before.iter().filter(|other| other.asks_the_same_as(call)).filter_map(|other| {
                match &other.state {
                    CallState::Done(result) => Some((other.step, result)),
                    _ => None,
                }
            });
        let done: Vec<(u32, &CallResult)> = done.collect();
        let &(step, earlier) = done.last()?;
        let enough = match call.tier {
            Tier::Read => step == call.step || done.len() >= 2,
            Tier::Write | Tier::Destructive => true,
        };
        enough.then(|| CallState::Done(repeated(earlier)))
    }

    /// The last reaction of the model, where it has reacted.
    fn reaction(&self) -> Option<Emoji> {
        self.calls().filter_map(action::reaction_of).last()
    }

    pub(super) fn calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.steps.iter().flat_map(|step| &step.calls)
    }

    fn judge(&self, step: &ModelStep, now: Timestamp, limits: &Limits) -> Step {
        let evidence = self.evidence();
        match judgement::of(step, &evidence) {
            // What is noted of a person is told to them, whether the model does so or not.
            Verdict::Say(text) => {
                Step::Reply(Answer::Model(facts::with_unsaid(&text, self.results_of_writes())))
            }
            Verdict::Excuse(excuse) => {
                let told = facts::with_unsaid(excuse.text(), self.results_of_writes());
                let unsaid = told != excuse.text();
                Step::Reply(if unsaid { Answer::Tools(told) } else { Answer::Code(excuse) })
            }
            Verdict::AskAgain(nudge) => {
                if let (Nudge::Empty, Some(emoji)) = (nudge, self.reaction()) {
                    // What was changed is told, reaction or not.
                    let silent = Step::Reply(Answer::Reaction(emoji));
                    return if self.changed_something() { self.close(Excuse::NothingFound) } else { silent };
                }
                let asked_before = self.steps[..self.steps.len() - 1].iter().any(|earlier| {
                    earlier.calls.is_empty() && judgement::of(earlier, &evidence) == Verdict::AskAgain(nudge)
                });
                if asked_before || self.steps.len() >= limits.model_calls {
                    self.close(match nudge {
                        Nudge::FalseClaim | Nudge::PromptAsText => Excuse::NothingChanged,
                        Nudge::Empty | Nudge::CallAsText | Nudge::CutOff => Excuse::NothingFound,
                    })
                } else {
                    self.ask(AskStyle::Again(nudge), now, limits)
                }
            }
        }
    }

    fn ask(&self, style: AskStyle, now: Timestamp, limits: &Limits) -> Step {
        if self.steps.len() >= limits.model_calls {
            return self.close(Excuse::NothingFound);
        }
        if now >= self.deadline {
            return self.close(Excuse::WentWrong);
        }
        let Some((brain, after)) = self.who_answers(now, limits) else {
            return self.close(Excuse::WentWrong);
        };
        let last = self.steps.len() + 1 >= limits.model_calls;
        let style = if last || self.is_going_in_circles(limits) { AskStyle::Closing } else { style };
        let attempt = u32::try_from(self.failures.len() + 1).unwrap_or(u32::MAX);
        let step = u32::try_from(self.steps.len()).unwrap_or(u32::MAX);
        Step::AskModel(Ask { brain, step, attempt, style, after })
    }

    /// The brain that answers and how long to wait for it; `None` where what was done says enough.
    fn who_answers(&self, now: Timestamp, limits: &Limits) -> Option<(Brain, Duration)> {
        let brain = self.steps.last().map_or(self.brain, |step| step.brain);
        let Some(last) = self.failures.last() else { return Some((brain, Duration::ZERO)) };
        let counted = self.failures.iter().filter(|failure| **failure != Failure::Interrupted).count();
        if brain == Brain::Keyword {
            return (counted < limits.attempts).then_some((Brain::Keyword, Duration::ZERO));
        }
        let wait = match last {
            Failure::Interrupted => Duration::ZERO,
            Failure::Lasting => return self.without_model(),
            Failure::Transient { at, retry_after } => {
                let attempt = u32::try_from(counted).unwrap_or(u32::MAX);
                let pause = MODEL_PACE.pause(attempt, *retry_after);
                let since = Duration::try_from(now.duration_since(*at)).unwrap_or_default();
                pause.saturating_sub(since)
            }
        };
        let in_time = SignedDuration::try_from(wait).is_ok_and(|wait| now + wait < self.deadline);
        if counted >= limits.attempts || !in_time { self.without_model() } else { Some((Brain::Model, wait)) }
    }

    /// The keyword brain takes over, unless something was changed: then that is what is told.
    fn without_model(&self) -> Option<(Brain, Duration)> {
        (!self.changed_something()).then_some((Brain::Keyword, Duration::ZERO))
    }

    /// Four identical reads, or three calls of one tool that all had bad arguments.
    fn is_going_in_circles(&self, limits: &Limits) -> bool {
        let calls: Vec<&ToolCall> = self.calls().collect();
        let repeated_read = |call: &&ToolCall| {
            let same = calls.iter().filter(|other| other.asks_the_same_as(call)).count();
            call.tier == Tier::Read && same >= limits.parallel_reads
        };
        let bad = |call: &&ToolCall| matches!(&call.state, CallState::Failed(f) if f.code == "bad_arguments");
        let hopeless = |call: &&ToolCall| {
            calls.iter().filter(|other| other.name == call.name).filter(|other| bad(other)).count() >= 3
        };
        calls.iter().any(|call| repeated_read(call) || hopeless(call))
    }

    fn changed_something(&self) -> bool {
        self.results_of_writes().next().is_some()
    }

    /// What a text of this turn may claim. Notes about the person are no change of a library.
    fn evidence(&self) -> Evidence<'_> {
        let mut evidence = Evidence { earlier: &self.record, ..Evidence::default() };
        for result in self.results_of_writes().filter(|result| !facts::is_of_facts(result)) {
            let line = format!("{} {}", result.for_user, result.for_model);
            if requests::only_promises(result) {
                evidence.requested.push(line);
            } else {
                evidence.changed.push(line);
            }
        }
        let reads = self.calls().filter(|call| call.tier == Tier::Read);
        for call in reads {
            if let CallState::Done(CallResult { for_model, .. }) = &call.state {
                let listed = for_model.get("results").and_then(Value::as_array);
                let entries = listed.map_or(std::slice::from_ref(for_model), Vec::as_slice);
                evidence.read.extend(entries.iter().map(Value::to_string));
            }
        }
        evidence
    }

    /// Of those that ended well.
    fn results_of_writes(&self) -> impl Iterator<Item = &CallResult> {
        let writes = self.calls().filter(|call| call.tier == Tier::Write);
        writes.filter_map(|call| match &call.state {
            CallState::Done(result) => Some(result),
            CallState::Created
            | CallState::Running
            | CallState::Held
            | CallState::Failed(_)
            | CallState::Canceled(_) => None,
        })
    }

    /// The end without the model's words: what the tools did, else the last thing they found, else an excuse.
    fn close(&self, excuse: Excuse) -> Step {
        let said = |tier: Tier| {
            self.calls().filter(move |call| call.tier == tier).filter_map(|call| match &call.state {
                CallState::Done(result) => Some(result.for_user.as_str()),
                CallState::Failed(failure) => failure.for_user.as_deref(),
                _ => None,
            })
        };
        let mut done: Vec<&str> = said(Tier::Write).filter(|text| !text.is_empty()).collect();
        done.dedup();
        if !done.is_empty() {
            return Step::Reply(Answer::Tools(done.join(" ")));
        }
        let found = said(Tier::Read).filter(|text| !text.is_empty()).last();
        // What was found is no answer to someone who wanted something changed.
        let wanted_more = excuse == Excuse::WentWrong && self.calls().any(|call| call.tier != Tier::Read);
        Step::Reply(match found {
            Some(text) if excuse != Excuse::NothingChanged && !wanted_more => Answer::Tools(text.to_owned()),
            _ => Answer::Code(excuse),
        })
    }

    /// What the turn changed or may have changed, in the sentences that tools wrote: sent to the user who took it back.
    pub fn done_or_unknown(&self) -> Vec<&str> {
        self.calls()
            .filter(|call| call.tier == Tier::Write)
            .filter_map(|call| match &call.state {
                CallState::Done(result) => Some(result.for_user.as_str()),
                CallState::Failed(failure) if failure.code == OUTCOME_UNKNOWN => failure.for_user.as_deref(),
                _ => None,
            })
            .collect()
    }
}

/// It may have happened, and could not be found out.
const OUTCOME_UNKNOWN: &str = "outcome_unknown";

fn outcome_unknown() -> CallState {
    CallState::Failed(CallFailure {
        code: OUTCOME_UNKNOWN.to_owned(),
        for_model: json!({ "error": OUTCOME_UNKNOWN, "hint": "it may or may not have happened; say so" }),
        for_user: Some("I could not find out whether that worked. Please have a look.".to_owned()),
    })
}

fn refused(code: &str, hint: &str) -> CallState {
    CallState::Failed(CallFailure {
        code: code.to_owned(),
        for_model: json!({ "error": code, "hint": hint }),
        for_user: None,
    })
}

fn repeated(earlier: &CallResult) -> CallResult {
    CallResult {
        for_model: json!({
            "note": "same call as before, not run again; answer now",
            "result": earlier.for_model,
        }),
        ..earlier.clone()
    }
}
