//! Addresses of a user: forms that link and unlink them, and the page that merges two users.

use askama::Template;
use axum::extract::State;
use axum::response::{IntoResponse, Redirect};
use serde::Deserialize;

use super::flash::FlashMessage;
use super::format::display_name;
use super::layout::{ConsoleSection, DisplayTime, PageLayout, render_page};
use super::responses::{PageError, PageId, PageParams, PageResult, redirect_with_flash};
use super::users::{role_label, status_label};
use crate::conversation::people::naming;
use crate::conversation::transcript::{AddressId, User, UserAddress, UserId};
use crate::store::people::addresses::StoredAddress;
use crate::store::people::merge::{self, MergeOutcome, MergePreview, MergedUsers};
use crate::store::people::operator_links::{LinkOutcome, UnlinkOutcome};
use crate::web::auth::{Operator, SignedForm};
use crate::web::console_state::ConsoleState;

/// Address in the list of a user's page.
pub(super) struct AddressLine {
    pub(super) id: i64,
    pub(super) address: String,
    pub(super) opted_out: Option<DisplayTime>,
    /// True if notifications go to this address.
    pub(super) is_preferred: bool,
}

impl AddressLine {
    pub(super) fn from_stored(address: &StoredAddress, console: &ConsoleState) -> Self {
        Self {
            id: address.id.0,
            address: address.address.format_grouped(),
            opted_out: address.opted_out_at.map(|at| console.display_time(at)),
            is_preferred: address.preferred_from.is_some(),
        }
    }
}

#[derive(Debug, Clone, Deserialize)]
pub(in crate::web) struct LinkForm {
    address: String,
}

pub(in crate::web) async fn link_address(
    State(console): State<ConsoleState>,
    PageId(id): PageId,
    SignedForm(form): SignedForm<LinkForm>,
) -> PageResult {
    let path = format!("/users/{id}");
    let Some(address) = parse_entered_address(&form.address) else {
        return Ok(redirect_with_flash(&path, FlashMessage::InvalidAddress));
    };
    let outcome = console.engine.decisions.link_address(UserId(id), address).await?;
    Ok(match outcome.ok_or(PageError::NotFound)? {
        LinkOutcome::Linked => redirect_with_flash(&path, FlashMessage::AddressLinked),
        LinkOutcome::Known => redirect_with_flash(&path, FlashMessage::NothingChanged),
        LinkOutcome::Full => redirect_with_flash(&path, FlashMessage::TooManyAddresses),
        LinkOutcome::OtherUser(other) => {
            Redirect::to(&format!("/users/{id}/merge?from={other}")).into_response()
        }
    })
}

/// Parses an address that the operator typed: a number with any separators, or an account.
fn parse_entered_address(text: &str) -> Option<UserAddress> {
    let compact: String =
        text.chars().filter(|c| !c.is_whitespace() && !matches!(c, '-' | '(' | ')')).collect();
    UserAddress::parse(&compact)
}

#[derive(Debug, Clone, Copy, Deserialize)]
pub(in crate::web) struct UnlinkForm {
    address: i64,
}

pub(in crate::web) async fn unlink_address(
    State(console): State<ConsoleState>,
    PageId(id): PageId,
    SignedForm(form): SignedForm<UnlinkForm>,
) -> PageResult {
    let outcome = console.engine.decisions.unlink_address(UserId(id), AddressId(form.address)).await?;
    let flash = match outcome {
        UnlinkOutcome::Unlinked => FlashMessage::AddressUnlinked,
        UnlinkOutcome::LastAddress => FlashMessage::LastAddress,
        UnlinkOutcome::Busy => FlashMessage::AddressBusy,
        UnlinkOutcome::Unknown => return Err(PageError::NotFound),
    };
    Ok(redirect_with_flash(&format!("/users/{id}"), flash))
}

#[derive(Debug, Clone, Copy, Deserialize)]
pub(in crate::web) struct MergeQuery {
    /// User whose rows would be moved.
    from: i64,
}

#[derive(Template)]
#[template(path = "merge.html")]
struct MergePage {
    layout: PageLayout,
    from: MergedUserView,
    into: MergedUserView,
    /// Rows that move, such as "12 texts".
    moved: Vec<String>,
    closes_prompt: bool,
    status: &'static str,
    role: &'static str,
    permissions: String,
}

struct MergedUserView {
    id: i64,
    name: String,
    address: String,
    role: &'static str,
}

impl From<&User> for MergedUserView {
    fn from(user: &User) -> Self {
        Self {
            id: user.id.0,
            name: display_name(user),
            address: naming::format_address(user),
            role: role_label(user.rights.role),
        }
    }
}

pub(in crate::web) async fn show_merge(
    State(console): State<ConsoleState>,
    operator: Operator,
    PageId(id): PageId,
    PageParams(query): PageParams<MergeQuery>,
) -> PageResult {
    let merged = MergedUsers { from: UserId(query.from), into: UserId(id) };
    let preview = console.db.read(move |conn| merge::preview_merge(conn, merged)).await?;
    let preview = preview.ok_or(PageError::NotFound)?;
    let layout = PageLayout::new(&operator, ConsoleSection::Users, "Merge two users");
    Ok(render_page(&MergePage::from_preview(layout, &preview)))
}

impl MergePage {
    fn from_preview(layout: PageLayout, preview: &MergePreview) -> Self {
        let count = |number: i64, one: &str, many: &str| {
            (number > 0).then(|| format!("{number} {}", if number == 1 { one } else { many }))
        };
        let moved = [
            count(
                i64::try_from(preview.addresses).unwrap_or(i64::MAX),
                "phone or account",
                "phones and accounts",
            ),
            count(preview.messages, "text", "texts"),
            count(preview.conversations, "conversation", "conversations"),
            count(preview.requests, "title request", "title requests"),
            count(preview.facts, "fact", "facts"),
        ];
        let result = User { status: preview.status, rights: preview.rights, ..preview.into.clone() };
        let rights = preview.rights;
        let permissions: Vec<&str> = [
            (rights.may_add(), "add titles"),
            (rights.may_delete(), "delete titles"),
            (rights.may_use_four_k(), "add in 4K"),
        ]
        .into_iter()
        .filter_map(|(may, what)| may.then_some(what))
        .collect();
        Self {
            layout,
            from: MergedUserView::from(&preview.from),
            into: MergedUserView::from(&preview.into),
            moved: moved.into_iter().flatten().collect(),
            closes_prompt: preview.closes_prompt,
            status: status_label(&result).1,
            role: role_label(rights.role),
            permissions: if permissions.is_empty() { "nothing".to_owned() } else { permissions.join(", ") },
        }
    }
}

#[derive(Debug, Clone, Copy, Deserialize)]
pub(in crate::web) struct MergeForm {
    from: i64,
}

pub(in crate::web) async fn merge_users(
    State(console): State<ConsoleState>,
    PageId(id): PageId,
    SignedForm(form): SignedForm<MergeForm>,
) -> PageResult {
    let merged = MergedUsers { from: UserId(form.from), into: UserId(id) };
    let flash = match console.engine.decisions.merge_users(merged).await? {
        MergeOutcome::Merged => FlashMessage::UsersMerged,
        MergeOutcome::Busy => FlashMessage::MergeBusy,
        MergeOutcome::LastAdmin => FlashMessage::LastAdmin,
        MergeOutcome::NotMergeable => return Err(PageError::NotFound),
    };
    Ok(redirect_with_flash(&format!("/users/{id}"), flash))
}
