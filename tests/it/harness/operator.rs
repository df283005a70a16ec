//! Operator's actions at the shell while the program runs, and the program's automatic hourly work.

use dialarr::conversation::transcript::{PhoneNumber, UserId};
use dialarr::conversation::viewer_accounts::{MediaServerKind, ViewerAccount};
use dialarr::media_servers::fake::FakeJellyfin;
use dialarr::store::audit::Actor;
use dialarr::store::database::shell_access;
use dialarr::store::people::{user_admin, users, viewer_accounts};
use dialarr::store::privacy::export::export_user;
use dialarr::store::privacy::forget::{ErasureOutcome, forget_user};
use dialarr::store::{Conn, QueryResult};
use diesel::connection::SimpleConnection;
use serde_json::Value;

use super::TestApp;

impl TestApp {
    pub(crate) fn forget_user(&self, phone: &str) -> ErasureOutcome {
        let now = self.now();
        self.at_the_shell(phone, |conn, user| forget_user(conn, user, Actor::Shell, now))
    }

    /// Returns the stored data of a user, as that user would read it.
    pub(crate) fn export_user(&self, phone: &str) -> Value {
        serde_json::to_value(self.at_the_shell(phone, export_user)).unwrap()
    }

    fn at_the_shell<R>(&self, phone: &str, work: impl FnOnce(&mut Conn, UserId) -> QueryResult<R>) -> R {
        let (path, phone) = (self.world.folder.path().join("test.db"), PhoneNumber::parse(phone).unwrap());
        let visit = |conn: &mut Conn| {
            let user = user_admin::find_user_id(conn, &phone)?.unwrap();
            work(conn, user)
        };
        shell_access::visit_database(path.to_str().unwrap(), visit).unwrap()
    }

    /// Leaves the household without an admin, as before the setup.
    pub(crate) async fn demote_admins(&self) {
        self.run_statement("UPDATE users SET role = 'member'").await;
    }

    /// Changes stored rows.
    pub(crate) async fn run_statement(&self, statement: &'static str) {
        self.app().db.write(|conn| conn.batch_execute(statement)).await.unwrap();
    }

    /// Links a person to a user of Jellyfin.
    pub(crate) async fn link_viewer(&self, phone: &str, user: u64) {
        let (phone, now) = (PhoneNumber::parse(phone).unwrap(), self.now());
        let (server, id) = (MediaServerKind::Jellyfin, FakeJellyfin::user_id(user));
        let account = ViewerAccount { server, id, name: "someone".to_owned() };
        let link = move |conn: &mut Conn| {
            let user = users::find_user_by_phone(conn, &phone)?.unwrap();
            viewer_accounts::link_account(conn, user.id, &account, Actor::Console, now).map(drop)
        };
        self.app().db.write(link).await.unwrap();
    }

    /// Lets days pass, runs the hourly work, and waits until its messages are sent.
    pub(crate) async fn days_pass(&self, days: i64) {
        self.pass(days * 24 * 60 * 60);
        self.app().run_maintenance_once().await;
        self.settle().await;
    }
}
