//! What came of a form, told at the top of the page that it leads to. An address names it by a word, so that nobody can
//! make a link that has our pages say something else.

use serde::{Deserialize, Deserializer};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::web) enum Said {
    LetIn,
    Blocked,
    LastAdmin,
    WishApproved,
    WishDenied,
    TooLate,
    NoAdmin,
    Resumed,
    NotPaused,
    Saved,
    Unchanged,
    BadName,
    BadLimit,
    NotTyped,
    Forgotten,
    Busy,
    SentAgain,
    NotSentAgain,
}

/// Whether all went well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::web) enum Tone {
    Good,
    Warn,
}

impl Said {
    const ALL: [Self; 18] = [
        Self::LetIn,
        Self::Blocked,
        Self::LastAdmin,
        Self::WishApproved,
        Self::WishDenied,
        Self::TooLate,
        Self::NoAdmin,
        Self::Resumed,
        Self::NotPaused,
        Self::Saved,
        Self::Unchanged,
        Self::BadName,
        Self::BadLimit,
        Self::NotTyped,
        Self::Forgotten,
        Self::Busy,
        Self::SentAgain,
        Self::NotSentAgain,
    ];

    pub(in crate::web) fn word(self) -> &'static str {
        match self {
            Self::LetIn => "let-in",
            Self::Blocked => "blocked",
            Self::LastAdmin => "last-admin",
            Self::WishApproved => "approved",
            Self::WishDenied => "denied",
            Self::TooLate => "too-late",
            Self::NoAdmin => "no-admin",
            Self::Resumed => "resumed",
            Self::NotPaused => "not-paused",
            Self::Saved => "saved",
            Self::Unchanged => "unchanged",
            Self::BadName => "bad-name",
            Self::BadLimit => "bad-limit",
            Self::NotTyped => "not-typed",
            Self::Forgotten => "forgotten",
            Self::Busy => "busy",
            Self::SentAgain => "sent-again",
            Self::NotSentAgain => "not-sent-again",
        }
    }

    pub(in crate::web) fn text(self) -> &'static str {
        match self {
            Self::LetIn => "They can text now.",
            Self::Blocked => "Blocked. They are answered with silence from here on.",
            Self::LastAdmin => "This is the last active admin. Make somebody else an admin first.",
            Self::WishApproved => "Approved. It is being deleted, and whoever asked is told what came of it.",
            Self::WishDenied => "Denied. It stays, and whoever asked was told so.",
            Self::TooLate => "That was settled already, or its time was over.",
            Self::NoAdmin => {
                "Nothing was done: a deletion is carried out in the name of an admin, and no active admin takes texts."
            }
            Self::Resumed => "Resumed. Texts of the last hour are answered now.",
            Self::NotPaused => "It was not paused.",
            Self::Saved => "Saved.",
            Self::Unchanged => "Nothing was different, so nothing was changed.",
            Self::BadName => {
                "Nothing was changed: a name is up to three words of letters, 30 characters, and no command."
            }
            Self::BadLimit => "Nothing was changed: a limit is a number, or empty for the household's.",
            Self::NotTyped => "Nothing was erased: FORGET was not typed.",
            Self::Forgotten => {
                "Erased. If the number stands in ADMIN_PHONE or PHONE_WHITELIST, take it out: it is known again at \
                 the next start otherwise."
            }
            Self::Busy => "Nothing was erased: a text of theirs is being worked on. Try again in a moment.",
            Self::SentAgain => "It is being sent again.",
            Self::NotSentAgain => {
                "It was not sent again: it was already, it may have arrived, or nothing is left of it."
            }
        }
    }

    pub(in crate::web) fn tone(self) -> Tone {
        match self {
            Self::LetIn
            | Self::Blocked
            | Self::WishApproved
            | Self::WishDenied
            | Self::Resumed
            | Self::Saved
            | Self::Forgotten
            | Self::SentAgain => Tone::Good,
            Self::LastAdmin
            | Self::TooLate
            | Self::NoAdmin
            | Self::NotPaused
            | Self::Unchanged
            | Self::BadName
            | Self::BadLimit
            | Self::NotTyped
            | Self::Busy
            | Self::NotSentAgain => Tone::Warn,
        }
    }

    /// The address of a page that tells it.
    pub(in crate::web) fn at(self, path: &str) -> String {
        format!("{path}?said={}", self.word())
    }
}

impl Tone {
    pub(in crate::web) fn class(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Warn => "warn",
        }
    }
}

/// A word that nobody here writes says nothing.
pub(in crate::web) fn known<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Said>, D::Error> {
    let word = String::deserialize(from)?;
    Ok(Said::ALL.into_iter().find(|said| said.word() == word))
}
