//! Permission to run tools. Only this module can build a [`Cleared`] call, and only a `Cleared` call runs. A
//! destructive call is cleared only item by item, from a deletion that the user has confirmed and that has been
//! claimed.

use serde_json::json;

use super::{Uses, World};
use crate::arr::Profile;
use crate::conversation::claimed_deletion::{ClaimedDeletion, DeletionItem};
use crate::conversation::consent::Language;
use crate::conversation::frozen::{Extent, FrozenItem};
use crate::conversation::rate::Room;
use crate::conversation::reference;
use crate::conversation::transcript::{
    Added, Arguments, Audience, CallFailure, Counted, MediaRef, Rights, Status, Tier, ToolCall, ToolSpec,
    User,
};
use crate::conversation::words;

/// Call that may run. Its field is private to this module, so there is no other way to create one.
#[derive(Debug, Clone)]
pub struct Cleared(Input);

#[derive(Debug, Clone)]
enum Input {
    Arguments(Arguments),
    Item(FrozenItem),
}

impl Cleared {
    /// Arguments of a read or a write.
    pub fn arguments(&self) -> Option<&Arguments> {
        match &self.0 {
            Input::Arguments(arguments) => Some(arguments),
            Input::Item(_) => None,
        }
    }

    /// Frozen item of a destructive call.
    pub fn item(&self) -> Option<&FrozenItem> {
        match &self.0 {
            Input::Item(item) => Some(item),
            Input::Arguments(_) => None,
        }
    }
}

/// True if a tool is offered to the user at all. This is the first of three checks of the rights.
pub fn offered(audience: Audience, rights: Rights) -> bool {
    match audience {
        Audience::Everyone => true,
        Audience::Adders => rights.may_add(),
        Audience::Deleters => rights.may_delete(),
        Audience::NotDeleters => !rights.may_delete(),
    }
}

#[derive(Debug, Clone)]
pub enum Decision {
    Run(Cleared),
    /// The call is destructive, so the user must be asked.
    Ask,
    Refuse(CallFailure),
}

/// Decides on a call when it is made. This is the second check of the rights. `shown` holds the ids that tool results
/// have shown to this user in this conversation.
pub fn decide(spec: &ToolSpec, call: &ToolCall, uses: &Uses, rights: Rights, shown: &[MediaRef]) -> Decision {
    // A tool that deletes is never available to everyone, regardless of the audience in its specification.
    let may = offered(spec.audience, rights) && (spec.tier != Tier::Destructive || rights.may_delete());
    if !may {
        return Decision::Refuse(not_permitted(spec.audience));
    }
    if uses.four_k && !rights.may_four_k() {
        return Decision::Refuse(not_in_four_k());
    }
    if let Some(unknown) = uses.refs.iter().find(|wanted| !shown.contains(wanted)) {
        return Decision::Refuse(unknown_id(unknown));
    }
    match spec.tier {
        Tier::Read | Tier::Write => Decision::Run(Cleared(Input::Arguments(call.arguments.clone()))),
        Tier::Destructive => Decision::Ask,
    }
}

/// Checks that a user may have the quality profile that a call or a fact selects. A profile that allows 4K requires the
/// 4K right. The default of the library is the choice of its operator, and requires no right.
pub fn may_choose(profile: &Profile, rights: Rights) -> Result<(), CallFailure> {
    if profile.four_k && !rights.may_four_k() {
        let hint = "this quality allows 4K, which this user may not have; leave it out or name another one";
        return Err(refusal("not_permitted", hint, Some(NOT_IN_FOUR_K)));
    }
    Ok(())
}

/// The right to delete was revoked after the confirmation prompt was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotPermitted;

/// Clears one item of a claimed deletion: the third time that rights are checked.
pub fn clear_item(
    claimed: &ClaimedDeletion,
    item: &DeletionItem,
    user: &User,
) -> Result<Cleared, NotPermitted> {
    let part_of_claim = claimed.items().contains(item);
    if part_of_claim && user.status == Status::Active && user.rights.may_delete() {
        Ok(Cleared(Input::Item(item.item.clone())))
    } else {
        Err(NotPermitted)
    }
}

/// Messages of the user that surround a call to delete.
#[derive(Debug, Clone, Copy)]
pub struct Words<'a> {
    pub this_turn: &'a [String],
    pub last_three: &'a [String],
    pub languages: &'a [Language],
}

impl<'a> Words<'a> {
    pub fn of(world: &'a World) -> Self {
        Self { this_turn: &world.said, last_three: &world.last_three, languages: &world.languages }
    }
}

/// Checks that the user asked for a deletion in their own words. The description of a title cannot trigger a
/// confirmation prompt.
pub fn requested(items: &[FrozenItem], said: Words<'_>) -> Result<(), CallFailure> {
    let titles: Vec<&str> = items.iter().map(|item| item.fingerprint.title.as_str()).collect();
    let this_turn: Vec<&str> = said.this_turn.iter().map(String::as_str).collect();
    let last_three: Vec<&str> = said.last_three.iter().map(String::as_str).collect();
    let is_named = |title: &&str| last_three.iter().any(|text| reference::names_title(text, title));
    if titles.iter().any(|title| reference::is_reference(title) && !is_named(title)) {
        return Err(unclear_title());
    }
    let another = |item: &FrozenItem| matches!(item.extent, Extent::Copy { .. } | Extent::Download(_));
    if words::asked_to_delete(&this_turn, &last_three, &titles, said.languages)
        || (items.iter().all(another) && words::asked_for_another(&this_turn))
    {
        return Ok(());
    }
    Err(refusal("not_requested", "the user did not ask for a deletion", None))
}

/// Refusal of an ambiguous title. "delete it" may mean any title, so it does not request the deletion of the movie
/// "It".
fn unclear_title() -> CallFailure {
    let hint = "the title is a word such as it: ask which one they mean, by name and year";
    refusal("unclear_title", hint, Some("Which title do you mean? Please text its name and year."))
}

const MAY_NOT: &str = "this user may not do that; an admin can";
const NOT_IN_FOUR_K: &str = "You can't add titles in 4K. Please ask an admin.";
const MAY_ASK: &str = "this user may not delete; request_removal asks the admins";

fn not_in_four_k() -> CallFailure {
    refusal("not_permitted", MAY_NOT, Some(NOT_IN_FOUR_K))
}

fn not_permitted(audience: Audience) -> CallFailure {
    let (hint, for_user) = match audience {
        Audience::Deleters => (MAY_ASK, "You can't delete titles. Please ask an admin."),
        Audience::NotDeleters => {
            ("this user may delete: call remove_media", "You may delete titles yourself.")
        }
        Audience::Adders | Audience::Everyone => (MAY_NOT, "You can't add titles here. Please ask an admin."),
    };
    refusal("not_permitted", hint, Some(for_user))
}

/// Checks that the quota has room for an addition. The check is made when the amount is known, immediately before the
/// addition.
pub fn within_quota(world: &World, wanted: Added) -> Result<(), CallFailure> {
    let (standing, what) = match wanted.what {
        Counted::Movies => (&world.allowance.movies, "movie"),
        Counted::Seasons => (&world.allowance.seasons, "season"),
    };
    let Some(rate) = standing.rate else { return Ok(()) };
    let limit = rate.of(what);
    let whom = &world.allowance.whom_to_ask;
    let (free_again, sentence) = match rate.room(&standing.counted, wanted.amount, world.now) {
        Room::Free => return Ok(()),
        Room::From(at) => {
            let at = at.to_zoned(world.zone.clone()).strftime("%a %b %-d at %H:%M").to_string();
            let sentence = format!(
                "That is over your limit of {limit}. There is room again on {at}. Ask {whom} if you need more."
            );
            (Some(at), sentence)
        }
        Room::Never => (None, format!("That is over your limit of {limit}. Ask {whom} if you need more.")),
    };
    Err(CallFailure {
        code: "quota".to_owned(),
        for_model: json!({ "error": "quota", "limit": limit, "free_again": free_again, "ask": whom,
            "hint": "not added; tell the user the limit, when there is room again and whom to ask" }),
        for_user: Some(sentence),
    })
}

fn unknown_id(unknown: &MediaRef) -> CallFailure {
    let hint = match unknown {
        MediaRef::Tmdb(_) | MediaRef::Tvdb(_) => "call search_media first and use an id it shows",
        MediaRef::Item { .. } => "call find_in_library first and use an id it shows",
        MediaRef::Download { .. } => "call check_status first and use an id it shows",
    };
    refusal("unknown_id", hint, None)
}

fn refusal(code: &str, hint: &str, for_user: Option<&str>) -> CallFailure {
    CallFailure {
        code: code.to_owned(),
        for_model: json!({ "error": code, "hint": hint }),
        for_user: for_user.map(str::to_owned),
    }
}
