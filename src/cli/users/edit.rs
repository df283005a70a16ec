//! Changes of a user, each with its row in the audit log.

use std::io::BufRead;

use anyhow::{Context, bail};

use super::list::in_full;
use super::{database_path, print_text, unknown_user_text, with_person};
use crate::clock::Clock;
use crate::config::Config;
use crate::conversation::transcript::{Address, PhoneNumber};
use crate::engine::approvals::user_access::{self, BlockOutcome};
use crate::store::audit::Actor;
use crate::store::confirmation::code_misses;
use crate::store::database::db;
use crate::store::people::user_admin::{self, ChangeUserOutcome, UserChanges};
use crate::store::people::users::{self, FirstContactRole};
use crate::store::privacy;
use crate::store::privacy::forget::{self, ErasureOutcome};
use crate::store::privacy::retention::RetentionProgress;
use crate::store::turns::daily_budget::Day;

/// Word that the operator types to confirm that a user is forgotten.
const WORD: &str = "FORGET";

pub(super) fn change_user(
    config: &Config,
    number: &PhoneNumber,
    changes: &UserChanges,
) -> anyhow::Result<()> {
    let now = Clock::System.now();
    let changed = db::visit_database(database_path(config)?, |conn| {
        with_person(conn, number, |conn, user| {
            let changed = user_admin::change_user(conn, user, changes, Actor::Shell, now)?;
            Ok((changed, user_admin::load_user_account(conn, user)?))
        })
    })?;
    match changed.with_context(|| unknown_user_text(number))? {
        (ChangeUserOutcome::Changed, person) => print_text(&in_full(&person, &config.time_zone)),
        (ChangeUserOutcome::LastAdmin, _) => bail!("demote {}: {}", number.as_str(), last_admin()),
    }
}

/// Approves a user, as an admin does by SMS. A running service sends the user the notification within half a minute.
pub(super) fn approve_user(config: &Config, number: &PhoneNumber) -> anyhow::Result<()> {
    let now = Clock::System.now();
    let ours = config.twilio.as_ref().map(|twilio| Address::new(twilio.phone_number.as_str()));
    let person = db::visit_database(database_path(config)?, |conn| {
        let id = users::ensure_user(conn, number, FirstContactRole::Newcomer, now)?;
        let user = users::load_user(conn, id)?;
        user_access::approve_user(conn, &user, Actor::Shell, ours.as_ref(), now)?;
        user_admin::load_user_account(conn, id)
    })?;
    print_text(&in_full(&person, &config.time_zone))
}

pub(super) fn block_user(config: &Config, number: &PhoneNumber) -> anyhow::Result<()> {
    let now = Clock::System.now();
    let blocked = db::visit_database(database_path(config)?, |conn| {
        with_person(conn, number, |conn, id| {
            let user = users::load_user(conn, id)?;
            let blocking = user_access::block_user(conn, &user, Actor::Shell, now)?;
            Ok((blocking, user_admin::load_user_account(conn, id)?))
        })
    })?;
    match blocked.with_context(|| unknown_user_text(number))? {
        (BlockOutcome::Blocked, person) => print_text(&in_full(&person, &config.time_zone)),
        (BlockOutcome::LastAdmin, _) => bail!("block {}: {}", number.as_str(), last_admin()),
    }
}

/// Lifts the suspension of a user. A user who is not suspended is not changed.
pub(super) fn unsuspend_user(config: &Config, number: &PhoneNumber) -> anyhow::Result<()> {
    let now = Clock::System.now();
    let today = Day::from_timestamp(now, &config.time_zone);
    let person = db::visit_database(database_path(config)?, |conn| {
        with_person(conn, number, |conn, user| {
            code_misses::lift_suspension(conn, user, &today, Actor::Shell, now)?;
            user_admin::load_user_account(conn, user)
        })
    })?;
    print_text(&in_full(&person.with_context(|| unknown_user_text(number))?, &config.time_zone))
}

pub(super) fn forget_user(config: &Config, number: &PhoneNumber) -> anyhow::Result<()> {
    let now = Clock::System.now();
    let forgotten = db::visit_database(database_path(config)?, |conn| {
        with_person(conn, number, |conn, user| forget::forget_user(conn, user, Actor::Shell, now))
    })?;
    match forgotten.with_context(|| unknown_user_text(number))? {
        ErasureOutcome::Erased => {}
        ErasureOutcome::LastAdmin => bail!("forget {}: {}", number.as_str(), last_admin()),
        ErasureOutcome::Busy => bail!(
            "forget {}: a text of theirs is being worked on; hint: let the service finish it, then try again",
            number.as_str()
        ),
    }
    // A running service would have to wait, and rebuilds the index automatically.
    while db::visit_exclusively(database_path(config)?, |conn| privacy::rebuild_due_index(conn, now))?
        == Some(RetentionProgress::More)
    {}
    print_text(&format!("forgotten: {}\n", number.as_str()))?;
    let comes_back = "or the number is known again at the next start";
    if config.people.admin.as_ref() == Some(number) {
        eprintln!("hint: take it out of ADMIN_PHONE, {comes_back}");
    }
    if config.people.members.contains(number) {
        eprintln!("hint: take it out of PHONE_WHITELIST, {comes_back}");
    }
    Ok(())
}

/// Asks for confirmation at the terminal.
pub(super) fn confirm_forgetting(config: &Config, number: &PhoneNumber) -> anyhow::Result<()> {
    let found = db::visit_read_only(database_path(config)?, |conn| {
        with_person(conn, number, user_admin::load_user_account)
    })?;
    let user = found.with_context(|| unknown_user_text(number))?.user;
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
