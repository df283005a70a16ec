//! Choice of the route of a received message, by its sender, its text and the open prompts, before any model call.

use jiff::Timestamp;

use super::button_press::ButtonPress;
use super::inbound_message::InboundEvent;
use super::kept_titles::is_about_kept_titles;
use super::message_origin::MessageOrigin;
use super::no_reply_reason::NoReplyReason;
use super::number_answers::{self, NumberedChat};
use super::open_prompt::OpenPrompt;
use super::request_reader::{self, RequestReader};
use super::room_routes;
use super::route_authority::{decides, needs_authority};
use super::routes::Route;
use super::staleness::stale_reason;
use super::verification::FieldAuthority;
use crate::conversation::digest::digest_command;
use crate::conversation::grammar::confirmation_reply::{
    self, ConfirmationReply, ReplyLanguage, UnclearYes, parse_confirmation_reply, parse_prompt_reply,
};
use crate::conversation::grammar::keyword_grammar::{self, TextCommand};
use crate::conversation::grammar::make_room_step;
use crate::conversation::grammar::reaction::{self, ReactionTarget};
use crate::conversation::grammar::requests::request::{QuietChoice, Request};
use crate::conversation::grammar::triage::{self, TriageDecision, TriageHint, TriageLevel};
use crate::conversation::notifications::quiet_hours::NotificationPreference;
use crate::conversation::people::admin_commands;
use crate::conversation::people::first_request::FirstRequest;
use crate::conversation::text::message_format;
use crate::conversation::transcript::{EventId, OptKeyword, OutboxId, Responder, User, UserRole, UserStatus};
use crate::conversation::votes::vote_command::{self, VoteCommand};

/// Maximum number of repeats of a prompt after unclear replies. The next unclear reply closes it.
const MAX_REPEATS_IF_UNCLEAR: u32 = 1;
/// Maximum number of repeats after replies that mean yes and cannot confirm the prompt, for example because they were
/// received before the prompt was recorded as accepted.
const MAX_REPEATS_AFTER_YES: u32 = 3;

/// Context in which a message is routed.
#[derive(Debug, Clone, Copy)]
pub struct RoutingContext<'a> {
    pub user: &'a User,
    pub open_prompt: Option<&'a OpenPrompt>,
    /// The last confirmation prompt that ended within a day, if none is open.
    pub ended_prompt: Option<&'a EndedPrompt>,
    /// Messages of both sides, newest first on each, as a reaction may quote them.
    pub recent: &'a [RecentMessage],
    pub last_list: LastListSource,
    pub request_reader: RequestReader,
    pub languages: &'a [ReplyLanguage],
    /// True if the message would be the first of its conversation.
    pub is_first: bool,
    /// True if the message exceeds the rate limit.
    pub over_limit: bool,
    pub triage_level: TriageLevel,
    /// Title that a new member requested as a newcomer, if it is stored.
    pub first_request: Option<&'a FirstRequest>,
    /// End of the last pause of the assistant, if there was one.
    pub resumed_at: Option<Timestamp>,
    /// True if the model may answer a message in the room that is not addressed to us.
    pub answers_unaddressed: bool,
    /// Open vote of the room or the household. It is loaded only for messages that may be about one.
    pub open_vote: Option<OpenVote>,
    /// Titles of the open proposal to make room about which the user was asked. They are loaded only for messages that may
    /// be about them.
    pub titles_asked_about: &'a [String],
    /// True if our last message in the chat is a digest. It is loaded only for numbers.
    pub follows_digest: bool,
}

/// Open vote, as the user's next message may answer it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenVote {
    /// Message that asked the user; `None` if the user was not asked.
    pub message: Option<OutboxId>,
}

/// Recent message of either side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecentMessage {
    pub message: MessageRef,
    pub body: String,
    /// Time of a notification without a question, which no message of the user can answer; `None` for all others.
    pub notified_at: Option<Timestamp>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MessageRef {
    Outbound(OutboxId),
    Inbound(EventId),
}

/// Confirmation prompt that is no longer open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedPrompt {
    /// Reply that reports the outcome to a user who answers late.
    pub answer: String,
    /// Message that asked it, whose buttons may still be pressed.
    pub message: Option<OutboxId>,
    /// True if the last sent message is the prompt or our report of its end, so that a yes or no replies to it.
    pub is_last_message: bool,
}

/// Writer of the list that a bare number may pick from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LastListSource {
    Code,
    ModelOrNone,
}

/// Returns whether the message opts its sender out.
pub fn opts_out(event: &InboundEvent) -> bool {
    event.authority.may_act()
        && event.channel.honors_opt_out()
        && effective_opt_keyword(event) == Some(OptKeyword::Out)
}

/// Returns whether an ambiguous message would opt its sender out or in if the carrier's record verified it.
pub fn would_change_opt_out(event: &InboundEvent) -> bool {
    with_verified_fields(event).is_some_and(|event| opts_out(&event) || lifts_opt_out(&event))
}

/// Returns whether an ambiguous message would act if the carrier's record verified it.
pub fn would_act(context: &RoutingContext<'_>, event: &InboundEvent) -> bool {
    with_verified_fields(event).is_some_and(|event| needs_authority(decide_route(context, &event)))
}

/// Returns a copy of an ambiguous message as if the carrier's record had verified it.
fn with_verified_fields(event: &InboundEvent) -> Option<InboundEvent> {
    (event.authority == FieldAuthority::Ambiguous)
        .then(|| InboundEvent { authority: FieldAuthority::Verified, ..event.clone() })
}

/// Returns the opt-out or opt-in keyword. The carrier's classification takes precedence, because the carrier recognizes
/// keywords in other languages.
fn effective_opt_keyword(event: &InboundEvent) -> Option<OptKeyword> {
    let keyword = event.carrier_word.or_else(|| keyword_grammar::parse_opt_keyword(&event.body));
    // Only a private chat can be opted out.
    keyword.filter(|keyword| event.room.is_none() || *keyword == OptKeyword::Help)
}

/// Returns whether a message opts an opted-out user back in. A typed YES does, and also counts as a reply.
pub fn lifts_opt_out(event: &InboundEvent) -> bool {
    event.authority.may_act()
        && event.press.is_none()
        && event.channel.honors_opt_out()
        && matches!(effective_opt_keyword(event), Some(OptKeyword::In | OptKeyword::Yes))
}

/// Chooses the route of a message. A route that requires trusted fields is replaced if the message may not act.
pub fn route_message(context: &RoutingContext<'_>, event: &InboundEvent) -> Route {
    let route = match decide_route(context, event) {
        route if event.is_addressed => route,
        route => room_routes::limit_to_unaddressed(route, context.answers_unaddressed),
    };
    match route {
        // A stranger gets no reply that the reception of newcomers does not send.
        Route::NewcomersCode if !event.authority.may_act() => Route::Newcomer,
        route if needs_authority(route) && !event.authority.may_act() => Route::Unverified,
        route if event.origin.is_program() && decides(route, event) => Route::OnlyInPerson,
        route => route,
    }
}

fn decide_route(context: &RoutingContext<'_>, event: &InboundEvent) -> Route {
    let (honors_opt_out, carrier_helps) =
        (event.channel.honors_opt_out(), event.channel.carrier_answers_help());
    let opt_keyword = effective_opt_keyword(event);
    if honors_opt_out && opt_keyword == Some(OptKeyword::Out) {
        return if event.authority.may_act() {
            Route::OptOut
        } else {
            Route::Skip(NoReplyReason::Unverified)
        };
    }
    if context.user.status == UserStatus::Blocked {
        return Route::Skip(NoReplyReason::Blocked);
    }
    if event.triage == TriageDecision::NoAnswer {
        return Route::StoreOnly;
    }
    match opt_keyword {
        Some(OptKeyword::In) if honors_opt_out && !event.authority.may_act() => {
            return Route::Skip(NoReplyReason::Unverified);
        }
        Some(OptKeyword::In) if honors_opt_out => return Route::OptIn,
        Some(OptKeyword::Help) if carrier_helps => return Route::Skip(NoReplyReason::CarrierHelp),
        Some(OptKeyword::Help) if context.user.status == UserStatus::Active => return Route::Commands,
        Some(_) | None if context.user.opted_out => return Route::Skip(NoReplyReason::OptedOut),
        Some(OptKeyword::In | OptKeyword::Out | OptKeyword::Yes | OptKeyword::Help) | None => {}
    }
    let is_blank = event.body.trim().is_empty();
    if is_blank && event.media.is_empty() {
        return Route::Skip(NoReplyReason::Empty);
    }
    if context.user.status == UserStatus::Pending {
        return match keyword_grammar::parse_command(&event.body) {
            Some(TextCommand::Link | TextCommand::Invitation) => Route::NewcomersCode,
            Some(_) | None => Route::Newcomer,
        };
    }
    if let Some(reason) = stale_reason(event, context.resumed_at) {
        return Route::Stale(reason);
    }
    if event.origin == MessageOrigin::Operator {
        return route_operator_text(context, event);
    }
    if event.press.is_some_and(|press| vote_message(context).is_some_and(|asked| press.is_on(asked))) {
        return if context.over_limit { Route::RateLimited } else { Route::Vote };
    }
    if event.press.is_some_and(|press| !is_current_button(context, press)) {
        return Route::StaleButton;
    }
    let is_button = event.origin == MessageOrigin::Button;
    if is_button
        && context.user.rights.role == UserRole::Admin
        && admin_commands::parse_admin_command(&event.body).is_some()
    {
        // The operator pressed this button in the console, regardless of open prompts and of the admin's messages.
        return Route::AdminCommand;
    }
    match context.open_prompt {
        Some(prompt) => route_with_prompt(context, prompt, event),
        None if is_blank && context.over_limit => Route::RateLimited,
        None if is_blank => Route::MediaOnly,
        None => route_without_prompt(context, event),
    }
}

/// Returns whether a button can be acted on: it is below the open prompt, the last ended one, or our last message.
fn is_current_button(context: &RoutingContext<'_>, press: ButtonPress) -> bool {
    match (context.open_prompt, context.ended_prompt) {
        (Some(prompt), _) => press.is_on(prompt.message),
        (None, Some(ended)) if ended.message.is_some_and(|message| press.is_on(message)) => true,
        (None, _) => last_outbound(context)
            .is_some_and(|last| matches!(last.message, MessageRef::Outbound(id) if press.is_on(id))),
    }
}

/// Returns the message that asked the user about an open vote.
fn vote_message(context: &RoutingContext<'_>) -> Option<OutboxId> {
    context.open_vote.and_then(|vote| vote.message)
}

/// Returns whether a message is about a vote. A number answers only our last message in the chat, and words that start no
/// vote need one that is open.
fn is_about_vote(context: &RoutingContext<'_>, event: &InboundEvent) -> bool {
    if let Some(TextCommand::Number(_)) = keyword_grammar::parse_command(&event.body) {
        let last = last_outbound(context).map(|last| last.message);
        return vote_message(context).is_some_and(|asked| last == Some(MessageRef::Outbound(asked)));
    }
    match vote_command::parse_vote_command(&event.body) {
        Some(VoteCommand::ChooseByName(_)) => context.open_vote.is_some(),
        Some(_) => true,
        None => false,
    }
}

/// Returns the question which numbered list a number means, if a vote is open and our last message does not tell.
pub fn which_list_question(context: &RoutingContext<'_>, event: &InboundEvent) -> Option<String> {
    let Some(TextCommand::Number(number)) = keyword_grammar::parse_command(&event.body) else { return None };
    let (asked, last) = (MessageRef::Outbound(vote_message(context)?), last_outbound(context));
    let is_earlier = |sent: &&RecentMessage| !context.is_first && sent.message != asked;
    let chat = NumberedChat {
        last: last.map(|sent| sent.body.as_str()),
        is_vote_last: last.is_some_and(|sent| sent.message == asked),
        earlier: context.recent.iter().filter(is_earlier).map(|sent| sent.body.as_str()).collect(),
        has_code_list: context.last_list == LastListSource::Code,
    };
    number_answers::format_which_list(number, &chat.unclear_lists(number))
}

/// Routes a text that the operator wrote in a user's name. Regardless of its words, it answers no prompt and is no command.
fn route_operator_text(context: &RoutingContext<'_>, event: &InboundEvent) -> Route {
    match keyword_grammar::parse_command(&event.body) {
        Some(TextCommand::Status | TextCommand::Upcoming) => Route::Turn(Responder::Keyword),
        Some(TextCommand::Number(_)) => route_plain_message(context, event),
        Some(_) => Route::Commands,
        None => match route_request(context, event) {
            route @ Route::Turn(_) => route,
            _ => Route::Turn(Responder::Model),
        },
    }
}

fn route_with_prompt(context: &RoutingContext<'_>, prompt: &OpenPrompt, event: &InboundEvent) -> Route {
    let repeat_up_to = |count| if prompt.repeats < count { Route::RepeatPrompt } else { Route::ClosePrompt };
    let route_if_unclear = repeat_up_to(MAX_REPEATS_IF_UNCLEAR);
    if reaction::looks_like_reaction(&event.body) || event.body.trim().is_empty() {
        return route_if_unclear;
    }
    // It keeps the titles of the proposal, and closes the prompt as well.
    if is_about_kept_titles(context.titles_asked_about, event) {
        return Route::Keep;
    }
    match parse_prompt_reply(&event.body, &prompt.titles, prompt.code, context.languages) {
        ConfirmationReply::Yes if prompt.denied_since => Route::Deny,
        ConfirmationReply::Yes if prompt.is_confirmed_by(event) => Route::Confirm,
        ConfirmationReply::UnclearYes(UnclearYes::WrongCode) if event.authority.may_act() => Route::WrongCode,
        ConfirmationReply::Yes => repeat_up_to(MAX_REPEATS_AFTER_YES),
        ConfirmationReply::UnclearYes(_) => route_if_unclear,
        ConfirmationReply::No => Route::Deny,
        ConfirmationReply::Unrelated if request_reader::repeats_removal(&event.body, prompt.kind) => {
            route_if_unclear
        }
        ConfirmationReply::Unrelated => route_plain_message(context, event),
    }
}

fn route_without_prompt(context: &RoutingContext<'_>, event: &InboundEvent) -> Route {
    if reaction_target(context, event) != ReactionTarget::NotFound {
        return Route::Skip(NoReplyReason::Reaction);
    }
    if context.over_limit {
        return Route::RateLimited;
    }
    // "Keep all" would deny an open prompt.
    if is_about_kept_titles(context.titles_asked_about, event) {
        return Route::Keep;
    }
    let reply = match parse_confirmation_reply(&event.body, None, context.languages) {
        // "Delete it" answers an open prompt only.
        ConfirmationReply::Yes if confirmation_reply::repeats_question(&event.body) => {
            ConfirmationReply::Unrelated
        }
        reply => reply,
    };
    if reply != ConfirmationReply::Unrelated
        && context.user.rights.role == UserRole::Admin
        && event.room.is_none()
        && was_asked_for_code(context)
    {
        return Route::ListApprovals;
    }
    let offer = context.first_request.zip(last_outbound_body(context));
    if offer.is_some_and(|(request, text)| request.is_offered_in(text)) {
        match reply {
            ConfirmationReply::Yes => return Route::AcceptOffer,
            ConfirmationReply::No => return Route::DeclineOffer,
            ConfirmationReply::UnclearYes(_) | ConfirmationReply::Unrelated => {}
        }
    }
    // A button belongs to one prompt, regardless of later messages.
    let is_button = event.origin == MessageOrigin::Button || event.press.is_some();
    let answers_ended_prompt = context.ended_prompt.is_some_and(|ended| is_button || ended.is_last_message);
    if answers_ended_prompt && matches!(reply, ConfirmationReply::Yes | ConfirmationReply::No) {
        return Route::LateAnswer;
    }
    route_plain_message(context, event)
}

/// Returns the recent message to which the message is a reaction.
pub fn reaction_target(context: &RoutingContext<'_>, event: &InboundEvent) -> ReactionTarget {
    reaction::parse_reaction(&event.body).map_or(ReactionTarget::NotFound, |reaction| {
        reaction::find_reaction_target(&reaction, context.recent.iter().map(|recent| recent.body.as_str()))
    })
}

/// Returns whether the model has to decide if a message needs an answer, because its words alone do not tell.
pub fn needs_triage(context: &RoutingContext<'_>, event: &InboundEvent) -> bool {
    let may_be_skipped = context.triage_level == TriageLevel::Ai
        && may_stay_unanswered(context)
        && triage::triage_hint(&event.body) == TriageHint::None;
    may_be_skipped || !event.is_addressed
}

/// Returns whether our last message asks an admin for an answer with a code.
fn was_asked_for_code(context: &RoutingContext<'_>) -> bool {
    last_outbound_body(context).is_some_and(|text| text.contains("eply APPROVE "))
}

/// Returns the text of our last message that the user's message may answer.
fn last_outbound_body<'a>(context: &RoutingContext<'a>) -> Option<&'a str> {
    last_outbound(context).map(|recent| recent.body.as_str())
}

/// Returns our last message that the user's message may answer.
fn last_outbound<'a>(context: &RoutingContext<'a>) -> Option<&'a RecentMessage> {
    let is_ours = |recent: &&RecentMessage| matches!(recent.message, MessageRef::Outbound(_));
    context.recent.iter().filter(is_ours).find(|recent| recent.notified_at.is_none())
}

/// Returns whether the user expects no answer: we asked nothing, and this is not the first message of a conversation.
fn may_stay_unanswered(context: &RoutingContext<'_>) -> bool {
    let is_reply_hint = |line: &str| line.starts_with("Reply ") && line != message_format::MORE_OFFER;
    let asks_user = last_outbound_body(context)
        .is_some_and(|text| message_format::asks_question(text) || text.lines().any(is_reply_hint));
    context.open_prompt.is_none() && !context.is_first && !asks_user
}

fn route_plain_message(context: &RoutingContext<'_>, event: &InboundEvent) -> Route {
    if context.over_limit {
        return Route::RateLimited;
    }
    if admin_commands::parse_admin_command(&event.body)
        .is_some_and(|command| command.is_permitted(context.user.rights))
    {
        return Route::AdminCommand;
    }
    let is_small_talk = triage::triage_hint(&event.body) == TriageHint::SmallTalk;
    if is_small_talk && context.triage_level != TriageLevel::Off && may_stay_unanswered(context) {
        return Route::Skip(NoReplyReason::SmallTalk);
    }
    if context.follows_digest
        && let Some(TextCommand::Number(number)) = keyword_grammar::parse_command(&event.body)
    {
        return Route::DigestLine(number);
    }
    if is_about_vote(context, event) {
        return Route::Vote;
    }
    if is_about_kept_titles(context.titles_asked_about, event) {
        return Route::Keep;
    }
    if !context.follows_digest && which_list_question(context, event).is_some() {
        return Route::WhichList;
    }
    if digest_command::parse_digest_command(&event.body).is_some() {
        return Route::Digest;
    }
    match keyword_grammar::parse_command(&event.body) {
        Some(TextCommand::ClearConversation) => Route::ClearConversation,
        Some(TextCommand::ForgetAll) => Route::ForgetAll,
        Some(TextCommand::ListFacts) => Route::ListFacts,
        Some(TextCommand::ForgetFact(number)) => Route::ForgetFact(number),
        Some(TextCommand::Commands) => Route::Commands,
        Some(TextCommand::More) => Route::More,
        Some(TextCommand::SetNotifications(preference)) => Route::SetNotifications(preference),
        Some(TextCommand::Link) => Route::Link,
        Some(TextCommand::Invitation) => Route::InvitedAlready,
        Some(TextCommand::PreferAddress) => Route::PreferAddress,
        Some(TextCommand::Status | TextCommand::Upcoming) => Route::Turn(Responder::Keyword),
        Some(TextCommand::Number(_)) => Route::Turn(match context.last_list {
            LastListSource::Code => Responder::Keyword,
            LastListSource::ModelOrNone => Responder::Model,
        }),
        None if make_room_step::parse_make_room_step(&event.body).is_some() => {
            Route::Turn(Responder::Keyword)
        }
        None => route_request(context, event),
    }
}

/// Routes a request in everyday words.
fn route_request(context: &RoutingContext<'_>, event: &InboundEvent) -> Route {
    let Some(request) = context.request_reader.read_request(&event.body) else {
        return Route::Turn(Responder::Model);
    };
    match request {
        Request::More => Route::More,
        Request::Help => Route::Commands,
        Request::ShowPreferences => Route::ListFacts,
        Request::Users if context.user.rights.role == UserRole::Admin => Route::ListUsers,
        Request::Forget(what) => match what.trim_start_matches('#').parse() {
            Ok(number) => Route::ForgetFact(number),
            Err(_) if what == "everything" => Route::ForgetAll,
            Err(_) => Route::Turn(Responder::Model),
        },
        Request::Quiet(QuietChoice::Hours(hours)) => {
            Route::SetNotifications(NotificationPreference::Quiet(hours))
        }
        Request::Quiet(QuietChoice::Off) => Route::SetNotifications(NotificationPreference::NeverQuiet),
        _ => Route::Turn(Responder::Keyword),
    }
}

#[cfg(test)]
mod tests {
    use super::super::inbound_message::{MessageMedia, MessageSource};
    use super::*;
    use crate::conversation::channel_list;
    use crate::conversation::grammar::confirmation_reply::ConfirmationCode;
    use crate::conversation::transcript::{
        Address, AddressId, EventId, MediaKind, UserAddress, UserId, UserRights, UserRole,
    };

    fn second(n: i64) -> Timestamp {
        Timestamp::from_second(n).unwrap()
    }

    fn member() -> User {
        User {
            id: UserId(1),
            address: UserAddress::parse("+15550100002"),
            name: None,
            status: UserStatus::Active,
            rights: UserRights {
                role: UserRole::Member,
                add: true,
                delete: true,
                four_k: false,
                ..UserRights::MEMBER
            },
            opted_out: false,
            test: false,
        }
    }

    fn text(body: &str) -> InboundEvent {
        InboundEvent {
            id: EventId(1),
            channel: channel_list::TWILIO,
            external_id: "SM1".into(),
            from: UserAddress::parse("+15550100002").map(|address| (AddressId(1), address)),
            to: Address::new("+15550100000"),
            body: body.into(),
            media: Vec::new(),
            via: MessageSource::Webhook,
            authority: FieldAuthority::Certain,
            carrier_word: None,
            press: None,
            sent_at: second(100),
            received_at: second(100),
            triage: TriageDecision::Answer,
            origin: MessageOrigin::Sender,
            room: None,
            is_addressed: true,
        }
    }

    fn open_prompt() -> OpenPrompt {
        OpenPrompt {
            titles: vec!["Heat".to_owned()],
            code: None,
            message: OutboxId(7),
            repeats: 0,
            armed_at: Some(second(50)),
            dated_at: None,
            was_followed: false,
            denied_since: false,
            channel: channel_list::TWILIO,
            address: Some(AddressId(1)),
            kind: Some(MediaKind::Movie),
        }
    }

    fn routing_context(user: &User) -> RoutingContext<'_> {
        RoutingContext {
            user,
            open_prompt: None,
            ended_prompt: None,
            recent: &[],
            last_list: LastListSource::ModelOrNone,
            request_reader: RequestReader::Model,
            languages: &[],
            is_first: false,
            over_limit: false,
            triage_level: TriageLevel::Heuristic,
            resumed_at: None,
            answers_unaddressed: false,
            open_vote: None,
            titles_asked_about: &[],
            follows_digest: false,
            first_request: None,
        }
    }

    #[test]
    fn vote_command_works_at_any_time_and_a_number_needs_the_question() {
        let user = member();
        let asked = OpenVote { message: Some(OutboxId(7)) };
        let question = |id| RecentMessage {
            message: MessageRef::Outbound(OutboxId(id)),
            body: "Sam asks: What should we watch?".to_owned(),
            notified_at: None,
        };
        let (last, other) = ([question(7)], [question(8), question(7)]);
        let route = |body: &str, open_vote: Option<OpenVote>, recent: &[RecentMessage]| {
            route_message(&RoutingContext { open_vote, recent, ..routing_context(&user) }, &text(body))
        };
        for body in ["vote dune, heat", "vote 2", "vote", "close vote", "vote yes, no"] {
            assert_eq!(route(body, None, &[]), Route::Vote, "{body}");
        }
        assert_eq!(route("vote for heat", Some(asked), &[]), Route::Vote);
        assert_eq!(route("vote for heat", None, &[]), Route::Turn(Responder::Model));
        assert_eq!(route("2", Some(asked), &last), Route::Vote);
        assert_eq!(
            route("2", Some(asked), &other),
            Route::Turn(Responder::Model),
            "it answers another question"
        );
        assert_eq!(route("2", Some(asked), &[]), Route::WhichList);
        assert_eq!(route("2", None, &last), Route::Turn(Responder::Model));
        let forwarded = InboundEvent { authority: FieldAuthority::Unverified, ..text("vote 2") };
        assert_eq!(route_message(&routing_context(&user), &forwarded), Route::Unverified);
    }

    #[test]
    fn number_during_a_vote_picks_from_the_last_list_or_is_asked_about() {
        let user = member();
        let sent = |id, body: &str| RecentMessage {
            message: MessageRef::Outbound(OutboxId(id)),
            body: body.to_owned(),
            notified_at: None,
        };
        let ballot =
            sent(7, "What should we watch tonight?\n1. Heat\n2. Up\nReply VOTE and a number until 9 pm.");
        let list = sent(8, "1. Dune (2021)\n2. Dune (1984)");
        let remark = sent(9, "Heat is downloading, 40%.");
        let route = |recent: &[RecentMessage], last_list| {
            let open_vote = Some(OpenVote { message: Some(OutboxId(7)) });
            let context = RoutingContext { open_vote, recent, last_list, ..routing_context(&user) };
            route_message(&context, &text("2"))
        };
        let (code, model) = (LastListSource::Code, LastListSource::ModelOrNone);
        assert_eq!(route(&[list.clone(), ballot.clone()], code), Route::Turn(Responder::Keyword));
        assert_eq!(route(&[list.clone(), ballot.clone()], model), Route::Turn(Responder::Model));
        assert_eq!(route(&[remark.clone(), ballot.clone()], model), Route::WhichList);
        assert_eq!(route(&[remark.clone(), list, ballot.clone()], code), Route::WhichList);
        assert_eq!(route(&[ballot], code), Route::Vote);
        let no_vote = RoutingContext { recent: &[remark], ..routing_context(&user) };
        assert_eq!(route_message(&no_vote, &text("2")), Route::Turn(Responder::Model));
    }

    #[test]
    fn digest_command_works_at_any_time_and_a_number_needs_the_digest() {
        let user = member();
        let route = |body: &str, follows_digest| {
            route_message(&RoutingContext { follows_digest, ..routing_context(&user) }, &text(body))
        };
        for body in ["digest", "digest friday 18", "stop the digest", "digest daily 8"] {
            assert_eq!(route(body, false), Route::Digest, "{body}");
        }
        assert_eq!(route("2", true), Route::DigestLine(2));
        assert_eq!(route("2", false), Route::Turn(Responder::Model));
        assert_eq!(route("add dune", true), Route::Turn(Responder::Model));
        let forwarded = InboundEvent { authority: FieldAuthority::Unverified, ..text("digest off") };
        assert_eq!(route_message(&routing_context(&user), &forwarded), Route::Unverified);
    }

    #[test]
    fn button_of_an_open_vote_counts_after_later_messages() {
        let user = member();
        let press = |id| InboundEvent { press: Some(ButtonPress::On(OutboxId(id))), ..text("2") };
        let prompt = OpenPrompt { message: OutboxId(9), ..open_prompt() };
        let context = RoutingContext {
            open_vote: Some(OpenVote { message: Some(OutboxId(7)) }),
            open_prompt: Some(&prompt),
            ..routing_context(&user)
        };
        assert_eq!(route_message(&context, &press(7)), Route::Vote);
        assert_eq!(route_message(&context, &press(6)), Route::StaleButton);
        let limited = RoutingContext { over_limit: true, ..context };
        assert_eq!(route_message(&limited, &press(7)), Route::RateLimited);
        let void = InboundEvent { press: Some(ButtonPress::Void), ..text("2") };
        assert_eq!(route_message(&context, &void), Route::StaleButton);
    }

    #[track_caller]
    fn check(user: &User, prompt: Option<&OpenPrompt>, event: &InboundEvent, expected: Route) {
        let context = RoutingContext { open_prompt: prompt, ..routing_context(user) };
        assert_eq!(route_message(&context, event), expected, "{}", event.body);
    }

    #[test]
    fn message_marked_as_unanswered_is_only_stored() {
        for body in ["yes", "no", "cancel", "/clear", "add dune", "thanks"] {
            let event = InboundEvent {
                triage: TriageDecision::NoAnswer,
                channel: channel_list::CONSOLE,
                ..text(body)
            };
            check(&member(), Some(&open_prompt()), &event, Route::StoreOnly);
            check(&member(), None, &event, Route::StoreOnly);
        }
        let blocked = User { status: UserStatus::Blocked, ..member() };
        let event = InboundEvent { triage: TriageDecision::NoAnswer, ..text("hello") };
        check(&blocked, None, &event, Route::Skip(NoReplyReason::Blocked));
    }

    #[test]
    fn opt_out_keywords_are_an_ordinary_no_in_the_terminal() {
        for status in [UserStatus::Active, UserStatus::Pending, UserStatus::Blocked] {
            check(&User { status, ..member() }, Some(&open_prompt()), &text("STOP"), Route::OptOut);
        }
        let local = InboundEvent { channel: channel_list::TERMINAL, ..text("cancel") };
        check(&member(), Some(&open_prompt()), &local, Route::Deny);
        let help = InboundEvent { channel: channel_list::TERMINAL, ..text("help") };
        check(&member(), None, &help, Route::Commands);
    }

    #[test]
    fn only_active_users_get_a_turn() {
        let newcomer = User { status: UserStatus::Pending, ..member() };
        for body in ["add dune", "yes", "commands", "/clear", "approve 4821"] {
            check(&newcomer, None, &text(body), Route::Newcomer);
        }
        check(&newcomer, None, &text("START"), Route::OptIn);
        check(&newcomer, None, &text("HELP"), Route::Skip(NoReplyReason::CarrierHelp));
        let opted_out = User { opted_out: true, ..newcomer };
        check(&opted_out, None, &text("add dune"), Route::Skip(NoReplyReason::OptedOut));
        check(
            &User { status: UserStatus::Blocked, ..member() },
            None,
            &text("add dune"),
            Route::Skip(NoReplyReason::Blocked),
        );
        let opted_out = User { opted_out: true, ..member() };
        check(&opted_out, None, &text("add dune"), Route::Skip(NoReplyReason::OptedOut));
        check(&opted_out, None, &text("START"), Route::OptIn);
        check(&opted_out, None, &text("yes please"), Route::Skip(NoReplyReason::OptedOut));
        let opts_in = ["START", "unstop", "Yes", "yes please", "hi"].map(|body| lifts_opt_out(&text(body)));
        assert_eq!(opts_in, [true, true, true, false, false]);
        check(&member(), None, &text("HELP"), Route::Skip(NoReplyReason::CarrierHelp));
    }

    #[test]
    fn yes_confirms_only_if_it_can_answer_the_prompt() {
        check(&member(), Some(&open_prompt()), &text("Yes!"), Route::Confirm);
        let unsent = OpenPrompt { armed_at: None, ..open_prompt() };
        let early = OpenPrompt { armed_at: Some(second(100)), ..open_prompt() };
        let followed = OpenPrompt { was_followed: true, ..open_prompt() };
        let in_console = OpenPrompt { channel: channel_list::CONSOLE, ..open_prompt() };
        for prompt in [unsent, early, followed, in_console] {
            check(&member(), Some(&prompt), &text("yes"), Route::RepeatPrompt);
        }
        let dated_later = OpenPrompt { dated_at: Some(second(101)), ..open_prompt() };
        check(&member(), Some(&dated_later), &text("yes"), Route::RepeatPrompt);
        let pressed = press("yes", ButtonPress::On(OutboxId(7)));
        check(&member(), Some(&dated_later), &pressed, Route::Confirm);
        for via in [MessageSource::Recovery, MessageSource::Fallback] {
            check(&member(), Some(&open_prompt()), &InboundEvent { via, ..text("yes") }, Route::RepeatPrompt);
        }
        check(
            &member(),
            Some(&OpenPrompt { denied_since: true, ..open_prompt() }),
            &text("yes"),
            Route::Deny,
        );
        let followed = OpenPrompt { was_followed: true, ..open_prompt() };
        let button = InboundEvent { origin: MessageOrigin::Button, via: MessageSource::Local, ..text("yes") };
        check(&member(), Some(&followed), &button, Route::Confirm);
    }

    #[test]
    fn early_yes_repeats_the_prompt_three_times_before_it_closes() {
        for (repeats, expected) in
            [(1, Route::RepeatPrompt), (2, Route::RepeatPrompt), (3, Route::ClosePrompt)]
        {
            let unsent = OpenPrompt { armed_at: None, repeats, ..open_prompt() };
            check(&member(), Some(&unsent), &text("yes"), expected);
            check(&member(), Some(&unsent), &press("yes", ButtonPress::On(OutboxId(7))), expected);
            check(&member(), Some(&unsent), &text("ok thanks"), Route::ClosePrompt);
        }
    }

    fn press(body: &str, press: ButtonPress) -> InboundEvent {
        InboundEvent { press: Some(press), ..text(body) }
    }

    #[test]
    fn press_answers_only_the_prompt_that_its_button_is_below() {
        let followed = OpenPrompt { was_followed: true, ..open_prompt() };
        check(&member(), Some(&followed), &press("yes", ButtonPress::On(OutboxId(7))), Route::Confirm);
        check(&member(), Some(&followed), &press("no", ButtonPress::On(OutboxId(7))), Route::Deny);
        for other in [ButtonPress::On(OutboxId(6)), ButtonPress::Void] {
            for body in ["yes", "no", "2"] {
                check(&member(), Some(&followed), &press(body, other), Route::StaleButton);
            }
        }
        let with_code = OpenPrompt { code: ConfirmationCode::parse("47"), ..open_prompt() };
        check(&member(), Some(&with_code), &press("yes", ButtonPress::On(OutboxId(7))), Route::RepeatPrompt);
    }

    #[test]
    fn press_without_a_prompt_belongs_to_the_last_message() {
        let member = member();
        let sent = |id| RecentMessage {
            message: MessageRef::Outbound(OutboxId(id)),
            body: "1. Dune (2021)".into(),
            notified_at: None,
        };
        let recent = [sent(9), sent(8)];
        let context =
            RoutingContext { recent: &recent, last_list: LastListSource::Code, ..routing_context(&member) };
        let pressed = |id| route_message(&context, &press("1", ButtonPress::On(OutboxId(id))));
        assert_eq!([pressed(9), pressed(8)], [Route::Turn(Responder::Keyword), Route::StaleButton]);
        let ended =
            EndedPrompt { answer: "Expired.".into(), message: Some(OutboxId(7)), is_last_message: false };
        let after_end = RoutingContext { ended_prompt: Some(&ended), ..context };
        let late = press("yes", ButtonPress::On(OutboxId(7)));
        assert_eq!(route_message(&after_end, &late), Route::LateAnswer);
    }

    #[test]
    fn ambiguous_messages_act_only_after_verification() {
        let (member, prompt) = (member(), open_prompt());
        let admin = User { rights: UserRights { role: UserRole::Admin, ..member.rights }, ..member.clone() };
        let with_prompt = RoutingContext { open_prompt: Some(&prompt), ..routing_context(&member) };
        let cases = [
            (with_prompt, "yes", Route::Confirm, Route::RepeatPrompt),
            (routing_context(&admin), "approve 4821", Route::AdminCommand, Route::Unverified),
            (routing_context(&member), "STOP", Route::OptOut, Route::Skip(NoReplyReason::Unverified)),
            (routing_context(&member), "START", Route::OptIn, Route::Skip(NoReplyReason::Unverified)),
            (routing_context(&member), "forget all", Route::ForgetAll, Route::Unverified),
        ];
        for (context, body, verified, unverified) in cases {
            let with_authority = |authority| InboundEvent { authority, ..text(body) };
            assert!(would_act(&context, &with_authority(FieldAuthority::Ambiguous)), "{body}");
            assert!(!would_act(&context, &with_authority(FieldAuthority::Unverified)), "{body}");
            assert_eq!(
                route_message(&context, &with_authority(FieldAuthority::Verified)),
                verified,
                "{body}"
            );
            for authority in [FieldAuthority::Ambiguous, FieldAuthority::Unverified] {
                assert_eq!(route_message(&context, &with_authority(authority)), unverified, "{body}");
            }
        }
        let addition = InboundEvent { authority: FieldAuthority::Ambiguous, ..text("add Toy Story") };
        assert!(!would_act(&with_prompt, &addition));
    }

    #[test]
    fn unclear_reply_repeats_the_prompt_once_and_then_closes_it() {
        for body in ["ok thanks", "\u{1f44d}", "Liked \u{201c}Delete Dune?\u{201d}"] {
            check(&member(), Some(&open_prompt()), &text(body), Route::RepeatPrompt);
            check(
                &member(),
                Some(&OpenPrompt { repeats: 1, ..open_prompt() }),
                &text(body),
                Route::ClosePrompt,
            );
        }
    }

    #[test]
    fn only_a_different_code_is_a_wrong_code() {
        let prompt_with_code = OpenPrompt { code: ConfirmationCode::parse("4821"), ..open_prompt() };
        for (body, expected) in [
            ("yes 4821", Route::Confirm),
            ("yes 4822", Route::WrongCode),
            ("48", Route::WrongCode),
            ("yes", Route::RepeatPrompt),
            ("no", Route::Deny),
        ] {
            check(&member(), Some(&prompt_with_code), &text(body), expected);
        }
        check(&member(), Some(&open_prompt()), &text("yes 4822"), Route::Turn(Responder::Model));
    }

    #[test]
    fn repeated_deletion_request_repeats_the_prompt() {
        for body in ["delete the movie", "delete all", "get rid of this one"] {
            check(&member(), Some(&open_prompt()), &text(body), Route::RepeatPrompt);
            check(
                &member(),
                Some(&OpenPrompt { repeats: 1, ..open_prompt() }),
                &text(body),
                Route::ClosePrompt,
            );
            check(&member(), None, &text(body), Route::Turn(Responder::Model));
        }
        for body in ["delete the show", "delete It (2017)", "delete the movie it", "add it"] {
            check(&member(), Some(&open_prompt()), &text(body), Route::Turn(Responder::Model));
        }
    }

    #[test]
    fn question_repeated_or_answered_with_its_title_is_a_yes() {
        for body in ["delete it", "Get rid of it!", "yes delete heat", "yes, heat"] {
            check(&member(), Some(&open_prompt()), &text(body), Route::Confirm);
            check(&member(), None, &text(body), Route::Turn(Responder::Model));
        }
        for body in ["yes delete dune", "yes delete heat and dune", "delete heat"] {
            check(&member(), Some(&open_prompt()), &text(body), Route::Turn(Responder::Model));
        }
    }

    #[test]
    fn other_messages_go_to_the_model() {
        check(&member(), Some(&open_prompt()), &text("yes but keep season 1"), Route::Turn(Responder::Model));
        check(&member(), None, &text("whats downloading?"), Route::Turn(Responder::Model));
        check(&member(), None, &text("status"), Route::Turn(Responder::Keyword));
        check(&member(), None, &text("/clear"), Route::ClearConversation);
        check(&member(), Some(&open_prompt()), &text("what do you know?"), Route::ListFacts);
        check(&member(), Some(&open_prompt()), &text("forget 3"), Route::ForgetFact(3));
        check(&member(), None, &text("2"), Route::Turn(Responder::Model));
        let member = member();
        let after_list = RoutingContext { last_list: LastListSource::Code, ..routing_context(&member) };
        assert_eq!(route_message(&after_list, &text("2")), Route::Turn(Responder::Keyword));
    }

    #[test]
    fn media_without_text_gets_a_fixed_reply() {
        let media =
            vec![MessageMedia { url: "https://x.example/1".into(), content_type: "image/jpeg".into() }];
        let picture = InboundEvent { media, ..text(" ") };
        check(&member(), None, &picture, Route::MediaOnly);
        check(&member(), Some(&open_prompt()), &picture, Route::RepeatPrompt);
        check(
            &member(),
            None,
            &InboundEvent { body: "status".into(), ..picture },
            Route::Turn(Responder::Keyword),
        );
        check(&member(), None, &text(" "), Route::Skip(NoReplyReason::Empty));
    }

    #[test]
    fn carrier_classification_determines_the_opt_keyword() {
        let classified = |carrier_word| InboundEvent { carrier_word: Some(carrier_word), ..text("arret") };
        check(&member(), Some(&open_prompt()), &classified(OptKeyword::Out), Route::OptOut);
        check(&member(), None, &classified(OptKeyword::In), Route::OptIn);
        check(&member(), None, &classified(OptKeyword::Help), Route::Skip(NoReplyReason::CarrierHelp));
    }

    #[test]
    fn only_admins_can_use_admin_commands() {
        let admin = User { rights: UserRights { role: UserRole::Admin, ..member().rights }, ..member() };
        for body in ["approve 4821", "users", "pause", "quota Sam +5"] {
            check(&admin, None, &text(body), Route::AdminCommand);
            check(&member(), None, &text(body), Route::Turn(Responder::Model));
        }
    }

    #[test]
    fn small_talk_without_an_open_prompt_gets_no_reply() {
        let member = member();
        let recent_message = |body: &str| {
            [RecentMessage {
                message: MessageRef::Outbound(OutboxId(1)),
                body: body.to_owned(),
                notified_at: None,
            }]
        };
        let (statement, question, list) = (
            recent_message("Added Dune (2021)."),
            recent_message("Which one?\n1. Dune\n2. Dune"),
            recent_message("1. A\n2. B\nReply 1 or 2."),
        );
        let without_question = RoutingContext { recent: &statement, ..routing_context(&member) };
        for body in ["thanks!", "\u{1f44d}", "ok cool"] {
            assert_eq!(
                route_message(&without_question, &text(body)),
                Route::Skip(NoReplyReason::SmallTalk),
                "{body}"
            );
        }
        let answered_contexts = [
            RoutingContext { triage_level: TriageLevel::Off, ..without_question },
            RoutingContext { is_first: true, ..without_question },
            RoutingContext { recent: &question, ..without_question },
            RoutingContext { recent: &list, ..without_question },
        ];
        for context in answered_contexts {
            assert_eq!(route_message(&context, &text("thanks!")), Route::Turn(Responder::Model));
        }
        assert!(!needs_triage(&without_question, &text("we loved it")));
        let ai_triage = RoutingContext { triage_level: TriageLevel::Ai, ..without_question };
        assert!(needs_triage(&ai_triage, &text("we loved it")));
        assert!(!needs_triage(&ai_triage, &text("add dune")));
        assert!(!needs_triage(&RoutingContext { is_first: true, ..ai_triage }, &text("we loved it")));
    }

    #[test]
    fn only_prompt_answers_are_processed_over_the_rate_limit() {
        let member = member();
        let over_limit = RoutingContext { over_limit: true, ..routing_context(&member) };
        for body in ["add dune", "status", "/clear", "thanks"] {
            assert_eq!(route_message(&over_limit, &text(body)), Route::RateLimited, "{body}");
        }
        assert_eq!(route_message(&over_limit, &text("STOP")), Route::OptOut);
        let prompt = open_prompt();
        let with_prompt = RoutingContext { open_prompt: Some(&prompt), ..over_limit };
        assert_eq!(route_message(&with_prompt, &text("no")), Route::Deny);
        assert_eq!(route_message(&with_prompt, &text("yes")), Route::Confirm);
        assert_eq!(route_message(&with_prompt, &text("add dune")), Route::RateLimited);
    }

    #[test]
    fn late_yes_is_answered_by_code_only_if_the_prompt_was_the_last_message() {
        let member = member();
        let ended =
            EndedPrompt { answer: "Expired.".into(), message: Some(OutboxId(7)), is_last_message: true };
        let after_end = RoutingContext { ended_prompt: Some(&ended), ..routing_context(&member) };
        assert_eq!(route_message(&after_end, &text("yes")), Route::LateAnswer);
        assert_eq!(route_message(&after_end, &text("add dune")), Route::Turn(Responder::Model));
        let followed = EndedPrompt { is_last_message: false, ..ended };
        let after_other_message =
            RoutingContext { ended_prompt: Some(&followed), ..routing_context(&member) };
        assert_eq!(route_message(&after_other_message, &text("yes")), Route::Turn(Responder::Model));
    }

    #[test]
    fn yes_of_an_admin_lists_approvals_in_the_private_chat_only() {
        let admin = User { rights: UserRights { role: UserRole::Admin, ..member().rights }, ..member() };
        let asked = RecentMessage {
            message: MessageRef::Outbound(OutboxId(1)),
            body: "Reply APPROVE 4747 or DENY 4747".to_owned(),
            notified_at: None,
        };
        let context = RoutingContext { recent: &[asked], ..routing_context(&admin) };
        assert_eq!(route_message(&context, &text("yes")), Route::ListApprovals);
        let in_room = InboundEvent { room: Some(UserId(6)), ..text("yes") };
        assert_eq!(route_message(&context, &in_room), Route::Turn(Responder::Model));
    }
}
