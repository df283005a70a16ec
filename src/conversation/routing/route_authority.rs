//! Authority that a route needs: trusted fields of the message, and a person who wrote it.

use super::inbound_message::InboundEvent;
use super::routes::Route;
use crate::conversation::making_room::keep_command::{KeepCommand, parse_keep_command};
use crate::conversation::people::admin_commands;

/// Returns whether a route acts in its sender's name, which requires trusted fields. Adding a title does not require
/// them: it counts toward a quota and can be undone.
pub(super) fn needs_authority(route: Route) -> bool {
    match route {
        Route::Confirm | Route::OptOut | Route::OptIn | Route::AdminCommand | Route::ForgetAll => true,
        Route::AcceptOffer | Route::DeclineOffer | Route::ListApprovals | Route::ListUsers => true,
        Route::ForgetFact(_) | Route::SetNotifications(_) | Route::Vote | Route::Keep => true,
        // The line of a request states the code with which it is approved.
        Route::Digest | Route::DigestLine(_) => true,
        Route::NewcomersCode | Route::Link | Route::PreferAddress => true,
        // A wrong code counts against its sender.
        Route::WrongCode => true,
        Route::Skip(_)
        | Route::StoreOnly
        | Route::Deny
        | Route::RepeatPrompt
        | Route::ClosePrompt
        | Route::Stale(_)
        | Route::LateAnswer
        | Route::StaleButton
        | Route::InvitedAlready
        | Route::Newcomer
        | Route::ClearConversation
        | Route::ListFacts
        | Route::Commands
        | Route::More
        | Route::WhichList
        | Route::RateLimited
        | Route::Unverified
        | Route::OnlyInPerson
        | Route::MediaOnly
        | Route::Turn(_) => false,
    }
}

/// Returns whether a route says yes to a question, or approves what somebody else asked for. A program does neither, with
/// whatever key.
pub(super) fn decides(route: Route, event: &InboundEvent) -> bool {
    match route {
        Route::Confirm | Route::WrongCode | Route::RepeatPrompt | Route::ClosePrompt => true,
        // The line of a request approves it.
        Route::DigestLine(_) => true,
        Route::AdminCommand => admin_commands::approves(&event.body),
        Route::AcceptOffer => true,
        // Consent that a title may go.
        Route::Keep => {
            matches!(parse_keep_command(&event.body), Some(KeepCommand::Free(_) | KeepCommand::Unkeep(_)))
        }
        Route::Skip(_)
        | Route::OptOut
        | Route::OptIn
        | Route::StoreOnly
        | Route::Deny
        | Route::Stale(_)
        | Route::DeclineOffer
        | Route::LateAnswer
        | Route::StaleButton
        | Route::Newcomer
        | Route::InvitedAlready
        | Route::NewcomersCode
        | Route::Link
        | Route::PreferAddress
        | Route::ListUsers
        | Route::ListApprovals
        | Route::ClearConversation
        | Route::ForgetAll
        | Route::ListFacts
        | Route::ForgetFact(_)
        | Route::Commands
        | Route::More
        | Route::Vote
        | Route::WhichList
        | Route::Digest
        | Route::SetNotifications(_)
        | Route::RateLimited
        | Route::Unverified
        | Route::OnlyInPerson
        | Route::MediaOnly
        | Route::Turn(_) => false,
    }
}
