//! Changes to users, each recorded in the audit log.

use std::io::BufRead;

use anyhow::{Context, bail};

use super::list::format_user;
use super::{database_path, print_text, unknown_user_text, with_user};
use crate::clock::Clock;
use crate::config::Config;
use crate::conversation::transcript::{PhoneNumber, UserAddress};
use crate::engine::approvals::user_access::{self, BlockOutcome};
use crate::store::audit::Actor;
use crate::store::confirmation::code_misses;
use crate::store::database::shell_access;
use crate::store::people::addresses;
use crate::store::people::user_admin::{self, ChangeUserOutcome, UserChanges};
use crate::store::people::users::{self, FirstContactRole};
use crate::store::privacy::forget::{self, ErasureOutcome};
use crate::store::text_index::{self, TextIndexProgress};
use crate::store::turns::daily_budget::Day;
use crate::wiring;

/// Word that the operator types to confirm the erasure of a user.
const ERASURE_WORD: &str = "FORGET";

pub(super) fn change_user(
    config: &Config,
    address: &UserAddress,
    changes: &UserChanges,
) -> anyhow::Result<()> {
    let now = Clock::System.now();
    let change = shell_access::visit_database(database_path(config)?, |conn| {
        with_user(conn, address, |conn, user| {
            let outcome = user_admin::change_user(conn, user, changes, Actor::Shell, now)?;
            Ok((outcome, user_admin::load_user_account(conn, user)?))
        })
    })?;
    match change.with_context(|| unknown_user_text(address))? {
        (ChangeUserOutcome::Changed, account) => print_text(&format_user(&account, &config.time_zone)),
        (ChangeUserOutcome::LastAdmin, _) => bail!("demote {}: {}", address.to_text(), last_admin_error()),
    }
}

/// Approves a user, as an admin can by SMS. A running service notifies the user within half a minute.
pub(super) fn approve_user(config: &Config, address: &UserAddress) -> anyhow::Result<()> {
    let now = Clock::System.now();
    let senders = wiring::build_senders(config);
    let account = shell_access::visit_database(database_path(config)?, |conn| {
        let id = users::ensure_user(conn, address, FirstContactRole::Newcomer, now)?;
        let user = users::load_user(conn, id)?;
        user_access::approve_user(conn, &user, Actor::Shell, &senders, now)?;
        user_admin::load_user_account(conn, id)
    })?;
    print_text(&format_user(&account, &config.time_zone))
}

pub(super) fn block_user(config: &Config, address: &UserAddress) -> anyhow::Result<()> {
    let now = Clock::System.now();
    let blocked = shell_access::visit_database(database_path(config)?, |conn| {
        with_user(conn, address, |conn, id| {
            let user = users::load_user(conn, id)?;
            let outcome = user_access::block_user(conn, &user, Actor::Shell, now)?;
            Ok((outcome, user_admin::load_user_account(conn, id)?))
        })
    })?;
    match blocked.with_context(|| unknown_user_text(address))? {
        (BlockOutcome::Blocked, account) => print_text(&format_user(&account, &config.time_zone)),
        (BlockOutcome::LastAdmin, _) => bail!("block {}: {}", address.to_text(), last_admin_error()),
    }
}

/// Lifts the suspension of a user. A user who is not suspended is not changed.
pub(super) fn unsuspend_user(config: &Config, address: &UserAddress) -> anyhow::Result<()> {
    let now = Clock::System.now();
    let today = Day::from_timestamp(now, &config.time_zone);
    let account = shell_access::visit_database(database_path(config)?, |conn| {
        with_user(conn, address, |conn, user| {
            code_misses::lift_suspension(conn, user, &today, Actor::Shell, now)?;
            user_admin::load_user_account(conn, user)
        })
    })?;
    print_text(&format_user(&account.with_context(|| unknown_user_text(address))?, &config.time_zone))
}

pub(super) fn forget_user(config: &Config, address: &UserAddress) -> anyhow::Result<()> {
    let now = Clock::System.now();
    let erasure = shell_access::visit_database(database_path(config)?, |conn| {
        with_user(conn, address, |conn, user| {
            let addresses = addresses::load_addresses(conn, user)?;
            Ok((forget::forget_user(conn, user, Actor::Shell, now)?, addresses))
        })
    })?;
    let (outcome, addresses) = erasure.with_context(|| unknown_user_text(address))?;
    match outcome {
        ErasureOutcome::Erased => {}
        ErasureOutcome::LastAdmin => bail!("forget {}: {}", address.to_text(), last_admin_error()),
        ErasureOutcome::Busy => bail!(
            "forget {}: a text of this user is being processed; hint: wait until the service has answered it, then try again",
            address.to_text()
        ),
    }
    // A running service would have to wait, and rebuilds the index automatically.
    while shell_access::visit_exclusively(database_path(config)?, |conn| {
        text_index::rebuild_due_index(conn, now)
    })? == Some(TextIndexProgress::More)
    {}
    print_text(&format!("forgotten: {}\n", address.to_text()))?;
    let consequence = "or it is added again at the next start";
    let numbers: Vec<&PhoneNumber> = addresses.iter().filter_map(|stored| stored.address.phone()).collect();
    if config.people.admin.as_ref().is_some_and(|admin| numbers.contains(&admin)) {
        eprintln!("hint: remove the number from ADMIN_PHONE, {consequence}");
    }
    if config.people.members.iter().any(|member| numbers.contains(&member)) {
        eprintln!("hint: remove the number from PHONE_WHITELIST, {consequence}");
    }
    Ok(())
}

/// Asks for confirmation at the terminal.
pub(super) fn confirm_erasure(config: &Config, address: &UserAddress) -> anyhow::Result<()> {
    let account = shell_access::visit_read_only(database_path(config)?, |conn| {
        with_user(conn, address, user_admin::load_user_account)
    })?;
    let user = account.with_context(|| unknown_user_text(address))?.user;
    let name = user.name.map(|name| format!(" ({name})")).unwrap_or_default();
    eprint!("Type {ERASURE_WORD} to erase all data of {}{name}: ", address.to_text());
    let mut input = String::new();
    std::io::stdin().lock().read_line(&mut input).context("read from the terminal")?;
    if input.trim() != ERASURE_WORD {
        bail!("forget {}: {ERASURE_WORD} was not typed", address.to_text());
    }
    Ok(())
}

fn last_admin_error() -> &'static str {
    "this is the last active admin; hint: dialarr users promote"
}
