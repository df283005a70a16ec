//! Export of all stored data of a user, to standard output or to a new file that only its owner can read.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use anyhow::Context;
use serde_json::json;

use super::{database_path, unknown_user_text, with_user};
use crate::clock::Clock;
use crate::config::Config;
use crate::conversation::transcript::UserAddress;
use crate::store::audit::{self, Actor, AuditSubject, NewAuditEntry};
use crate::store::database::shell_access;
use crate::store::privacy::export::{self, UserExport};

pub(super) fn export_user(config: &Config, address: &UserAddress, file: Option<&Path>) -> anyhow::Result<()> {
    let now = Clock::System.now();
    let export = shell_access::visit_database(database_path(config)?, |conn| {
        with_user(conn, address, |conn, user| {
            let subject = AuditSubject::User(user);
            let entry = NewAuditEntry { actor: Actor::Shell, kind: "export", subject, detail: json!({}) };
            audit::record_change(conn, &entry, now)?;
            export::export_user(conn, user)
        })
    })?;
    let export = export.with_context(|| unknown_user_text(address))?;
    let Some(path) = file else {
        return write_export(&export, io::stdout().lock()).context("write to standard output");
    };
    let file = create_private_file(path).with_context(|| format!("create {}", path.display()))?;
    write_export(&export, file).with_context(|| format!("write {}", path.display()))?;
    eprintln!("exported {} to {}", address.to_text(), path.display());
    Ok(())
}

/// Creates a new file that only its owner can read.
fn create_private_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

fn write_export(export: &UserExport, output: impl Write) -> io::Result<()> {
    let mut output = BufWriter::new(output);
    serde_json::to_writer_pretty(&mut output, export)?;
    writeln!(output)?;
    output.flush()
}
