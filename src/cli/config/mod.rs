//! `dialarr config`: the settings and their sources. The commands also work while the service runs.

mod edit;
mod import;
mod show;

use std::path::PathBuf;

use clap::Subcommand;

use super::{load_sources, print_text};

#[derive(Debug, Subcommand, PartialEq, Eq)]
pub enum ConfigCommand {
    /// Show every setting with its source, and of secrets only whether they are set
    Show,
    /// Store settings; the value of a secret is typed, or read from a line of standard input
    Set {
        /// NAME=VALUE of a setting, or the NAME of a secret
        #[arg(required = true, value_name = "NAME[=VALUE]")]
        settings: Vec<String>,
    },
    /// Remove stored settings
    Unset {
        #[arg(required = true, value_name = "NAME")]
        names: Vec<String>,
    },
    /// Print the stored settings in the format of .env
    Export {
        /// Include the secrets
        #[arg(long)]
        with_secrets: bool,
    },
    /// Store the settings of a file such as .env, and list the lines to remove from it
    Import {
        /// File in the format of .env
        file: PathBuf,
    },
}

pub(super) fn run_config_command(command: &ConfigCommand) -> anyhow::Result<()> {
    match command {
        ConfigCommand::Show => print_text(&show::format_settings(&load_sources()?)),
        ConfigCommand::Export { with_secrets } => {
            print_text(&show::format_export(&load_sources()?, *with_secrets))
        }
        ConfigCommand::Set { settings } => edit::set_settings(settings),
        ConfigCommand::Unset { names } => edit::unset_settings(names),
        ConfigCommand::Import { file } => import::import_file(file),
    }
}
