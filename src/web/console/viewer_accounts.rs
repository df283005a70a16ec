//! Page of the accounts at media servers and at a Seerr, which links them to people. It shows nothing of what they watch.

use askama::Template;
use axum::extract::State;
use serde::Deserialize;

use super::flash::{self, FlashMessage};
use super::format::display_name;
use super::layout::{ConsoleSection, PageLayout, render_page};
use super::responses::{PageError, PageParams, PageResult, redirect_with_flash};
use crate::conversation::transcript::UserId;
use crate::conversation::viewer_accounts::{MediaServerKind, ViewerAccount, WatchSharing};
use crate::engine::operator::viewer_accounts::{LinkListedOutcome, ViewerAccountList};
use crate::store::people::viewer_accounts::UnlinkAccountOutcome;
use crate::web::auth::{Operator, SignedForm};
use crate::web::console_state::ConsoleState;

const PATH: &str = "/viewer-accounts";

#[derive(Debug, Clone, Copy, Default, Deserialize)]
pub(in crate::web) struct AccountsQuery {
    #[serde(default, deserialize_with = "flash::deserialize_code")]
    flash: Option<FlashMessage>,
}

#[derive(Template)]
#[template(path = "viewer_accounts.html")]
struct AccountsPage {
    layout: PageLayout,
    accounts: Vec<AccountLine>,
    people: Vec<PersonOption>,
    /// True if a server does not respond.
    is_incomplete: bool,
    is_shared: bool,
}

/// Account of a server.
struct AccountLine {
    server: &'static str,
    server_label: &'static str,
    id: String,
    name: String,
    /// True if the server does not list the account.
    is_missing: bool,
    /// Person to whom the account is linked.
    person: Option<PersonOption>,
    /// Id of the person with the same account at a media server, or with the same name, whom the form suggests.
    suggested: Option<i64>,
}

#[derive(Clone)]
struct PersonOption {
    id: i64,
    name: String,
}

impl AccountLine {
    fn suggests(&self, person: &PersonOption) -> bool {
        self.suggested == Some(person.id)
    }
}

pub(in crate::web) async fn show_accounts(
    State(console): State<ConsoleState>,
    operator: Operator,
    PageParams(query): PageParams<AccountsQuery>,
) -> PageResult {
    let list = console.engine.decisions.load_viewer_accounts().await?;
    let layout = PageLayout::new(&operator, ConsoleSection::Users, "Accounts at media servers")
        .with_flash(query.flash);
    let is_shared = console.engine.settings().watch_sharing == WatchSharing::Household;
    Ok(render_page(&AccountsPage::from_list(layout, &list, is_shared)))
}

impl AccountsPage {
    fn from_list(layout: PageLayout, list: &ViewerAccountList, is_shared: bool) -> Self {
        let people: Vec<PersonOption> =
            list.users.iter().map(|user| PersonOption { id: user.id.0, name: display_name(user) }).collect();
        let mut accounts: Vec<ViewerAccount> = list
            .found
            .users
            .iter()
            .map(|found| ViewerAccount {
                server: found.server,
                id: found.user.id.as_str().to_owned(),
                name: found.user.name.clone(),
            })
            .collect();
        // Links remain visible while their server does not respond.
        let is_listed = |account: &ViewerAccount, listed: &[ViewerAccount]| {
            listed.iter().any(|other| (other.server, &other.id) == (account.server, &account.id))
        };
        for linked in &list.linked {
            if !is_listed(&linked.account, &accounts) {
                accounts.push(linked.account.clone());
            }
        }
        let line = |account: ViewerAccount| {
            let is_same = |other: &ViewerAccount| (other.server, &other.id) == (account.server, &account.id);
            let owner =
                list.linked.iter().find(|linked| is_same(&linked.account)).map(|linked| linked.user.0);
            let with_name =
                |person: &&PersonOption| person.name.to_lowercase() == account.name.to_lowercase();
            let same_person = list
                .same_people
                .iter()
                .find(|(id, _)| account.server == MediaServerKind::Seerr && *id == account.id);
            let suggested = same_person.map(|(_, user)| user.0);
            AccountLine {
                is_missing: list.found.lacks(&account),
                server: account.server.name(),
                server_label: account.server.label(),
                person: owner.map(|id| {
                    let known = people.iter().find(|person| person.id == id).cloned();
                    known.unwrap_or_else(|| PersonOption { id, name: "a blocked user".to_owned() })
                }),
                suggested: suggested.or_else(|| people.iter().find(with_name).map(|person| person.id)),
                id: account.id,
                name: account.name,
            }
        };
        let accounts = accounts.into_iter().map(line).collect();
        Self { layout, accounts, people, is_incomplete: list.found.is_incomplete, is_shared }
    }
}

#[derive(Debug, Clone, Deserialize)]
pub(in crate::web) struct AccountForm {
    server: String,
    account: String,
    user: i64,
}

pub(in crate::web) async fn link_account(
    State(console): State<ConsoleState>,
    SignedForm(form): SignedForm<AccountForm>,
) -> PageResult {
    let server = MediaServerKind::from_name(&form.server).ok_or(PageError::NotFound)?;
    let decisions = &console.engine.decisions;
    let flash = match decisions.link_viewer_account(UserId(form.user), server, &form.account).await? {
        LinkListedOutcome::Linked => FlashMessage::AccountLinked,
        LinkListedOutcome::AlreadyLinked => FlashMessage::AccountTaken,
        LinkListedOutcome::OtherAccount => FlashMessage::OtherAccount,
        LinkListedOutcome::Unreachable => FlashMessage::MediaServerUnreachable,
        LinkListedOutcome::UnknownAccount | LinkListedOutcome::UnknownUser => {
            return Err(PageError::NotFound);
        }
    };
    Ok(redirect_with_flash(PATH, flash))
}

pub(in crate::web) async fn unlink_account(
    State(console): State<ConsoleState>,
    SignedForm(form): SignedForm<AccountForm>,
) -> PageResult {
    let server = MediaServerKind::from_name(&form.server).ok_or(PageError::NotFound)?;
    let decisions = &console.engine.decisions;
    let flash = match decisions.unlink_viewer_account(UserId(form.user), server, form.account).await? {
        UnlinkAccountOutcome::Unlinked => FlashMessage::AccountUnlinked,
        UnlinkAccountOutcome::Unknown => FlashMessage::NothingChanged,
    };
    Ok(redirect_with_flash(PATH, flash))
}
