//! Notices about imported titles that cannot be played yet.

use super::fanout::NotificationFanout;
use super::playability_check::ImportedTitle;
use crate::conversation::notifications::arr_events::{EventGroup, NotificationText, NotificationTopic};
use crate::conversation::transcript::UserId;
use crate::engine::send_time::earliest_send_time;
use crate::store::QueryResult;
use crate::store::library::follows;
use crate::store::people::users;
use crate::store::queue::notifications::{self, NotificationSetting};

impl NotificationFanout<'_> {
    /// Tells everybody who waits for an import, once, that it cannot be played yet. In quiet hours nobody is told: by the
    /// morning it may be ready.
    pub(super) fn notify_of_delay(
        &mut self,
        imported: &ImportedTitle,
        text: &NotificationText,
    ) -> QueryResult<()> {
        let key = format!("delay:{}:{}", imported.instance, imported.title.catalog_id);
        for user in self.load_waiting_users(imported)? {
            if earliest_send_time(self.conn, user, self.settings, self.now)? <= self.now {
                let keys = [(key.clone(), imported.imported_at)];
                self.notify_user(user, NotificationTopic::Delay, &keys, text)?;
            }
        }
        Ok(())
    }

    /// Tells the admins, once, that no media server shows an import.
    pub(super) fn notify_of_missing_title(
        &mut self,
        imported: &ImportedTitle,
        text: &NotificationText,
    ) -> QueryResult<()> {
        for admin in self.load_uninformed_admins(imported)? {
            let keys = [(missing_key(imported), imported.imported_at)];
            self.notify_user(admin, NotificationTopic::Problem, &keys, text)?;
        }
        Ok(())
    }

    /// Loads the admins who were not told that no media server shows an import. Those in their quiet hours are told after
    /// them, if it is still missing.
    pub(super) fn load_uninformed_admins(&mut self, imported: &ImportedTitle) -> QueryResult<Vec<UserId>> {
        let mut uninformed = Vec::new();
        for admin in users::load_admins(self.conn)? {
            let setting = notifications::load_notification_setting(self.conn, admin.id)?;
            let key = missing_key(imported);
            if setting != NotificationSetting::Off
                && !notifications::was_notified(self.conn, admin.id, &key, imported.imported_at)?
                && earliest_send_time(self.conn, admin.id, self.settings, self.now)? <= self.now
            {
                uninformed.push(admin.id);
            }
        }
        Ok(uninformed)
    }

    /// Ends the wait for an import. Nobody is told that it is ready.
    pub(super) fn give_up(&mut self, group: &EventGroup) -> QueryResult<()> {
        self.claim_group(group).map(drop)
    }

    fn load_waiting_users(&mut self, imported: &ImportedTitle) -> QueryResult<Vec<UserId>> {
        let mut waiting = Vec::new();
        for title in imported.followed_titles() {
            for user in follows::load_followers(self.conn, &title)? {
                if !waiting.contains(&user) {
                    waiting.push(user);
                }
            }
        }
        Ok(waiting)
    }
}

fn missing_key(imported: &ImportedTitle) -> String {
    format!("missing:{}:{}", imported.instance, imported.title.catalog_id)
}
