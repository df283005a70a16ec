//! Choice of a turn's next step, from its log and the time alone.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::claims::ClaimEvidence;
use super::model_action::{self, Emoji};
use super::response_check::{self, ResponseVerdict};
use super::{
    FallbackReply, ModelCallPlan, ModelCallStyle, NextStep, RetryHint, StepFailure, Turn, TurnLimits,
    TurnReply,
};
use crate::conversation::people::facts;
use crate::conversation::retry_policy::BackoffPolicy;
use crate::conversation::title_requests;
use crate::conversation::transcript::{
    CallFailure, CallResult, CallState, EffectLevel, FailureCode, ModelStep, Responder, TURN_CANCELED,
    ToolCall,
};
use crate::conversation::votes::tonight::{TONIGHT, VOTE_STARTED};

/// Backoff of repeated model calls. If the server asks for a pause that ends after the deadline of the turn, the
/// keyword responder takes over.
const MODEL_BACKOFF: BackoffPolicy =
    BackoffPolicy { first_pause: Duration::from_secs(1), factor: 4, max_pause: Duration::from_secs(120) };

impl Turn {
    /// Returns the next step of the turn.
    pub fn next_step(&self, now: Timestamp, limits: &TurnLimits) -> NextStep {
        match (self.choose_next_step(now, limits), self.started_vote()) {
            (NextStep::Reply(reply), Some(question)) => {
                NextStep::Reply(TurnReply::Ballot(self.format_ballot(&reply, question)))
            }
            (step, _) => step,
        }
    }

    /// Returns the next step for the call of an agent; `None` once it has an outcome. Nothing is said about it.
    pub fn next_call_step(&self, now: Timestamp, limits: &TurnLimits) -> Option<NextStep> {
        self.next_for_open_calls(now, limits)
    }

    fn choose_next_step(&self, now: Timestamp, limits: &TurnLimits) -> NextStep {
        if let Some(step) = self.next_for_open_calls(now, limits) {
            return step;
        }
        if self.cancel_requested {
            return NextStep::Cancel;
        }
        if self.is_given_up(limits) {
            return self.end_without_model(FallbackReply::InternalError);
        }
        match self.steps.last() {
            Some(step) if step.calls.is_empty() => self.check_last_response(step, now, limits),
            _ => self.plan_model_call(ModelCallStyle::Open, now, limits),
        }
    }

    /// Returns the question of the vote in private chats that a call has started.
    fn started_vote(&self) -> Option<&str> {
        self.calls().find_map(|call| match &call.state {
            CallState::Done(result) if call.name == TONIGHT && result.for_model["status"] == VOTE_STARTED => {
                Some(result.for_user.as_str())
            }
            _ => None,
        })
    }

    /// Formats the reply of a turn that has started a vote. The question is the end of it, so that a number answers it. Of a
    /// model's own words, nothing is sent.
    fn format_ballot(&self, reply: &TurnReply, question: &str) -> String {
        let is_written_by_code = self.steps.last().is_some_and(|step| step.responder == Responder::Keyword);
        let before = match reply {
            TurnReply::Model(text) if is_written_by_code => text.replace(question, ""),
            _ => self.write_results().map(|result| result.for_user.as_str()).collect::<Vec<_>>().join(" "),
        };
        match before.trim() {
            "" => question.to_owned(),
            before => format!("{before}\n{question}"),
        }
    }

    /// Returns the next step for the open calls. All of them get a result before anything else happens.
    fn next_for_open_calls(&self, now: Timestamp, limits: &TurnLimits) -> Option<NextStep> {
        let step = self.steps.last()?;
        let mut open: Vec<&ToolCall> = step.calls.iter().filter(|call| call.state.is_open()).collect();
        // A confirmation prompt ends the turn, so the calls that need none run first.
        open.sort_by_key(|call| call.effect_level == EffectLevel::Destructive);
        let first = open.first()?;
        if first.state == CallState::Running {
            // A started change is checked even by a turn that is given up, so that its final reply is accurate; only a
            // check that keeps failing beyond that is skipped.
            return Some(if self.has_failed_checks(limits) {
                NextStep::AnswerCall(first.row, CallState::Failed(CallFailure::outcome_unknown()))
            } else {
                NextStep::RecoverCall(first.row)
            });
        }
        if self.is_given_up(limits) || now >= self.deadline {
            return Some(NextStep::AnswerCall(
                first.row,
                refused_call(FailureCode::Limit, "the turn's time limit has passed"),
            ));
        }
        if self.cancel_requested {
            return Some(NextStep::AnswerCall(first.row, CallState::Canceled(TURN_CANCELED.into())));
        }
        if let Some(state) = self.answer_without_running(first, limits) {
            return Some(NextStep::AnswerCall(first.row, state));
        }
        if first.effect_level != EffectLevel::Read {
            return Some(NextStep::StartCalls(vec![first.row]));
        }
        let mut batch: Vec<&ToolCall> = Vec::new();
        for call in open {
            let joins_batch = call.effect_level == EffectLevel::Read
                && call.state == CallState::Created
                && batch.len() < limits.parallel_reads
                && !batch.iter().any(|other| other.is_same_request(call))
                && self.answer_without_running(call, limits).is_none();
            if !joins_batch {
                break;
            }
            batch.push(call);
        }
        Some(NextStep::StartCalls(batch.iter().map(|call| call.row).collect()))
    }

    /// Returns the result of a call that is not run: because of a limit, because a confirmation prompt is pending, or
    /// because it repeats a call. Returns `None` if the call is run.
    fn answer_without_running(&self, call: &ToolCall, limits: &TurnLimits) -> Option<CallState> {
        let before: Vec<&ToolCall> = self.calls().take_while(|other| other.row != call.row).collect();
        if self.steps.len() >= limits.model_calls || before.len() >= limits.tool_calls {
            return Some(refused_call(
                FailureCode::Limit,
                "no more tool calls in this turn; answer with what you have",
            ));
        }
        let awaits_confirmation = |other: &&ToolCall| other.state == CallState::AwaitingConfirmation;
        if before.iter().any(awaits_confirmation) {
            return Some(refused_call(FailureCode::NotRun, "the user is being asked about a deletion first"));
        }
        let done = before.iter().filter(|other| other.is_same_request(call)).filter_map(|other| match &other
            .state
        {
            CallState::Done(result) => Some((other.step, result)),
            _ => None,
        });
        let done: Vec<(u32, &CallResult)> = done.collect();
        let &(step, earlier) = done.last()?;
        let is_repeat = match call.effect_level {
            EffectLevel::Read => step == call.step || done.len() >= 2,
            EffectLevel::Write | EffectLevel::Destructive => true,
        };
        is_repeat.then(|| CallState::Done(repeated_result(earlier)))
    }

    /// Returns the sentences about the facts that this turn stored, if it called no other tool. They are a complete reply.
    fn facts_reply(&self) -> Option<String> {
        let only_facts =
            self.calls().all(|call| matches!(call.name.as_str(), facts::REMEMBER | facts::FORGET));
        let reply = facts::prepend_unreported_facts("", self.write_results());
        (only_facts && !reply.trim().is_empty()).then(|| reply.trim().to_owned())
    }

    /// Returns the last reaction of the model, if it has reacted.
    fn last_reaction(&self) -> Option<Emoji> {
        self.calls().filter_map(model_action::reaction_from_call).last()
    }

    pub(super) fn calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.steps.iter().flat_map(|step| &step.calls)
    }

    fn check_last_response(&self, step: &ModelStep, now: Timestamp, limits: &TurnLimits) -> NextStep {
        let evidence = self.claim_evidence();
        match response_check::check_response(step, &evidence) {
            // Stored facts about the user are reported to them, whether the model does so or not.
            ResponseVerdict::Send(text) => NextStep::Reply(TurnReply::Model(
                facts::prepend_unreported_facts(&text, self.write_results()),
            )),
            ResponseVerdict::Fallback(fallback) => {
                let reply = facts::prepend_unreported_facts(fallback.text(), self.write_results());
                let has_unreported = reply != fallback.text();
                NextStep::Reply(if has_unreported {
                    TurnReply::Tools(reply)
                } else {
                    TurnReply::Code(fallback)
                })
            }
            ResponseVerdict::Retry(hint) => {
                if let (RetryHint::Empty, Some(emoji)) = (hint, self.last_reaction()) {
                    // A change is reported even if the model has reacted.
                    let reaction_only = NextStep::Reply(TurnReply::Reaction(emoji));
                    return if self.has_changes() {
                        self.end_without_model(FallbackReply::NothingFound)
                    } else {
                        reaction_only
                    };
                }
                if hint == RetryHint::Empty
                    && let Some(reply) = self.facts_reply()
                {
                    return NextStep::Reply(TurnReply::Tools(reply));
                }
                let was_retried = self.steps[..self.steps.len() - 1].iter().any(|earlier| {
                    earlier.calls.is_empty()
                        && response_check::check_response(earlier, &evidence) == ResponseVerdict::Retry(hint)
                });
                if was_retried || self.steps.len() >= limits.model_calls {
                    self.end_without_model(match hint {
                        RetryHint::FalseClaim | RetryHint::PromptAsText => FallbackReply::NothingChanged,
                        RetryHint::Empty | RetryHint::CallAsText | RetryHint::CutOff => {
                            FallbackReply::NothingFound
                        }
                    })
                } else {
                    self.plan_model_call(ModelCallStyle::Retry(hint), now, limits)
                }
            }
        }
    }

    fn plan_model_call(&self, style: ModelCallStyle, now: Timestamp, limits: &TurnLimits) -> NextStep {
        if self.steps.len() >= limits.model_calls {
            return self.end_without_model(FallbackReply::NothingFound);
        }
        if now >= self.deadline {
            return self.end_without_model(FallbackReply::InternalError);
        }
        let Some((responder, delay)) = self.choose_responder(now, limits) else {
            return self.end_without_model(FallbackReply::InternalError);
        };
        let is_last_call = self.steps.len() + 1 >= limits.model_calls;
        let style = if is_last_call || self.is_looping(limits) { ModelCallStyle::Closing } else { style };
        let attempt = u32::try_from(self.failures.len() + 1).unwrap_or(u32::MAX);
        let step = u32::try_from(self.steps.len()).unwrap_or(u32::MAX);
        NextStep::CallModel(ModelCallPlan { responder, step, attempt, style, delay })
    }

    /// Returns the responder and the delay before its call; `None` if the completed changes are reported instead.
    fn choose_responder(&self, now: Timestamp, limits: &TurnLimits) -> Option<(Responder, Duration)> {
        let responder = self.steps.last().map_or(self.responder, |step| step.responder);
        let Some(last) = self.failures.last() else { return Some((responder, Duration::ZERO)) };
        let counted = self.failures.iter().filter(|failure| **failure != StepFailure::Interrupted).count();
        if responder == Responder::Keyword {
            return (counted < limits.attempts).then_some((Responder::Keyword, Duration::ZERO));
        }
        let delay = match last {
            StepFailure::Interrupted => Duration::ZERO,
            StepFailure::Permanent => return self.fallback_responder(),
            StepFailure::Transient { at, retry_after } => {
                let attempt = u32::try_from(counted).unwrap_or(u32::MAX);
                let pause = MODEL_BACKOFF.pause_after(attempt, *retry_after);
                let elapsed = Duration::try_from(now.duration_since(*at)).unwrap_or_default();
                pause.saturating_sub(elapsed)
            }
        };
        let is_before_deadline =
            SignedDuration::try_from(delay).is_ok_and(|delay| now + delay < self.deadline);
        if counted >= limits.attempts || !is_before_deadline {
            self.fallback_responder()
        } else {
            Some((Responder::Model, delay))
        }
    }

    /// Returns the keyword responder, unless something was changed: then the change is reported.
    fn fallback_responder(&self) -> Option<(Responder, Duration)> {
        (!self.has_changes()).then_some((Responder::Keyword, Duration::ZERO))
    }

    /// Returns whether the model repeats itself: identical reads as often as the limit of parallel reads, or three
    /// calls of one tool with bad arguments.
    fn is_looping(&self, limits: &TurnLimits) -> bool {
        let calls: Vec<&ToolCall> = self.calls().collect();
        let is_repeated_read = |call: &&ToolCall| {
            let count = calls.iter().filter(|other| other.is_same_request(call)).count();
            call.effect_level == EffectLevel::Read && count >= limits.parallel_reads
        };
        let has_bad_arguments = |call: &&ToolCall| matches!(&call.state, CallState::Failed(failure) if failure.code == FailureCode::BadArguments);
        let repeats_bad_arguments = |call: &&ToolCall| {
            calls
                .iter()
                .filter(|other| other.name == call.name)
                .filter(|other| has_bad_arguments(other))
                .count()
                >= 3
        };
        calls.iter().any(|call| is_repeated_read(call) || repeats_bad_arguments(call))
    }

    fn has_changes(&self) -> bool {
        self.write_results().next().is_some()
    }

    /// Returns the evidence for claims in a text of this turn. Stored facts do not count as changes.
    fn claim_evidence(&self) -> ClaimEvidence<'_> {
        let mut evidence = ClaimEvidence { earlier: &self.record, ..ClaimEvidence::default() };
        for result in self.write_results().filter(|result| !facts::is_fact_call(result)) {
            let line = format!("{} {}", result.for_user, result.for_model);
            if title_requests::is_deferred(result) {
                evidence.requested.push(line);
            } else {
                evidence.changed.push(line);
            }
        }
        let reads = self.calls().filter(|call| call.effect_level == EffectLevel::Read);
        for call in reads {
            if let CallState::Done(CallResult { for_model, .. }) = &call.state {
                let results = for_model.get("results").and_then(Value::as_array);
                let entries = results.map_or(std::slice::from_ref(for_model), Vec::as_slice);
                evidence.read_results.extend(entries.iter().map(Value::to_string));
            }
        }
        evidence
    }

    /// Returns the results of successful writes.
    fn write_results(&self) -> impl Iterator<Item = &CallResult> {
        let writes = self.calls().filter(|call| call.effect_level == EffectLevel::Write);
        writes.filter_map(|call| match &call.state {
            CallState::Done(result) => Some(result),
            CallState::Created
            | CallState::Running
            | CallState::AwaitingConfirmation
            | CallState::Failed(_)
            | CallState::Canceled(_) => None,
        })
    }

    /// Returns the final reply without a text of the model: the changes that tools made, else the last result of a
    /// read, else the fallback reply.
    fn end_without_model(&self, fallback: FallbackReply) -> NextStep {
        let result_texts = |level: EffectLevel| {
            self.calls().filter(move |call| call.effect_level == level).filter_map(|call| match &call.state {
                CallState::Done(result) => Some(result.for_user.as_str()),
                CallState::Failed(failure) => failure.for_user.as_deref(),
                _ => None,
            })
        };
        // A deletion without a result has no text, and a refused one states what to text instead.
        let mut changes: Vec<&str> = result_texts(EffectLevel::Write)
            .chain(result_texts(EffectLevel::Destructive))
            .filter(|text| !text.is_empty())
            .collect();
        changes.dedup();
        if !changes.is_empty() {
            return NextStep::Reply(TurnReply::Tools(changes.join(" ")));
        }
        let last_finding = result_texts(EffectLevel::Read).filter(|text| !text.is_empty()).last();
        // Search results do not answer a user who wanted a change.
        let wanted_change = fallback == FallbackReply::InternalError
            && self.calls().any(|call| call.effect_level != EffectLevel::Read);
        NextStep::Reply(match last_finding {
            Some(text) if fallback != FallbackReply::NothingChanged && !wanted_change => {
                TurnReply::Tools(text.to_owned())
            }
            _ => TurnReply::Code(fallback),
        })
    }

    /// Returns the sentences about the changes and possible changes of the turn, for a user who canceled it.
    pub fn possible_changes(&self) -> Vec<&str> {
        self.calls()
            .filter(|call| call.effect_level == EffectLevel::Write)
            .filter_map(|call| match &call.state {
                CallState::Done(result) => Some(result.for_user.as_str()),
                CallState::Failed(failure) if failure.code == FailureCode::OutcomeUnknown => {
                    failure.for_user.as_deref()
                }
                _ => None,
            })
            .collect()
    }
}

fn refused_call(code: FailureCode, hint: &str) -> CallState {
    CallState::Failed(CallFailure::new(code, json!({ "hint": hint }), None))
}

fn repeated_result(earlier: &CallResult) -> CallResult {
    CallResult {
        for_model: json!({
            "note": "same call as before, not run again; answer now",
            "result": earlier.for_model,
        }),
        ..earlier.clone()
    }
}
