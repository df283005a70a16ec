//! Linking of addresses by codes in messages. A code proves only that its sender can read the address that it was sent to.
//! It is always sent to an address that already belongs to the user, and typed on the new one; a phone number, whose
//! sender can be forged, also needs a second code that is sent to it.

use serde_json::json;

use super::turn_start::{TurnStart, TurnStartOutcome};
use super::user_context::UserContext;
use crate::conversation::invitation;
use crate::conversation::linking::{self, LinkCode, LinkCommand, PreferredAddress};
use crate::conversation::people::naming::display_name;
use crate::conversation::routing::inbound_message::InboundEvent;
use crate::conversation::transcript::{
    Address, AddressId, User, UserAddress, UserId, UserRights, UserRole, UserStatus,
};
use crate::engine::approvals::user_access;
use crate::engine::reply_address::ReplyAddress;
use crate::store::QueryResult;
use crate::store::audit::{self, Actor, AuditSubject, NewAuditEntry};
use crate::store::people::link_codes::{self, OpenLink};
use crate::store::people::merge::{self, MergeOutcome, MergedUsers};
use crate::store::people::{addresses, users};
use crate::store::queue::inbound_messages::{self, MessageOutcome};
use crate::store::queue::outbox;

/// Outcome of a code in a message.
enum CodeOutcome {
    /// No open code is this one, or it cannot be used by this sender.
    Refused,
    /// The sender gets this reply, and nothing is linked.
    Answered(String),
    /// The address is the user's now.
    Linked(LinkedAddress),
    /// The sender is the first admin now.
    FirstAdmin,
}

/// Address that was linked.
struct LinkedAddress {
    user: UserId,
    id: AddressId,
    address: UserAddress,
}

impl TurnStart<'_> {
    /// Answers a command of a member about linked addresses.
    pub(super) fn run_link_command(
        &mut self,
        user: &User,
        context: &UserContext,
        events: &[InboundEvent],
    ) -> QueryResult<TurnStartOutcome> {
        let text = match linking::parse_link_command(&events[0].body) {
            Some(LinkCommand::Use(code)) => match self.use_link_code(user, &events[0], &code)? {
                CodeOutcome::Refused => linking::CODE_REFUSED.to_owned(),
                CodeOutcome::Answered(text) => text,
                CodeOutcome::Linked(linked) => {
                    self.announce_link(&linked, &events[0])?;
                    linking::format_linked(&linked.address)
                }
                CodeOutcome::FirstAdmin => linking::FIRST_ADMIN.to_owned(),
            },
            Some(LinkCommand::Start) | None => self.start_link(user, &events[0])?,
        };
        self.answer_and_drop_prompt(user, context, events, &text)
    }

    /// Uses the code in a newcomer's message. Returns `None` if the message has no open code, so that the newcomer is
    /// received as usual.
    pub(super) fn use_newcomers_code(
        &mut self,
        user: &User,
        event: &InboundEvent,
    ) -> QueryResult<Option<TurnStartOutcome>> {
        if let Some(code) = invitation::parse_invitation(&event.body) {
            return self.use_invitation(user, event, &code);
        }
        let Some(LinkCommand::Use(code)) = linking::parse_link_command(&event.body) else { return Ok(None) };
        let (user, text) = match self.use_link_code(user, event, &code)? {
            CodeOutcome::Refused => return Ok(None),
            CodeOutcome::Answered(text) => (user.id, text),
            CodeOutcome::Linked(linked) => {
                self.announce_link(&linked, event)?;
                let name = display_name(&users::load_user(self.conn, linked.user)?);
                (linked.user, linking::format_welcome(&name))
            }
            CodeOutcome::FirstAdmin => (user.id, linking::FIRST_ADMIN.to_owned()),
        };
        let user = users::load_user(self.conn, user)?;
        let message = ReplyAddress::from_message(&user, event).reply_message(text);
        outbox::queue_message(self.conn, &message, self.now)?;
        inbound_messages::finish_message(self.conn, event.id, MessageOutcome::Replied, self.now)?;
        Ok(Some(TurnStartOutcome::Answered))
    }

    /// Stores a code for another address of the user, and returns the reply that contains it. The reply goes to the
    /// address of the message, which belongs to the user.
    fn start_link(&mut self, user: &User, event: &InboundEvent) -> QueryResult<String> {
        if addresses::load_addresses(self.conn, user.id)?.len() >= linking::MAX_ADDRESSES {
            return Ok(linking::TOO_MANY.to_owned());
        }
        if event.from.is_none() {
            return Ok(linking::TYPE_ELSEWHERE.to_owned());
        }
        let mut draw_code = self.settings.codes.link_codes();
        let code = link_codes::create_link_code(self.conn, Some(user.id), None, &mut draw_code, self.now)?;
        Ok(linking::format_first_code(&code))
    }

    fn use_link_code(
        &mut self,
        sender: &User,
        event: &InboundEvent,
        code: &LinkCode,
    ) -> QueryResult<CodeOutcome> {
        let link = link_codes::find_open_link(self.conn, code, self.now)?;
        let (Some(link), Some((id, address))) = (link, event.from.clone()) else {
            link_codes::count_miss(self.conn)?;
            return Ok(CodeOutcome::Refused);
        };
        let Some(owner) = link.user_id else { return self.make_first_admin(sender, link) };
        if users::load_user(self.conn, owner)?.status != UserStatus::Active {
            link_codes::delete_link(self.conn, link.id)?;
            return Ok(CodeOutcome::Refused);
        }
        match link.new_address_id {
            Some(new_address) => self.use_second_code(sender, link.id, (owner, new_address), id),
            None => self.use_first_code(sender, link.id, owner, (id, address)),
        }
    }

    /// Uses a code that was sent to an address of `owner`, on another address.
    fn use_first_code(
        &mut self,
        sender: &User,
        link: i64,
        owner: UserId,
        (id, address): (AddressId, UserAddress),
    ) -> QueryResult<CodeOutcome> {
        if sender.id == owner {
            return Ok(CodeOutcome::Answered(linking::ALREADY_YOURS.to_owned()));
        }
        if sender.status != UserStatus::Pending {
            link_codes::delete_link(self.conn, link)?;
            return Ok(CodeOutcome::Answered(linking::ADDRESS_TAKEN.to_owned()));
        }
        match address {
            UserAddress::Account(_) => {
                link_codes::delete_link(self.conn, link)?;
                self.link_address(owner, id)
            }
            UserAddress::Phone(_) => {
                let mut draw_code = self.settings.codes.link_codes();
                let code =
                    link_codes::create_link_code(self.conn, Some(owner), Some(id), &mut draw_code, self.now)?;
                Ok(CodeOutcome::Answered(linking::format_second_code(&code)))
            }
        }
    }

    /// Uses a code that was sent to a new phone number, on an address that belongs to `owner`.
    fn use_second_code(
        &mut self,
        sender: &User,
        link: i64,
        (owner, new_address): (UserId, AddressId),
        typed_on: AddressId,
    ) -> QueryResult<CodeOutcome> {
        if sender.id == owner {
            link_codes::delete_link(self.conn, link)?;
            return self.link_address(owner, new_address);
        }
        if typed_on == new_address {
            return Ok(CodeOutcome::Answered(linking::TYPE_ELSEWHERE.to_owned()));
        }
        link_codes::count_miss(self.conn)?;
        Ok(CodeOutcome::Refused)
    }

    /// Makes the address of a newcomer an address of `owner`.
    fn link_address(&mut self, owner: UserId, id: AddressId) -> QueryResult<CodeOutcome> {
        let stored = addresses::load_address(self.conn, id)?;
        let merged = MergedUsers { from: stored.user_id, into: owner };
        match merge::absorb_newcomer(self.conn, merged, Actor::User(owner), self.now)? {
            MergeOutcome::Merged => {
                let entry = NewAuditEntry {
                    actor: Actor::User(owner),
                    kind: "link",
                    subject: AuditSubject::User(owner),
                    detail: json!({ "address": id.0 }),
                };
                audit::record_change(self.conn, &entry, self.now)?;
                Ok(CodeOutcome::Linked(LinkedAddress { user: owner, id, address: stored.address }))
            }
            MergeOutcome::NotMergeable => Ok(CodeOutcome::Answered(linking::ADDRESS_TAKEN.to_owned())),
            MergeOutcome::Busy | MergeOutcome::LastAdmin => Ok(CodeOutcome::Refused),
        }
    }

    /// Makes the sender of the setup code the first admin. Once there is an admin, the code is void.
    fn make_first_admin(&mut self, sender: &User, link: OpenLink) -> QueryResult<CodeOutcome> {
        link_codes::delete_link(self.conn, link.id)?;
        if !users::load_admins(self.conn)?.is_empty() || sender.test {
            return Ok(CodeOutcome::Refused);
        }
        if sender.status == UserStatus::Pending {
            user_access::admit_silently(self.conn, sender, Actor::Dialarr, self.now)?;
        }
        let rights = UserRights { role: UserRole::Admin, ..sender.rights };
        users::set_rights(self.conn, sender.id, rights, self.now)?;
        Ok(CodeOutcome::FirstAdmin)
    }

    /// Notifies the other side of a link, and the admins. The sender of `event` gets a reply.
    fn announce_link(&mut self, linked: &LinkedAddress, event: &InboundEvent) -> QueryResult<()> {
        let user = users::load_user(self.conn, linked.user)?;
        let name = display_name(&user);
        let key = format!("linked:{}:{}", linked.id, self.now.as_millisecond());
        let senders = &self.settings.senders.or_address(&event.to);
        for stored in addresses::load_addresses(self.conn, user.id)? {
            if event.address_id() == Some(stored.id) || stored.opted_out_at.is_some() {
                continue;
            }
            let text = match stored.id == linked.id {
                true => linking::format_welcome(&name),
                false => linking::format_linked(&linked.address),
            };
            let address = ReplyAddress::load_for_address(self.conn, &user, stored.id, senders)?;
            let message = address.notification_message(&format!("{key}:{}", stored.id), &text);
            outbox::queue_message_once(self.conn, &message, self.now)?;
        }
        let notice = linking::format_admin_notice(&name, &linked.address);
        for admin in users::load_admins(self.conn)?.into_iter().filter(|admin| admin.id != user.id) {
            let address = ReplyAddress::load_for_user(self.conn, &admin, senders)?;
            outbox::queue_message_once(self.conn, &address.notification_message(&key, &notice), self.now)?;
        }
        Ok(())
    }

    /// Stores where the user's notifications go.
    pub(super) fn set_preferred_address(
        &mut self,
        user: &User,
        context: &UserContext,
        events: &[InboundEvent],
    ) -> QueryResult<TurnStartOutcome> {
        let event = &events[0];
        let text = match linking::parse_preferred_address(&event.body) {
            Some(PreferredAddress::LastUsed) | None => {
                addresses::set_preferred_address(self.conn, user.id, None)?;
                linking::format_preference(None)
            }
            Some(preferred) => match self.find_preferred_address(user, event, &preferred)? {
                Some((id, address, our_address)) => {
                    addresses::set_preferred_address(self.conn, user.id, Some((id, &our_address)))?;
                    linking::format_preference(Some(&address))
                }
                None => linking::ADDRESS_UNKNOWN.to_owned(),
            },
        };
        self.answer_and_drop_prompt(user, context, events, &text)
    }

    /// Finds the user's address and ours that a command names.
    fn find_preferred_address(
        &mut self,
        user: &User,
        event: &InboundEvent,
        preferred: &PreferredAddress,
    ) -> QueryResult<Option<(AddressId, UserAddress, Address)>> {
        if *preferred == PreferredAddress::Here {
            return Ok(event.from.clone().map(|(id, address)| (id, address, event.to.clone())));
        }
        for stored in addresses::load_addresses(self.conn, user.id)? {
            let routes = addresses::load_our_addresses(self.conn, user.id, stored.id)?;
            let is_named = |our_address: &&Address| match preferred {
                PreferredAddress::Phone(phone) => stored.address.phone() == Some(phone),
                PreferredAddress::Messenger(name) => our_address.messenger() == name,
                PreferredAddress::Here | PreferredAddress::LastUsed => false,
            };
            if let Some(our_address) = routes.iter().find(is_named) {
                return Ok(Some((stored.id, stored.address, our_address.clone())));
            }
        }
        Ok(None)
    }
}
