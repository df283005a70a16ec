//! Table of users, and details of one user.

use anyhow::Context;
use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::{database_path, print_text, unknown_user_text, with_user};
use crate::clock::Clock;
use crate::config::Config;
use crate::conversation::digest::schedule::DigestSchedule;
use crate::conversation::rating_caps::MinimumAge;
use crate::conversation::transcript::{User, UserAddress, UserRights, UserRole, UserStatus};
use crate::store::database::shell_access;
use crate::store::people::user_admin::{self, ConversationOverview, UserAccount, UserLimit};
use crate::store::turns::daily_budget::Day;

const MAX_CONVERSATIONS: i64 = 20;
const COLUMN_GAP: &str = "  ";

pub(super) fn list_users(config: &Config) -> anyhow::Result<()> {
    let accounts = shell_access::visit_read_only(database_path(config)?, user_admin::load_user_accounts)?;
    let head =
        ["ADDRESSES", "NAME", "ROLE", "STATUS", "MAY", "MOVIES", "SEASONS", "GB", "OPTED OUT", "LAST TEXT"];
    let rows = accounts.iter().map(|account| {
        let user = &account.user;
        [
            format_addresses(account),
            display_name(user),
            role_text(user.rights.role).to_owned(),
            status_text(user.status).to_owned(),
            format_rights(user.rights),
            format_limit(account.movies),
            format_limit(account.seasons),
            format_limit(account.space),
            opted_out_text(user).to_owned(),
            format_last_text(account, &config.time_zone),
        ]
    });
    print_text(&format_table(&[head.map(str::to_owned)].into_iter().chain(rows).collect::<Vec<_>>()))
}

pub(super) fn show_user(config: &Config, address: &UserAddress) -> anyhow::Result<()> {
    let found = shell_access::visit_read_only(database_path(config)?, |conn| {
        with_user(conn, address, |conn, user| {
            Ok((
                user_admin::load_user_account(conn, user)?,
                user_admin::load_recent_conversations(conn, user, MAX_CONVERSATIONS)?,
            ))
        })
    })?;
    let (account, conversations) = found.with_context(|| unknown_user_text(address))?;
    print_text(&format!(
        "{}\n{}",
        format_user(&account, &config.time_zone),
        format_conversations(&conversations, &config.time_zone)
    ))
}

/// Formats a user with one line per field.
pub(super) fn format_user(account: &UserAccount, zone: &TimeZone) -> String {
    let user = &account.user;
    let is_suspended = account.code_misses.is_suspended_on(&Day::from_timestamp(Clock::System.now(), zone));
    let suspension_line = is_suspended
        .then_some("deletions and approvals by text: suspended until tomorrow (too many wrong codes)\n");
    let lines = [
        ("addresses", format_addresses(account)),
        ("name", display_name(user)),
        ("role", role_text(user.rights.role).to_owned()),
        ("status", status_text(user.status).to_owned()),
        ("may", format_rights(user.rights)),
        ("movies", format_limit(account.movies)),
        ("seasons", format_limit(account.seasons)),
        ("space in GB", format_limit(account.space)),
        ("age ratings", format_caps(user.rights)),
        ("digest", account.digest.map_or_else(|| "off".to_owned(), DigestSchedule::to_words)),
        ("opted out", opted_out_text(user).to_owned()),
        ("last text", format_last_text(account, zone)),
    ];
    let lines = lines.map(|(field, value)| format!("{field}: {value}\n")).concat();
    format!("{lines}{}", suspension_line.unwrap_or_default())
}

fn format_conversations(conversations: &[ConversationOverview], zone: &TimeZone) -> String {
    let head = ["STARTED", "ENDED", "REASON", "TEXTS", "NAME"].map(str::to_owned);
    let rows = conversations.iter().map(|conversation| {
        [
            format_time(conversation.started_at, zone),
            conversation.ended_at.map_or_else(no_value, |at| format_time(at, zone)),
            conversation.end_reason.map_or_else(no_value, str::to_owned),
            conversation.message_count.to_string(),
            conversation.name.clone(),
        ]
    });
    format_table(&[head].into_iter().chain(rows).collect::<Vec<_>>())
}

/// Formats the addresses of a user, oldest first. Any of them names the user in a command.
fn format_addresses(account: &UserAccount) -> String {
    account.addresses.iter().map(|stored| stored.address.to_text()).collect::<Vec<_>>().join(", ")
}

fn no_value() -> String {
    "-".to_owned()
}

fn display_name(user: &User) -> String {
    let name = user.name.clone().unwrap_or_else(no_value);
    if user.test { format!("{name} (test)") } else { name }
}

fn role_text(role: UserRole) -> &'static str {
    match role {
        UserRole::Admin => "admin",
        UserRole::Member => "member",
    }
}

fn status_text(status: UserStatus) -> &'static str {
    match status {
        UserStatus::Pending => "pending",
        UserStatus::Active => "active",
        UserStatus::Blocked => "blocked",
    }
}

/// Formats the permissions of a user.
fn format_rights(rights: UserRights) -> String {
    let rights =
        [("add", rights.may_add()), ("delete", rights.may_delete()), ("4K", rights.may_use_four_k())];
    let granted: Vec<&str> =
        rights.into_iter().filter(|(_, granted)| *granted).map(|(name, _)| name).collect();
    if granted.is_empty() { no_value() } else { granted.join(", ") }
}

/// Formats the caps on age ratings, and whether the user decides about those of others.
fn format_caps(rights: UserRights) -> String {
    let caps = rights.rating_caps();
    let cap = |name: &str, cap: Option<MinimumAge>| cap.map(|age| format!("{name} up to {}", age.0));
    let parent = rights.may_approve_titles().then(|| "decides for others".to_owned());
    let parts: Vec<String> =
        [cap("movies", caps.movies), cap("shows", caps.shows), parent].into_iter().flatten().collect();
    if parts.is_empty() { no_value() } else { parts.join(", ") }
}

fn format_limit(limit: UserLimit) -> String {
    match limit {
        UserLimit::Household => "default".to_owned(),
        UserLimit::Own(limit) => limit.to_string(),
    }
}

fn opted_out_text(user: &User) -> &'static str {
    if user.opted_out { "yes" } else { "no" }
}

fn format_last_text(account: &UserAccount, zone: &TimeZone) -> String {
    account.last_message_at.map_or_else(|| "never".to_owned(), |at| format_time(at, zone))
}

fn format_time(at: Timestamp, zone: &TimeZone) -> String {
    at.to_zoned(zone.clone()).strftime("%Y-%m-%d %H:%M").to_string()
}

/// Formats a table with columns as wide as their widest cell.
fn format_table<const COLUMNS: usize>(rows: &[[String; COLUMNS]]) -> String {
    let mut widths = [0; COLUMNS];
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let line = |row: &[String; COLUMNS]| {
        let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}"));
        format!("{}\n", cells.collect::<Vec<_>>().join(COLUMN_GAP).trim_end())
    };
    rows.iter().map(line).collect()
}
