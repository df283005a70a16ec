//! Text of users: facts, titles in prompts, outbound messages. Each result is within its limits, on one line where
//! required, and unchanged by a second pass.
#![no_main]

use dialarr::conversation::channel_list::SMS_PAGE_LENGTH;
use dialarr::conversation::people::facts::{FactKind, StoredFact, UserFact, UserFacts};
use dialarr::conversation::text::message_format::{EmojiPolicy, format_for_sms, split_first_page};
use dialarr::conversation::text::title::clean_title;
use jiff::Timestamp;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let [kind, words @ ..] = data else { return };
    let Ok(words) = str::from_utf8(words) else { return };
    check_fact(FactKind::ALL[usize::from(*kind) % FactKind::ALL.len()], words);
    let title = clean_title(words);
    assert!(!title.is_empty() && units(&title) <= 60 && !title.contains(char::is_control), "{title:?}");
    assert_eq!(clean_title(&title), title, "cleaned twice");
    let sent = format_for_sms(words, EmojiPolicy::Keep);
    assert!(units(&sent) <= 1600);
    let mut rest = Some(sent);
    while let Some(text) = rest {
        let page = split_first_page(&text, SMS_PAGE_LENGTH);
        assert!(units(&page.text) <= 320);
        assert!(page.rest.as_ref().is_none_or(|rest| rest.len() < text.len()), "pages without an end");
        rest = page.rest;
    }
});

fn check_fact(kind: FactKind, words: &str) {
    let (about, value) = words.split_once('=').map_or((None, words), |(about, value)| (Some(about), value));
    let Ok(fact) = UserFact::new(kind, about, value) else { return };
    let told = fact.to_sentence();
    assert!(!told.contains(['[', ']']) && !told.contains(char::is_control), "{told:?}");
    assert!(fact.value.chars().count() <= 80 && fact.key.chars().count() <= 80);
    let again = UserFact::new(kind, Some(&fact.key), &fact.value);
    assert_eq!(again.map(|again| again.value).as_ref(), Ok(&fact.value), "noted once more");
    let facts = UserFacts(vec![StoredFact { number: 1, fact, since: Timestamp::UNIX_EPOCH }]);
    assert!(facts.prompt_lines().iter().all(|line| !line.contains('\n')));
}

fn units(text: &str) -> usize {
    text.chars().map(char::len_utf16).sum()
}
