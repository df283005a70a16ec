//! People as a table, and one of them in full.

use anyhow::Context;
use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::{database, print, unknown, with_person};
use crate::clock::Clock;
use crate::config::Config;
use crate::conversation::transcript::{PhoneNumber, Rights, Role, Status, User};
use crate::store::db;
use crate::store::roster::{self, Limit, Person, Talk};
use crate::store::spend::Day;

const CONVERSATIONS_SHOWN: i64 = 20;
const GAP: &str = "  ";

pub(super) fn list(config: &Config) -> anyhow::Result<()> {
    let people = db::look(database(config)?, roster::everyone)?;
    let head = ["NUMBER", "NAME", "ROLE", "STATUS", "MAY", "MOVIES", "SEASONS", "OPTED OUT", "LAST TEXT"];
    let rows = people.iter().map(|person| {
        let user = &person.user;
        [
            user.phone.as_str().to_owned(),
            name(user),
            role(user.rights.role).to_owned(),
            status(user.status).to_owned(),
            may(user.rights),
            limit(person.movies),
            limit(person.seasons),
            opted_out(user).to_owned(),
            last_text(person, &config.time_zone),
        ]
    });
    print(&table(&[head.map(str::to_owned)].into_iter().chain(rows).collect::<Vec<_>>()))
}

pub(super) fn show(config: &Config, number: &PhoneNumber) -> anyhow::Result<()> {
    let found = db::look(database(config)?, |conn| {
        with_person(conn, number, |conn, user| {
            Ok((roster::person(conn, user)?, roster::talks(conn, user, CONVERSATIONS_SHOWN)?))
        })
    })?;
    let (person, talks) = found.with_context(|| unknown(number))?;
    print(&format!("{}\n{}", in_full(&person, &config.time_zone), conversations(&talks, &config.time_zone)))
}

/// A line for each thing that can be changed, as after a change.
pub(super) fn in_full(person: &Person, zone: &TimeZone) -> String {
    let user = &person.user;
    let is_suspended = person.code_misses.suspend_on(&Day::of(Clock::System.now(), zone));
    let suspended = is_suspended
        .then_some("deletions and approvals by text: suspended until tomorrow (too many wrong codes)\n");
    let lines = [
        ("number", user.phone.as_str().to_owned()),
        ("name", name(user)),
        ("role", role(user.rights.role).to_owned()),
        ("status", status(user.status).to_owned()),
        ("may", may(user.rights)),
        ("movies", limit(person.movies)),
        ("seasons", limit(person.seasons)),
        ("opted out", opted_out(user).to_owned()),
        ("last text", last_text(person, zone)),
    ];
    let lines = lines.map(|(what, value)| format!("{what}: {value}\n")).concat();
    format!("{lines}{}", suspended.unwrap_or_default())
}

fn conversations(talks: &[Talk], zone: &TimeZone) -> String {
    let head = ["STARTED", "ENDED", "REASON", "TEXTS", "NAME"].map(str::to_owned);
    let rows = talks.iter().map(|talk| {
        [
            moment(talk.started_at, zone),
            talk.ended_at.map_or_else(nothing, |at| moment(at, zone)),
            talk.end_reason.clone().unwrap_or_else(nothing),
            talk.texts.to_string(),
            talk.name.clone(),
        ]
    });
    table(&[head].into_iter().chain(rows).collect::<Vec<_>>())
}

fn nothing() -> String {
    "-".to_owned()
}

fn name(user: &User) -> String {
    let name = user.name.clone().unwrap_or_else(nothing);
    if user.test { format!("{name} (test)") } else { name }
}

fn role(role: Role) -> &'static str {
    match role {
        Role::Admin => "admin",
        Role::Member => "member",
    }
}

fn status(status: Status) -> &'static str {
    match status {
        Status::Pending => "pending",
        Status::Active => "active",
        Status::Blocked => "blocked",
    }
}

/// What someone may do beyond asking.
fn may(rights: Rights) -> String {
    let rights = [("add", rights.may_add()), ("delete", rights.may_delete()), ("4K", rights.may_four_k())];
    let granted: Vec<&str> = rights.into_iter().filter(|(_, granted)| *granted).map(|(may, _)| may).collect();
    if granted.is_empty() { nothing() } else { granted.join(", ") }
}

fn limit(limit: Limit) -> String {
    match limit {
        Limit::Household => "default".to_owned(),
        Limit::Own(most) => most.to_string(),
    }
}

fn opted_out(user: &User) -> &'static str {
    if user.opted_out { "yes" } else { "no" }
}

fn last_text(person: &Person, zone: &TimeZone) -> String {
    person.last_text.map_or_else(|| "never".to_owned(), |at| moment(at, zone))
}

fn moment(at: Timestamp, zone: &TimeZone) -> String {
    at.to_zoned(zone.clone()).strftime("%Y-%m-%d %H:%M").to_string()
}

/// Columns as wide as their widest cell.
fn table<const COLUMNS: usize>(rows: &[[String; COLUMNS]]) -> String {
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
