//! Writer of the files that packages contain beside the program: manual pages in `man`, and shell completions in
//! `completions`, both below the folder in the first argument.

use std::fs;
use std::io::{Error, ErrorKind};
use std::path::PathBuf;

use clap::CommandFactory;
use clap_complete::Shell;
use dialarr::cli::Arguments;

fn main() -> Result<(), Error> {
    let folder = std::env::args_os().nth(1).map(PathBuf::from);
    let folder = folder.ok_or_else(|| Error::new(ErrorKind::InvalidInput, "name the folder to write to"))?;
    let (manual, completions) = (folder.join("man"), folder.join("completions"));
    fs::create_dir_all(&manual)?;
    fs::create_dir_all(&completions)?;
    clap_mangen::generate_to(Arguments::command().disable_help_subcommand(true), &manual)?;
    for shell in [Shell::Bash, Shell::Fish, Shell::Zsh] {
        clap_complete::generate_to(shell, &mut Arguments::command(), "dialarr", &completions)?;
    }
    Ok(())
}
