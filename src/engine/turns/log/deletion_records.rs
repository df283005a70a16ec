//! Records of a confirmed deletion: its items, and the end of its turn.

use super::turn_log::TurnLog;
use crate::conversation::deletion::claimed_deletion::{ClaimedDeletion, DeletionItem};
use crate::conversation::deletion::deletion_messages::ItemOutcome;
use crate::conversation::transcript::CallRow;
use crate::engine::approvals::removal_requests;
use crate::engine::reply_address::ReplyAddress;
use crate::failpoint;
use crate::store::audit::{self, NewAuditEntry};
use crate::store::confirmation::approvals::{self, Approval};
use crate::store::confirmation::deletion_items::{self, ItemStartOutcome};
use crate::store::confirmation::pending_action::{self, NewPendingAction};
use crate::store::database::db::DbError;
use crate::store::library::{space_proposals, title_attributions};
use crate::store::people::users;
use crate::store::queue::outbox;
use crate::store::service_identities::MovedSlots;
use crate::store::turns::finished_turns::{self, TurnEnd};
use crate::store::turns::model_steps;
use crate::store::turns::turn_lifecycle;
use crate::store::{Conn, agent_calls};
use crate::tools::approval;

/// End of a deletion turn, after every item has an outcome.
pub(crate) struct DeletionEnd {
    pub(crate) claimed: ClaimedDeletion,
    /// Report of the outcome of each item.
    pub(crate) report: String,
    /// Removal request that the deletion executed, and the message to its member.
    pub(crate) notification: Option<(Approval, String)>,
    /// New confirmation prompt about items that had changed, which ends the turn instead of `end`.
    pub(crate) new_prompt: Option<NewPendingAction>,
    pub(crate) end: TurnEnd,
}

impl TurnLog {
    /// Loads the deletion that the turn executes.
    pub(crate) async fn load_claimed_deletion(&self) -> anyhow::Result<ClaimedDeletion> {
        let turn = self.active_turn.id;
        let claimed = self.read(move |conn| pending_action::load_claimed_deletion(conn, turn)).await?;
        claimed.ok_or_else(|| anyhow::anyhow!("find the deletion of turn {turn}"))
    }

    /// Loads the removal request that is executed by a deletion, if there is one.
    pub(crate) async fn load_executed_approval(&self, call: CallRow) -> Result<Option<Approval>, DbError> {
        self.read(move |conn| approvals::load_executed_approval(conn, call)).await
    }

    /// Records the intent to delete an item, unless the user has lost the right or the turn was canceled since both were
    /// loaded, for example while a media server was asked who is watching.
    pub(crate) async fn start_item(
        &self,
        (claimed, item): (&ClaimedDeletion, &DeletionItem),
        intent: NewAuditEntry,
    ) -> Result<ItemStartOutcome, DbError> {
        let (turn, user, now) = (self.active_turn.id, self.user, self.now());
        let (claimed, item) = (claimed.clone(), item.clone());
        let start = move |conn: &mut Conn| {
            if MovedSlots::load(conn)?.includes(&item.target.instance, turn) {
                return Ok(ItemStartOutcome::ServerMoved);
            }
            let user = users::load_user(conn, user)?;
            if approval::approve_item(&claimed, &item, &user).is_err()
                || turn_lifecycle::is_cancel_requested(conn, turn)?
            {
                return Ok(ItemStartOutcome::NotStartable);
            }
            let outcome = deletion_items::start_item(conn, (claimed.call(), item.ord), &item.target, now)?;
            if outcome == ItemStartOutcome::Started {
                audit::record_intent(conn, &intent, now)?;
            }
            Ok(outcome)
        };
        self.write(start).await
    }

    /// Allows another start of an item that was certainly not deleted.
    pub(crate) async fn reset_item(&self, call: CallRow, ord: i64) -> Result<(), DbError> {
        self.write(move |conn| deletion_items::reset_item(conn, call, ord)).await
    }

    /// Records the outcome of an item, also in the audit log. A deleted title counts toward nobody's space.
    pub(crate) async fn finish_item(
        &self,
        (call, item): (CallRow, &DeletionItem),
        outcome: ItemOutcome,
        entry: NewAuditEntry,
    ) -> Result<(), DbError> {
        let (now, ord, target) = (self.now(), item.ord, item.target.clone());
        let end = move |conn: &mut Conn| {
            audit::record_outcome(conn, &entry, now);
            if matches!(outcome, ItemOutcome::Deleted | ItemOutcome::AlreadyGone) {
                space_proposals::settle_deleted_title(conn, &target)?;
                title_attributions::drop_deleted_title(conn, &target)?;
            }
            deletion_items::finish_item(conn, call, ord, outcome)
        };
        self.write(end).await
    }

    /// Records the report of a deletion, notifies the member whose removal request it executed, and ends the turn.
    pub(crate) async fn finish_deletion(&self, deletion: DeletionEnd) -> Result<(), DbError> {
        let (now, turn, settings) = (self.now(), self.active_turn.id, self.logs.settings());
        let end = move |conn: &mut Conn| {
            let DeletionEnd { claimed, report, notification, new_prompt, end } = &deletion;
            pending_action::finish_claimed_deletion(conn, claimed, report, now)?;
            if let Some((request, text)) = notification {
                let member = users::load_user(conn, request.user)?;
                let address = ReplyAddress::load_for_user(conn, &member, &settings.senders)?;
                let key = removal_requests::outcome_notification_key(request.id);
                outbox::queue_message_once(conn, &address.notification_message(&key, text), now)?;
            }
            // If the turn was canceled after it was loaded, the report is sent without a new prompt.
            if let Some(prompt) = new_prompt
                && !turn_lifecycle::is_cancel_requested(conn, turn)?
            {
                let call = model_steps::add_call(conn, turn, claimed.tool(), now)?;
                if claimed.agent().is_some() {
                    agent_calls::replace_call(conn, claimed.call(), call)?;
                }
                return pending_action::hold_deletion(conn, call, prompt, now).map(drop);
            }
            finished_turns::finish_turn(conn, end, now)
        };
        self.write(end).await?;
        failpoint::reached("deletion.reported");
        self.signal_end();
        Ok(())
    }
}
