//! Flash messages: outcomes of forms, shown on the page that follows. A URL contains only a fixed code, so that a link
//! by an attacker cannot make the page show other text.

use serde::{Deserialize, Deserializer};

/// Tone of a flash message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::web) enum FlashTone {
    Success,
    Warning,
}

/// Defines each message with its tone, its code in URLs and its text.
macro_rules! flash_messages {
    ($($name:ident, $tone:ident, $code:literal, $text:literal;)*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(in crate::web) enum FlashMessage {
            $($name,)*
        }

        impl FlashMessage {
            const ALL: &[Self] = &[$(Self::$name,)*];

            fn parts(self) -> (FlashTone, &'static str, &'static str) {
                match self {
                    $(Self::$name => (FlashTone::$tone, $code, $text),)*
                }
            }
        }
    };
}

flash_messages! {
    UserApproved, Success, "let-in", "Approved. This user can text now.";
    UserBlocked, Success, "blocked", "Blocked. Their texts get no reply.";
    RoomApproved, Success, "room-approved", "Approved. Messages in this group get answers.";
    RoomBlocked, Success, "room-blocked", "Blocked. The group gets no answers.";
    LastAdmin, Warning, "last-admin", "This is the last active admin. Make another user an admin first.";
    RemovalApproved, Success, "approved", "Approved. Deletion started. The requester will get the result.";
    RemovalDenied, Success, "denied", "Denied. The requester was notified.";
    AlreadyDecided, Warning, "too-late", "Already decided or expired.";
    NoActiveAdmin, Warning, "no-admin",
        "Not deleted: a deletion needs an active admin who has not opted out.";
    RequestDeclined, Success, "declined", "Declined. The requester was notified.";
    RequestNotWaiting, Warning, "not-waiting", "Not declined: the title was added meanwhile, or is being added.";
    SearchStarted, Success, "searching", "The search has started.";
    SearchFailed, Warning, "no-search", "No search: Sonarr or Radarr did not confirm it.";
    DeletionToConfirm, Warning, "confirm-deletion", "Nothing is deleted yet. Confirm or reject the deletion below.";
    LibraryUnreachable, Warning, "library-away", "Not possible now: Sonarr or Radarr does not respond.";
    PauseEnded, Success, "resumed", "Resumed. Texts of the last hour are answered now.";
    NotPaused, Warning, "not-paused", "Replies were not paused.";
    SettingsSaved, Success, "saved", "Saved.";
    SettingsNotInUse, Warning, "saved-not-used", "Saved, but not in use yet.";
    SameServer, Success, "same-server", "Confirmed. Lists that were sent before the move work again.";
    NewServer, Success, "new-server", "Confirmed. Lists that were sent before the move stay void.";
    OtherServer, Warning, "other-server", "Not the same server: its ids belong to other titles.";
    UnknownServer, Warning, "unknown-server",
        "Cannot tell: fewer than 20 titles of the earlier server are known and still there.";
    ServerUnreachable, Warning, "no-response", "Cannot tell: the server does not respond.";
    ServerNotMoved, Warning, "not-moved", "Nothing to confirm: this server was not moved, or was moved again meanwhile.";
    NothingChanged, Warning, "unchanged", "No changes to save.";
    InvalidName, Warning, "bad-name",
        "Not saved: a name has up to three words of letters, at most 30 characters, and is not a command.";
    InvalidAge, Warning, "bad-age", "Not saved: an age is a number from 0 to 18, or empty for no cap.";
    InvalidDigest, Warning, "bad-digest", "Not saved: a digest is a day and a full hour, such as friday 18, or empty.";
    InvalidLimit, Warning, "bad-limit", "Not saved: a limit is a number, or empty for the household limit.";
    ErasureNotConfirmed, Warning, "not-typed", "Not erased: type FORGET to confirm.";
    UserErased, Success, "forgotten",
        "Erased. If the number is in ADMIN_PHONE or PHONE_WHITELIST, remove it there, or the next start adds it \
         again.";
    UserBusy, Warning, "busy", "Not erased: a text of this user is being processed. Try again in a moment.";
    SuspensionLifted, Success, "allowed-again", "This user can delete and approve by text again.";
    UserNotSuspended, Warning, "not-suspended", "This user was not suspended.";
    NoInvitations, Warning, "no-invitations", "Not invited: links need a Telegram bot.";
    HasAdmin, Warning, "has-admin", "There is an admin already, who can approve others.";
    AddressLinked, Success, "linked", "Linked. Texts from it count as theirs.";
    AccountLinked, Success, "account-linked", "Linked.";
    AccountUnlinked, Success, "account-unlinked", "Unlinked.";
    OtherAccount, Warning, "other-account", "Not linked: this person has another Seerr account. Unlink it first.";
    AccountTaken, Warning, "account-taken", "Not linked: this account is linked already. Unlink it first.";
    MediaServerUnreachable, Warning, "media-away", "Not linked: a server does not respond.";
    AddressUnlinked, Success, "unlinked", "Unlinked. A text from it makes its sender a newcomer.";
    InvalidAddress, Warning, "bad-address", "Not linked: a number starts with + and a country code, such as +15550100123.";
    TooManyAddresses, Warning, "too-many-addresses", "Not linked: a user can have at most 8 phones and accounts.";
    LastAddress, Warning, "last-address", "Not unlinked: this is the only one. Block or erase the user instead.";
    AddressBusy, Warning, "address-busy", "Not unlinked: a text of this user is being processed. Try again in a moment.";
    UsersMerged, Success, "merged", "Merged. Both are one user now.";
    MergeBusy, Warning, "merge-busy", "Not merged: a text of one of them is being processed. Try again in a moment.";
    FactSaved, Success, "fact-noted", "Fact saved.";
    FactForgotten, Success, "fact-forgotten", "Fact deleted.";
    SuggestionDismissed, Success, "dismissed", "Suggestion dismissed.";
    InvalidFact, Warning, "no-fact",
        "Fact not saved: a fact has at most 80 characters, and another name must be entered under About.";
    NoSuchFact, Warning, "no-such-fact", "Not changed: the fact has been changed or deleted meanwhile.";
    TooManyFacts, Warning, "too-many-facts", "Fact not saved: a user can have at most 40 facts. Delete some first.";
    MessageResent, Success, "sent-again", "The text is being resent.";
    MessageNotResent, Warning, "not-sent-again",
        "Not resent: already resent, possibly delivered, or erased.";
    NoFreeTestNumber, Warning, "no-number",
        "All test numbers are in open conversations. These end automatically after inactivity.";
    TextQueued, Success, "text-queued", "The text is on its way.";
    TextStored, Success, "text-stored", "Stored. The answer appears here, and nothing is sent to their phone.";
    UserNotReachable, Warning, "not-reachable", "Not sent: the user is not active, or has opted out.";
    ConversationEnded, Warning, "not-here", "Not sent: this conversation has ended. Reopen it first.";
    EmptyMessage, Warning, "no-words", "Not sent: the message is empty.";
    MessageTooLong, Warning, "too-long",
        "Not sent: a text can have at most 1,600 characters. It is still in the box below.";
    ConversationReopened, Success, "reopened", "Reopened. The next text continues this conversation.";
    AlreadyOpen, Warning, "was-open", "Already open.";
    OtherConversationBusy, Warning, "in-another",
        "A text is being answered in another conversation. Try again in a moment.";
    UserNotActive, Warning, "not-active", "Only a conversation of an active user can be reopened.";
    PromptAnswered, Success, "taken", "Answered. The user will get the result.";
    PromptClosed, Warning, "closed", "This prompt is closed. Nothing was deleted.";
    PromptNotSent, Warning, "not-asked", "The prompt has not been sent yet. Try again in a moment.";
    CancelRequested, Success, "ending", "The turn will finish before its next change.";
    TurnAlreadyEnded, Warning, "over", "The turn has already finished.";
    TurnResumed, Success, "goes-on", "Resumed from the failed step.";
    AnswerForgotten, Success, "answer-forgotten", "Removed from memory.";
    AnswersIndexed, Success, "processed", "All waiting answers were indexed.";
    AnswerShared, Success, "shared", "Shared. Every user may get this answer.";
    AnswerKeptPrivate, Success, "kept-private", "Kept private to its recipient.";
    TurnNotResumed, Warning, "not-resumed",
        "Not resumed: only the newest turn of an open conversation can be resumed, if it failed and no \
         other turn is running.";
}

impl FlashMessage {
    pub(in crate::web) fn tone(self) -> FlashTone {
        self.parts().0
    }

    pub(in crate::web) fn text(self) -> &'static str {
        self.parts().2
    }

    /// Returns the URL of a page that shows the message; a fragment (`#...`) remains at the end.
    pub(in crate::web) fn with_path(self, path: &str) -> String {
        let code = self.parts().1;
        match path.split_once('#') {
            Some((path, fragment)) => format!("{path}?flash={code}#{fragment}"),
            None => format!("{path}?flash={code}"),
        }
    }
}

impl FlashTone {
    pub(in crate::web) fn class(self) -> &'static str {
        match self {
            Self::Success => "good",
            Self::Warning => "warn",
        }
    }
}

/// Parses the code of a message. An unknown code shows no message.
pub(in crate::web) fn deserialize_code<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<FlashMessage>, D::Error> {
    let code = String::deserialize(deserializer)?;
    Ok(FlashMessage::ALL.iter().copied().find(|flash| flash.parts().1 == code))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::FlashMessage;

    #[test]
    fn each_flash_message_has_its_own_code() {
        let codes: BTreeSet<&str> = FlashMessage::ALL.iter().map(|flash| flash.parts().1).collect();
        assert_eq!(codes.len(), FlashMessage::ALL.len());
    }
}
