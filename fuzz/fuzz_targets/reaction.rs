//! Reactions in the wording of phones: parsed from the text itself, found again as written, and recognized by the wider
//! check too.
#![no_main]

use dialarr::conversation::grammar::confirmation_reply::{self, ConfirmationReply};
use dialarr::conversation::grammar::reaction::{self, ReactionQuote, ReactionTarget};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = str::from_utf8(data) else { return };
    if let Some(read) = reaction::parse_reaction(text) {
        let (ReactionQuote::Text(target) | ReactionQuote::Media(target)) = read.quote;
        assert!(text.contains(target), "a target that nobody wrote");
        assert!(reaction::looks_like_reaction(text), "narrowly a reaction, and widely none");
        if let ReactionQuote::Text(target) = read.quote
            && !target.trim().is_empty()
            && target != "\u{2026}"
        {
            let recent = ["Something else.", target].into_iter();
            assert_ne!(
                reaction::find_reaction_target(&read, recent),
                ReactionTarget::NotFound,
                "its own target is not found"
            );
        }
    }
    check_written(text);
});

/// Checks reactions of all forms to a text of the fuzzer.
fn check_written(target: &str) {
    // Google's marks inside a quote make the reaction one of Google's form.
    if target.contains(['\u{200B}', '\u{200C}']) {
        return;
    }
    for (emoji, removal, written) in [
        (Some("❤️"), false, format!("Loved \u{201C}{target}\u{201D}")),
        (Some("👎"), true, format!("Removed a dislike from \u{201C}{target}\u{201D}")),
        (Some("🎉"), false, format!("Reacted 🎉 to \u{201C}{target}\u{201D}")),
        (Some("🎉"), true, format!("Removed 🎉 from \u{201C}{target}\u{201D}")),
        (None, false, format!("Reacted with a sticker to \u{201C}{target}\u{201D}")),
    ] {
        let read = reaction::parse_reaction(&written);
        assert_eq!(read.map(|it| (it.emoji, it.removal)), Some((emoji, removal)), "{written:?}");
        assert_eq!(read.map(|it| it.quote), Some(ReactionQuote::Text(target)), "{written:?}");
        assert!(
            !matches!(
                confirmation_reply::parse_confirmation_reply(&written, None, &[]),
                ConfirmationReply::Yes | ConfirmationReply::No
            ),
            "{written:?} decides"
        );
    }
}
