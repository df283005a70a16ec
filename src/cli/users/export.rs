//! Everything that is kept of a person, in a file that only the operator reads.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use anyhow::Context;
use serde_json::json;

use super::{database, unknown, with_person};
use crate::clock::Clock;
use crate::config::Config;
use crate::conversation::transcript::PhoneNumber;
use crate::store::audit::{self, By, Entry, Subject};
use crate::store::db;
use crate::store::privacy::export::{self, Export};

pub(super) fn export(config: &Config, number: &PhoneNumber, file: Option<&Path>) -> anyhow::Result<()> {
    let now = Clock::System.now();
    let found = db::visit(database(config)?, |conn| {
        with_person(conn, number, |conn, user| {
            let subject = Subject::User(user);
            let entry = Entry { by: By::Shell, kind: "export", subject, detail: json!({}) };
            audit::record(conn, &entry, now)?;
            export::export(conn, user)
        })
    })?;
    let export = found.with_context(|| unknown(number))?;
    let Some(path) = file else {
        return write(&export, io::stdout().lock()).context("write to the terminal");
    };
    let file = private(path).with_context(|| format!("create {}", path.display()))?;
    write(&export, file).with_context(|| format!("write {}", path.display()))?;
    eprintln!("exported {} to {}", number.as_str(), path.display());
    Ok(())
}

/// A file that was not there before, and that nobody else can read.
fn private(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

fn write(export: &Export, to: impl Write) -> io::Result<()> {
    let mut to = BufWriter::new(to);
    serde_json::to_writer_pretty(&mut to, export)?;
    writeln!(to)?;
    to.flush()
}
