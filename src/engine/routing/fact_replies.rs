//! Replies from code about the stored facts of a user: the list of facts, and the removal of a fact.

use serde_json::json;

use super::turn_start::{TurnStart, TurnStartOutcome};
use super::user_context::UserContext;
use crate::conversation::people::facts::{format_forgotten, format_unknown_number};
use crate::conversation::routing::inbound_message::InboundEvent;
use crate::conversation::transcript::User;
use crate::store::QueryResult;
use crate::store::audit::{self, Actor, AuditSubject, NewAuditEntry};
use crate::store::memory::facts::{self, FactSelector};

impl TurnStart<'_> {
    pub(super) fn list_facts(
        &mut self,
        user: &User,
        context: &UserContext,
        events: &[InboundEvent],
    ) -> QueryResult<TurnStartOutcome> {
        let list = facts::load_facts(self.conn, user.id)?.format_list(self.responder);
        self.answer_and_drop_prompt(user, context, events, &list)
    }

    pub(super) fn forget_fact(
        &mut self,
        user: &User,
        context: &UserContext,
        events: &[InboundEvent],
        number: u32,
    ) -> QueryResult<TurnStartOutcome> {
        let text = match facts::forget_fact(self.conn, user.id, FactSelector::Number(number), self.now)? {
            Some(fact) => {
                let entry = NewAuditEntry {
                    actor: Actor::User(user.id),
                    kind: "forget_fact",
                    subject: AuditSubject::User(user.id),
                    detail: json!({ "number": number }),
                };
                audit::record_change(self.conn, &entry, self.now)?;
                format_forgotten(&fact)
            }
            None => format_unknown_number(number),
        };
        self.answer_and_drop_prompt(user, context, events, &text)
    }
}
