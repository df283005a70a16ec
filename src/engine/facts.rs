//! Answers of code about the stored facts of a user: the list of them, and the removal of one.

use serde_json::json;

use super::begin::{Beginning, Begun, Scene};
use crate::conversation::facts as known;
use crate::conversation::inbound_message::InboundEvent;
use crate::conversation::transcript::User;
use crate::store::QueryResult;
use crate::store::audit::{self, By, Entry, Subject};
use crate::store::memory::facts::{self, Which};

impl Beginning<'_> {
    pub(super) fn what_is_known(
        &mut self,
        user: &User,
        scene: &Scene,
        events: &[InboundEvent],
    ) -> QueryResult<Begun> {
        let list = facts::known(self.conn, user.id)?.list(self.model);
        self.answer_dropping(user, scene, events, &list)
    }

    pub(super) fn forget_fact(
        &mut self,
        user: &User,
        scene: &Scene,
        events: &[InboundEvent],
        number: u32,
    ) -> QueryResult<Begun> {
        let text = match facts::forget(self.conn, user.id, Which::Number(number), self.now)? {
            Some(fact) => {
                let entry = Entry {
                    by: By::User(user.id),
                    kind: "forget_fact",
                    subject: Subject::User(user.id),
                    detail: json!({ "number": number }),
                };
                audit::record(self.conn, &entry, self.now)?;
                known::forgot(&fact)
            }
            None => known::no_such_number(number),
        };
        self.answer_dropping(user, scene, events, &text)
    }
}
