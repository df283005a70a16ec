//! Who may run what. The only place that can build a [`Cleared`] call, and only a `Cleared` call runs; a destructive
//! one is cleared only item by item, from a deletion that a yes has claimed.

use serde_json::json;

use super::Uses;
use crate::conversation::consent::Language;
use crate::conversation::transcript::{
    Arguments, CallFailure, FrozenItem, MediaRef, Rights, Status, Tier, ToolCall, ToolSpec, User,
};
use crate::conversation::words;
use crate::store::pending::{Claimed, Item};

/// A call that may run. Its field is private to this module: there is no other way to make one.
#[derive(Debug, Clone)]
pub struct Cleared(Input);

#[derive(Debug, Clone)]
enum Input {
    Arguments(Arguments),
    Item(FrozenItem),
}

impl Cleared {
    /// The arguments of a read or a write.
    pub fn arguments(&self) -> Option<&Arguments> {
        match &self.0 {
            Input::Arguments(arguments) => Some(arguments),
            Input::Item(_) => None,
        }
    }

    /// The frozen item of a destructive call.
    pub fn item(&self) -> Option<&FrozenItem> {
        match &self.0 {
            Input::Item(item) => Some(item),
            Input::Arguments(_) => None,
        }
    }
}

/// Whether a user is offered a tool at all: the first of three times that rights are checked.
pub fn offered(tier: Tier, rights: Rights) -> bool {
    match tier {
        Tier::Read => true,
        Tier::Write => rights.may_add(),
        Tier::Destructive => rights.may_delete(),
    }
}

#[derive(Debug, Clone)]
pub enum Decision {
    Run(Cleared),
    /// Destructive: the user has to be asked.
    Ask,
    Refuse(CallFailure),
}

/// Decides on a call when it is made: the second time that rights are checked. `shown` are the ids that tool results
/// have shown to this user in this conversation.
pub fn decide(spec: &ToolSpec, call: &ToolCall, uses: &Uses, rights: Rights, shown: &[MediaRef]) -> Decision {
    if !offered(spec.tier, rights) {
        return Decision::Refuse(not_permitted(spec.tier));
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

/// The right to delete was taken away since the question was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotPermitted;

/// Clears one item of a claimed deletion: the third time that rights are checked.
pub fn clear_item(claimed: &Claimed, item: &Item, user: &User) -> Result<Cleared, NotPermitted> {
    let part_of_claim = claimed.items().contains(item);
    if part_of_claim && user.status == Status::Active && user.rights.may_delete() {
        Ok(Cleared(Input::Item(item.item.clone())))
    } else {
        Err(NotPermitted)
    }
}

/// The user's words around a call to delete.
#[derive(Debug, Clone, Copy)]
pub struct Words<'a> {
    pub this_turn: &'a [String],
    pub last_three: &'a [String],
    pub languages: &'a [Language],
}

/// Whether the user asked for a deletion in their own words. A title's description cannot make us ask.
pub fn requested(items: &[FrozenItem], said: Words<'_>) -> Result<(), CallFailure> {
    let titles: Vec<&str> = items.iter().map(|item| item.fingerprint.title.as_str()).collect();
    let this_turn: Vec<&str> = said.this_turn.iter().map(String::as_str).collect();
    let last_three: Vec<&str> = said.last_three.iter().map(String::as_str).collect();
    if words::asked_to_delete(&this_turn, &last_three, &titles, said.languages) {
        return Ok(());
    }
    Err(refusal("not_requested", "the user did not ask for a deletion", None))
}

const MAY_NOT: &str = "this user may not do that; an admin can";

fn not_in_four_k() -> CallFailure {
    refusal("not_permitted", MAY_NOT, Some("You can't add titles in 4K. Please ask an admin."))
}

fn not_permitted(tier: Tier) -> CallFailure {
    let for_user = match tier {
        Tier::Destructive => "You can't delete titles. Please ask an admin.",
        Tier::Read | Tier::Write => "You can't add titles here. Please ask an admin.",
    };
    refusal("not_permitted", MAY_NOT, Some(for_user))
}

fn unknown_id(unknown: &MediaRef) -> CallFailure {
    let hint = match unknown {
        MediaRef::Tmdb(_) | MediaRef::Tvdb(_) => "call search_media first and use an id it shows",
        MediaRef::Item { .. } => "call find_in_library first and use an id it shows",
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
