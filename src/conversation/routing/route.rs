//! Routing of one received message by its sender and the open prompts: the order of PRODUCT rules before any model.

use jiff::{SignedDuration, Timestamp};

use super::inbound_message::{InboundEvent, MessageSource, ReceivedMessage};
use super::message_origin::MessageOrigin;
use super::transport::MessageTransport;
use super::verification::FieldAuthority;
use crate::conversation::grammar::confirmation_reply::{
    ConfirmationCode, ConfirmationReply, ReplyLanguage, UnclearYes, parse_confirmation_reply,
};
use crate::conversation::grammar::keyword_grammar::{self, KeywordRequest, KeywordVerb, TextCommand};
use crate::conversation::grammar::reaction::{self, ReactionTarget};
use crate::conversation::grammar::title_reference::TitleReference;
use crate::conversation::grammar::triage::{self, TriageDecision, TriageHint, TriageLevel};
use crate::conversation::notifications::quiet_hours::NotificationPreference;
use crate::conversation::people::admin_commands;
use crate::conversation::people::first_request::FirstRequest;
use crate::conversation::text::message_format;
use crate::conversation::transcript::{
    ChannelKind, EventId, MediaKind, OptWord, OutboxId, Responder, User, UserRole, UserStatus,
};

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
    pub languages: &'a [ReplyLanguage],
    /// True if the message would be the first of its conversation.
    pub is_first: bool,
    /// True if more messages preceded it than the rate limit allows within its period.
    pub over_limit: bool,
    pub triage_level: TriageLevel,
    /// Title that a new member requested as a newcomer, if it is stored.
    pub first_request: Option<&'a FirstRequest>,
    /// End of the last pause of the assistant, if there ever was one.
    pub resumed_at: Option<Timestamp>,
}

/// Recent message of either side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecentMessage {
    pub message: MessageRef,
    pub body: String,
    /// True for a notification that asks nothing, so that no message of the user is an answer to it.
    pub asks_nothing: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MessageRef {
    Outbound(OutboxId),
    Inbound(EventId),
}

/// Open confirmation prompt, with everything that decides whether a reply counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenPrompt {
    pub code: Option<ConfirmationCode>,
    /// Number of times the prompt was repeated.
    pub repeats: u32,
    /// Time when the prompt was accepted for sending; before that no user can have answered it.
    pub armed_at: Option<Timestamp>,
    /// True if another message was sent to the user after the prompt.
    pub was_followed: bool,
    /// True if the user already sent a no after this message.
    pub denied_since: bool,
    /// Transport of the prompt.
    pub transport: MessageTransport,
    /// Kind of the titles, if all of them are of one kind.
    pub kind: Option<MediaKind>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedPrompt {
    /// Outcome of the prompt, for a user who answers late.
    pub answer: String,
    /// True if the prompt, or the message by code about its end, is the last sent message: a yes or no replies to it.
    pub is_last_message: bool,
}

/// Writer of the list that a bare number may pick from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LastListSource {
    Code,
    ModelOrNone,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
    /// Store the message without any other action.
    Skip(NoReplyReason),
    /// Deny any open prompt, and send nothing until the user opts in.
    OptOut,
    /// Only lift an opt-out.
    OptIn,
    /// Add the message to the conversation without an answer.
    StoreOnly,
    /// Claim the open prompt and carry out its deletion.
    Confirm,
    Deny,
    /// Send the prompt again: the reply was unclear, too early, or from a source that does not count.
    RepeatPrompt,
    /// A yes with a code other than that of the prompt. The next action depends on the number of wrong codes.
    WrongCode,
    /// The reply is unclear a second time: close the prompt without a deletion.
    ClosePrompt,
    /// The message was processed only long after it was sent: report the delay without acting on the message.
    Stale(StaleReason),
    /// A yes to the offer to add the title of a newcomer's first request.
    AcceptOffer,
    /// A no to that offer.
    DeclineOffer,
    /// A yes or no after the end of the prompt: code reports the outcome of the prompt.
    LateAnswer,
    /// Message of a newcomer who is not approved yet.
    Newcomer,
    /// Admin command, as [`admin_commands::parse_admin_command`] parses it.
    AdminCommand,
    /// An admin's yes or no to approvals that only a code can answer.
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
    /// Set whether and when the user gets notifications.
    SetNotifications(NotificationPreference),
    /// Too many messages within a short time.
    RateLimited,
    /// A command that the carrier's record does not confirm: nothing is done, and the sender is asked to send it again.
    Unverified,
    /// Media without text, which no responder can read.
    MediaOnly,
    Turn(Responder),
}

/// Reason why a message is too old to be acted on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StaleReason {
    /// The message did not reach us when it was sent.
    Missed,
    /// The assistant was paused.
    Paused,
}

/// Reason why a message gets no reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoReplyReason {
    Blocked,
    OptedOut,
    /// The carrier answers HELP and INFO itself.
    CarrierHelp,
    /// An opt-out or opt-in word that the carrier's record does not confirm.
    Unverified,
    Reaction,
    /// Thanks or a bare emoji, when nothing is open.
    SmallTalk,
    Empty,
}

impl NoReplyReason {
    pub fn reason(self) -> &'static str {
        match self {
            Self::Blocked => "blocked",
            Self::OptedOut => "opted_out",
            Self::CarrierHelp => "carrier_help",
            Self::Unverified => "unverified",
            Self::Reaction => "reaction",
            Self::SmallTalk => "small_talk",
            Self::Empty => "empty",
        }
    }
}

/// Effect of a message on waiting messages and on a running turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageUrgency {
    /// Wait for a further message that may belong to this one.
    MayWait,
    /// Start at once: replies, commands and numbers are complete on their own.
    Immediate,
    /// Cancel the running turn.
    CancelsTurn,
    /// Cancel the running turn and send nothing more, because the user opts out.
    OptsOut,
    /// Cancel the running turn, unless a prompt is open, which the message answers.
    CancelsTurnOrAnswers,
}

/// Returns whether the message opts its sender out at the carrier.
pub fn opts_out(event: &InboundEvent) -> bool {
    event.authority.may_act() && event.channel == ChannelKind::Twilio && opt_word(event) == Some(OptWord::Out)
}

/// Returns whether an ambiguous message would opt its sender out or in, if the carrier's record agreed.
pub fn would_change_opt_out(event: &InboundEvent) -> bool {
    with_verified_fields(event).is_some_and(|event| opts_out(&event) || lifts_opt_out(&event))
}

/// Returns whether an ambiguous message would act, if the carrier's record agreed.
pub fn would_act(context: &RoutingContext<'_>, event: &InboundEvent) -> bool {
    with_verified_fields(event).is_some_and(|event| needs_authority(decide_route(context, &event)))
}

/// Returns whether a message has an effect in its sender's name that requires certain fields. The addition of a title
/// from the message itself does not: it counts towards a quota and can be undone.
fn needs_authority(route: Route) -> bool {
    match route {
        Route::Confirm | Route::OptOut | Route::OptIn | Route::AdminCommand | Route::ForgetAll => true,
        Route::AcceptOffer | Route::DeclineOffer | Route::ListApprovals => true,
        Route::ForgetFact(_) | Route::SetNotifications(_) => true,
        // A wrong code counts against its sender.
        Route::WrongCode => true,
        Route::Skip(_)
        | Route::StoreOnly
        | Route::Deny
        | Route::RepeatPrompt
        | Route::ClosePrompt
        | Route::Stale(_)
        | Route::LateAnswer
        | Route::Newcomer
        | Route::ClearConversation
        | Route::ListFacts
        | Route::Commands
        | Route::More
        | Route::RateLimited
        | Route::Unverified
        | Route::MediaOnly
        | Route::Turn(_) => false,
    }
}

/// Returns an ambiguous message as it is after the carrier's record agrees with it.
fn with_verified_fields(event: &InboundEvent) -> Option<InboundEvent> {
    (event.authority == FieldAuthority::Ambiguous)
        .then(|| InboundEvent { authority: FieldAuthority::Verified, ..event.clone() })
}

/// Returns the opt word. The carrier's own classification precedes ours: the carrier knows words of other languages.
fn opt_word(event: &InboundEvent) -> Option<OptWord> {
    event.carrier_word.or_else(|| keyword_grammar::opt_word(&event.body))
}

pub fn classify_urgency(received: &ReceivedMessage, languages: &[ReplyLanguage]) -> MessageUrgency {
    let opt_word = received.carrier_word.or_else(|| keyword_grammar::opt_word(&received.body));
    let command = keyword_grammar::parse_command(&received.body);
    if received.channel == ChannelKind::Twilio && opt_word == Some(OptWord::Out) {
        return MessageUrgency::OptsOut;
    }
    if command == Some(TextCommand::ClearConversation) {
        return MessageUrgency::CancelsTurn;
    }
    if keyword_grammar::is_retraction(&received.body) {
        return MessageUrgency::CancelsTurnOrAnswers;
    }
    let answer = parse_confirmation_reply(&received.body, None, languages);
    let is_command = opt_word.is_some()
        || command.is_some()
        || admin_commands::parse_admin_command(&received.body).is_some();
    if answer != ConfirmationReply::Unrelated || is_command {
        MessageUrgency::Immediate
    } else {
        MessageUrgency::MayWait
    }
}

/// Returns whether a message by an opted-out user turns messages on again. YES does, and is also a reply.
pub fn lifts_opt_out(event: &InboundEvent) -> bool {
    event.authority.may_act()
        && event.channel == ChannelKind::Twilio
        && matches!(opt_word(event), Some(OptWord::In | OptWord::Yes))
}

pub fn route_message(context: &RoutingContext<'_>, event: &InboundEvent) -> Route {
    let route = decide_route(context, event);
    if needs_authority(route) && !event.authority.may_act() { Route::Unverified } else { route }
}

fn decide_route(context: &RoutingContext<'_>, event: &InboundEvent) -> Route {
    let by_carrier = event.channel == ChannelKind::Twilio;
    let opt_word = opt_word(event);
    if by_carrier && opt_word == Some(OptWord::Out) {
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
    match opt_word {
        Some(OptWord::In) if by_carrier && !event.authority.may_act() => {
            return Route::Skip(NoReplyReason::Unverified);
        }
        Some(OptWord::In) if by_carrier => return Route::OptIn,
        Some(OptWord::Help) if by_carrier => return Route::Skip(NoReplyReason::CarrierHelp),
        Some(OptWord::Help) if context.user.status == UserStatus::Active => return Route::Commands,
        Some(_) | None if context.user.opted_out => return Route::Skip(NoReplyReason::OptedOut),
        Some(OptWord::In | OptWord::Out | OptWord::Yes | OptWord::Help) | None => {}
    }
    let wordless = event.body.trim().is_empty();
    if wordless && event.media.is_empty() {
        return Route::Skip(NoReplyReason::Empty);
    }
    if context.user.status == UserStatus::Pending {
        return Route::Newcomer;
    }
    if let Some(why) = stale_reason(event, context.resumed_at) {
        return Route::Stale(why);
    }
    let is_button = event.origin == MessageOrigin::Button;
    if is_button
        && context.user.rights.role == UserRole::Admin
        && admin_commands::parse_admin_command(&event.body).is_some()
    {
        // The operator decides here; prompts to the admin and messages from the admin do not matter.
        return Route::AdminCommand;
    }
    match context.open_prompt {
        Some(prompt) => route_with_prompt(context, prompt, event),
        None if wordless && context.over_limit => Route::RateLimited,
        None if wordless => Route::MediaOnly,
        None => route_without_prompt(context, event),
    }
}

/// Age from which a message that was fetched late is not acted on: much may have changed since it was sent.
const MAX_MESSAGE_AGE: SignedDuration = SignedDuration::from_hours(1);

/// Returns the reason if the message is too old to be acted on.
pub fn stale_reason(event: &InboundEvent, resumed_at: Option<Timestamp>) -> Option<StaleReason> {
    let missed = event.via == MessageSource::Recovery
        && event.received_at.duration_since(event.sent_at) > MAX_MESSAGE_AGE;
    let waited = resumed_at.is_some_and(|at| at.duration_since(event.received_at) > MAX_MESSAGE_AGE);
    match (missed, waited) {
        (true, _) => Some(StaleReason::Missed),
        (false, true) => Some(StaleReason::Paused),
        (false, false) => None,
    }
}

fn route_with_prompt(context: &RoutingContext<'_>, prompt: &OpenPrompt, event: &InboundEvent) -> Route {
    let unclear = if prompt.repeats == 0 { Route::RepeatPrompt } else { Route::ClosePrompt };
    if reaction::looks_like_reaction(&event.body) || event.body.trim().is_empty() {
        return unclear;
    }
    match parse_confirmation_reply(&event.body, prompt.code, context.languages) {
        ConfirmationReply::Yes if prompt.denied_since => Route::Deny,
        ConfirmationReply::Yes if is_valid_confirmation(prompt, event) => Route::Confirm,
        ConfirmationReply::UnclearYes(UnclearYes::WrongCode) if event.authority.may_act() => Route::WrongCode,
        ConfirmationReply::Yes | ConfirmationReply::UnclearYes(_) => unclear,
        ConfirmationReply::No => Route::Deny,
        ConfirmationReply::Unrelated if repeats_request(prompt, event) => unclear,
        ConfirmationReply::Unrelated => route_plain_message(context, event),
    }
}

/// Returns whether the message requests the deletion of the prompt again: "delete it" does not count as a yes.
fn repeats_request(prompt: &OpenPrompt, event: &InboundEvent) -> bool {
    match keyword_grammar::parse_keyword_request(&event.body) {
        Some(KeywordRequest::Reference(KeywordVerb::Remove, TitleReference::OneOf(kind))) => {
            prompt.kind == Some(kind)
        }
        Some(KeywordRequest::Reference(
            KeywordVerb::Remove,
            TitleReference::One | TitleReference::Several,
        )) => true,
        Some(_) | None => false,
    }
}

/// Returns whether a yes is valid: it can be meant for this prompt, and came from the direct source. A user who gets
/// messages has not read the prompts that a program received in their name.
fn is_valid_confirmation(prompt: &OpenPrompt, event: &InboundEvent) -> bool {
    let direct = match event.via {
        MessageSource::Webhook | MessageSource::Local => true,
        MessageSource::Fallback | MessageSource::Recovery => false,
    };
    let same_transport = event.to.transport() == prompt.transport;
    // The operator answers this prompt by its button in the console, regardless of later messages.
    let undisturbed = !prompt.was_followed || event.origin == MessageOrigin::Button;
    direct
        && event.authority.may_act()
        && same_transport
        && undisturbed
        && prompt.armed_at.is_some_and(|armed| event.received_at > armed)
}

fn route_without_prompt(context: &RoutingContext<'_>, event: &InboundEvent) -> Route {
    if reaction_target(context, event) != ReactionTarget::NotFound {
        return Route::Skip(NoReplyReason::Reaction);
    }
    if context.over_limit {
        return Route::RateLimited;
    }
    let reply = parse_confirmation_reply(&event.body, None, context.languages);
    if reply != ConfirmationReply::Unrelated
        && context.user.rights.role == UserRole::Admin
        && was_asked_for_code(context)
    {
        return Route::ListApprovals;
    }
    if context
        .first_request
        .zip(last_outbound_body(context))
        .is_some_and(|(kept, text)| kept.is_offered_in(text))
    {
        match reply {
            ConfirmationReply::Yes => return Route::AcceptOffer,
            ConfirmationReply::No => return Route::DeclineOffer,
            ConfirmationReply::UnclearYes(_) | ConfirmationReply::Unrelated => {}
        }
    }
    // A button belongs to one prompt, regardless of later messages.
    let is_button = event.origin == MessageOrigin::Button;
    if context.ended_prompt.is_some_and(|ended| is_button || ended.is_last_message) {
        match reply {
            ConfirmationReply::Yes | ConfirmationReply::No => return Route::LateAnswer,
            ConfirmationReply::UnclearYes(_) | ConfirmationReply::Unrelated => {}
        }
    }
    route_plain_message(context, event)
}

/// Returns the recent message that the message is a reaction to.
pub fn reaction_target(context: &RoutingContext<'_>, event: &InboundEvent) -> ReactionTarget {
    reaction::parse_reaction(&event.body).map_or(ReactionTarget::NotFound, |reaction| {
        reaction::find_reaction_target(&reaction, context.recent.iter().map(|recent| recent.body.as_str()))
    })
}

/// Returns whether the model has to decide if a message needs an answer, because its words do not show it.
pub fn needs_triage(context: &RoutingContext<'_>, event: &InboundEvent) -> bool {
    context.triage_level == TriageLevel::Ai
        && may_stay_unanswered(context)
        && triage::triage_hint(&event.body) == TriageHint::None
}

/// Returns whether our last message asks an admin for an answer with a code.
fn was_asked_for_code(context: &RoutingContext<'_>) -> bool {
    last_outbound_body(context).is_some_and(|text| text.contains("eply APPROVE "))
}

/// Returns the last of our messages that the user's message may answer.
fn last_outbound_body<'a>(context: &RoutingContext<'a>) -> Option<&'a str> {
    let is_ours = |recent: &&RecentMessage| matches!(recent.message, MessageRef::Outbound(_));
    let ours = context.recent.iter().filter(is_ours).find(|recent| !recent.asks_nothing);
    ours.map(|recent| recent.body.as_str())
}

/// Returns whether nothing is open: we asked nothing, and the conversation holds more than a greeting.
fn may_stay_unanswered(context: &RoutingContext<'_>) -> bool {
    let offers = |line: &str| line.starts_with("Reply ") && line != message_format::MORE_OFFER;
    let asked = last_outbound_body(context)
        .is_some_and(|text| message_format::asks_question(text) || text.lines().any(offers));
    context.open_prompt.is_none() && !context.is_first && !asked
}

fn route_plain_message(context: &RoutingContext<'_>, event: &InboundEvent) -> Route {
    if context.over_limit {
        return Route::RateLimited;
    }
    if context.user.rights.role == UserRole::Admin
        && admin_commands::parse_admin_command(&event.body).is_some()
    {
        return Route::AdminCommand;
    }
    let small_talk = triage::triage_hint(&event.body) == TriageHint::SmallTalk;
    if small_talk && context.triage_level != TriageLevel::Off && may_stay_unanswered(context) {
        return Route::Skip(NoReplyReason::SmallTalk);
    }
    match keyword_grammar::parse_command(&event.body) {
        Some(TextCommand::ClearConversation) => Route::ClearConversation,
        Some(TextCommand::ForgetAll) => Route::ForgetAll,
        Some(TextCommand::ListFacts) => Route::ListFacts,
        Some(TextCommand::ForgetFact(number)) => Route::ForgetFact(number),
        Some(TextCommand::Commands) => Route::Commands,
        Some(TextCommand::More) => Route::More,
        Some(TextCommand::SetNotifications(preference)) => Route::SetNotifications(preference),
        Some(TextCommand::Status | TextCommand::Upcoming) => Route::Turn(Responder::Keyword),
        Some(TextCommand::Number(_)) if context.last_list == LastListSource::Code => {
            Route::Turn(Responder::Keyword)
        }
        Some(TextCommand::Number(_)) | None => Route::Turn(Responder::Model),
    }
}

#[cfg(test)]
mod tests {
    use super::super::inbound_message::MessageMedia;
    use super::*;
    use crate::conversation::transcript::{Address, EventId, PhoneNumber, UserId, UserRights, UserRole};

    fn second(n: i64) -> Timestamp {
        Timestamp::from_second(n).unwrap()
    }

    fn ann() -> User {
        User {
            id: UserId(1),
            phone: PhoneNumber::parse("+15550100002").unwrap(),
            name: None,
            status: UserStatus::Active,
            rights: UserRights { role: UserRole::Member, add: true, delete: true, four_k: false },
            opted_out: false,
            test: false,
        }
    }

    fn text(body: &str) -> InboundEvent {
        InboundEvent {
            id: EventId(1),
            channel: ChannelKind::Twilio,
            to: Address::new("+15550100000"),
            body: body.into(),
            media: Vec::new(),
            via: MessageSource::Webhook,
            authority: FieldAuthority::Certain,
            carrier_word: None,
            sent_at: second(100),
            received_at: second(100),
            triage: TriageDecision::Answer,
            origin: MessageOrigin::Sender,
        }
    }

    fn open() -> OpenPrompt {
        OpenPrompt {
            code: None,
            repeats: 0,
            armed_at: Some(second(50)),
            was_followed: false,
            denied_since: false,
            transport: MessageTransport::Carrier,
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
            languages: &[],
            is_first: false,
            over_limit: false,
            triage_level: TriageLevel::Heuristic,
            resumed_at: None,
            first_request: None,
        }
    }

    #[track_caller]
    fn check(user: &User, question: Option<&OpenPrompt>, event: &InboundEvent, expected: Route) {
        let context = RoutingContext { open_prompt: question, ..routing_context(user) };
        assert_eq!(route_message(&context, event), expected, "{}", event.body);
    }

    #[test]
    fn message_without_response_is_remembered_whatever_its_text() {
        for body in ["yes", "no", "cancel", "/clear", "add dune", "thanks"] {
            let event = InboundEvent {
                triage: TriageDecision::NoAnswer,
                channel: ChannelKind::Console,
                ..text(body)
            };
            check(&ann(), Some(&open()), &event, Route::StoreOnly);
            check(&ann(), None, &event, Route::StoreOnly);
        }
        let blocked = User { status: UserStatus::Blocked, ..ann() };
        let event = InboundEvent { triage: TriageDecision::NoAnswer, ..text("hello") };
        check(&blocked, None, &event, Route::Skip(NoReplyReason::Blocked));
    }

    #[test]
    fn opt_out_words_are_only_a_no_in_the_terminal() {
        for status in [UserStatus::Active, UserStatus::Pending, UserStatus::Blocked] {
            check(&User { status, ..ann() }, Some(&open()), &text("STOP"), Route::OptOut);
        }
        let local = InboundEvent { channel: ChannelKind::Local, ..text("cancel") };
        check(&ann(), Some(&open()), &local, Route::Deny);
        let help = InboundEvent { channel: ChannelKind::Local, ..text("help") };
        check(&ann(), None, &help, Route::Commands);
    }

    #[test]
    fn newcomers_join_and_blocked_or_opted_out_users_are_only_stored() {
        let stranger = User { status: UserStatus::Pending, ..ann() };
        for body in ["add dune", "yes", "commands", "/clear", "approve 4821"] {
            check(&stranger, None, &text(body), Route::Newcomer);
        }
        check(&stranger, None, &text("START"), Route::OptIn);
        check(&stranger, None, &text("HELP"), Route::Skip(NoReplyReason::CarrierHelp));
        let gone = User { opted_out: true, ..stranger };
        check(&gone, None, &text("add dune"), Route::Skip(NoReplyReason::OptedOut));
        check(
            &User { status: UserStatus::Blocked, ..ann() },
            None,
            &text("add dune"),
            Route::Skip(NoReplyReason::Blocked),
        );
        let gone = User { opted_out: true, ..ann() };
        check(&gone, None, &text("add dune"), Route::Skip(NoReplyReason::OptedOut));
        check(&gone, None, &text("START"), Route::OptIn);
        check(&gone, None, &text("yes please"), Route::Skip(NoReplyReason::OptedOut));
        let lifted = ["START", "unstop", "Yes", "yes please", "hi"].map(|body| lifts_opt_out(&text(body)));
        assert_eq!(lifted, [true, true, true, false, false]);
        check(&ann(), None, &text("HELP"), Route::Skip(NoReplyReason::CarrierHelp));
    }

    #[test]
    fn yes_counts_only_if_it_can_answer_the_prompt() {
        check(&ann(), Some(&open()), &text("Yes!"), Route::Confirm);
        let unsent = OpenPrompt { armed_at: None, ..open() };
        let early = OpenPrompt { armed_at: Some(second(100)), ..open() };
        let disturbed = OpenPrompt { was_followed: true, ..open() };
        let elsewhere = OpenPrompt { transport: MessageTransport::Console, ..open() };
        for question in [unsent, early, disturbed, elsewhere] {
            check(&ann(), Some(&question), &text("yes"), Route::RepeatPrompt);
        }
        for via in [MessageSource::Recovery, MessageSource::Fallback] {
            check(&ann(), Some(&open()), &InboundEvent { via, ..text("yes") }, Route::RepeatPrompt);
        }
        check(&ann(), Some(&OpenPrompt { denied_since: true, ..open() }), &text("yes"), Route::Deny);
        let disturbed = OpenPrompt { was_followed: true, ..open() };
        let button = InboundEvent { origin: MessageOrigin::Button, via: MessageSource::Local, ..text("yes") };
        check(&ann(), Some(&disturbed), &button, Route::Confirm);
    }

    #[test]
    fn ambiguous_messages_act_only_after_verification() {
        let (ann, question) = (ann(), open());
        let admin = User { rights: UserRights { role: UserRole::Admin, ..ann.rights }, ..ann.clone() };
        let asked = RoutingContext { open_prompt: Some(&question), ..routing_context(&ann) };
        let cases = [
            (asked, "yes", Route::Confirm, Route::RepeatPrompt),
            (routing_context(&admin), "approve 4821", Route::AdminCommand, Route::Unverified),
            (routing_context(&ann), "STOP", Route::OptOut, Route::Skip(NoReplyReason::Unverified)),
            (routing_context(&ann), "START", Route::OptIn, Route::Skip(NoReplyReason::Unverified)),
            (routing_context(&ann), "forget all", Route::ForgetAll, Route::Unverified),
        ];
        for (context, body, verified, unverified) in cases {
            let with = |authority| InboundEvent { authority, ..text(body) };
            assert!(would_act(&context, &with(FieldAuthority::Ambiguous)), "{body}");
            assert!(!would_act(&context, &with(FieldAuthority::Unverified)), "{body}");
            assert_eq!(route_message(&context, &with(FieldAuthority::Verified)), verified, "{body}");
            for authority in [FieldAuthority::Ambiguous, FieldAuthority::Unverified] {
                assert_eq!(route_message(&context, &with(authority)), unverified, "{body}");
            }
        }
        let addition = InboundEvent { authority: FieldAuthority::Ambiguous, ..text("add Toy Story") };
        assert!(!would_act(&asked, &addition));
    }

    #[test]
    fn unclear_reply_repeats_the_prompt_once_and_then_closes_it() {
        for body in ["ok thanks", "\u{1f44d}", "Liked \u{201c}Delete Dune?\u{201d}"] {
            check(&ann(), Some(&open()), &text(body), Route::RepeatPrompt);
            check(&ann(), Some(&OpenPrompt { repeats: 1, ..open() }), &text(body), Route::ClosePrompt);
        }
    }

    #[test]
    fn only_a_yes_with_another_code_is_a_wrong_code() {
        let coded = OpenPrompt { code: ConfirmationCode::parse("4821"), ..open() };
        for (body, expected) in [
            ("yes 4821", Route::Confirm),
            ("yes 4822", Route::WrongCode),
            ("48", Route::WrongCode),
            ("yes", Route::RepeatPrompt),
            ("no", Route::Deny),
        ] {
            check(&ann(), Some(&coded), &text(body), expected);
        }
        check(&ann(), Some(&open()), &text("yes 4822"), Route::Turn(Responder::Model));
    }

    #[test]
    fn reference_to_the_open_prompt_repeats_it_and_is_no_yes() {
        for body in ["delete it", "Get rid of it!", "remove them", "delete the movie", "delete all"] {
            check(&ann(), Some(&open()), &text(body), Route::RepeatPrompt);
            check(&ann(), Some(&OpenPrompt { repeats: 1, ..open() }), &text(body), Route::ClosePrompt);
            check(&ann(), None, &text(body), Route::Turn(Responder::Model));
        }
        for body in ["delete the show", "delete It (2017)", "delete the movie it", "add it"] {
            check(&ann(), Some(&open()), &text(body), Route::Turn(Responder::Model));
        }
    }

    #[test]
    fn other_messages_go_to_the_model() {
        check(&ann(), Some(&open()), &text("yes but keep season 1"), Route::Turn(Responder::Model));
        check(&ann(), None, &text("whats downloading?"), Route::Turn(Responder::Model));
        check(&ann(), None, &text("status"), Route::Turn(Responder::Keyword));
        check(&ann(), None, &text("/clear"), Route::ClearConversation);
        check(&ann(), Some(&open()), &text("what do you know?"), Route::ListFacts);
        check(&ann(), Some(&open()), &text("forget 3"), Route::ForgetFact(3));
        check(&ann(), None, &text("2"), Route::Turn(Responder::Model));
        let ann = ann();
        let listed = RoutingContext { last_list: LastListSource::Code, ..routing_context(&ann) };
        assert_eq!(route_message(&listed, &text("2")), Route::Turn(Responder::Keyword));
    }

    #[test]
    fn media_without_text_is_neither_an_answer_nor_for_the_model() {
        let media =
            vec![MessageMedia { url: "https://x.example/1".into(), content_type: "image/jpeg".into() }];
        let picture = InboundEvent { media, ..text(" ") };
        check(&ann(), None, &picture, Route::MediaOnly);
        check(&ann(), Some(&open()), &picture, Route::RepeatPrompt);
        check(
            &ann(),
            None,
            &InboundEvent { body: "status".into(), ..picture },
            Route::Turn(Responder::Keyword),
        );
        check(&ann(), None, &text(" "), Route::Skip(NoReplyReason::Empty));
    }

    #[test]
    fn carrier_classification_of_a_message_counts() {
        let word = |carrier_word| InboundEvent { carrier_word: Some(carrier_word), ..text("arret") };
        check(&ann(), Some(&open()), &word(OptWord::Out), Route::OptOut);
        check(&ann(), None, &word(OptWord::In), Route::OptIn);
        check(&ann(), None, &word(OptWord::Help), Route::Skip(NoReplyReason::CarrierHelp));
    }

    #[test]
    fn only_admins_can_use_admin_commands() {
        let admin = User { rights: UserRights { role: UserRole::Admin, ..ann().rights }, ..ann() };
        for body in ["approve 4821", "users", "pause", "quota Sam +5"] {
            check(&admin, None, &text(body), Route::AdminCommand);
            check(&ann(), None, &text(body), Route::Turn(Responder::Model));
        }
    }

    #[test]
    fn small_talk_without_an_open_prompt_gets_no_reply() {
        let ann = ann();
        let recent_message = |body: &str| {
            [RecentMessage {
                message: MessageRef::Outbound(OutboxId(1)),
                body: body.to_owned(),
                asks_nothing: false,
            }]
        };
        let (informed, asked, listed) = (
            recent_message("Added Dune (2021)."),
            recent_message("Which one?\n1. Dune\n2. Dune"),
            recent_message("1. A\n2. B\nReply 1 or 2."),
        );
        let quiet = RoutingContext { recent: &informed, ..routing_context(&ann) };
        for body in ["thanks!", "\u{1f44d}", "ok cool"] {
            assert_eq!(route_message(&quiet, &text(body)), Route::Skip(NoReplyReason::SmallTalk), "{body}");
        }
        let answered = [
            RoutingContext { triage_level: TriageLevel::Off, ..quiet },
            RoutingContext { is_first: true, ..quiet },
            RoutingContext { recent: &asked, ..quiet },
            RoutingContext { recent: &listed, ..quiet },
        ];
        for context in answered {
            assert_eq!(route_message(&context, &text("thanks!")), Route::Turn(Responder::Model));
        }
        assert!(!needs_triage(&quiet, &text("we loved it")));
        let ai = RoutingContext { triage_level: TriageLevel::Ai, ..quiet };
        assert!(needs_triage(&ai, &text("we loved it")));
        assert!(!needs_triage(&ai, &text("add dune")));
        assert!(!needs_triage(&RoutingContext { is_first: true, ..ai }, &text("we loved it")));
    }

    #[test]
    fn only_prompt_answers_are_processed_over_the_rate_limit() {
        let ann = ann();
        let fast = RoutingContext { over_limit: true, ..routing_context(&ann) };
        for body in ["add dune", "status", "/clear", "thanks"] {
            assert_eq!(route_message(&fast, &text(body)), Route::RateLimited, "{body}");
        }
        assert_eq!(route_message(&fast, &text("STOP")), Route::OptOut);
        let question = open();
        let asked = RoutingContext { open_prompt: Some(&question), ..fast };
        assert_eq!(route_message(&asked, &text("no")), Route::Deny);
        assert_eq!(route_message(&asked, &text("yes")), Route::Confirm);
        assert_eq!(route_message(&asked, &text("add dune")), Route::RateLimited);
    }

    #[test]
    fn late_yes_is_answered_by_code_only_right_after_its_prompt() {
        let ann = ann();
        let ended = EndedPrompt { answer: "Expired.".into(), is_last_message: true };
        let late = RoutingContext { ended_prompt: Some(&ended), ..routing_context(&ann) };
        assert_eq!(route_message(&late, &text("yes")), Route::LateAnswer);
        assert_eq!(route_message(&late, &text("add dune")), Route::Turn(Responder::Model));
        let asked = EndedPrompt { is_last_message: false, ..ended };
        let newer = RoutingContext { ended_prompt: Some(&asked), ..routing_context(&ann) };
        assert_eq!(route_message(&newer, &text("yes")), Route::Turn(Responder::Model));
    }
}
