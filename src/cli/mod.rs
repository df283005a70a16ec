//! Commands and arguments of `dialarr`.

mod chat;
mod config;
mod console;
mod demo;
mod demo_catalog;
mod demo_conversation;
mod demo_imports;
mod demo_output;
mod demo_phone;
mod demo_playback;
mod demo_setup;
mod doctor;
mod eval;
mod health;
mod hidden_input;
mod listeners;
pub mod mcp;
mod serve;
mod setup;
mod users;

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{Parser, Subcommand};

use crate::config::{Bootstrap, Config, ConfigProblems, ConfigSources};
use crate::settings::loading::add_stored_settings;
use crate::settings::secrets_file::SecretsFile;
use crate::store::database::backup::back_up;
use crate::store::database::db::OpenError;
use crate::store::database::migration::MigrationError;
use crate::store::database::shell_access::VisitError;
use crate::telemetry::{self, LogFormat, LogSettings};

/// Log level of a demo, and of commands that do not read the complete configuration.
const QUIET_LOG_LEVEL: &str = "warn";
/// Log level of `eval` and `doctor`, which expect or report most failures themselves, and of a demo that starts with
/// nothing configured.
const ERRORS_ONLY_LOG_LEVEL: &str = "error";
/// Limit of blocking threads, enough for database readers and a few DNS lookups. Idle threads keep the memory that they
/// once used.
const MAX_BLOCKING_THREADS: usize = 8;

/// Text a phone number, get things done on your Sonarr and Radarr
#[derive(Debug, Parser, PartialEq, Eq)]
#[command(version = env!("DIALARR_VERSION"))]
pub struct Arguments {
    #[command(subcommand)]
    pub command: CliCommand,
}

#[derive(Debug, Subcommand, PartialEq, Eq)]
pub enum CliCommand {
    /// Try everything on this machine, with simulated servers and no account or key
    Demo(DemoArguments),
    /// Answer texts: listen for webhooks, and finish the work that a crash interrupted
    Serve,
    /// Text in the terminal as ADMIN_PHONE, with the real configuration and libraries
    Chat,
    /// Check the configuration and all connections, and suggest how to fix problems
    Doctor(doctor::DoctorArguments),
    /// Check the health of the running service, for containers
    Health,
    /// Show and change the stored settings, also while the service runs
    #[command(subcommand)]
    Config(config::ConfigCommand),
    /// Show the settings that Sonarr, Radarr and the channels need for Dialarr; --apply changes them
    Setup(setup::SetupArguments),
    /// List, change, export and erase users, also while the service runs
    #[command(subcommand)]
    Users(users::UsersCommand),
    /// Write a consistent copy of the database, also while the service runs
    Backup {
        /// New file for the copy
        file: PathBuf,
    },
    /// Print a sign-in link for the console of the running service, valid once for ten minutes
    ConsoleLink,
    /// Connect an agent on this machine to the running service, over standard input and output (MCP)
    Mcp(mcp::McpArguments),
    /// Run scenario files, and report the scenarios that fail
    Eval(eval::EvalArguments),
}

#[derive(Debug, clap::Args, PartialEq, Eq)]
pub struct DemoArguments {
    /// Play the lines of a file as texts, then exit
    #[arg(long, value_name = "FILE")]
    pub script: Option<PathBuf>,
    /// Only serve; do not read texts from the terminal
    #[arg(long, conflicts_with = "script")]
    pub no_prompt: bool,
    /// Open the console in the browser
    #[arg(long, conflicts_with = "script")]
    pub open: bool,
    /// Start with nothing configured, to try the setup assistant with simulated Sonarr, Radarr and Twilio
    #[arg(long, conflicts_with_all = ["script", "phone"])]
    pub setup: bool,
    /// Text through a simulated phone with SMS Gateway for Android instead of Twilio
    #[arg(long)]
    pub phone: bool,
}

/// Exit code for errors that a restart cannot fix, so that supervisors do not retry: `EX_CONFIG` of sysexits.h.
const CONFIGURATION_EXIT_CODE: u8 = 78;

/// Returns the exit code of the process after an error.
pub fn exit_code(error: &anyhow::Error) -> u8 {
    let is_unusable = |error: &MigrationError| {
        matches!(error, MigrationError::Newer { .. } | MigrationError::Unusable { .. })
    };
    let is_permanent = error.chain().any(|cause| match (cause.downcast_ref(), cause.downcast_ref()) {
        (Some(OpenError::Migrate(error)), _) | (_, Some(VisitError::Migrate(error))) => is_unusable(error),
        _ => cause.is::<ConfigProblems>(),
    });
    if is_permanent { CONFIGURATION_EXIT_CODE } else { 1 }
}

/// Runs the requested command. The caller prints an error and exits with [`exit_code`].
pub fn run_command(arguments: &Arguments) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .max_blocking_threads(MAX_BLOCKING_THREADS)
        .build()
        .context("start the runtime")?;
    let result = runtime.block_on(async {
        match &arguments.command {
            CliCommand::Demo(demo) => {
                start_plain_logging(if demo.setup { ERRORS_ONLY_LOG_LEVEL } else { QUIET_LOG_LEVEL })?;
                demo::run_demo(demo).await
            }
            CliCommand::Serve => serve::run_service(load_sources()?).await,
            CliCommand::Chat => chat::run_chat(&load_config(&load_sources()?)?).await,
            CliCommand::Doctor(arguments) => {
                start_plain_logging(ERRORS_ONLY_LOG_LEVEL)?;
                doctor::run_doctor(arguments).await
            }
            CliCommand::Health => health::run_health_check(read_bootstrap()?.listen).await,
            CliCommand::Config(command) => {
                start_plain_logging(QUIET_LOG_LEVEL)?;
                config::run_config_command(command)
            }
            CliCommand::Setup(arguments) => {
                setup::run_setup(&load_config(&load_sources()?)?, arguments).await
            }
            CliCommand::Users(command) => users::run_users_command(&load_config(&load_sources()?)?, command),
            CliCommand::Backup { file } => {
                start_plain_logging(QUIET_LOG_LEVEL)?;
                run_backup(&read_bootstrap()?, file)
            }
            CliCommand::ConsoleLink => {
                start_plain_logging(QUIET_LOG_LEVEL)?;
                console::print_link(&read_bootstrap()?)
            }
            CliCommand::Mcp(arguments) => {
                start_plain_logging(QUIET_LOG_LEVEL)?;
                mcp::run_mcp(arguments, || Ok(read_bootstrap()?)).await
            }
            CliCommand::Eval(options) => {
                start_plain_logging(ERRORS_ONLY_LOG_LEVEL)?;
                let config = options
                    .live
                    .then(|| load_sources().and_then(|sources| Ok(Config::from_sources(&sources)?)))
                    .transpose()?;
                eval::run(options, config.as_ref()).await
            }
        }
    });
    // A blocking read from the terminal cannot be interrupted, so tasks are not awaited.
    runtime.shutdown_background();
    result
}

fn run_backup(bootstrap: &Bootstrap, file: &Path) -> anyhow::Result<()> {
    let database = bootstrap.database.to_str().context("use a database path that is not UTF-8")?;
    let copy = file.to_str().context("use a file name that is not UTF-8")?;
    back_up(database, copy)?;
    eprintln!("copied {database} to {copy}");
    if bootstrap.secrets_file.exists() {
        let secrets = bootstrap.secrets_file.display();
        eprintln!("the copy contains no stored secrets; hint: keep a copy of {secrets} at a safe place");
    }
    Ok(())
}

/// Reads all sources of the configuration.
fn load_sources() -> anyhow::Result<ConfigSources> {
    Ok(add_stored_settings(ConfigSources::read())?)
}

/// Loads the complete configuration and starts to log as it says.
fn load_config(sources: &ConfigSources) -> anyhow::Result<Config> {
    let config = Config::from_sources(sources)?;
    telemetry::start_logging(&config.log)?;
    SecretsFile::new(config.secrets_file.clone()).restrict_mode()?;
    Ok(config)
}

fn read_bootstrap() -> Result<Bootstrap, ConfigProblems> {
    Bootstrap::from_sources(&ConfigSources::read())
}

fn start_plain_logging(level: &str) -> anyhow::Result<()> {
    telemetry::start_logging(&LogSettings { format: LogFormat::Pretty, filter: level.to_owned() })
}

/// Prints text to standard output. Unlike `println!`, it returns an error for a closed pipe instead of panicking.
fn print_text(text: &str) -> anyhow::Result<()> {
    io::stdout().lock().write_all(text.as_bytes()).context("write to standard output")
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use clap::error::ErrorKind;
    use clap::{CommandFactory, Parser};

    use super::eval::EvalArguments;
    use super::{Arguments, CliCommand, DemoArguments};

    #[track_caller]
    fn check(line: &str, expected: &Result<CliCommand, ErrorKind>) {
        let parsed = Arguments::try_parse_from(line.split(' '));
        assert_eq!(&parsed.map(|arguments| arguments.command).map_err(|error| error.kind()), expected);
    }

    #[test]
    fn argument_definition_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn demo_runs_a_script_or_without_a_prompt_but_not_both() {
        let demo = |script: Option<&str>, no_prompt| {
            Ok(CliCommand::Demo(DemoArguments {
                script: script.map(PathBuf::from),
                no_prompt,
                open: false,
                setup: false,
                phone: false,
            }))
        };
        check("dialarr demo", &demo(None, false));
        check("dialarr demo --script texts.txt", &demo(Some("texts.txt"), false));
        check("dialarr demo --no-prompt", &demo(None, true));
        check("dialarr demo --no-prompt --script texts.txt", &Err(ErrorKind::ArgumentConflict));
    }

    #[test]
    fn backup_needs_a_target_file() {
        check("dialarr backup copy.db", &Ok(CliCommand::Backup { file: PathBuf::from("copy.db") }));
        check("dialarr backup", &Err(ErrorKind::MissingRequiredArgument));
    }

    #[test]
    fn eval_needs_a_file_and_repeats_only_live_runs() {
        let eval = |live, times, report: Option<&str>| {
            let files = vec![PathBuf::from("cases.json")];
            Ok(CliCommand::Eval(EvalArguments {
                files,
                live,
                times,
                at_least: None,
                report: report.map(PathBuf::from),
            }))
        };
        check("dialarr eval cases.json", &eval(false, 1, None));
        check("dialarr eval cases.json --live --times 4", &eval(true, 4, None));
        check("dialarr eval --report out.md cases.json", &eval(false, 1, Some("out.md")));
        check("dialarr eval", &Err(ErrorKind::MissingRequiredArgument));
        check("dialarr eval cases.json --times 4", &Err(ErrorKind::MissingRequiredArgument));
        check("dialarr eval cases.json --live --times 0", &Err(ErrorKind::ValueValidation));
    }

    #[test]
    fn help_has_one_line_per_command() {
        insta::assert_snapshot!(Arguments::command().render_help());
    }
}
