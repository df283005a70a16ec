//! Output of `dialarr demo`: texts, above a prompt if somebody types them in a terminal.

use std::io::{IsTerminal, Write, stdin, stdout};

use super::DemoArguments;
use super::demo::ADMIN_PHONE;

const PROMPT: &str = "you: ";
/// Moves to the start of the line and erases it.
const CLEAR_LINE: &str = "\r\x1b[K";

/// Output of the demo: texts, above a prompt if somebody types them in a terminal.
#[derive(Debug, Clone, Copy)]
pub(super) struct DemoOutput {
    shows_prompt: bool,
}

impl DemoOutput {
    pub(super) fn new(demo: &DemoArguments) -> Self {
        let is_typed = demo.script.is_none() && !demo.no_prompt;
        Self { shows_prompt: is_typed && stdin().is_terminal() && stdout().is_terminal() }
    }

    pub(super) fn print_text(self, to: &str, body: &str) {
        match to.strip_prefix("+1555010010") {
            Some(other) if to != ADMIN_PHONE => self.print_line(&format!("dialarr @{other}: {body}")),
            _ => self.print_line(&format!("dialarr: {body}")),
        }
    }

    /// Prints a line in place of the prompt, and the prompt again below it.
    #[expect(clippy::print_stdout, reason = "the command prints the conversation")]
    fn print_line(self, line: &str) {
        if self.shows_prompt {
            println!("{CLEAR_LINE}{line}");
            self.print_prompt();
        } else {
            println!("{line}");
        }
    }

    #[expect(clippy::print_stdout, reason = "the command prints the conversation")]
    pub(super) fn print_prompt(self) {
        if self.shows_prompt {
            print!("{PROMPT}");
            // Without a terminal that accepts it, nobody sees the prompt.
            let _ = stdout().flush();
        }
    }
}
