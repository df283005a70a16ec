//! Entry point: parses the arguments, runs the command, and prints its error.

use std::process::ExitCode;

use clap::Parser;
use dialarr::cli;
use rustix::fs::Mode;
use rustix::process::umask;

fn main() -> ExitCode {
    // The files contain messages and phone numbers, so no other account on this machine may read them.
    umask(Mode::RWXG | Mode::RWXO);
    #[cfg(feature = "failpoints")]
    if let Some(failpoint) = dialarr::config::failpoint() {
        dialarr::failpoint::arm_failpoint(failpoint);
    }
    let arguments = cli::Arguments::parse();
    match cli::run_command(&arguments) {
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
