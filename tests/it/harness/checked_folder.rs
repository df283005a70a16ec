//! Folder of a test's database. When the test ends, every message that nobody asked for is checked.

use std::path::Path;

use diesel::prelude::*;
use diesel::sql_types::Text;

use super::invitations::invited_confirmation;

pub(crate) struct CheckedFolder(tempfile::TempDir);

#[derive(QueryableByName)]
struct Body {
    #[diesel(sql_type = Text)]
    body: String,
}

impl CheckedFolder {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Returns the notifications and the messages of votes; none if the test has left no readable database.
    fn unasked_messages(&self) -> Vec<String> {
        let path = self.path().join("test.db");
        let Some(Ok(mut conn)) = path.exists().then(|| SqliteConnection::establish(path.to_str().unwrap()))
        else {
            return Vec::new();
        };
        let bodies =
            "SELECT body FROM outbox WHERE kind = 'notice' OR id IN (SELECT outbox_id FROM vote_messages)";
        let rows: Vec<Body> = diesel::sql_query(bodies).load(&mut conn).unwrap_or_default();
        rows.into_iter().map(|row| row.body).collect()
    }
}

impl Drop for CheckedFolder {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        for body in self.unasked_messages() {
            if let Some(words) = invited_confirmation(&body) {
                panic!("a message that nobody asked for invites {words:?}: {body}");
            }
        }
    }
}
