//! No notification, digest or vote invites a word that confirms or denies a prompt. The folder of each test checks this for
//! every message that its program queued; these tests check the check, and all sentences of the program.

use std::path::Path;

use dialarr::conversation::grammar::confirmation_reply::{
    ConfirmationReply, ReplyLanguage, parse_confirmation_reply,
};
use serde_json::Value;

use crate::harness::invitations::invited_confirmation;

/// Parts of the sentences that may invite a yes or no: confirmation prompts, whose message is the prompt, the offer to a
/// newcomer, and the opt-out in the first message to one, who has no prompt.
const PROMPTS: [&str; 4] =
    ["Reply YES {code} or NO", "Reply YES or NO", "Reply YES to add it", "Text STOP to opt out"];
/// Files with words that people write or that are looked for in texts, and no sentences to people.
const PATTERNS: [&str; 2] = ["text/message_format.rs", "requests/pattern_tables"];

#[test]
fn invitations_are_found_in_every_form() {
    for text in [
        "Reply YES to keep it.",
        "Dune leaves on Friday. Text NO to keep it.",
        "Just say ok",
        "Reply KEEP 3 or YES.",
        "Answer with a yes or no.",
        "Text me back yeah",
        "Reply JA",
        "Send sure thing",
    ] {
        assert!(invited_confirmation(text).is_some(), "{text}");
    }
    for text in [
        "Text a number for more.",
        "Bob wants to join. Reply APPROVE 4821 or BLOCK 4821",
        "Reply VOTE and a number until 9:00 pm.",
        "Text GET SEASON 2 OF SEVERANCE (2022) to add it.",
        "New this week:\n1. \"Say Yes to the Dress\" (2007)\n2. Yes Man (2008)",
        "Text KEEP 3 to keep Ronin (1998).",
        "OK, no more digests. Text DIGEST FRIDAY 18 to get one again.",
        "You asked for Dune. Reply YES to add it.",
    ] {
        assert_eq!(invited_confirmation(text), None, "{text}");
    }
}

/// Returns the texts of a list of confirmations that answer a prompt.
fn confirmations(file: &str) -> Vec<String> {
    let list: Value = serde_json::from_str(file).unwrap();
    let mut texts = Vec::new();
    collect_texts(&list, &mut texts);
    texts.retain(|text| {
        let words = text.split_whitespace().count();
        let is_plain = text.chars().all(|c| c.is_ascii_alphabetic() || c == ' ');
        (1..=3).contains(&words)
            && is_plain
            && parse_confirmation_reply(text, None, &ReplyLanguage::ALL) != ConfirmationReply::Unrelated
    });
    texts
}

fn collect_texts(value: &Value, texts: &mut Vec<String>) {
    match value {
        Value::String(text) => texts.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| collect_texts(item, texts)),
        Value::Object(fields) => fields.values().for_each(|field| collect_texts(field, texts)),
        _ => {}
    }
}

#[test]
fn every_word_of_the_confirmation_lists_is_found() {
    let lists = [include_str!("../data/confirm_cases.json"), include_str!("../data/more_confirm_cases.json")];
    let words: Vec<String> = lists.into_iter().flat_map(confirmations).collect();
    assert!(words.len() > 50, "{} words", words.len());
    for word in words {
        let text = format!("Dune leaves. Reply {} to keep it.", word.to_uppercase());
        assert!(invited_confirmation(&text).is_some(), "{text}");
    }
}

/// Returns the string literals of a source file without its tests.
fn literals(source: &str) -> Vec<String> {
    let code = source.split("#[cfg(test)]").next().unwrap_or_default();
    let mut literals = Vec::new();
    for line in code.replace("\\\n", "\u{0}").lines() {
        if line.trim_start().starts_with("//") {
            continue;
        }
        let line = line.replace("\\\"", "'");
        literals.extend(line.split('"').skip(1).step_by(2).map(|literal| {
            literal.split('\u{0}').map(str::trim_start).collect::<Vec<_>>().join("").replace("\\n", "\n")
        }));
    }
    literals
}

/// Puts a number in place of each placeholder.
fn fill_in(literal: &str) -> String {
    literal
        .split('{')
        .map(|part| part.split_once('}').map_or(part.to_owned(), |(_, rest)| format!("7{rest}")))
        .collect()
}

fn check_folder(folder: &Path, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            check_folder(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs")
            && !PATTERNS.iter().any(|part| path.to_str().unwrap().contains(part))
        {
            let source = std::fs::read_to_string(&path).unwrap();
            let inviting = literals(&source).into_iter().filter(|text| {
                let is_prompt = PROMPTS.iter().any(|prompt| text.contains(prompt));
                !is_prompt && invited_confirmation(&fill_in(text)).is_some()
            });
            found.extend(inviting.map(|text| format!("{}: {text}", path.display())));
        }
    }
}

#[test]
fn no_sentence_of_the_program_invites_a_confirmation_besides_prompts() {
    let mut found = Vec::new();
    for folder in ["conversation", "engine", "llm/keyword", "store"] {
        check_folder(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(folder), &mut found);
    }
    assert!(found.is_empty(), "{found:#?}");
}
