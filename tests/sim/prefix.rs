//! Crash test of a turn's log: a turn that is cut off at any moment and resumed ends as if the crash had not happened.

use std::ops::Range;

use crate::agent_plan::{AgentAct, DESK};
use crate::bot_plan::{BotChats, BotPlan};
use crate::plan::{ANN, Act, Answers, DeliveryMode, Plan, Stop};
use crate::run::Verdict;
use crate::{Ground, variable};

/// Time at which the first message is sent.
const BEGIN: u64 = 1_000;
/// Time of the first message in a group, which is open by then.
const GROUP_BEGIN: u64 = 20_000;

/// Checks that a program that is killed, at every moment in turn, ends in the same state as one that is not.
#[track_caller]
fn check(texts: &[&str]) {
    let text = |(place, body): (u64, &&str)| (BEGIN + place * 40_000, text(body));
    check_from(BEGIN, &(0..).zip(texts).map(text).collect::<Vec<_>>());
}

/// Runs the same check for every moment from a given one on.
#[track_caller]
fn check_from(first: u64, acts: &[(u64, Act)]) {
    check_plan(first..u64::MAX, acts, None);
}

/// Runs the same check with a bot as the only carrier, if one is given.
#[track_caller]
fn check_plan(moments: Range<u64>, acts: &[(u64, Act)], bot: Option<&BotPlan>) {
    let ground = Ground::new();
    let whole = play(&ground, (acts, bot), None);
    assert_eq!(whole.violations, Vec::<String>::new());
    let (first, end) = (moments.start, moments.end.min(whole.last_effect_ms + 20));
    assert!(first < end, "nothing happens after {first} ms");
    // A schedule with a bot takes longer, because a lost outcome is awaited.
    let every = match (variable("SIM_SEEDS"), bot) {
        (Some(_), _) => 1,
        (None, None) => 37,
        (None, Some(_)) => 370,
    };
    for at in (first..end).step_by(every) {
        let cut = play(&ground, (acts, bot), Some(at));
        let journal = cut.journal.join("\n");
        assert_eq!(cut.violations, Vec::<String>::new(), "killed at {at} ms\n{journal}");
        assert_eq!(cut.changes, whole.changes, "killed at {at} ms\n{journal}");
        assert_eq!(cut.last_words(), whole.last_words(), "killed at {at} ms\n{journal}");
    }
}

fn play(ground: &Ground, (acts, bot): (&[(u64, Act)], Option<&BotPlan>), kill_at: Option<u64>) -> Verdict {
    let mut plan = Plan::calm(kill_at.unwrap_or(0));
    plan.answers = Answers::Yes;
    plan.bot = bot.cloned();
    plan.agents = vec![DESK];
    plan.agents.retain(|_| acts.iter().any(|(_, act)| matches!(act, Act::Agent(..))));
    plan.acts = acts.to_vec();
    if let Some(at) = kill_at {
        plan.acts.push((at, Act::Stop { how: Stop::Kill }));
        plan.acts.push((at + 1_500, Act::Start { interrupted: false }));
    }
    plan.acts.sort_by_key(|(at, _)| *at);
    ground.play(&plan)
}

fn text(body: &str) -> Act {
    Act::Text { from: ANN, body: body.to_owned(), way: DeliveryMode::Straight }
}

#[test]
fn addition_interrupted_anywhere_runs_once() {
    check(&["add Arrival"]);
}

#[test]
fn reply_interrupted_anywhere_is_sent_once() {
    check(&["what is new?"]);
}

#[test]
fn deletion_interrupted_anywhere_is_prompted_and_runs_once() {
    check(&["delete Dune"]);
}

#[test]
fn deletion_of_two_interrupted_anywhere_deletes_each_once() {
    check(&["delete Dune and Heat"]);
}

#[test]
fn question_of_an_agent_interrupted_anywhere_deletes_once() {
    let deletes = AgentAct::Deletes { title: "Dune", repeats_after: None };
    check_from(BEGIN, &[(BEGIN, Act::Agent(0, deletes))]);
}

#[test]
fn deferred_addition_interrupted_anywhere_runs_once() {
    let acts = [
        (BEGIN, text("find Arrival")),
        (20_000, Act::LibrariesDown(true)),
        (30_000, text("want Arrival")),
        (60_000, Act::LibrariesDown(false)),
    ];
    check_from(88_000, &acts);
}

#[test]
fn deletion_in_a_group_interrupted_anywhere_runs_once() {
    let bot = BotPlan { storm: 0, chats: BotChats::OrderlyGroup };
    check_plan(GROUP_BEGIN..u64::MAX, &[(GROUP_BEGIN, text("delete Dune"))], Some(&bot));
}

#[test]
fn vote_in_a_group_interrupted_anywhere_has_one_result() {
    let bot = BotPlan { storm: 0, chats: BotChats::OrderlyGroup };
    let acts = [(GROUP_BEGIN, text("vote Dune, Heat")), (GROUP_BEGIN + 4_000, text("close vote"))];
    check_plan(GROUP_BEGIN..u64::MAX, &acts, Some(&bot));
}

#[test]
fn vote_about_titles_interrupted_anywhere_is_asked_and_decided_once() {
    // A text whose webhook is lost is found half a minute later.
    let closes_at = BEGIN + 90_000;
    let acts = [(BEGIN, text("what can we all watch tonight")), (closes_at, text("close vote"))];
    check_plan(BEGIN..BEGIN + 3_000, &acts, None);
    check_plan(closes_at..closes_at + 3_000, &acts, None);
}
