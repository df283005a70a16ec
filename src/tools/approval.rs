//! Permission checks for tool calls. Only this module can build an [`ApprovedCall`], and only an `ApprovedCall` runs.
//! Destructive calls are approved item by item, after the user has confirmed the deletion and it has been claimed.

use serde_json::json;

use super::own_space::space_limit::check_space;
use super::remove_media::REMOVE_MEDIA;
use super::{CallReferences, ToolContext};
use crate::arr::QualityProfile;
use crate::conversation::agents::{AgentRequest, MAX_UNCONFIRMED_QUESTIONS};
use crate::conversation::deletion::claimed_deletion::{ClaimedDeletion, DeletionItem};
use crate::conversation::deletion::target::{DeletionScope, DeletionTarget};
use crate::conversation::grammar::confirmation_reply::ReplyLanguage;
use crate::conversation::grammar::keyword_grammar;
use crate::conversation::grammar::make_room_step::{MakeRoomStep, parse_make_room_step};
use crate::conversation::grammar::title_reference;
use crate::conversation::making_room::ProposedTitle;
use crate::conversation::rate_limit::RateCapacity;
use crate::conversation::routing::rooms::Audience;
use crate::conversation::transcript::{
    CallFailure, EffectLevel, FailureCode, MediaRef, QuotaKind, QuotaUse, ToolArguments, ToolAudience,
    ToolCall, ToolSpec, User, UserRights, UserStatus,
};

/// Call that may run. The field is private to this module, so there is no other way to create an approved call.
#[derive(Debug, Clone)]
pub struct ApprovedCall(CallInput);

#[derive(Debug, Clone)]
enum CallInput {
    Arguments(ToolArguments),
    Item(DeletionTarget),
}

impl ApprovedCall {
    /// Returns the arguments of a read or a write.
    pub fn arguments(&self) -> Option<&ToolArguments> {
        match &self.0 {
            CallInput::Arguments(arguments) => Some(arguments),
            CallInput::Item(_) => None,
        }
    }

    /// Returns the frozen item of a destructive call.
    pub fn item(&self) -> Option<&DeletionTarget> {
        match &self.0 {
            CallInput::Item(item) => Some(item),
            CallInput::Arguments(_) => None,
        }
    }
}

/// Returns whether a tool is offered to the user at all. This is the first of three checks of the rights.
pub fn is_offered(tool: ToolAudience, rights: UserRights, audience: Audience) -> bool {
    match tool {
        ToolAudience::Everyone => true,
        ToolAudience::CanAdd => rights.may_add(),
        ToolAudience::CanDelete | ToolAudience::DeletionCommand => rights.may_delete(),
        // The tool asks the admins, in the name of a person who has not written.
        ToolAudience::CannotDelete => audience != Audience::Agent && !rights.may_delete(),
        ToolAudience::Chat => audience != Audience::Agent,
        ToolAudience::Agent => audience == Audience::Agent,
        ToolAudience::PrivateChat => audience == Audience::Author,
        ToolAudience::Room => audience == Audience::Room,
        ToolAudience::AgeLimited => {
            audience == Audience::Author && rights.may_add() && !rights.rating_caps().is_unlimited()
        }
    }
}

#[derive(Debug, Clone)]
pub enum CallDecision {
    Run(ApprovedCall),
    /// Destructive call, for which the user must confirm first.
    Ask,
    Refuse(CallFailure),
}

/// Decides on a call when the model makes it. This is the second check of the rights. `shown` holds the ids that tool
/// results have shown to this user in this conversation.
pub fn decide_call(
    spec: &ToolSpec,
    call: &ToolCall,
    references: &CallReferences,
    (rights, audience): (UserRights, Audience),
    shown: &[MediaRef],
) -> CallDecision {
    // A tool that deletes is never available to everyone, regardless of the audience in its specification.
    let is_permitted = is_offered(spec.audience, rights, audience)
        && (spec.effect_level != EffectLevel::Destructive || rights.may_delete());
    if !is_permitted {
        return CallDecision::Refuse(not_permitted(spec));
    }
    if references.four_k && !rights.may_use_four_k() {
        return CallDecision::Refuse(no_four_k_right());
    }
    if let Some(unknown) = references.refs.iter().find(|id| !shown.contains(id)) {
        return CallDecision::Refuse(unknown_id(unknown, shown));
    }
    match spec.effect_level {
        EffectLevel::Read | EffectLevel::Write => {
            CallDecision::Run(ApprovedCall(CallInput::Arguments(call.arguments.clone())))
        }
        EffectLevel::Destructive => CallDecision::Ask,
    }
}

/// Checks that the user may use the quality profile that a call or a fact selects. A profile that allows 4K requires
/// the 4K right. The default profile of the library requires no right.
pub fn check_profile_right(profile: &QualityProfile, rights: UserRights) -> Result<(), CallFailure> {
    if profile.four_k && !rights.may_use_four_k() {
        let hint = "this quality allows 4K, which this user may not have; leave it out or name another one";
        return Err(permission_failure(FailureCode::NotPermitted, hint, Some(NO_FOUR_K_TEXT)));
    }
    Ok(())
}

/// Error if the user lost the right to delete after the confirmation prompt was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotPermitted;

/// Approves one item of a claimed deletion. This is the third check of the rights.
pub fn approve_item(
    claimed: &ClaimedDeletion,
    item: &DeletionItem,
    user: &User,
) -> Result<ApprovedCall, NotPermitted> {
    let is_in_claim = claimed.items().contains(item);
    if is_in_claim && user.status == UserStatus::Active && user.rights.may_delete() {
        Ok(ApprovedCall(CallInput::Item(item.target.clone())))
    } else {
        Err(NotPermitted)
    }
}

/// Source of a deletion: who asked for it, and how.
#[derive(Debug, Clone, Copy)]
pub enum DeletionSource<'a> {
    /// The user, with recent messages.
    User(RecentMessages<'a>),
    /// An agent that acts for the user, who has to confirm it with a code.
    Agent(AgentRequest),
}

impl<'a> DeletionSource<'a> {
    pub fn from_context(context: &'a ToolContext) -> Self {
        match context.agent_request {
            Some(request) => Self::Agent(request),
            None => Self::User(RecentMessages::from_context(context)),
        }
    }
}

/// Recent messages of the user, in which a deletion must have been requested.
#[derive(Debug, Clone, Copy)]
pub struct RecentMessages<'a> {
    turn_messages: &'a [String],
    last_three_messages: &'a [String],
    languages: &'a [ReplyLanguage],
    /// Titles that the user may decide on in a review.
    under_review: &'a [ProposedTitle],
}

impl<'a> RecentMessages<'a> {
    fn from_context(context: &'a ToolContext) -> Self {
        Self {
            turn_messages: &context.turn_messages,
            last_three_messages: &context.last_three_messages,
            languages: &context.languages,
            under_review: &context.space.under_review,
        }
    }

    /// Returns whether the user asked with the command alone for a decision on titles, of which these are some.
    fn review(self, items: &[DeletionTarget]) -> bool {
        let is_review = |text: &String| parse_make_room_step(text) == Some(MakeRoomStep::Review);
        let is_proposed =
            |item: &DeletionTarget| self.under_review.iter().any(|title| title.is_deleted_by(item));
        !self.turn_messages.is_empty()
            && self.turn_messages.iter().all(is_review)
            && items.iter().all(is_proposed)
    }
}

/// Checks that the user asked for a deletion in a recent message, so that text in tool results cannot cause a
/// confirmation prompt, or that an agent may ask the user now.
pub fn check_deletion_requested(
    items: &[DeletionTarget],
    source: DeletionSource<'_>,
) -> Result<(), CallFailure> {
    match source {
        DeletionSource::User(messages) => check_requested_in_words(items, messages),
        DeletionSource::Agent(request) => check_agent_may_ask(request),
    }
}

fn check_agent_may_ask(request: AgentRequest) -> Result<(), CallFailure> {
    if request.unconfirmed_questions >= MAX_UNCONFIRMED_QUESTIONS {
        let hint =
            "not asked: agents have asked this person too often today without a yes; the person can text it";
        return Err(permission_failure(FailureCode::Limit, hint, None));
    }
    match request.quiet_until {
        None => Ok(()),
        Some(until) => {
            let hint = "not asked: the person has quiet hours; call again after them";
            let details = json!({ "hint": hint, "quiet_until": until.to_string() });
            Err(CallFailure::new(FailureCode::NotRun, details, None))
        }
    }
}

fn check_requested_in_words(
    items: &[DeletionTarget],
    messages: RecentMessages<'_>,
) -> Result<(), CallFailure> {
    if messages.review(items) {
        return Ok(());
    }
    let titles: Vec<&str> = items.iter().map(|item| item.fingerprint.title.as_str()).collect();
    let turn_messages: Vec<&str> = messages.turn_messages.iter().map(String::as_str).collect();
    let last_three_messages: Vec<&str> = messages.last_three_messages.iter().map(String::as_str).collect();
    let is_named =
        |title: &&str| last_three_messages.iter().any(|text| title_reference::names_title(text, title));
    if titles.iter().any(|title| title_reference::is_reference(title) && !is_named(title)) {
        return Err(unclear_title_failure());
    }
    let may_be_replaced =
        |item: &DeletionTarget| matches!(item.scope, DeletionScope::Copy { .. } | DeletionScope::Download(_));
    if keyword_grammar::is_deletion_requested(
        &turn_messages,
        &last_three_messages,
        &titles,
        messages.languages,
    ) || (items.iter().all(may_be_replaced) && keyword_grammar::is_replacement_requested(&turn_messages))
    {
        return Ok(());
    }
    Err(permission_failure(FailureCode::NotRequested, NOT_REQUESTED_HINT, Some(NOT_REQUESTED_TEXT)))
}

/// Builds the failure for an ambiguous title. "delete it" may refer to any title, so it does not request the deletion
/// of the movie "It".
fn unclear_title_failure() -> CallFailure {
    let hint = "the title is a word such as it: ask which one they mean, by name and year";
    permission_failure(
        FailureCode::UnclearTitle,
        hint,
        Some("Which title do you mean? Please text its name and year."),
    )
}

const NOT_REQUESTED_HINT: &str = "the user's words do not ask for a deletion: if they want one, tell them to text DELETE \
    and the title, then call again";
/// Words with which a user asks for a deletion in any case.
const NOT_REQUESTED_TEXT: &str = "To delete something, text DELETE and its title.";
const NOT_PERMITTED_HINT: &str = "this user may not do that; an admin can";
const NO_FOUR_K_TEXT: &str = "You can't add titles in 4K. Please ask an admin.";
const REQUEST_REMOVAL_HINT: &str = "this user may not delete; request_removal asks the admins";

fn no_four_k_right() -> CallFailure {
    permission_failure(FailureCode::NotPermitted, NOT_PERMITTED_HINT, Some(NO_FOUR_K_TEXT))
}

/// Failure of a deletion whose prompt has a code that a room must not read.
pub fn no_private_chat() -> CallFailure {
    let hint = "this needs a code, which can only be sent to the private chat that the user has stopped";
    let text =
        "That needs a code, and I can't write to you in private. Send me START in our private chat first.";
    permission_failure(FailureCode::NotPermitted, hint, Some(text))
}

fn not_permitted(spec: &ToolSpec) -> CallFailure {
    let (hint, for_user) = match spec.audience {
        ToolAudience::CanDelete if spec.name == REMOVE_MEDIA => {
            (REQUEST_REMOVAL_HINT, "You can't delete titles. Please ask an admin.")
        }
        ToolAudience::CanDelete | ToolAudience::DeletionCommand => {
            (NOT_PERMITTED_HINT, "You can't delete files. Please ask an admin.")
        }
        ToolAudience::CannotDelete => {
            ("this user may delete: call remove_media", "You may delete titles yourself.")
        }
        ToolAudience::PrivateChat => {
            ("this works only in the private chat with the user", "Please ask me that in our private chat.")
        }
        ToolAudience::Chat => ("this works only in a chat", "Please ask me that in our chat."),
        ToolAudience::Room => ("this works only in a group", "Please ask me that in a group."),
        ToolAudience::AgeLimited => {
            ("this user has no age limit: call search_media", "You can add titles yourself.")
        }
        ToolAudience::CanAdd | ToolAudience::Everyone | ToolAudience::Agent => {
            (NOT_PERMITTED_HINT, "You can't add titles here. Please ask an admin.")
        }
    };
    permission_failure(FailureCode::NotPermitted, hint, Some(for_user))
}

/// Checks that the quota and the limit of space allow an addition. The caller checks immediately before the addition,
/// when its amount is known.
pub fn check_quota(context: &ToolContext, addition: QuotaUse) -> Result<(), CallFailure> {
    check_count(context, addition)?;
    check_space(context)
}

/// Checks that the quota allows an addition.
pub fn check_count(context: &ToolContext, addition: QuotaUse) -> Result<(), CallFailure> {
    let (usage, unit) = match addition.kind {
        QuotaKind::Movies => (&context.allowance.movies, "movie"),
        QuotaKind::Seasons => (&context.allowance.seasons, "season"),
    };
    let Some(rate) = usage.rate else { return Ok(()) };
    let limit = rate.format_limit(unit);
    let left = rate.remaining_at(&usage.additions, context.now);
    let contact = &context.allowance.contact;
    let (free_again, sentence) = match rate.capacity_at(&usage.additions, addition.amount, context.now) {
        RateCapacity::Available => return Ok(()),
        RateCapacity::AvailableAt(_) | RateCapacity::Never if context.audience == Audience::Room => {
            let hint =
                "not added: this is over the limit of the user, who can ask for it in the private chat";
            let text = "That is over your limit. Ask me in our private chat for the details.";
            return Err(permission_failure(FailureCode::Quota, hint, Some(text)));
        }
        RateCapacity::AvailableAt(at) => {
            let time = at.to_zoned(context.zone.clone()).strftime("%a %b %-d at %H:%M").to_string();
            let sentence = format!(
                "That is over your limit of {limit}. There is room again on {time}. Ask {contact} if you need more."
            );
            (Some(time), sentence)
        }
        RateCapacity::Never => {
            (None, format!("That is over your limit of {limit}. Ask {contact} if you need more."))
        }
    };
    Err(CallFailure::new(
        FailureCode::Quota,
        json!({ "limit": limit, "left": left, "free_again": free_again, "ask": contact,
            "hint": "not added; tell the user the limit, when there is room again and whom to ask" }),
        Some(sentence),
    ))
}

fn unknown_id(unknown: &MediaRef, shown: &[MediaRef]) -> CallFailure {
    if let Some(instance) = shown.iter().find_map(|other| other_instance(unknown, other)) {
        let hint = format!("this id was shown with the instance {instance}: name that instance");
        return permission_failure(FailureCode::UnknownId, &hint, None);
    }
    let hint = match unknown {
        MediaRef::Tmdb(_) | MediaRef::Tvdb(_) => "call search_media first and use a tmdb or tvdb it shows",
        MediaRef::Item { .. } => "call find_in_library first and use an id it shows",
        MediaRef::Download { .. } => "call check_status first and use a download_id it shows",
    };
    permission_failure(FailureCode::UnknownId, hint, None)
}

/// Returns the instance of `shown` if it has the same kind and id as `unknown` in another instance.
fn other_instance<'a>(unknown: &MediaRef, shown: &'a MediaRef) -> Option<&'a str> {
    match (unknown, shown) {
        (MediaRef::Item { kind, id, .. }, MediaRef::Item { instance, kind: other_kind, id: other_id }) => {
            ((kind, id) == (other_kind, other_id)).then_some(instance)
        }
        (MediaRef::Download { id, .. }, MediaRef::Download { instance, id: other_id }) => {
            (id == other_id).then_some(instance)
        }
        _ => None,
    }
}

fn permission_failure(code: FailureCode, hint: &str, for_user: Option<&str>) -> CallFailure {
    CallFailure::new(code, json!({ "hint": hint }), for_user.map(str::to_owned))
}
