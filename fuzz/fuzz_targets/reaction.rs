//! Reactions that phones write out: read out of the text itself, found again as they were written, and seen as such by
//! the wider reading too.
#![no_main]

use dialarr::conversation::consent::{self, Answer};
use dialarr::conversation::grammar::reaction::{self, Quoted, Target};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = str::from_utf8(data) else { return };
    if let Some(read) = reaction::read(text) {
        let (Target::Text(target) | Target::Media(target)) = read.target;
        assert!(text.contains(target), "a target that nobody wrote");
        assert!(reaction::looks_like_reaction(text), "narrowly a reaction, and widely none");
        if let Target::Text(target) = read.target
            && !target.trim().is_empty()
            && target != "\u{2026}"
        {
            let recent = ["Something else.", target].into_iter();
            assert_ne!(reaction::quoted(&read, recent), Quoted::Nothing, "its own target is not found");
        }
    }
    check_written(text);
});

/// Reactions of all forms to a text of the fuzzer's.
fn check_written(target: &str) {
    // Google's marks inside a quote make it one of Google's.
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
        let read = reaction::read(&written);
        assert_eq!(read.map(|it| (it.emoji, it.removal)), Some((emoji, removal)), "{written:?}");
        assert_eq!(read.map(|it| it.target), Some(Target::Text(target)), "{written:?}");
        assert!(
            !matches!(consent::read(&written, None, &[]), Answer::Yes | Answer::No),
            "{written:?} decides"
        );
    }
}
