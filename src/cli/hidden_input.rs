//! Input of secrets: typed without echo, or piped as one line each.

use std::io::{self, BufRead, IsTerminal, Stdin};

use anyhow::Context;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use secrecy::SecretString;

/// Reads the next line of standard input, after a prompt if it is a terminal.
pub(super) fn read_secret(name: &str) -> anyhow::Result<SecretString> {
    let stdin = io::stdin();
    let hidden = if stdin.is_terminal() {
        eprint!("{name}: ");
        Some(HiddenInput::start(&stdin).context("hide the input")?)
    } else {
        None
    };
    let mut line = String::new();
    stdin.lock().read_line(&mut line).context("read standard input")?;
    if hidden.is_some() {
        eprintln!();
    }
    let text = line.trim();
    anyhow::ensure!(
        !text.is_empty(),
        "read a value of {name}: it is empty; hint: dialarr config unset {name}"
    );
    Ok(text.into())
}

/// Terminal whose echo is off until the value is dropped.
struct HiddenInput<'a> {
    stdin: &'a Stdin,
    settings: Termios,
}

impl<'a> HiddenInput<'a> {
    fn start(stdin: &'a Stdin) -> io::Result<Self> {
        let settings = tcgetattr(stdin)?;
        let mut hidden = settings.clone();
        hidden.local_modes.remove(LocalModes::ECHO);
        tcsetattr(stdin, OptionalActions::Flush, &hidden)?;
        Ok(Self { stdin, settings })
    }
}

impl Drop for HiddenInput<'_> {
    fn drop(&mut self) {
        if let Err(error) = tcsetattr(self.stdin, OptionalActions::Flush, &self.settings) {
            tracing::warn!(%error, "failed to turn on the echo of the terminal; hint: run stty echo");
        }
    }
}
