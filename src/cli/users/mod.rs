//! `dialarr users`: users and their permissions. A user is found by any of their addresses. The commands also work while
//! the service runs.

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
use crate::conversation::transcript::{UserAddress, UserId, UserRole};
use crate::store::people::user_admin::{self, UserChanges, UserLimit};
use crate::store::{Conn, QueryResult};
use value_parsers::{AgeCap, DigestChoice, OnOff};

#[derive(Debug, Subcommand, PartialEq, Eq)]
pub enum UsersCommand {
    /// List all users with their permissions
    List,
    /// Show a user and their last conversations
    Show {
        #[arg(value_parser = value_parsers::parse_address)]
        address: UserAddress,
    },
    /// Approve a user; an address that never texted is added
    Approve {
        #[arg(value_parser = value_parsers::parse_address)]
        address: UserAddress,
    },
    /// Block a user: their texts get no reply
    Block {
        #[arg(value_parser = value_parsers::parse_address)]
        address: UserAddress,
    },
    /// Allow a user to delete and approve by text again after too many wrong codes
    Unsuspend {
        #[arg(value_parser = value_parsers::parse_address)]
        address: UserAddress,
    },
    /// Make a user an admin
    Promote {
        #[arg(value_parser = value_parsers::parse_address)]
        address: UserAddress,
    },
    /// Make an admin a member
    Demote {
        #[arg(value_parser = value_parsers::parse_address)]
        address: UserAddress,
    },
    /// Change a user's name, permissions and limits
    Set(SetArguments),
    /// Erase all messages of a user, and their identity
    Forget {
        #[arg(value_parser = value_parsers::parse_address)]
        address: UserAddress,
        /// Do not ask for confirmation
        #[arg(long)]
        yes: bool,
    },
    /// Write all stored data of a user as JSON
    Export {
        #[arg(value_parser = value_parsers::parse_address)]
        address: UserAddress,
        /// New file; the default is standard output
        file: Option<PathBuf>,
    },
}

#[derive(Debug, Args, PartialEq, Eq)]
pub struct SetArguments {
    #[arg(value_parser = value_parsers::parse_address)]
    address: UserAddress,
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
    /// Limit of the gigabytes that the user's titles hold
    #[arg(long, value_name = "GB|default", value_parser = value_parsers::parse_limit)]
    space: Option<UserLimit>,
    /// Highest age rating of movies, in years; titles over it are hidden from the user
    #[arg(long, value_name = "AGE|none", value_parser = value_parsers::parse_cap)]
    movie_age: Option<AgeCap>,
    /// Highest age rating of shows, in years; titles over it are hidden from the user
    #[arg(long, value_name = "AGE|none", value_parser = value_parsers::parse_cap)]
    show_age: Option<AgeCap>,
    /// Let the user decide about titles over the age ratings of others
    #[arg(long)]
    parent: Option<OnOff>,
    /// Time of the weekly digest, such as "friday 18"
    #[arg(long, value_name = "DAY HOUR|off", value_parser = value_parsers::parse_digest)]
    digest: Option<DigestChoice>,
}

pub(super) fn run_users_command(config: &Config, command: &UsersCommand) -> anyhow::Result<()> {
    match command {
        UsersCommand::List => list::list_users(config),
        UsersCommand::Show { address } => list::show_user(config, address),
        UsersCommand::Approve { address } => edit::approve_user(config, address),
        UsersCommand::Block { address } => edit::block_user(config, address),
        UsersCommand::Unsuspend { address } => edit::unsuspend_user(config, address),
        UsersCommand::Promote { address } => {
            edit::change_user(config, address, &role_changes(UserRole::Admin))
        }
        UsersCommand::Demote { address } => {
            edit::change_user(config, address, &role_changes(UserRole::Member))
        }
        UsersCommand::Set(set) => edit::change_user(config, &set.address, &set.changes.to_changes()),
        UsersCommand::Forget { address, yes: true } => edit::forget_user(config, address),
        UsersCommand::Forget { address, yes: false } => {
            edit::confirm_erasure(config, address)?;
            edit::forget_user(config, address)
        }
        UsersCommand::Export { address, file } => export::export_user(config, address, file.as_deref()),
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
            space: self.space,
            movie_cap: self.movie_age.map(AgeCap::minimum_age),
            show_cap: self.show_age.map(AgeCap::minimum_age),
            parent: self.parent.map(OnOff::is_on),
            digest: self.digest.map(DigestChoice::schedule),
        }
    }
}

fn database_path(config: &Config) -> anyhow::Result<&str> {
    config.database.to_str().context("use a database path that is not UTF-8")
}

/// Runs `operation` for the user with an address. Returns `None` if no user has it.
fn with_user<R>(
    conn: &mut Conn,
    address: &UserAddress,
    operation: impl FnOnce(&mut Conn, UserId) -> QueryResult<R>,
) -> QueryResult<Option<R>> {
    user_admin::find_user_id(conn, address.clone())?.map(|user| operation(conn, user)).transpose()
}

fn unknown_user_text(address: &UserAddress) -> String {
    format!("find {}: no user has this address; hint: dialarr users list", address.to_text())
}
