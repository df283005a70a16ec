//! Confirmation replies: a yes has no refusal and no question, contains only the requested code, and ignores case; a
//! reaction to an open prompt is never a yes.
#![no_main]

use dialarr::conversation::grammar::confirmation_reply::{
    self, ConfirmationCode, ConfirmationReply, ReplyLanguage,
};
use dialarr::conversation::grammar::reaction;
use libfuzzer_sys::fuzz_target;

/// Refusing words, in ASCII letters, so that recognizing them needs no tested code.
const REFUSING: [&str; 14] = [
    "no", "not", "nope", "nah", "never", "cancel", "stop", "dont", "don't", "nein", "nee", "non", "nao",
    "wait",
];
const LANGUAGES: [&str; 6] = ["es", "fr", "de", "pt", "it", "nl"];

fuzz_target!(|data: &[u8]| {
    let [code, languages, text @ ..] = data else { return };
    let Ok(text) = str::from_utf8(text) else { return };
    // Codes of four digits, of two, and none.
    let code = match code {
        0..100 => ConfirmationCode::parse(&format!("{code:02}")),
        100..200 => ConfirmationCode::parse(&format!("{:04}", u16::from(*code) * 49)),
        200.. => None,
    };
    let spoken = LANGUAGES.iter().enumerate().filter(|(bit, _)| languages >> bit & 1 == 1);
    let languages: Vec<ReplyLanguage> = spoken.filter_map(|(_, code)| ReplyLanguage::parse(code)).collect();
    let answer = confirmation_reply::parse_confirmation_reply(text, code, &languages);
    assert_eq!(
        confirmation_reply::parse_confirmation_reply(&text.to_ascii_uppercase(), code, &languages),
        answer,
        "in capitals"
    );
    assert_eq!(
        confirmation_reply::parse_confirmation_reply(&format!("  {text}\n"), code, &languages),
        answer,
        "with blanks around it"
    );
    match answer {
        ConfirmationReply::Yes => check_yes(text, code, &languages),
        ConfirmationReply::No => {
            let without = confirmation_reply::parse_confirmation_reply(text, None, &languages);
            assert_eq!(
                without,
                ConfirmationReply::No,
                "whether a code was asked for does not matter to a no"
            );
        }
        ConfirmationReply::UnclearYes(_) | ConfirmationReply::Unrelated => {}
    }
});

fn check_yes(text: &str, code: Option<ConfirmationCode>, languages: &[ReplyLanguage]) {
    let lower = text.to_lowercase();
    let words = lower.split(|mark: char| !(mark.is_alphanumeric() || mark == '\''));
    let refusing = words.into_iter().find(|word| REFUSING.contains(word));
    assert_eq!(refusing, None, "a yes with a refusing word");
    assert!(!text.contains(['?', '"', '\u{201C}', '\u{201D}', '>']), "a yes in a question or a quote");
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    match code {
        // Other digits mean the same as ASCII digits.
        Some(code) => assert!(digits.len() <= 4 && code.to_string().contains(&digits), "{digits} for {code}"),
        None => assert_eq!(digits, "", "a yes with a number that nobody asked for"),
    }
    if let Some(code) = code {
        let digits = code.to_string();
        let number = digits.parse::<u16>().unwrap_or_default();
        let next = (number + 1) % 10_u16.pow(u32::try_from(digits.len()).unwrap_or(2));
        let another = ConfirmationCode::parse(&format!("{next:0width$}", width = digits.len()));
        assert_ne!(
            confirmation_reply::parse_confirmation_reply(text, another, languages),
            ConfirmationReply::Yes,
            "a yes with any code"
        );
    }
    assert_eq!(reaction::parse_reaction(text), None, "a yes that is a reaction");
}
