//! Notices about imported titles that cannot be played yet.

use super::fanout::NotificationFanout;
use super::playability_check::ImportedTitle;
use super::send_time::earliest_send_time;
use crate::conversation::notifications::arr_events::{EventGroup, NotificationText, NotificationTopic};
use crate::conversation::transcript::UserId;
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
        for user in self.load_waiting_users(imported)? {
            if earliest_send_time(self.conn, user, self.settings, self.now)? <= self.now {
                self.notify_user_of_delay(user, imported, text)?;
            }
        }
        Ok(())
    }

    /// Tells the admins, once, that no media server shows an import, with the likely cause. People who were not told of the
    /// delay in their quiet hours are told after them.
    pub(super) fn notify_of_missing_title(
        &mut self,
        imported: &ImportedTitle,
        (delay, missing): (&NotificationText, &NotificationText),
    ) -> QueryResult<()> {
        for user in self.load_waiting_users(imported)? {
            self.notify_user_of_delay(user, imported, delay)?;
        }
        let key = format!("missing:{}:{}", imported.instance, imported.title.catalog_id);
        for admin in users::load_admins(self.conn)? {
            let setting = notifications::load_notification_setting(self.conn, admin.id)?;
            if setting != NotificationSetting::Off {
                let keys = [(key.clone(), imported.imported_at)];
                self.notify_user(admin.id, NotificationTopic::Problem, &keys, missing)?;
            }
        }
        Ok(())
    }

    /// Ends the wait for an import. Nobody is told that it is ready.
    pub(super) fn give_up(&mut self, group: &EventGroup) -> QueryResult<()> {
        self.claim_group(group).map(drop)
    }

    fn notify_user_of_delay(
        &mut self,
        user: UserId,
        imported: &ImportedTitle,
        text: &NotificationText,
    ) -> QueryResult<()> {
        let key = format!("delay:{}:{}", imported.instance, imported.title.catalog_id);
        self.notify_user(user, NotificationTopic::Delay, &[(key, imported.imported_at)], text).map(drop)
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
