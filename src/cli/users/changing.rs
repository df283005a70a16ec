//! Changes of a person, each with its row in the record.

use std::io::BufRead;

use anyhow::{Context, bail};

use super::listing::in_full;
use super::{database, print, unknown, with_person};
use crate::clock::Clock;
use crate::config::Config;
use crate::conversation::transcript::{Address, PhoneNumber};
use crate::engine::joining::{self, Blocking};
use crate::store::audit::By;
use crate::store::code_misses;
use crate::store::db;
use crate::store::privacy;
use crate::store::privacy::forget::{self, Forgetting};
use crate::store::privacy::sweep::Swept;
use crate::store::roster::{self, Changed, Changes};
use crate::store::spend::Day;
use crate::store::users::{self, Newcomer};

/// What has to be typed before someone is forgotten.
const WORD: &str = "FORGET";

pub(super) fn change(config: &Config, number: &PhoneNumber, changes: &Changes) -> anyhow::Result<()> {
    let now = Clock::System.now();
    let changed = db::visit(database(config)?, |conn| {
        with_person(conn, number, |conn, user| {
            let changed = roster::change(conn, user, changes, By::Shell, now)?;
            Ok((changed, roster::person(conn, user)?))
        })
    })?;
    match changed.with_context(|| unknown(number))? {
        (Changed::Changed, person) => print(&in_full(&person, &config.time_zone)),
        (Changed::LastAdmin, _) => bail!("demote {}: {}", number.as_str(), last_admin()),
    }
}

/// As an admin does it by text. A running service sends what the person is told within half a minute.
pub(super) fn approve(config: &Config, number: &PhoneNumber) -> anyhow::Result<()> {
    let now = Clock::System.now();
    let ours = config.twilio.as_ref().map(|twilio| Address::new(twilio.phone_number.as_str()));
    let person = db::visit(database(config)?, |conn| {
        let id = users::ensure(conn, number, Newcomer::Stranger, now)?;
        let user = users::get(conn, id)?;
        joining::approve(conn, &user, By::Shell, ours.as_ref(), now)?;
        roster::person(conn, id)
    })?;
    print(&in_full(&person, &config.time_zone))
}

pub(super) fn block(config: &Config, number: &PhoneNumber) -> anyhow::Result<()> {
    let now = Clock::System.now();
    let blocked = db::visit(database(config)?, |conn| {
        with_person(conn, number, |conn, id| {
            let user = users::get(conn, id)?;
            let blocking = joining::block(conn, &user, By::Shell, now)?;
            Ok((blocking, roster::person(conn, id)?))
        })
    })?;
    match blocked.with_context(|| unknown(number))? {
        (Blocking::Blocked, person) => print(&in_full(&person, &config.time_zone)),
        (Blocking::LastAdmin, _) => bail!("block {}: {}", number.as_str(), last_admin()),
    }
}

/// Of a person who is not suspended nothing changes.
pub(super) fn unsuspend(config: &Config, number: &PhoneNumber) -> anyhow::Result<()> {
    let now = Clock::System.now();
    let today = Day::of(now, &config.time_zone);
    let person = db::visit(database(config)?, |conn| {
        with_person(conn, number, |conn, user| {
            code_misses::lift(conn, user, &today, By::Shell, now)?;
            roster::person(conn, user)
        })
    })?;
    print(&in_full(&person.with_context(|| unknown(number))?, &config.time_zone))
}

pub(super) fn forget(config: &Config, number: &PhoneNumber) -> anyhow::Result<()> {
    let now = Clock::System.now();
    let forgotten = db::visit(database(config)?, |conn| {
        with_person(conn, number, |conn, user| forget::forget(conn, user, By::Shell, now))
    })?;
    match forgotten.with_context(|| unknown(number))? {
        Forgetting::Forgotten => {}
        Forgetting::LastAdmin => bail!("forget {}: {}", number.as_str(), last_admin()),
        Forgetting::Busy => bail!(
            "forget {}: a text of theirs is being worked on; hint: let the service finish it, then try again",
            number.as_str()
        ),
    }
    // A service that runs would be kept waiting, and does it by itself.
    while db::visit_alone(database(config)?, |conn| privacy::purge(conn, now))? == Some(Swept::More) {}
    print(&format!("forgotten: {}\n", number.as_str()))?;
    let comes_back = "or the number is known again at the next start";
    if config.people.admin.as_ref() == Some(number) {
        eprintln!("hint: take it out of ADMIN_PHONE, {comes_back}");
    }
    if config.people.members.contains(number) {
        eprintln!("hint: take it out of PHONE_WHITELIST, {comes_back}");
    }
    Ok(())
}

/// Asks at the terminal.
pub(super) fn confirm_forgetting(config: &Config, number: &PhoneNumber) -> anyhow::Result<()> {
    let found = db::look(database(config)?, |conn| with_person(conn, number, roster::person))?;
    let user = found.with_context(|| unknown(number))?.user;
    let name = user.name.map(|name| format!(" ({name})")).unwrap_or_default();
    eprint!("Type {WORD} to erase everything of {}{name}: ", number.as_str());
    let mut typed = String::new();
    std::io::stdin().lock().read_line(&mut typed).context("read from the terminal")?;
    if typed.trim() != WORD {
        bail!("forget {}: {WORD} was not typed", number.as_str());
    }
    Ok(())
}

fn last_admin() -> &'static str {
    "this is the last active admin; hint: dialarr users promote"
}
