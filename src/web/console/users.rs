//! List of users, newest first.

use askama::Template;
use axum::extract::State;
use serde::Deserialize;

use super::flash::{self, FlashMessage};
use super::layout::{ConsoleSection, DisplayTime, PageLayout, render_page};
use super::responses::{PageParams, PageResult, redirect_with_flash};
use super::rooms::{MAX_ROOMS, RoomLine};
use crate::conversation::people::naming::{self, UserName};
use crate::conversation::rate_limit::RateLimit;
use crate::conversation::transcript::{User, UserRights, UserRole, UserStatus};
use crate::engine::operator::addresses::AdminCodeOutcome;
use crate::store::console::NEWEST;
use crate::store::console::user_details::{self, UserSummary};
use crate::store::digests;
use crate::store::people::rooms;
use crate::store::people::user_admin::UserLimit;
use crate::store::people::users;
use crate::web::auth::{Operator, SignedForm};
use crate::web::console_state::ConsoleState;

const PAGE_ROWS: usize = 50;

#[derive(Debug, Clone, Copy, Default, Deserialize)]
pub(in crate::web) struct UsersQuery {
    #[serde(default, deserialize_with = "flash::deserialize_code")]
    flash: Option<FlashMessage>,
    before: Option<i64>,
}

#[derive(Template)]
#[template(path = "users.html")]
struct UsersPage {
    layout: PageLayout,
    users: Vec<UserLine>,
    rooms: Vec<RoomLine>,
    older: Option<String>,
    /// True if nobody can approve newcomers.
    lacks_admin: bool,
    created: CreatedAccess,
    /// True if people can be invited by a link.
    can_invite: bool,
    has_account_servers: bool,
}

/// Access that the operator has just created, and which only this page shows.
#[derive(Default)]
struct CreatedAccess {
    /// Code for the first admin.
    admin_code: Option<AdminCode>,
    invitation: Option<CreatedInvitation>,
}

/// Invitation of a person.
struct CreatedInvitation {
    name: String,
    link: String,
}

/// Code that makes its sender the first admin.
struct AdminCode {
    code: String,
    /// Link that sends the code on Telegram; `None` without a bot.
    link: Option<String>,
}

struct UserLine {
    path: String,
    name: Option<String>,
    number: String,
    is_test: bool,
    role: &'static str,
    status: (&'static str, &'static str),
    is_opted_out: bool,
    permissions: String,
    movies: LimitUsage,
    seasons: LimitUsage,
    last_text: Option<DisplayTime>,
}

/// Used part of a limit.
pub(super) struct LimitUsage {
    pub(super) used: u32,
    /// Limit; `None` for a user without a limit.
    pub(super) max: Option<u32>,
    /// Label such as `3 of 10`.
    pub(super) label: String,
}

impl LimitUsage {
    pub(super) fn from_limit(
        used: u32,
        limit: UserLimit,
        (rate, role): (Option<RateLimit>, UserRole),
    ) -> Self {
        let max = match (role, rate, limit) {
            (UserRole::Admin, ..) | (_, None, _) => None,
            (UserRole::Member, Some(rate), UserLimit::Household) => Some(rate.max),
            (UserRole::Member, Some(_), UserLimit::Own(own)) => Some(own),
        };
        let label = match max {
            Some(max) => format!("{used} of {max}"),
            None => "no limit".to_owned(),
        };
        Self { used, max, label }
    }
}

pub(in crate::web) async fn show_users(
    State(console): State<ConsoleState>,
    operator: Operator,
    PageParams(query): PageParams<UsersQuery>,
) -> PageResult {
    render_users(&console, &operator, query, CreatedAccess::default()).await
}

#[derive(Debug, Clone, Copy, Deserialize)]
pub(in crate::web) struct AdminCodeForm {}

/// Shows the code that makes its sender the first admin.
pub(in crate::web) async fn create_admin_code(
    State(console): State<ConsoleState>,
    operator: Operator,
    SignedForm(AdminCodeForm {}): SignedForm<AdminCodeForm>,
) -> PageResult {
    match console.engine.decisions.create_admin_code().await? {
        AdminCodeOutcome::Created(code) => {
            let bot = console.connection_tester.current().bot_name().await;
            let admin_code = Some(AdminCode { link: bot.map(|bot| bot.code_link(&code)), code });
            let created = CreatedAccess { admin_code, ..CreatedAccess::default() };
            render_users(&console, &operator, UsersQuery::default(), created).await
        }
        AdminCodeOutcome::HasAdmin => Ok(redirect_with_flash("/users", FlashMessage::HasAdmin)),
    }
}

#[derive(Debug, Clone, Deserialize)]
pub(in crate::web) struct InvitationForm {
    name: String,
}

/// Shows a link that admits one person.
pub(in crate::web) async fn invite_person(
    State(console): State<ConsoleState>,
    operator: Operator,
    SignedForm(InvitationForm { name }): SignedForm<InvitationForm>,
) -> PageResult {
    let Ok(name) = UserName::parse(&name) else {
        return Ok(redirect_with_flash("/users", FlashMessage::InvalidName));
    };
    let shown_name = name.as_str().to_owned();
    match console.engine.decisions.create_invitation(name).await? {
        Some(link) => {
            let invitation = Some(CreatedInvitation { name: shown_name, link });
            let created = CreatedAccess { invitation, ..CreatedAccess::default() };
            render_users(&console, &operator, UsersQuery::default(), created).await
        }
        None => Ok(redirect_with_flash("/users", FlashMessage::NoInvitations)),
    }
}

async fn render_users(
    console: &ConsoleState,
    operator: &Operator,
    query: UsersQuery,
    created: CreatedAccess,
) -> PageResult {
    let before = query.before.unwrap_or(NEWEST);
    let (quotas, now) = (console.engine.decisions.default_quotas(), console.clock.now());
    let (summaries, has_admin, rooms) = console
        .db
        .read(move |conn| {
            let limits = (quotas.movies, quotas.seasons);
            let page = user_details::load_user_summaries(conn, limits, before, PAGE_ROWS, now)?;
            let mut with_digests = Vec::new();
            for room in rooms::load_rooms(conn, MAX_ROOMS)? {
                let digest = digests::load_schedule(conn, room.id)?;
                with_digests.push((room, digest));
            }
            Ok((page, users::has_admin(conn)?, with_digests))
        })
        .await?;
    let row =
        |summary: &UserSummary| UserLine::from_summary(summary, (quotas.movies, quotas.seasons), console);
    Ok(render_page(&UsersPage {
        layout: PageLayout::new(operator, ConsoleSection::Users, "Users").with_flash(query.flash),
        lacks_admin: !has_admin,
        created,
        can_invite: console.engine.decisions.can_invite(),
        has_account_servers: console.engine.decisions.has_account_servers(),
        users: summaries.rows.iter().map(row).collect(),
        rooms: rooms.iter().map(|(room, digest)| RoomLine::from_room(room, *digest)).collect(),
        older: summaries.older.map(|before| format!("/users?before={before}")),
    }))
}

impl UserLine {
    fn from_summary(
        summary: &UserSummary,
        (movies, seasons): (Option<RateLimit>, Option<RateLimit>),
        console: &ConsoleState,
    ) -> Self {
        let account = &summary.account;
        let user = &account.user;
        let role = user.rights.role;
        Self {
            path: format!("/users/{}", user.id),
            name: user.name.clone(),
            number: naming::format_address(user),
            is_test: summary.is_test,
            role: role_label(role),
            status: status_label(user),
            is_opted_out: user.opted_out,
            permissions: format_permissions(user.rights),
            movies: LimitUsage::from_limit(summary.movies, account.movies, (movies, role)),
            seasons: LimitUsage::from_limit(summary.seasons, account.seasons, (seasons, role)),
            last_text: account.last_message_at.map(|at| console.display_time(at)),
        }
    }
}

pub(super) fn role_label(role: UserRole) -> &'static str {
    match role {
        UserRole::Admin => "Admin",
        UserRole::Member => "Member",
    }
}

/// Returns the CSS class and the label of a user's status.
pub(super) fn status_label(user: &User) -> (&'static str, &'static str) {
    match user.status {
        UserStatus::Pending => ("warn", "Pending"),
        UserStatus::Active => ("good", "Active"),
        UserStatus::Blocked => ("bad", "Blocked"),
    }
}

/// Formats the permissions of a user; `ask` if they can only ask.
fn format_permissions(rights: UserRights) -> String {
    let rights =
        [("add", rights.may_add()), ("delete", rights.may_delete()), ("4K", rights.may_use_four_k())];
    let granted: Vec<&str> =
        rights.into_iter().filter(|(_, granted)| *granted).map(|(name, _)| name).collect();
    if granted.is_empty() { "ask".to_owned() } else { granted.join(", ") }
}
