//! Table of users, and details of one user.

use anyhow::Context;
use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::{database_path, print_text, unknown_user_text, with_person};
use crate::clock::Clock;
use crate::config::Config;
use crate::conversation::transcript::{PhoneNumber, User, UserRights, UserRole, UserStatus};
use crate::store::database::db;
use crate::store::people::user_admin::{self, ConversationOverview, UserAccount, UserLimit};
use crate::store::turns::daily_budget::Day;

const CONVERSATIONS_SHOWN: i64 = 20;
const GAP: &str = "  ";

pub(super) fn list_users(config: &Config) -> anyhow::Result<()> {
    let people = db::visit_read_only(database_path(config)?, user_admin::load_user_accounts)?;
    let head = ["NUMBER", "NAME", "ROLE", "STATUS", "MAY", "MOVIES", "SEASONS", "OPTED OUT", "LAST TEXT"];
    let rows = people.iter().map(|person| {
        let user = &person.user;
        [
            user.phone.as_str().to_owned(),
            display_name(user),
            role_word(user.rights.role).to_owned(),
            status_word(user.status).to_owned(),
            format_rights(user.rights),
            format_limit(person.movies),
            format_limit(person.seasons),
            opted_out(user).to_owned(),
            last_text(person, &config.time_zone),
        ]
    });
    print_text(&format_table(&[head.map(str::to_owned)].into_iter().chain(rows).collect::<Vec<_>>()))
}

pub(super) fn show_user(config: &Config, number: &PhoneNumber) -> anyhow::Result<()> {
    let found = db::visit_read_only(database_path(config)?, |conn| {
        with_person(conn, number, |conn, user| {
            Ok((
                user_admin::load_user_account(conn, user)?,
                user_admin::load_recent_conversations(conn, user, CONVERSATIONS_SHOWN)?,
            ))
        })
    })?;
    let (person, conversations) = found.with_context(|| unknown_user_text(number))?;
    print_text(&format!(
        "{}\n{}",
        in_full(&person, &config.time_zone),
        conversation_table(&conversations, &config.time_zone)
    ))
}

/// Formats a user with one line for each setting that can be changed, as after a change.
pub(super) fn in_full(person: &UserAccount, zone: &TimeZone) -> String {
    let user = &person.user;
    let is_suspended = person.code_misses.is_suspended_on(&Day::from_timestamp(Clock::System.now(), zone));
    let suspended = is_suspended
        .then_some("deletions and approvals by text: suspended until tomorrow (too many wrong codes)\n");
    let lines = [
        ("number", user.phone.as_str().to_owned()),
        ("name", display_name(user)),
        ("role", role_word(user.rights.role).to_owned()),
        ("status", status_word(user.status).to_owned()),
        ("may", format_rights(user.rights)),
        ("movies", format_limit(person.movies)),
        ("seasons", format_limit(person.seasons)),
        ("opted out", opted_out(user).to_owned()),
        ("last text", last_text(person, zone)),
    ];
    let lines = lines.map(|(what, value)| format!("{what}: {value}\n")).concat();
    format!("{lines}{}", suspended.unwrap_or_default())
}

fn conversation_table(conversations: &[ConversationOverview], zone: &TimeZone) -> String {
    let head = ["STARTED", "ENDED", "REASON", "TEXTS", "NAME"].map(str::to_owned);
    let rows = conversations.iter().map(|conversation| {
        [
            format_moment(conversation.started_at, zone),
            conversation.ended_at.map_or_else(no_users_text, |at| format_moment(at, zone)),
            conversation.end_reason.map_or_else(no_users_text, str::to_owned),
            conversation.message_count.to_string(),
            conversation.name.clone(),
        ]
    });
    format_table(&[head].into_iter().chain(rows).collect::<Vec<_>>())
}

fn no_users_text() -> String {
    "-".to_owned()
}

fn display_name(user: &User) -> String {
    let name = user.name.clone().unwrap_or_else(no_users_text);
    if user.test { format!("{name} (test)") } else { name }
}

fn role_word(role: UserRole) -> &'static str {
    match role {
        UserRole::Admin => "admin",
        UserRole::Member => "member",
    }
}

fn status_word(status: UserStatus) -> &'static str {
    match status {
        UserStatus::Pending => "pending",
        UserStatus::Active => "active",
        UserStatus::Blocked => "blocked",
    }
}

/// Formats the rights of a user beyond asking.
fn format_rights(rights: UserRights) -> String {
    let rights =
        [("add", rights.may_add()), ("delete", rights.may_delete()), ("4K", rights.may_use_four_k())];
    let granted: Vec<&str> = rights.into_iter().filter(|(_, granted)| *granted).map(|(may, _)| may).collect();
    if granted.is_empty() { no_users_text() } else { granted.join(", ") }
}

fn format_limit(limit: UserLimit) -> String {
    match limit {
        UserLimit::Household => "default".to_owned(),
        UserLimit::Own(most) => most.to_string(),
    }
}

fn opted_out(user: &User) -> &'static str {
    if user.opted_out { "yes" } else { "no" }
}

fn last_text(person: &UserAccount, zone: &TimeZone) -> String {
    person.last_message_at.map_or_else(|| "never".to_owned(), |at| format_moment(at, zone))
}

fn format_moment(at: Timestamp, zone: &TimeZone) -> String {
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
        format!("{}\n", cells.collect::<Vec<_>>().join(GAP).trim_end())
    };
    rows.iter().map(line).collect()
}
