//! Invitations of new people by link, and their use.

use super::turn_start::{TurnStart, TurnStartOutcome};
use super::user_context::UserContext;
use crate::conversation::invitation::{self, InvitationCode};
use crate::conversation::people::naming::UserName;
use crate::conversation::people::onboarding;
use crate::conversation::routing::inbound_message::InboundEvent;
use crate::conversation::transcript::{Responder, User, UserId, UserRole, UserStatus};
use crate::engine::approvals::user_access;
use crate::engine::reply_address::{self, ReplyAddress};
use crate::store::QueryResult;
use crate::store::audit::Actor;
use crate::store::people::invitations::{self, OpenInvitation};
use crate::store::people::{join_requests, users};
use crate::store::queue::inbound_messages::{self, MessageOutcome};
use crate::store::queue::outbox;
use crate::store::turns::finished_turns::{self, TurnEnd};
use crate::store::turns::turn_lifecycle::{TurnKind, TurnPlan};

impl TurnStart<'_> {
    /// Creates an invitation, and sends its link to the admin. The answer in the history, which the model sees, does not
    /// contain the link.
    pub(super) fn invite_person(
        &mut self,
        admin: &User,
        context: &UserContext,
        events: &[InboundEvent],
        name: &UserName,
    ) -> QueryResult<TurnStartOutcome> {
        let Some(start_link) = self.start_link else {
            return self.answer_and_drop_prompt(admin, context, events, invitation::NO_LINKS);
        };
        let code = InvitationCode::from_random(rand::random());
        invitations::create_invitation(self.conn, (name, &code), Some(admin.id), self.now)?;
        let closing = self.drop_prompt(admin, context, events)?;
        let mut text = invitation::format_link(name.as_str(), &format!("{start_link}{}", code.to_payload()));
        if let Some(closing) = closing {
            text = reply_address::prepend_sentence(&closing, &text);
        }
        let plan = TurnPlan::for_responder(Responder::Keyword);
        let turn = self.open_turn(admin, TurnKind::Command, &plan, events)?.id;
        let message = ReplyAddress::from_turn(admin.clone(), turn, events).reply_message(text);
        let answer = Some(invitation::format_sent(name.as_str()));
        let end = TurnEnd { turn, outcome: MessageOutcome::Replied, answer, messages: vec![message] };
        finished_turns::finish_turn(self.conn, &end, self.now)?;
        Ok(TurnStartOutcome::Answered)
    }

    /// Uses the invitation of a newcomer. Returns `None` if it cannot be used, so that the newcomer is received as usual.
    pub(super) fn use_invitation(
        &mut self,
        newcomer: &User,
        event: &InboundEvent,
        code: &InvitationCode,
    ) -> QueryResult<Option<TurnStartOutcome>> {
        let Some(open) = invitations::find_open_invitation(self.conn, code, self.now)? else {
            return Ok(None);
        };
        invitations::delete_invitation(self.conn, open.id)?;
        invitations::delete_expired_invitations(self.conn, self.now)?;
        let Ok(name) = UserName::parse(&open.name) else { return Ok(None) };
        if !self.may_invite(open.invited_by)? {
            return Ok(None);
        }
        let actor = open.invited_by.map_or(Actor::Console, Actor::User);
        users::set_name(self.conn, newcomer.id, &name, self.now)?;
        user_access::admit_silently(self.conn, newcomer, actor, self.now)?;
        let request = join_requests::load_first_request(self.conn, newcomer.id, self.now)?;
        let welcome = onboarding::format_welcome(Some(name.as_str()), request.as_ref());
        let message = ReplyAddress::from_message(newcomer, event).reply_message(welcome);
        outbox::queue_message(self.conn, &message, self.now)?;
        self.report_accepted_invitation(&open)?;
        inbound_messages::finish_message(self.conn, event.id, MessageOutcome::Replied, self.now)?;
        Ok(Some(TurnStartOutcome::Answered))
    }

    /// Returns whether the author of an invitation is an active admin. `None` is the operator.
    fn may_invite(&mut self, author: Option<UserId>) -> QueryResult<bool> {
        let Some(author) = author else { return Ok(true) };
        let author = users::load_user(self.conn, author)?;
        Ok(author.status == UserStatus::Active && author.rights.role == UserRole::Admin)
    }

    /// Notifies the admin who invited a person.
    fn report_accepted_invitation(&mut self, open: &OpenInvitation) -> QueryResult<()> {
        let Some(admin) = open.invited_by else { return Ok(()) };
        let admin = users::load_user(self.conn, admin)?;
        let address = ReplyAddress::load_for_user(self.conn, &admin, &self.settings.senders)?;
        let key = format!("invitation:{}:{}", open.id, self.now.as_millisecond());
        let notice = address.notification_message(&key, &invitation::format_accepted(&open.name));
        outbox::queue_message_once(self.conn, &notice, self.now)
    }
}
