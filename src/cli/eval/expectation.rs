//! Comparison of the effects of a message with the expected effects.

use std::collections::BTreeMap;

use serde_json::Value;

use super::scenario_file::{ExpectedEffects, PendingEntry, ReplyEntry};

/// Observed effects of a message.
#[derive(Debug, Default)]
pub(super) struct ObservedEffects {
    pub(super) writes: Vec<(String, i64)>,
    pub(super) pending: Option<Vec<(String, i64)>>,
    pub(super) calls: Vec<String>,
    pub(super) llm_calls: usize,
    /// Messages that the sender received.
    pub(super) reply: UserMessages,
    /// Messages that each user received.
    pub(super) messages_by_user: BTreeMap<String, UserMessages>,
    /// Messages to the group.
    pub(super) room: UserMessages,
    /// Values at the paths that are checked.
    pub(super) state: BTreeMap<String, Value>,
    /// All text that the model received.
    pub(super) prompt: String,
    pub(super) tools: Vec<String>,
    pub(super) opted_out: Vec<String>,
    /// Quality profile of each added title, by TMDB or TVDB id.
    pub(super) quality: Vec<(String, String)>,
    /// Error of the last model request.
    pub(super) failure: Option<String>,
}

/// Messages that one user received.
#[derive(Debug, Clone, Default)]
pub(super) struct UserMessages {
    /// Number of messages.
    pub(super) texts: usize,
    pub(super) pictures: usize,
    /// Bodies of the messages, one per line.
    pub(super) text: String,
}

/// Strictness of the checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CheckMode {
    /// Run with a scripted model, whose tool calls and wording are known.
    Scripted,
    /// Run with a real model, which chooses its own tool calls and wording.
    Live,
}

/// Returns one line per difference between the expected and the observed effects.
pub(super) fn find_differences(
    expected: &ExpectedEffects,
    observed: &ObservedEffects,
    mode: CheckMode,
) -> Vec<String> {
    let mut found = Vec::new();
    if let (CheckMode::Live, Some(failure)) = (mode, &observed.failure) {
        found.push(format!("failed to {failure}"));
    }
    found.extend(write_differences(expected, observed));
    if mode == CheckMode::Scripted || expected.path {
        found.extend(path_differences(expected, observed));
    } else if expected.llm_calls_max == Some(0) && observed.llm_calls > 0 {
        // Messages that code answers or rejects must not reach any model.
        found.push(format!("{} model calls, expected none", observed.llm_calls));
    }
    found.extend(missing_parts(&observed.prompt, "prompt", &expected.prompt_all));
    found.extend(unwanted_parts(&observed.prompt, "prompt", &expected.prompt_none));
    let offered = expected.tools_none.iter().filter(|tool| observed.tools.contains(tool));
    found.extend(offered.map(|tool| format!("{tool} is offered")));
    let reply_problems = reply_differences(&expected.reply, &observed.reply, "reply", mode);
    if !reply_problems.is_empty() || !found.is_empty() {
        found.extend(reply_problems);
        found.push(format!("reply was {:?}", observed.reply.text));
    }
    let room_problems = reply_differences(&expected.room, &observed.room, "text to the group", mode);
    if !room_problems.is_empty() {
        found.extend(room_problems);
        found.push(format!("text to the group was {:?}", observed.room.text));
    }
    for (name, expected) in &expected.notified {
        let messages = observed.messages_by_user.get(name).cloned().unwrap_or_default();
        let problems = reply_differences(expected, &messages, &format!("text to {name}"), mode);
        if !problems.is_empty() {
            found.extend(problems);
            found.push(format!("text to {name} was {:?}", messages.text));
        }
    }
    found
}

/// Lists the differences in the libraries and in the pending actions.
fn write_differences(expected: &ExpectedEffects, observed: &ObservedEffects) -> Vec<String> {
    let mut found = Vec::new();
    if let Some(writes) = &expected.writes
        && *writes != observed.writes
    {
        found.push(format!("writes {:?}, expected {writes:?}", observed.writes));
    }
    for (path, expected) in &expected.state {
        let actual = observed.state.get(path).unwrap_or(&Value::Null);
        if actual != expected {
            found.push(format!("{path} is {actual}, expected {expected}"));
        }
    }
    for (id, quality) in &expected.added_quality {
        if !observed.quality.contains(&(id.clone(), quality.clone())) {
            found.push(format!("{id} is not in {quality}: {:?}", observed.quality));
        }
    }
    if let Some(pending) = &expected.pending {
        let expected = pending.as_ref().map(|PendingEntry { items }| items.clone());
        if expected != observed.pending {
            found.push(format!("pending {:?}, expected {expected:?}", observed.pending));
        }
    }
    if let Some(opted_out) = &expected.opted_out
        && *opted_out != observed.opted_out
    {
        found.push(format!("opted out {:?}, expected {opted_out:?}", observed.opted_out));
    }
    found
}

fn path_differences(expected: &ExpectedEffects, observed: &ObservedEffects) -> Vec<String> {
    let mut found = Vec::new();
    if !is_subsequence(&expected.calls, &observed.calls) {
        found.push(format!("calls {:?}, expected {:?} in order", observed.calls, expected.calls));
    }
    if let Some(max_calls) = expected.llm_calls_max
        && observed.llm_calls > max_calls
    {
        found.push(format!("{} model calls, expected at most {max_calls}", observed.llm_calls));
    }
    found
}

/// Lists the differences of a reply. With a real model, letter case is ignored.
fn reply_differences(
    expected: &ReplyEntry,
    observed: &UserMessages,
    subject: &str,
    mode: CheckMode,
) -> Vec<String> {
    let UserMessages { texts, pictures, text } = observed;
    let contains = |part: &str| match mode {
        CheckMode::Scripted => text.contains(part),
        CheckMode::Live => text.to_lowercase().contains(&part.to_lowercase()),
    };
    let missing = expected.all.iter().filter(|part| !contains(part));
    let mut found: Vec<String> = missing.map(|part| format!("{subject} lacks {part:?}")).collect();
    let missing = expected.any.iter().filter(|group| !group.iter().any(|part| contains(part)));
    found.extend(missing.map(|group| format!("{subject} contains none of {group:?}")));
    found.extend(unwanted_parts(text, subject, &expected.none));
    if expected.empty && !text.is_empty() {
        found.push(format!("{subject} should be empty"));
    }
    if let Some(count) = expected.texts
        && *texts != count
    {
        found.push(format!("{subject}: {texts} texts, expected {count}"));
    }
    if let Some(count) = expected.pictures
        && *pictures != count
    {
        found.push(format!("{subject}: {pictures} pictures, expected {count}"));
    }
    if let Some(limit) = expected.max_chars
        && text.chars().count() > limit
    {
        found.push(format!("{subject} is longer than {limit} characters"));
    }
    if let Some(limit) = expected.max_questions
        && text.matches('?').count() > limit
    {
        found.push(format!("{subject} asks more than {limit} questions"));
    }
    found
}

fn missing_parts(text: &str, subject: &str, parts: &[String]) -> Vec<String> {
    parts
        .iter()
        .filter(|part| !text.contains(*part))
        .map(|part| format!("{subject} lacks {part:?}"))
        .collect()
}

fn unwanted_parts(text: &str, subject: &str, parts: &[String]) -> Vec<String> {
    parts
        .iter()
        .filter(|part| text.contains(*part))
        .map(|part| format!("{subject} contains {part:?}"))
        .collect()
}

fn is_subsequence(subsequence: &[String], sequence: &[String]) -> bool {
    let mut rest = sequence.iter();
    subsequence.iter().all(|name| rest.any(|other| other == name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(expected: &str, observed: &ObservedEffects, expected_differences: &[&str]) {
        let expected: ExpectedEffects = serde_json::from_str(expected).unwrap();
        assert_eq!(find_differences(&expected, observed, CheckMode::Scripted), expected_differences);
    }

    /// Checks the effects as in a run with a real model.
    #[track_caller]
    fn check_live(expected: &str, observed: &ObservedEffects, expected_differences: &[&str]) {
        let expected: ExpectedEffects = serde_json::from_str(expected).unwrap();
        assert_eq!(find_differences(&expected, observed, CheckMode::Live), expected_differences);
    }

    fn replied(reply: &str) -> ObservedEffects {
        ObservedEffects { reply: one_text(reply), ..ObservedEffects::default() }
    }

    fn one_text(text: &str) -> UserMessages {
        UserMessages { texts: 1, pictures: 0, text: text.to_owned() }
    }

    #[test]
    fn absent_expectation_is_not_checked() {
        check("{}", &ObservedEffects { pending: Some(vec![]), ..replied("Hi") }, &[]);
    }

    #[test]
    fn explicit_null_allows_no_pending_action() {
        let pending =
            ObservedEffects { pending: Some(vec![("movie".into(), 7)]), ..ObservedEffects::default() };
        check(
            r#"{"pending":null}"#,
            &pending,
            &[r#"pending Some([("movie", 7)]), expected None"#, r#"reply was """#],
        );
        check(r#"{"pending":{"items":[["movie",7]]}}"#, &pending, &[]);
    }

    #[test]
    fn calls_are_an_ordered_subset_and_writes_are_exact() {
        let calls = ["a", "b", "c"].map(str::to_owned).to_vec();
        let observed =
            ObservedEffects { calls, writes: vec![("add_movie".into(), 603)], ..ObservedEffects::default() };
        check(r#"{"calls":["a","c"],"writes":[["add_movie",603]]}"#, &observed, &[]);
        check(
            r#"{"calls":["c","a"],"writes":[]}"#,
            &observed,
            &[
                r#"writes [("add_movie", 603)], expected []"#,
                r#"calls ["a", "b", "c"], expected ["c", "a"] in order"#,
                r#"reply was """#,
            ],
        );
    }

    #[test]
    fn live_run_may_differ_in_calls_but_not_in_effects() {
        let observed = ObservedEffects {
            calls: vec!["search_media".to_owned()],
            llm_calls: 5,
            writes: vec![("add_movie".into(), 603)],
            ..replied("the matrix is on its way.")
        };
        let expected = r#"{"calls":["find_in_library"],"llm_calls_max":2,"writes":[["add_movie",603]],
            "reply":{"all":["The Matrix"],"any":[["added","on its way"]]}}"#;
        check_live(expected, &observed, &[]);
        let with_path = expected.replacen('{', r#"{"path":true,"#, 1);
        check_live(
            &with_path,
            &observed,
            &[
                r#"calls ["search_media"], expected ["find_in_library"] in order"#,
                "5 model calls, expected at most 2",
                r#"reply was "the matrix is on its way.""#,
            ],
        );
        check_live(
            r#"{"llm_calls_max":0}"#,
            &observed,
            &["5 model calls, expected none", r#"reply was "the matrix is on its way.""#],
        );
    }

    #[test]
    fn model_failure_is_a_problem_only_in_live_runs() {
        let failure = Some("connect to the model".to_owned());
        let observed = ObservedEffects { failure, ..replied("Added.") };
        check("{}", &observed, &[]);
        check_live("{}", &observed, &["failed to connect to the model", r#"reply was "Added.""#]);
    }

    #[test]
    fn texts_are_checked_for_the_sender_and_other_users() {
        let messages_by_user = BTreeMap::from([("dad".to_owned(), one_text("Bob asks. Really? Now?"))]);
        let observed = ObservedEffects { messages_by_user, ..replied("I asked the admins.") };
        check(
            r#"{"reply":{"all":["asked"]},"told":{"dad":{"all":["Bob"]},"kid":{"empty":true}}}"#,
            &observed,
            &[],
        );
        check(
            r#"{"reply":{"any":[["told","wrote"]],"none":["admins"],"max_chars":5,"texts":2,"pictures":1},
                "told":{"dad":{"empty":true,"max_questions":1},"kid":{"all":["x"]}}}"#,
            &observed,
            &[
                r#"reply contains none of ["told", "wrote"]"#,
                r#"reply contains "admins""#,
                "reply: 1 texts, expected 2",
                "reply: 0 pictures, expected 1",
                "reply is longer than 5 characters",
                r#"reply was "I asked the admins.""#,
                "text to dad should be empty",
                "text to dad asks more than 1 questions",
                r#"text to dad was "Bob asks. Really? Now?""#,
                r#"text to kid lacks "x""#,
                r#"text to kid was """#,
            ],
        );
    }

    #[test]
    fn state_is_compared_as_a_value() {
        let state = BTreeMap::from([("series.3.seasons".to_owned(), serde_json::json!([1, 2]))]);
        let observed = ObservedEffects { state, ..replied("Done.") };
        check(r#"{"state":{"series.3.seasons":[1,2]}}"#, &observed, &[]);
        check(
            r#"{"state":{"series.3.seasons":[1]}}"#,
            &observed,
            &["series.3.seasons is [1,2], expected [1]", r#"reply was "Done.""#],
        );
    }

    #[test]
    fn unknown_expectation_is_an_error() {
        assert!(serde_json::from_str::<ExpectedEffects>(r#"{"write":[]}"#).is_err());
        assert!(serde_json::from_str::<ExpectedEffects>(r#"{"reply":{"some":[]}}"#).is_err());
    }
}
