//! Whether what happened after a text is what was expected.

use super::file::{Expectation, PendingEntry, ReplyEntry};

/// Everything that a text led to.
#[derive(Debug, Default)]
pub(super) struct Observed {
    pub(super) writes: Vec<(String, i64)>,
    pub(super) pending: Option<Vec<(String, i64)>>,
    pub(super) calls: Vec<String>,
    pub(super) llm_calls: usize,
    pub(super) reply: String,
    /// All text that the model was given.
    pub(super) prompt: String,
    pub(super) tools: Vec<String>,
    pub(super) opted_out: Vec<String>,
    /// Quality profile of every movie that was added, by TMDB id.
    pub(super) quality: Vec<(String, String)>,
}

/// One line per difference; none means that all is as expected.
pub(super) fn differences(expected: &Expectation, observed: &Observed) -> Vec<String> {
    let mut found = Vec::new();
    if let Some(writes) = &expected.writes
        && *writes != observed.writes
    {
        found.push(format!("writes {:?}, expected {writes:?}", observed.writes));
    }
    if let Some(pending) = &expected.pending {
        let wanted = pending.as_ref().map(|PendingEntry { items }| items.clone());
        if wanted != observed.pending {
            found.push(format!("pending {:?}, expected {wanted:?}", observed.pending));
        }
    }
    if !is_subsequence(&expected.calls, &observed.calls) {
        found.push(format!("calls {:?}, expected {:?} in order", observed.calls, expected.calls));
    }
    if let Some(most) = expected.llm_calls_max
        && observed.llm_calls > most
    {
        found.push(format!("{} model calls, expected at most {most}", observed.llm_calls));
    }
    if let Some(wanted) = &expected.opted_out
        && *wanted != observed.opted_out
    {
        found.push(format!("opted out {:?}, expected {wanted:?}", observed.opted_out));
    }
    let lacks = |text: &str, what: &str, parts: &[String]| -> Vec<String> {
        parts
            .iter()
            .filter(|part| !text.contains(*part))
            .map(|part| format!("{what} lacks {part:?}"))
            .collect()
    };
    let holds = |text: &str, what: &str, parts: &[String]| -> Vec<String> {
        parts
            .iter()
            .filter(|part| text.contains(*part))
            .map(|part| format!("{what} holds {part:?}"))
            .collect()
    };
    found.extend(lacks(&observed.prompt, "prompt", &expected.prompt_all));
    found.extend(holds(&observed.prompt, "prompt", &expected.prompt_none));
    found.extend(lacks(&observed.reply, "reply", &expected.reply.all));
    found.extend(holds(&observed.reply, "reply", &expected.reply.none));
    found.extend(style(&expected.reply, &observed.reply));
    let offered = expected.tools_none.iter().filter(|tool| observed.tools.contains(tool));
    found.extend(offered.map(|tool| format!("{tool} is offered")));
    for (id, quality) in &expected.added_quality {
        if !observed.quality.contains(&(id.clone(), quality.clone())) {
            found.push(format!("{id} is not in {quality}: {:?}", observed.quality));
        }
    }
    if !found.is_empty() {
        found.push(format!("reply was {:?}", observed.reply));
    }
    found
}

fn style(expected: &ReplyEntry, reply: &str) -> Vec<String> {
    let mut found = Vec::new();
    if expected.empty && !reply.is_empty() {
        found.push("something was said".to_owned());
    }
    if let Some(most) = expected.max_chars
        && reply.chars().count() > most
    {
        found.push(format!("reply is longer than {most} characters"));
    }
    if let Some(most) = expected.max_questions
        && reply.matches('?').count() > most
    {
        found.push(format!("reply asks more than {most} questions"));
    }
    found
}

fn is_subsequence(wanted: &[String], among: &[String]) -> bool {
    let mut rest = among.iter();
    wanted.iter().all(|name| rest.any(|other| other == name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(expected: &str, observed: &Observed, differences_found: &[&str]) {
        let expected: Expectation = serde_json::from_str(expected).unwrap();
        assert_eq!(differences(&expected, observed), differences_found);
    }

    #[test]
    fn what_is_not_stated_is_not_judged() {
        check("{}", &Observed { reply: "Hi".into(), pending: Some(vec![]), ..Observed::default() }, &[]);
    }

    #[test]
    fn a_stated_null_means_that_nothing_may_be_pending() {
        let pending = Observed { pending: Some(vec![("movie".into(), 7)]), ..Observed::default() };
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
        let observed = Observed { calls, writes: vec![("add_movie".into(), 603)], ..Observed::default() };
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
}
