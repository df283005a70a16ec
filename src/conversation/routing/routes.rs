//! Routes of received messages.

use super::no_reply_reason::NoReplyReason;
use super::staleness::StaleReason;
use crate::conversation::notifications::quiet_hours::NotificationPreference;
use crate::conversation::transcript::Responder;

/// Kind of a received message, which determines how it is processed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
    /// Store the message without any other action.
    Skip(NoReplyReason),
    /// Deny any open prompt, and send nothing until the user opts in.
    OptOut,
    /// Opt the sender in again, without any other action.
    OptIn,
    /// Add the message to the conversation without a reply.
    StoreOnly,
    /// Claim the open prompt and start its deletion.
    Confirm,
    Deny,
    /// Send the prompt again: the reply was unclear, too early, or from a source that does not count.
    RepeatPrompt,
    /// A yes with a wrong code. The reaction depends on the number of wrong codes so far.
    WrongCode,
    /// The second unclear reply: close the prompt without a deletion.
    ClosePrompt,
    /// The message was processed only long after it was sent: report the delay without acting on the message.
    Stale(StaleReason),
    /// A yes to the offer to add the title of a newcomer's first request.
    AcceptOffer,
    /// A no to that offer.
    DeclineOffer,
    /// A yes or no after the end of the prompt: report the outcome of the prompt.
    LateAnswer,
    /// Press of a button of an earlier message: report that, without acting on it.
    StaleButton,
    /// Message of a newcomer who is not approved yet.
    Newcomer,
    /// Invitation that a known user opens.
    InvitedAlready,
    /// Code of a newcomer that may make them a member, or their address one of a known user's.
    NewcomersCode,
    /// Command of a member about linked addresses.
    Link,
    /// Choice of the address of notifications.
    PreferAddress,
    /// Admin command, as [`parse_admin_command`](crate::conversation::people::admin_commands::parse_admin_command) parses it.
    AdminCommand,
    /// Question of an admin for the users.
    ListUsers,
    /// A yes or no of an admin without a code, which cannot decide an approval: list the open approvals.
    ListApprovals,
    ClearConversation,
    /// Erase the messages and the facts of the user.
    ForgetAll,
    /// List the facts that are stored about the user.
    ListFacts,
    /// Forget the fact with this number.
    ForgetFact(u8),
    Commands,
    More,
    /// Command about a vote, as [`parse_vote_reply`](crate::conversation::votes::vote_command::parse_vote_reply) parses it.
    Vote,
    /// Answer about titles that could go, as [`parse_keep_command`](crate::conversation::making_room::keep_command::parse_keep_command)
    /// parses it.
    Keep,
    /// A number that may mean one of several lists, none of which is our last message: ask which one.
    WhichList,
    /// Command about the digest, as [`parse_digest_command`](crate::conversation::digest::digest_command::parse_digest_command)
    /// parses it.
    Digest,
    /// Number of a line of the digest, which is our last message.
    DigestLine(u8),
    /// Set whether and when the user gets notifications.
    SetNotifications(NotificationPreference),
    /// Too many messages within a short time.
    RateLimited,
    /// A command that the carrier's record does not verify: nothing is done, and the sender is asked to repeat it.
    Unverified,
    /// A yes or an approval that a program wrote in the name of its user: nothing is done, and an open prompt stays open.
    OnlyInPerson,
    /// Media without text, which no responder can process.
    MediaOnly,
    Turn(Responder),
}
