//! Onboarding of newcomers: Dialarr asks for a name, then asks the admins for approval. Until then, a newcomer can do
//! nothing else.

use super::turn_start::{TurnStart, TurnStartOutcome};
use crate::conversation::people::first_request::FirstRequest;
use crate::conversation::people::onboarding::{self, OnboardingStep};
use crate::conversation::routing::inbound_message::InboundEvent;
use crate::conversation::transcript::User;
use crate::engine::reply_address::{self, ReplyAddress};
use crate::store::QueryResult;
use crate::store::confirmation::approvals::{self, ApprovalKind, NewApproval};
use crate::store::people::join_requests;
use crate::store::queue::inbound_messages::{self, MessageOutcome};
use crate::store::queue::outbox;

impl TurnStart<'_> {
    pub(super) fn receive_newcomer(
        &mut self,
        user: &User,
        event: &InboundEvent,
    ) -> QueryResult<TurnStartOutcome> {
        let newcomer = join_requests::load_newcomer(self.conn, user.id)?;
        let waiting_room = join_requests::load_waiting_room(self.conn, self.now)?;
        match onboarding::next_onboarding_step(&newcomer, waiting_room, &event.body, self.now) {
            OnboardingStep::Welcome => {
                if let Some(request) = FirstRequest::from_text(&event.body) {
                    join_requests::store_first_request(self.conn, user.id, &request, self.now)?;
                }
                self.ask_name(user, event, onboarding::WELCOME)
            }
            OnboardingStep::AskNameAgain => self.ask_name(user, event, onboarding::ASK_NAME_AGAIN),
            OnboardingStep::AskAdmins(name) => {
                join_requests::record_introduction(self.conn, user.id, &name, self.now)?;
                self.ask_admins_about(user, name.as_str(), event)?;
                self.skip_message(event, "introduced")
            }
            OnboardingStep::AskAdminsAgain => {
                join_requests::restart_wait(self.conn, user.id, self.now)?;
                self.ask_admins_about(user, &newcomer.name.unwrap_or_default(), event)?;
                self.skip_message(event, "introduced")
            }
            OnboardingStep::NoReply => self.skip_message(event, "unknown_sender"),
        }
    }

    fn ask_name(&mut self, user: &User, event: &InboundEvent, text: &str) -> QueryResult<TurnStartOutcome> {
        join_requests::record_name_prompt(self.conn, user.id, self.now)?;
        let message = ReplyAddress::from_message(user, event).reply_message(text.to_owned());
        outbox::queue_message(self.conn, &message, self.now)?;
        inbound_messages::finish_message(self.conn, event.id, MessageOutcome::Replied, self.now)?;
        Ok(TurnStartOutcome::Answered)
    }

    fn ask_admins_about(&mut self, user: &User, name: &str, event: &InboundEvent) -> QueryResult<()> {
        let request = NewApproval { user: user.id, kind: &ApprovalKind::Join, call: None };
        let mut codes = self.settings.codes.approval_codes();
        let approval = approvals::request_approval(self.conn, &request, &mut || codes.draw_code(), self.now)?;
        let join_request =
            onboarding::format_join_request(user.address.as_ref(), name, approval.code.as_str());
        let key = format!("approval:{}", approval.id);
        // Without a configured number, an admin who has never texted gets the message from the number that the newcomer
        // texted.
        let senders = self.settings.senders.or_address(&event.to);
        reply_address::notify_admins(self.conn, &senders, &key, &join_request, self.now)
    }
}
