//! Routes of messages in rooms. Everybody in a room reads what is sent to it, so what concerns one person is answered in
//! their private chat.

use super::inbound_message::InboundEvent;
use super::routes::Route;
use crate::conversation::transcript::Responder;

/// Returns whether a message in a room is to be processed as if its author had written it in the private chat.
pub fn belongs_in_private_chat(event: &InboundEvent, route: Route) -> bool {
    event.room.is_some() && event.is_addressed && concerns_author_only(route)
}

/// Returns whether words in a room ask for no more messages, which only a private chat can stop. The other words that stop
/// messages by phone, such as "cancel", mean something else among people.
pub fn asks_to_stop(body: &str) -> bool {
    matches!(body.trim().to_lowercase().as_str(), "stop" | "stopall" | "unsubscribe")
}

/// Returns whether an answer of this kind is about one person, or contains codes, names or addresses of people.
fn concerns_author_only(route: Route) -> bool {
    match route {
        Route::OptOut
        | Route::OptIn
        | Route::WrongCode
        | Route::AcceptOffer
        | Route::DeclineOffer
        | Route::Newcomer
        | Route::InvitedAlready
        | Route::NewcomersCode
        | Route::Link
        | Route::PreferAddress
        | Route::AdminCommand
        | Route::ListUsers
        | Route::ListApprovals
        | Route::ForgetAll
        | Route::ListFacts
        | Route::ForgetFact(_)
        | Route::Commands
        | Route::SetNotifications(_) => true,
        Route::Skip(_)
        | Route::StoreOnly
        | Route::Confirm
        | Route::Deny
        | Route::RepeatPrompt
        | Route::ClosePrompt
        | Route::Stale(_)
        | Route::LateAnswer
        | Route::StaleButton
        | Route::ClearConversation
        | Route::More
        | Route::Vote
        | Route::Keep
        | Route::WhichList
        | Route::Digest
        | Route::DigestLine(_)
        | Route::RateLimited
        | Route::Unverified
        | Route::OnlyInPerson
        | Route::MediaOnly
        | Route::Turn(_) => false,
    }
}

/// Returns the route of a message that nobody addressed to us. It answers no prompt, because a yes among people means
/// something else. The model may decide to answer it, where the room allows that; everything else is only stored.
pub fn limit_to_unaddressed(route: Route, may_be_answered: bool) -> Route {
    match route {
        Route::Turn(Responder::Model) if may_be_answered => route,
        Route::Skip(_) => route,
        _ => Route::StoreOnly,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::routing::no_reply_reason::NoReplyReason;

    #[test]
    fn unaddressed_words_answer_no_prompt_and_run_no_command() {
        for route in [Route::Confirm, Route::Deny, Route::ForgetAll, Route::Turn(Responder::Keyword)] {
            assert_eq!(limit_to_unaddressed(route, true), Route::StoreOnly);
        }
        let model = Route::Turn(Responder::Model);
        assert_eq!(limit_to_unaddressed(model, true), model);
        assert_eq!(limit_to_unaddressed(model, false), Route::StoreOnly);
        let skip = Route::Skip(NoReplyReason::SmallTalk);
        assert_eq!(limit_to_unaddressed(skip, false), skip);
    }
}
