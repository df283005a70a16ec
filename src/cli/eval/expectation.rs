//! Comparison of the effects of a message with the expected effects.

use std::collections::BTreeMap;

use serde_json::Value;

use super::file::{ExpectedEffects, PendingEntry, ReplyEntry};

/// All effects of a message.
#[derive(Debug, Default)]
pub(super) struct ObservedEffects {
    pub(super) writes: Vec<(String, i64)>,
    pub(super) pending: Option<Vec<(String, i64)>>,
    pub(super) calls: Vec<String>,
    pub(super) llm_calls: usize,
    /// Messages that the sender received.
    pub(super) reply: UserMessages,
    /// Messages that each user received.
    pub(super) told: BTreeMap<String, UserMessages>,
    /// Values at the paths that are checked.
    pub(super) state: BTreeMap<String, Value>,
    /// All text that the model received.
    pub(super) prompt: String,
    pub(super) tools: Vec<String>,
    pub(super) opted_out: Vec<String>,
    /// Quality profile of each added title, by TMDB or TVDB id.
    pub(super) quality: Vec<(String, String)>,
    /// Reason that the model's last request has no response.
    pub(super) failure: Option<String>,
}

/// Messages to one user, in order.
#[derive(Debug, Clone, Default)]
pub(super) struct UserMessages {
    pub(super) texts: usize,
    pub(super) pictures: usize,
    pub(super) words: String,
}

/// Set of checks besides the final state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum JudgmentMode {
    /// A scripted run: the path and every word of the reply are known.
    Path,
    /// A real model chooses its own path and wording.
    End,
}

/// Returns one line per difference; no lines mean that all effects match the expected ones.
pub(super) fn differences(
    expected: &ExpectedEffects,
    observed: &ObservedEffects,
    judging: JudgmentMode,
) -> Vec<String> {
    let mut found = Vec::new();
    if let (JudgmentMode::End, Some(failure)) = (judging, &observed.failure) {
        found.push(format!("the model failed to {failure}"));
    }
    found.extend(write_differences(expected, observed));
    if judging == JudgmentMode::Path || expected.path {
        found.extend(path_differences(expected, observed));
    } else if expected.llm_calls_max == Some(0) && observed.llm_calls > 0 {
        // This check does not depend on the path: messages that code answers or rejects must not reach the model.
        found.push(format!("{} model calls, expected none", observed.llm_calls));
    }
    found.extend(missing_parts(&observed.prompt, "prompt", &expected.prompt_all));
    found.extend(unwanted_parts(&observed.prompt, "prompt", &expected.prompt_none));
    let offered = expected.tools_none.iter().filter(|tool| observed.tools.contains(tool));
    found.extend(offered.map(|tool| format!("{tool} is offered")));
    let of_reply = reply_differences(&expected.reply, &observed.reply, "reply", judging);
    if !of_reply.is_empty() || !found.is_empty() {
        found.extend(of_reply);
        found.push(format!("reply was {:?}", observed.reply.words));
    }
    for (name, expected) in &expected.told {
        let told = observed.told.get(name).cloned().unwrap_or_default();
        let of_text = reply_differences(expected, &told, &format!("text to {name}"), judging);
        if !of_text.is_empty() {
            found.extend(of_text);
            found.push(format!("text to {name} was {:?}", told.words));
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
    for (path, wanted) in &expected.state {
        let actual = observed.state.get(path).unwrap_or(&Value::Null);
        if actual != wanted {
            found.push(format!("{path} is {actual}, expected {wanted}"));
        }
    }
    for (id, quality) in &expected.added_quality {
        if !observed.quality.contains(&(id.clone(), quality.clone())) {
            found.push(format!("{id} is not in {quality}: {:?}", observed.quality));
        }
    }
    if let Some(pending) = &expected.pending {
        let wanted = pending.as_ref().map(|PendingEntry { items }| items.clone());
        if wanted != observed.pending {
            found.push(format!("pending {:?}, expected {wanted:?}", observed.pending));
        }
    }
    if let Some(wanted) = &expected.opted_out
        && *wanted != observed.opted_out
    {
        found.push(format!("opted out {:?}, expected {wanted:?}", observed.opted_out));
    }
    found
}

fn path_differences(expected: &ExpectedEffects, observed: &ObservedEffects) -> Vec<String> {
    let mut found = Vec::new();
    if !is_subsequence(&expected.calls, &observed.calls) {
        found.push(format!("calls {:?}, expected {:?} in order", observed.calls, expected.calls));
    }
    if let Some(most) = expected.llm_calls_max
        && observed.llm_calls > most
    {
        found.push(format!("{} model calls, expected at most {most}", observed.llm_calls));
    }
    found
}

/// Lists the differences of a reply. A real model may begin a sentence with words that a script has mid-sentence, so
/// case does not count there.
fn reply_differences(
    expected: &ReplyEntry,
    observed: &UserMessages,
    what: &str,
    judging: JudgmentMode,
) -> Vec<String> {
    let UserMessages { texts, pictures, words } = observed;
    let has = |part: &str| match judging {
        JudgmentMode::Path => words.contains(part),
        JudgmentMode::End => words.to_lowercase().contains(&part.to_lowercase()),
    };
    let missing = expected.all.iter().filter(|part| !has(part));
    let mut found: Vec<String> = missing.map(|part| format!("{what} lacks {part:?}")).collect();
    let missing = expected.any.iter().filter(|group| !group.iter().any(|part| has(part)));
    found.extend(missing.map(|group| format!("{what} lacks every one of {group:?}")));
    found.extend(unwanted_parts(words, what, &expected.none));
    if expected.empty && !words.is_empty() {
        found.push(format!("{what} should be empty"));
    }
    if let Some(wanted) = expected.texts
        && *texts != wanted
    {
        found.push(format!("{what}: {texts} texts, expected {wanted}"));
    }
    if let Some(wanted) = expected.pictures
        && *pictures != wanted
    {
        found.push(format!("{what}: {pictures} pictures, expected {wanted}"));
    }
    if let Some(most) = expected.max_chars
        && words.chars().count() > most
    {
        found.push(format!("{what} is longer than {most} characters"));
    }
    if let Some(most) = expected.max_questions
        && words.matches('?').count() > most
    {
        found.push(format!("{what} asks more than {most} questions"));
    }
    found
}

fn missing_parts(text: &str, what: &str, parts: &[String]) -> Vec<String> {
    parts.iter().filter(|part| !text.contains(*part)).map(|part| format!("{what} lacks {part:?}")).collect()
}

fn unwanted_parts(text: &str, what: &str, parts: &[String]) -> Vec<String> {
    parts.iter().filter(|part| text.contains(*part)).map(|part| format!("{what} holds {part:?}")).collect()
}

fn is_subsequence(wanted: &[String], among: &[String]) -> bool {
    let mut rest = among.iter();
    wanted.iter().all(|name| rest.any(|other| other == name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(expected: &str, observed: &ObservedEffects, differences_found: &[&str]) {
        let expected: ExpectedEffects = serde_json::from_str(expected).unwrap();
        assert_eq!(differences(&expected, observed, JudgmentMode::Path), differences_found);
    }

    /// Checks the effects as in a run with a real model.
    #[track_caller]
    fn check_live(expected: &str, observed: &ObservedEffects, differences_found: &[&str]) {
        let expected: ExpectedEffects = serde_json::from_str(expected).unwrap();
        assert_eq!(differences(&expected, observed, JudgmentMode::End), differences_found);
    }

    fn replied(reply: &str) -> ObservedEffects {
        ObservedEffects { reply: one_text(reply), ..ObservedEffects::default() }
    }

    fn one_text(words: &str) -> UserMessages {
        UserMessages { texts: 1, pictures: 0, words: words.to_owned() }
    }

    #[test]
    fn unstated_expectation_is_not_checked() {
        check("{}", &ObservedEffects { pending: Some(vec![]), ..replied("Hi") }, &[]);
    }

    #[test]
    fn stated_null_allows_no_pending_action() {
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
        let prescribed = expected.replacen('{', r#"{"path":true,"#, 1);
        check_live(
            &prescribed,
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
    fn model_failure_is_a_problem_unless_the_script_expects_it() {
        let failure = Some("get an answer from the model in time".to_owned());
        let observed = ObservedEffects { failure, ..replied("Added.") };
        check("{}", &observed, &[]);
        check_live(
            "{}",
            &observed,
            &["the model failed to get an answer from the model in time", r#"reply was "Added.""#],
        );
    }

    #[test]
    fn texts_are_checked_for_the_sender_and_other_users() {
        let told = BTreeMap::from([("dad".to_owned(), one_text("Bob asks. Really? Now?"))]);
        let observed = ObservedEffects { told, ..replied("I asked the admins.") };
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
                r#"reply lacks every one of ["told", "wrote"]"#,
                r#"reply holds "admins""#,
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
