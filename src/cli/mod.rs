//! What can be typed after `dialarr`.

use std::path::PathBuf;

use clap::{Parser, Subcommand};

/// Text a phone number, get things done on your Sonarr and Radarr
#[derive(Debug, Parser, PartialEq, Eq)]
#[command(version)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand, PartialEq, Eq)]
pub enum Command {
    /// Try everything on this machine, with a made-up library and no account or key
    Demo(Demo),
    /// Answer texts: listen for webhooks and finish what a crash left open
    Serve,
    /// Talk in the terminal, with the real configuration and libraries
    Chat,
    /// Play a scenario file and tell which scenarios end as they should
    Eval {
        /// JSON file with the scenarios
        file: PathBuf,
    },
}

#[derive(Debug, clap::Args, PartialEq, Eq)]
pub struct Demo {
    /// Play the lines of a file as texts, then exit
    #[arg(long, value_name = "FILE")]
    pub script: Option<PathBuf>,
    /// Only serve; do not read texts from the terminal
    #[arg(long, conflicts_with = "script")]
    pub no_prompt: bool,
}

/// Does what was asked for; an error is for standard error and exit code 1.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let name = match &arguments.command {
        Command::Demo(_) => "demo",
        Command::Serve => "serve",
        Command::Chat => "chat",
        Command::Eval { .. } => "eval",
    };
    anyhow::bail!("run `dialarr {name}`: this build has no such part")
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use clap::error::ErrorKind;
    use clap::{CommandFactory, Parser};

    use super::{Arguments, Command, Demo};

    #[track_caller]
    fn check(line: &str, expected: &Result<Command, ErrorKind>) {
        let parsed = Arguments::try_parse_from(line.split(' '));
        assert_eq!(&parsed.map(|arguments| arguments.command).map_err(|error| error.kind()), expected);
    }

    #[test]
    fn the_definition_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn the_demo_plays_a_script_or_serves_without_a_prompt_but_not_both() {
        let demo = |script: Option<&str>, no_prompt| {
            Ok(Command::Demo(Demo { script: script.map(PathBuf::from), no_prompt }))
        };
        check("dialarr demo", &demo(None, false));
        check("dialarr demo --script texts.txt", &demo(Some("texts.txt"), false));
        check("dialarr demo --no-prompt", &demo(None, true));
        check("dialarr demo --no-prompt --script texts.txt", &Err(ErrorKind::ArgumentConflict));
    }

    #[test]
    fn an_evaluation_needs_its_file() {
        check("dialarr eval cases.json", &Ok(Command::Eval { file: PathBuf::from("cases.json") }));
        check("dialarr eval", &Err(ErrorKind::MissingRequiredArgument));
    }

    #[test]
    fn help_says_in_one_line_what_each_command_does() {
        insta::assert_snapshot!(Arguments::command().render_help());
    }
}
