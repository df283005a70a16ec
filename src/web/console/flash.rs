//! Outcome of a form, shown on the page that it leads to. An address identifies the outcome by a fixed code, so that a
//! link by an attacker cannot make our pages show other text.

use serde::{Deserialize, Deserializer};

/// Tone of an outcome: success or warning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::web) enum FlashTone {
    Good,
    Warn,
}

/// Defines each outcome with its tone, its code in an address and its text. An enum with separate tables could miss
/// one.
macro_rules! outcomes {
    ($($name:ident, $tone:ident, $word:literal, $text:literal;)*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(in crate::web) enum FlashMessage {
            $($name,)*
        }

        impl FlashMessage {
            const ALL: &[Self] = &[$(Self::$name,)*];

            fn parts(self) -> (FlashTone, &'static str, &'static str) {
                match self {
                    $(Self::$name => (FlashTone::$tone, $word, $text),)*
                }
            }
        }
    };
}

outcomes! {
    LetIn, Good, "let-in", "They can text now.";
    Blocked, Good, "blocked", "Blocked. Their texts get no reply.";
    LastAdmin, Warn, "last-admin", "This is the last active admin. Make another user an admin first.";
    RemovalApproved, Good, "approved", "Approved. Deletion started. The requester will get the result.";
    RemovalDenied, Good, "denied", "Denied. The requester was notified.";
    TooLate, Warn, "too-late", "Already decided or expired.";
    NoAdmin, Warn, "no-admin",
        "Nothing was done: a deletion is carried out in the name of an admin, and no active admin takes texts.";
    PauseEnded, Good, "resumed", "Resumed. Texts of the last hour are answered now.";
    NotPaused, Warn, "not-paused", "It was not paused.";
    Saved, Good, "saved", "Saved.";
    Unchanged, Warn, "unchanged", "No changes to save.";
    BadName, Warn, "bad-name",
        "Nothing was changed: a name is up to three words of letters, 30 characters, and no command.";
    BadLimit, Warn, "bad-limit", "Nothing was changed: a limit is a number, or empty for the household's.";
    NotTyped, Warn, "not-typed", "Nothing was erased: FORGET was not typed.";
    Forgotten, Good, "forgotten",
        "Erased. If the number is in ADMIN_PHONE or PHONE_WHITELIST, remove it: the number is added again at the next \
         start otherwise.";
    Busy, Warn, "busy", "Nothing was erased: one of their texts is being processed. Try again in a moment.";
    SuspensionLifted, Good, "allowed-again", "They can delete and approve by text again.";
    NotSuspended, Warn, "not-suspended", "This user was not suspended.";
    FactNoted, Good, "fact-noted", "Fact saved.";
    FactForgotten, Good, "fact-forgotten", "Forgotten.";
    Dismissed, Good, "dismissed", "Dismissed.";
    NoFact, Warn, "no-fact",
        "Nothing was noted: a fact is a few words, 80 characters at most, and another name needs the name under About.";
    NoSuchFact, Warn, "no-such-fact", "Nothing was changed: that fact has been changed or forgotten meanwhile.";
    TooManyFacts, Warn, "too-many-facts", "Nothing was noted: 40 facts are kept of one person. Forget some first.";
    SentAgain, Good, "sent-again", "It is being sent again.";
    NotSentAgain, Warn, "not-sent-again",
        "Not resent: already resent, possibly delivered, or erased.";
    NoNumber, Warn, "no-number",
        "Every test number is in an open conversation. They end by themselves after a silence.";
    NotHere, Warn, "not-here", "Nothing was texted: this conversation has ended. Open it again first.";
    NoWords, Warn, "no-words", "Nothing was texted: there were no words.";
    TooLong, Warn, "too-long", "Nothing was texted: a text has at most 1,600 characters. It is still in the box below.";
    Reopened, Good, "reopened", "Open again. The next text goes on here.";
    WasOpen, Warn, "was-open", "It was open already.";
    InAnother, Warn, "in-another",
        "A text is being answered in another conversation right now. Try again in a moment.";
    NotActive, Warn, "not-active", "Only a conversation of an active user can be reopened.";
    Answered, Good, "taken", "Answered. The user will get the result.";
    Closed, Warn, "closed", "That question is closed: nothing was done.";
    NotAsked, Warn, "not-asked", "The question has not been sent yet. Try again in a moment.";
    Ending, Good, "ending", "The turn will finish before its next change.";
    Over, Warn, "over", "The turn has already finished.";
    TurnResumed, Good, "goes-on", "Resumed from the failed step.";
    AnswerForgotten, Good, "answer-forgotten", "Removed from memory.";
    Processed, Good, "processed", "All waiting answers were processed.";
    Shared, Good, "shared", "Shared. Every user may get this answer.";
    KeptPrivate, Good, "kept-private", "Kept private to its recipient.";
    NotResumed, Warn, "not-resumed",
        "It cannot go on: only the newest turn of an open conversation can, if it failed and nothing else runs.";
}

impl FlashMessage {
    pub(in crate::web) fn tone(self) -> FlashTone {
        self.parts().0
    }

    pub(in crate::web) fn text(self) -> &'static str {
        self.parts().2
    }

    /// Returns the address of a page that shows the outcome; the part after a `#` remains at the end.
    pub(in crate::web) fn with_path(self, path: &str) -> String {
        let word = self.parts().1;
        match path.split_once('#') {
            Some((path, place)) => format!("{path}?flash={word}#{place}"),
            None => format!("{path}?flash={word}"),
        }
    }
}

impl FlashTone {
    pub(in crate::web) fn class(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Warn => "warn",
        }
    }
}

/// Parses an outcome's code. An unknown code shows nothing.
pub(in crate::web) fn deserialize_code<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<FlashMessage>, D::Error> {
    let word = String::deserialize(from)?;
    Ok(FlashMessage::ALL.iter().copied().find(|flash| flash.parts().1 == word))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::FlashMessage;

    #[test]
    fn each_flash_message_has_its_own_word() {
        let words: BTreeSet<&str> = FlashMessage::ALL.iter().map(|flash| flash.parts().1).collect();
        assert_eq!(words.len(), FlashMessage::ALL.len());
    }
}
