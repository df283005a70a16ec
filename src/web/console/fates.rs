//! Labels for the delivery status of outbound messages: one label for each status, on all pages.

use crate::messaging::error_codes;
use crate::store::console::fate::{Fate, Why};

/// Label with its sign and its color, neither of which replaces the label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) word: &'static str,
    pub(super) sign: &'static str,
    pub(super) class: &'static str,
}

pub(super) fn mark(fate: Fate) -> Mark {
    let (class, sign, word) = match fate {
        Fate::Waiting => ("", "\u{25cb}", "Waiting"),
        Fate::Delayed => ("warn", "\u{25cb}", "Delayed"),
        Fate::Sending => ("", "\u{2192}", "Sending"),
        Fate::Unknown => ("warn", "?", "Unknown"),
        Fate::Shown => ("", "\u{2013}", "Shown, not sent"),
        Fate::Sent => ("", "\u{2713}", "Sent"),
        Fate::Delivered => ("good", "\u{2713}\u{2713}", "Delivered"),
        Fate::Read => ("good", "\u{2713}\u{2713}", "Read"),
        Fate::Failed => ("bad", "\u{00d7}", "Failed"),
        Fate::PutAside => ("", "\u{2013}", "Put aside"),
    };
    Mark { word, sign, class }
}

/// Explanation shown next to the label.
pub(super) fn reason(fate: Fate, why: &Why) -> Option<String> {
    match fate {
        Fate::Delayed => why.noted.clone(),
        Fate::Failed => Some(failed(why)),
        Fate::Unknown => Some("it may have been taken; that is being looked into".to_owned()),
        Fate::PutAside => Some("whom it was for has opted out, was blocked or forgotten".to_owned()),
        Fate::Waiting | Fate::Sending | Fate::Shown | Fate::Sent | Fate::Delivered | Fate::Read => None,
    }
}

/// Meaning of the error code, or the noted cause.
fn failed(why: &Why) -> String {
    let meaning = why.code.and_then(error_codes::look_up).map(|code| code.meaning.to_owned());
    let meaning = meaning.or_else(|| why.noted.clone());
    match (meaning, why.code) {
        (Some(meaning), Some(code)) => format!("{meaning} (code {code})"),
        (Some(meaning), None) => meaning,
        (None, Some(code)) => format!("code {code}"),
        (None, None) => "the carrier gave no reason".to_owned(),
    }
}

/// Counts of messages by outcome, in the order of a drawing. Messages still in progress count as waiting, and those
/// that were only shown are left out.
pub(super) fn outcomes(fates: impl Iterator<Item = Fate>) -> [(&'static str, u64); 5] {
    let drawn = [Fate::Delivered, Fate::Sent, Fate::Waiting, Fate::Failed, Fate::PutAside];
    let mut counts = drawn.map(|fate| (mark(fate).word, 0));
    for fate in fates {
        let place = match fate {
            Fate::Delivered | Fate::Read => 0,
            Fate::Sent => 1,
            Fate::Waiting | Fate::Delayed | Fate::Sending | Fate::Unknown => 2,
            Fate::Failed => 3,
            Fate::PutAside => 4,
            Fate::Shown => continue,
        };
        counts[place].1 += 1;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_drawn_under_the_words_of_the_lists() {
        let fates = [Fate::Read, Fate::Delivered, Fate::Shown, Fate::Unknown, Fate::Waiting, Fate::Failed];
        assert_eq!(
            outcomes(fates.into_iter()),
            [("Delivered", 2), ("Sent", 0), ("Waiting", 2), ("Failed", 1), ("Put aside", 0)]
        );
    }
}
