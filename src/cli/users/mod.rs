//! `dialarr users`: users and their permissions. The commands also work while the service runs.

mod edit;
mod export;
mod list;
mod value_parsers;

use std::path::PathBuf;

use anyhow::Context;
use clap::{Args, Subcommand};

use super::print_text;
use crate::config::Config;
use crate::conversation::people::naming::UserName;
use crate::conversation::transcript::{PhoneNumber, UserId, UserRole};
use crate::store::people::user_admin::{self, UserChanges, UserLimit};
use crate::store::{Conn, QueryResult};
use value_parsers::OnOff;

#[derive(Debug, Subcommand, PartialEq, Eq)]
pub enum UsersCommand {
    /// List all users with their permissions
    List,
    /// Show a user and their last conversations
    Show {
        #[arg(value_parser = value_parsers::parse_phone)]
        number: PhoneNumber,
    },
    /// Approve a user; a number that never texted is added
    Approve {
        #[arg(value_parser = value_parsers::parse_phone)]
        number: PhoneNumber,
    },
    /// Block a user: their texts get no reply
    Block {
        #[arg(value_parser = value_parsers::parse_phone)]
        number: PhoneNumber,
    },
    /// Allow a user to delete and approve by text again after too many wrong codes
    Unsuspend {
        #[arg(value_parser = value_parsers::parse_phone)]
        number: PhoneNumber,
    },
    /// Make a user an admin
    Promote {
        #[arg(value_parser = value_parsers::parse_phone)]
        number: PhoneNumber,
    },
    /// Make an admin a member
    Demote {
        #[arg(value_parser = value_parsers::parse_phone)]
        number: PhoneNumber,
    },
    /// Change a user's name, permissions and limits
    Set(SetArguments),
    /// Erase all messages of a user, and their identity
    Forget {
        #[arg(value_parser = value_parsers::parse_phone)]
        number: PhoneNumber,
        /// Do not ask for confirmation
        #[arg(long)]
        yes: bool,
    },
    /// Write all stored data of a user as JSON
    Export {
        #[arg(value_parser = value_parsers::parse_phone)]
        number: PhoneNumber,
        /// New file; the default is standard output
        file: Option<PathBuf>,
    },
}

#[derive(Debug, Args, PartialEq, Eq)]
pub struct SetArguments {
    #[arg(value_parser = value_parsers::parse_phone)]
    number: PhoneNumber,
    #[command(flatten)]
    changes: SetChanges,
}

#[derive(Debug, Args, PartialEq, Eq)]
#[group(required = true, multiple = true)]
struct SetChanges {
    /// Name of the user
    #[arg(long, value_parser = UserName::parse)]
    name: Option<UserName>,
    /// Allow adding titles
    #[arg(long)]
    add: Option<OnOff>,
    /// Allow deleting titles
    #[arg(long)]
    delete: Option<OnOff>,
    /// Allow adding to 4K libraries
    #[arg(long)]
    four_k: Option<OnOff>,
    /// Limit of added movies in the period of the household's quota
    #[arg(long, value_name = "N|default", value_parser = value_parsers::parse_limit)]
    movies: Option<UserLimit>,
    /// Limit of added seasons in the period of the household's quota
    #[arg(long, value_name = "N|default", value_parser = value_parsers::parse_limit)]
    seasons: Option<UserLimit>,
}

pub(super) fn run_users_command(config: &Config, command: &UsersCommand) -> anyhow::Result<()> {
    match command {
        UsersCommand::List => list::list_users(config),
        UsersCommand::Show { number } => list::show_user(config, number),
        UsersCommand::Approve { number } => edit::approve_user(config, number),
        UsersCommand::Block { number } => edit::block_user(config, number),
        UsersCommand::Unsuspend { number } => edit::unsuspend_user(config, number),
        UsersCommand::Promote { number } => edit::change_user(config, number, &role_changes(UserRole::Admin)),
        UsersCommand::Demote { number } => edit::change_user(config, number, &role_changes(UserRole::Member)),
        UsersCommand::Set(set) => edit::change_user(config, &set.number, &set.changes.to_changes()),
        UsersCommand::Forget { number, yes: true } => edit::forget_user(config, number),
        UsersCommand::Forget { number, yes: false } => {
            edit::confirm_erasure(config, number)?;
            edit::forget_user(config, number)
        }
        UsersCommand::Export { number, file } => export::export_user(config, number, file.as_deref()),
    }
}

fn role_changes(role: UserRole) -> UserChanges {
    UserChanges { role: Some(role), ..UserChanges::default() }
}

impl SetChanges {
    fn to_changes(&self) -> UserChanges {
        UserChanges {
            role: None,
            name: self.name.clone(),
            add: self.add.map(OnOff::is_on),
            delete: self.delete.map(OnOff::is_on),
            four_k: self.four_k.map(OnOff::is_on),
            movies: self.movies,
            seasons: self.seasons,
        }
    }
}

fn database_path(config: &Config) -> anyhow::Result<&str> {
    config.database.to_str().context("use a database path that is not UTF-8")
}

/// Runs `operation` for the user with a number. Returns `None` if no user has it.
fn with_user<R>(
    conn: &mut Conn,
    number: &PhoneNumber,
    operation: impl FnOnce(&mut Conn, UserId) -> QueryResult<R>,
) -> QueryResult<Option<R>> {
    user_admin::find_user_id_by_phone(conn, number)?.map(|user| operation(conn, user)).transpose()
}

fn unknown_user_text(number: &PhoneNumber) -> String {
    format!("find {}: no user has this number; hint: dialarr users list", number.as_str())
}
