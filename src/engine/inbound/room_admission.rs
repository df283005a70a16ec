//! Admission of what happens in rooms: messages of people who may text, and that we join or leave a group.

use jiff::Timestamp;

use super::message_storage::{self, AdmissionPlan};
use crate::conversation::grammar::triage::TriageDecision;
use crate::conversation::people::onboarding;
use crate::conversation::routing::inbound_message::ReceivedMessage;
use crate::conversation::routing::room_routes;
use crate::conversation::routing::rooms::{self as room_texts, RoomChange, RoomMode, RoomUpdate};
use crate::conversation::routing::urgency::MessageUrgency;
use crate::conversation::transcript::{AddressId, User, UserRole, UserStatus};
use crate::engine::approvals::{room_access, user_access};
use crate::engine::reply_address::{self, ReplyAddress};
use crate::engine::settings::HouseholdSettings;
use crate::store::audit::Actor;
use crate::store::confirmation::approvals::{self, ApprovalKind, NewApproval};
use crate::store::people::addresses::{self, OptTarget};
use crate::store::people::rooms::{self, Room};
use crate::store::people::users;
use crate::store::queue::inbound_messages::{self, AdmissionOutcome, DebouncePolicy, RoomMessage};
use crate::store::queue::outbox::{self, NewOutboundMessage};
use crate::store::{Conn, QueryResult};

/// Maximum number of rooms that wait for an admin at the same time.
const MAX_PENDING_ROOMS: i64 = 3;

/// Admission of one update of a room, within one transaction.
pub(super) struct RoomAdmission<'a> {
    pub(super) conn: &'a mut Conn,
    pub(super) settings: &'a HouseholdSettings,
    /// Beginning of a link that opens a private chat with us.
    pub(super) start_link: Option<&'a str>,
    pub(super) received: &'a ReceivedMessage,
    pub(super) debounce: DebouncePolicy,
}

impl RoomAdmission<'_> {
    pub(super) fn admit(&mut self, update: &RoomUpdate) -> QueryResult<AdmissionOutcome> {
        let now = self.received.received_at;
        match &update.change {
            RoomChange::Message { is_addressed } => return self.admit_message(update, *is_addressed),
            RoomChange::Joined => drop(self.join_room(update)?),
            RoomChange::Left => {
                if let Some((room, _)) = rooms::find_room(self.conn, &update.address)? {
                    room_access::close_room(self.conn, room.id, self.received.provider_at, now)?;
                }
            }
            RoomChange::Moved(to) => {
                if let Some((room, address)) = rooms::find_room(self.conn, &update.address)? {
                    rooms::move_room(self.conn, (room.id, address), to, now)?;
                }
            }
        }
        Ok(AdmissionOutcome::NotKept)
    }

    /// Stores the room, unless it is known. A room that an admin opens is approved; that of another user waits for an
    /// admin. Nothing is stored for anybody else, nor while several rooms wait.
    fn join_room(&mut self, update: &RoomUpdate) -> QueryResult<Option<(Room, AddressId)>> {
        let now = self.received.received_at;
        let (person, known) = (self.load_author()?, rooms::find_room(self.conn, &update.address)?);
        let (room, address) = match (known, &person) {
            (Some(known), _) => known,
            (None, Some(_)) if rooms::count_pending_rooms(self.conn)? < MAX_PENDING_ROOMS => {
                rooms::create_room(self.conn, &update.address, &update.title, now)?
            }
            (None, _) => return Ok(None),
        };
        let target = OptTarget { user: room.id, address: None };
        addresses::opt_in(self.conn, target, self.received.provider_at, now)?;
        if let (UserStatus::Pending, Some(person)) = (room.status, person) {
            let participant = users::load_user(self.conn, room.id)?;
            if person.rights.role == UserRole::Admin {
                let senders = self.settings.senders.or_address(&self.received.to);
                let actor = Actor::User(person.id);
                user_access::approve_user(self.conn, &participant, actor, &senders, now)?;
            } else {
                self.ask_admins_about(&participant)?;
            }
        }
        let room = rooms::load_room(self.conn, room.id)?.unwrap_or(room);
        Ok(Some((room, address)))
    }

    /// Asks the admins about a room, unless they were asked: we may be added or promoted again while it waits.
    fn ask_admins_about(&mut self, room: &User) -> QueryResult<()> {
        if !approvals::load_open_approvals_about(self.conn, room.id)?.is_empty() {
            return Ok(());
        }
        let now = self.received.received_at;
        let request = NewApproval { user: room.id, kind: &ApprovalKind::Join, call: None };
        let mut codes = self.settings.codes.approval_codes();
        let approval = approvals::request_approval(self.conn, &request, &mut || codes.draw_code(), now)?;
        let name = room.name.as_deref().unwrap_or_default();
        let text = onboarding::format_join_request(room.address.as_ref(), name, approval.code.as_str());
        let senders = self.settings.senders.or_address(&self.received.to);
        reply_address::notify_admins(self.conn, &senders, &format!("approval:{}", approval.id), &text, now)
    }

    /// Loads the active user who wrote the message or changed the group; `None` for everybody else.
    fn load_author(&mut self) -> QueryResult<Option<User>> {
        let Some((_, id)) = addresses::find_address(self.conn, &self.received.from)? else { return Ok(None) };
        Ok(Some(users::load_user(self.conn, id)?).filter(|user| user.status == UserStatus::Active))
    }

    /// Loads the active user who wrote the message, if there is a private chat with the user.
    fn load_member(&mut self) -> QueryResult<Option<User>> {
        let Some((address, id)) = addresses::find_address(self.conn, &self.received.from)? else {
            return Ok(None);
        };
        let has_chat = addresses::has_written_from(self.conn, id, address)?;
        if has_chat { self.load_author() } else { Ok(None) }
    }

    /// Stores a message of an active user in an open room. Words of other people are not stored.
    fn admit_message(&mut self, update: &RoomUpdate, is_addressed: bool) -> QueryResult<AdmissionOutcome> {
        let (room, address) = match rooms::find_room(self.conn, &update.address)? {
            Some(known) => known,
            None if is_addressed => match self.join_room(update)? {
                Some(joined) => joined,
                None => return Ok(AdmissionOutcome::NotKept),
            },
            None => return Ok(AdmissionOutcome::NotKept),
        };
        if !room.is_open() {
            return Ok(AdmissionOutcome::NotKept);
        }
        if !update.title.is_empty() && room.title.as_deref() != Some(update.title.as_str()) {
            rooms::set_title(self.conn, room.id, &update.title, self.received.received_at)?;
        }
        let Some(author) = self.load_member()? else {
            if is_addressed {
                self.invite_to_private_chat(&room)?;
            }
            return Ok(AdmissionOutcome::NotKept);
        };
        if is_addressed && room_routes::asks_to_stop(&self.received.body) {
            return self.admit_stop(&room, &author);
        }
        let triage = match room.mode {
            _ if is_addressed => TriageDecision::Answer,
            RoomMode::Ai if !self.received.body.is_empty() => TriageDecision::Answer,
            _ if room.remembers => TriageDecision::NoAnswer,
            _ => return Ok(AdmissionOutcome::NotKept),
        };
        let message = RoomMessage { author: author.id, room: room.id, address, is_addressed, triage };
        inbound_messages::admit_room_message(self.conn, self.received, message, self.debounce)
    }

    /// Stores a STOP as a message of the private chat, where it takes effect at once.
    fn admit_stop(&mut self, room: &Room, author: &User) -> QueryResult<AdmissionOutcome> {
        let private = ReceivedMessage { room: None, ..self.received.clone() };
        let plan = AdmissionPlan { urgency: MessageUrgency::OptsOut, debounce: self.debounce };
        let outcome = message_storage::store_message(self.conn, &private, plan)?;
        if let AdmissionOutcome::New { .. } = outcome {
            tracing::debug!(user = %author.id, "admitted a STOP in a group as a private message");
            let message = self.room_message(room, &format!("stop:{}", self.received.external_id))?;
            let message = NewOutboundMessage { body: room_texts::SENT_PRIVATELY.to_owned(), ..message };
            outbox::queue_message_once(self.conn, &message, self.received.received_at)?;
        }
        Ok(outcome)
    }

    /// Creates a message to the room that quotes the received one. Its body is empty.
    fn room_message(&mut self, room: &Room, key: &str) -> QueryResult<NewOutboundMessage> {
        let participant = users::load_user(self.conn, room.id)?;
        let senders = self.settings.senders.or_address(&self.received.to);
        let address = ReplyAddress::load_for_room(self.conn, &participant, &senders)?;
        let quotes = Some(self.received.external_id.clone());
        Ok(NewOutboundMessage { quotes, ..address.notification_message(key, "") })
    }

    /// Queues a link to the private chat for a sender without one, at most once a day in each room.
    fn invite_to_private_chat(&mut self, room: &Room) -> QueryResult<()> {
        let now: Timestamp = self.received.received_at;
        let day = now.to_zoned(self.settings.zone.clone()).date();
        let link = self.start_link.map(|link| link.split('?').next().unwrap_or(link));
        let text = room_texts::format_private_chat_hint(link);
        // Formatting would remove the link.
        let message = self.room_message(room, &format!("room_hint:{day}"))?;
        let message = NewOutboundMessage { body: text, ..message };
        outbox::queue_message_once(self.conn, &message, now)
    }
}
