//! `dialarr users`: who may text and what they may do, also while the service runs.

mod changing;
mod export;
mod listing;
mod values;

use std::path::PathBuf;

use anyhow::Context;
use clap::{Args, Subcommand};

use super::print;
use crate::config::Config;
use crate::conversation::naming::Name;
use crate::conversation::transcript::{PhoneNumber, Role, UserId};
use crate::store::roster::{self, Changes, Limit};
use crate::store::{Conn, QueryResult};
use values::Switch;

#[derive(Debug, Subcommand, PartialEq, Eq)]
pub enum Users {
    /// List everyone who is known, with what they may do
    List,
    /// Show a person and their last conversations
    Show {
        #[arg(value_parser = values::number)]
        number: PhoneNumber,
    },
    /// Let a person in; a number that never texted is made known
    Approve {
        #[arg(value_parser = values::number)]
        number: PhoneNumber,
    },
    /// Answer a person with silence from here on
    Block {
        #[arg(value_parser = values::number)]
        number: PhoneNumber,
    },
    /// Let a person delete and approve by text again after too many wrong codes
    Unsuspend {
        #[arg(value_parser = values::number)]
        number: PhoneNumber,
    },
    /// Make a person an admin
    Promote {
        #[arg(value_parser = values::number)]
        number: PhoneNumber,
    },
    /// Make an admin a member
    Demote {
        #[arg(value_parser = values::number)]
        number: PhoneNumber,
    },
    /// Change a person's name, rights and limits
    Set(Set),
    /// Erase everything that a person said and was told, and who they are
    Forget {
        #[arg(value_parser = values::number)]
        number: PhoneNumber,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
    /// Write everything that is kept of a person as JSON
    Export {
        #[arg(value_parser = values::number)]
        number: PhoneNumber,
        /// New file to write; standard output without it
        file: Option<PathBuf>,
    },
}

#[derive(Debug, Args, PartialEq, Eq)]
pub struct Set {
    #[arg(value_parser = values::number)]
    number: PhoneNumber,
    #[command(flatten)]
    changes: SetChanges,
}

#[derive(Debug, Args, PartialEq, Eq)]
#[group(required = true, multiple = true)]
struct SetChanges {
    /// What they are called
    #[arg(long, value_parser = Name::parse)]
    name: Option<Name>,
    /// Whether they may add titles
    #[arg(long)]
    add: Option<Switch>,
    /// Whether they may delete titles
    #[arg(long)]
    delete: Option<Switch>,
    /// Whether they may add to 4K libraries
    #[arg(long)]
    four_k: Option<Switch>,
    /// Movies they may add within the time of the household's limit
    #[arg(long, value_name = "N|default", value_parser = values::limit)]
    movies: Option<Limit>,
    /// Seasons they may add within the time of the household's limit
    #[arg(long, value_name = "N|default", value_parser = values::limit)]
    seasons: Option<Limit>,
}

pub(super) fn run(config: &Config, command: &Users) -> anyhow::Result<()> {
    match command {
        Users::List => listing::list(config),
        Users::Show { number } => listing::show(config, number),
        Users::Approve { number } => changing::approve(config, number),
        Users::Block { number } => changing::block(config, number),
        Users::Unsuspend { number } => changing::unsuspend(config, number),
        Users::Promote { number } => changing::change(config, number, &role(Role::Admin)),
        Users::Demote { number } => changing::change(config, number, &role(Role::Member)),
        Users::Set(set) => changing::change(config, &set.number, &set.changes.read()),
        Users::Forget { number, yes: true } => changing::forget(config, number),
        Users::Forget { number, yes: false } => {
            changing::confirm_forgetting(config, number)?;
            changing::forget(config, number)
        }
        Users::Export { number, file } => export::export(config, number, file.as_deref()),
    }
}

fn role(role: Role) -> Changes {
    Changes { role: Some(role), ..Changes::default() }
}

impl SetChanges {
    fn read(&self) -> Changes {
        Changes {
            role: None,
            name: self.name.clone(),
            add: self.add.map(Switch::is_on),
            delete: self.delete.map(Switch::is_on),
            four_k: self.four_k.map(Switch::is_on),
            movies: self.movies,
            seasons: self.seasons,
        }
    }
}

fn database(config: &Config) -> anyhow::Result<&str> {
    config.database.to_str().context("use a database path that is not UTF-8")
}

/// What `work` gives for the person of a number; `None` if nobody has it.
fn with_person<R>(
    conn: &mut Conn,
    number: &PhoneNumber,
    work: impl FnOnce(&mut Conn, UserId) -> QueryResult<R>,
) -> QueryResult<Option<R>> {
    roster::by_phone(conn, number)?.map(|user| work(conn, user)).transpose()
}

fn unknown(number: &PhoneNumber) -> String {
    format!("find {}: nobody has this number; hint: dialarr users list", number.as_str())
}
