//! Parses the arguments, runs the command, tells what went wrong.

use std::process::ExitCode;

use clap::Parser;
use dialarr::cli;

fn main() -> ExitCode {
    dialarr::http::install_tls();
    let arguments = cli::Arguments::parse();
    match cli::run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: failed to {error}");
            for cause in error.chain().skip(1) {
                eprintln!("  caused by: {cause}");
            }
            ExitCode::from(cli::exit_code(&error))
        }
    }
}
