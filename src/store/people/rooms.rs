//! Rooms. A room is stored as a user without rights, who owns the conversations and the stored answers of the room. Its
//! address is that of the group.

use diesel::dsl;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Nullable};
use jiff::Timestamp;

use super::addresses;
use crate::conversation::routing::rooms::RoomMode;
use crate::conversation::stream_events::{InboundStatus, StreamEventKind};
use crate::conversation::transcript::{
    Address, AddressId, ConversationId, EventId, UserAddress, UserId, UserRights, UserRole, UserStatus,
};
use crate::store::Conn;
use crate::store::codec::ms;
use crate::store::conversation::conversations::select_open_conversation;
use crate::store::database::literal_sql::{LiteralSql, literal_sql};
use crate::store::memory::groups::{self, GroupId};
use crate::store::people::users::{self, FirstContactRole};
use crate::store::queue::inbound_messages::PENDING;
use crate::store::schema::{
    conversations, inbound_events, outbox, pending_actions, rooms, turns, user_addresses, users as user_rows,
};
use crate::store::stream::recording::{EventOwner, record_event};

/// Maximum length of the name of a room, in characters.
const MAX_TITLE_CHARS: usize = 60;

literal_sql! {
    /// Condition that a row of `users` is a person.
    pub(in crate::store) const IS_PERSON = "NOT EXISTS (SELECT 1 FROM rooms WHERE rooms.id = users.id)";

    /// Condition that a row of `inbound_events` may be processed: no turn of another person runs in its room.
    pub(in crate::store) const ROOM_IS_FREE =
        "(inbound_events.room_id IS NULL OR NOT EXISTS (SELECT 1 FROM conversations \
         JOIN turns ON turns.conversation_id = conversations.id AND turns.finished_at IS NULL \
         WHERE conversations.user_id = inbound_events.room_id \
         AND turns.user_id <> inbound_events.user_id))";

    /// Condition that a row of `conversations` belongs to a room.
    pub(in crate::store) const IS_ROOM_CONVERSATION = "conversations.user_id IN (SELECT rooms.id FROM rooms)";
}

/// Condition that the row of `users` is a room.
#[dsl::auto_type]
pub(in crate::store) fn is_room() -> _ {
    dsl::exists(rooms::table.filter(rooms::id.eq(user_rows::id)))
}

/// Room whose conversation contains the turn in the row of `turns`.
#[dsl::auto_type]
pub(in crate::store) fn room_of_turn() -> _ {
    let is_room: LiteralSql<{ IS_ROOM_CONVERSATION.hash() }> = IS_ROOM_CONVERSATION;
    conversations::table
        .filter(conversations::id.eq(turns::conversation_id))
        .filter(is_room)
        .select(conversations::user_id)
        .single_value()
}

diesel::define_sql_function! {
    /// Returns the first value, or the second if the first is NULL.
    fn coalesce(first: Nullable<BigInt>, second: BigInt) -> BigInt;
}

/// Owner of the conversation to which the message in the row of `inbound_events` belongs.
#[dsl::auto_type]
pub(in crate::store) fn owner_of_message() -> _ {
    coalesce(inbound_events::room_id, inbound_events::user_id)
}

/// Name of the author of the message in the row of `inbound_events`, if it was written in a room.
#[dsl::auto_type]
pub(in crate::store) fn author_in_room() -> _ {
    user_rows::table
        .filter(user_rows::id.eq(inbound_events::user_id).and(inbound_events::room_id.is_not_null()))
        .select(user_rows::display_name)
        .single_value()
}

/// Room with its settings.
#[derive(Debug, Clone, PartialEq, Eq, Queryable, Selectable)]
#[diesel(table_name = rooms)]
pub struct Room {
    pub id: UserId,
    pub mode: RoomMode,
    /// Whether the words of a turn are used after it.
    pub remembers: bool,
    pub group_id: GroupId,
    #[diesel(select_expression = user_rows::display_name)]
    pub title: Option<String>,
    #[diesel(select_expression = user_rows::status)]
    pub status: UserStatus,
    /// True if we are no member of the group.
    #[diesel(select_expression = addresses::is_opted_out())]
    pub is_left: bool,
    pub created_at: Timestamp,
}

impl Room {
    /// Returns whether messages in the room may be answered.
    pub fn is_open(&self) -> bool {
        self.status == UserStatus::Active && !self.is_left && self.mode != RoomMode::Off
    }

    /// Returns the name of the room for people.
    pub fn name(&self) -> &str {
        self.title.as_deref().unwrap_or("a group")
    }
}

pub fn load_room(conn: &mut Conn, id: UserId) -> QueryResult<Option<Room>> {
    rooms::table
        .inner_join(user_rows::table)
        .filter(rooms::id.eq(id))
        .select(Room::as_select())
        .first(conn)
        .optional()
}

/// Returns the number of rooms that wait for an admin.
pub fn count_pending_rooms(conn: &mut Conn) -> QueryResult<i64> {
    rooms::table
        .inner_join(user_rows::table)
        .filter(user_rows::status.eq(UserStatus::Pending))
        .count()
        .get_result(conn)
}

/// Loads all rooms, newest first; at most `limit`.
pub fn load_rooms(conn: &mut Conn, limit: i64) -> QueryResult<Vec<Room>> {
    rooms::table
        .inner_join(user_rows::table)
        .order(rooms::id.desc())
        .limit(limit)
        .select(Room::as_select())
        .load(conn)
}

/// Finds the room with an address, with the id of the address.
pub fn find_room(conn: &mut Conn, address: &UserAddress) -> QueryResult<Option<(Room, AddressId)>> {
    let Some((address, id)) = addresses::find_address(conn, address)? else { return Ok(None) };
    Ok(load_room(conn, id)?.map(|room| (room, address)))
}

/// Stores a room, which is answered once an admin approves it.
pub fn create_room(
    conn: &mut Conn,
    address: &UserAddress,
    title: &str,
    now: Timestamp,
) -> QueryResult<(Room, AddressId)> {
    let id = users::insert_user(conn, FirstContactRole::Newcomer, now)?;
    let rights =
        UserRights { role: UserRole::Member, add: false, delete: false, four_k: false, ..UserRights::MEMBER };
    users::set_rights(conn, id, rights, now)?;
    diesel::update(user_rows::table.find(id)).set(user_rows::notify.eq(false)).execute(conn)?;
    let address = addresses::insert_address(conn, id, address, now)?;
    let group = groups::create_room_group(conn, id)?;
    diesel::insert_into(rooms::table)
        .values((
            rooms::id.eq(id),
            rooms::mode.eq(RoomMode::Mentioned),
            rooms::group_id.eq(group),
            rooms::created_at.eq(ms(now)),
        ))
        .execute(conn)?;
    set_title(conn, id, title, now)?;
    load_room(conn, id)?.map(|room| (room, address)).ok_or(diesel::result::Error::NotFound)
}

pub fn set_title(conn: &mut Conn, id: UserId, title: &str, now: Timestamp) -> QueryResult<()> {
    let clean = title.chars().filter(|c| !c.is_control()).take(MAX_TITLE_CHARS).collect::<String>();
    let title = Some(clean.trim()).filter(|title| !title.is_empty());
    diesel::update(user_rows::table.find(id))
        .set((user_rows::display_name.eq(title), user_rows::updated_at.eq(ms(now))))
        .execute(conn)
        .map(drop)
}

pub fn set_mode(conn: &mut Conn, id: UserId, mode: RoomMode) -> QueryResult<()> {
    diesel::update(rooms::table.find(id)).set(rooms::mode.eq(mode)).execute(conn).map(drop)
}

pub fn set_remembers(conn: &mut Conn, id: UserId, remembers: bool) -> QueryResult<()> {
    diesel::update(rooms::table.find(id)).set(rooms::remembers.eq(remembers)).execute(conn).map(drop)
}

/// Gives a room another address. Messages to it that wait are sent there.
pub fn move_room(
    conn: &mut Conn,
    (room, address): (UserId, AddressId),
    to: &UserAddress,
    now: Timestamp,
) -> QueryResult<()> {
    // The same group may have been reported under its new address before.
    if let Some((copy_address, copy)) = addresses::find_address(conn, to)? {
        if copy == room || has_any_turn(conn, copy)? {
            return Ok(());
        }
        users::set_status(conn, copy, UserStatus::Blocked, now)?;
        diesel::delete(user_addresses::table.find(copy_address)).execute(conn)?;
    }
    diesel::update(user_addresses::table.find(address).filter(user_addresses::user_id.eq(room)))
        .set(user_addresses::address.eq(to.to_text()))
        .execute(conn)?;
    diesel::update(outbox::table.filter(outbox::address_id.eq(address).and(outbox::accepted_at.is_null())))
        .set(outbox::to_addr.eq(Address::new(to.to_text()).as_str()))
        .execute(conn)
        .map(drop)
}

/// Makes a waiting message in a room one of the private chat with its author.
pub fn move_to_private_chat(
    conn: &mut Conn,
    (event, author, room): (EventId, UserId, UserId),
    address: AddressId,
    now: Timestamp,
) -> QueryResult<()> {
    diesel::update(inbound_events::table.find(event))
        .set((inbound_events::address_id.eq(address), inbound_events::room_id.eq(None::<UserId>)))
        .execute(conn)?;
    for (owner, status) in [(room, InboundStatus::NoTurn), (author, InboundStatus::Waiting)] {
        let open = select_open_conversation(owner).first(conn).optional()?;
        let owner = EventOwner { turn: None, conversation: open };
        record_event(conn, owner, now, StreamEventKind::InboundMessage(event, status))?;
    }
    Ok(())
}

/// Returns whether a user has written in a room.
pub fn has_written_in(conn: &mut Conn, user: UserId, room: UserId) -> QueryResult<bool> {
    let written =
        inbound_events::table.filter(inbound_events::user_id.eq(user).and(inbound_events::room_id.eq(room)));
    dsl::select(dsl::exists(written)).get_result(conn)
}

fn has_any_turn(conn: &mut Conn, room: UserId) -> QueryResult<bool> {
    dsl::select(dsl::exists(conversations::table.filter(conversations::user_id.eq(room)))).get_result(conn)
}

/// Returns whether a turn of anybody is running in a room.
pub fn has_running_turn(conn: &mut Conn, room: UserId) -> QueryResult<bool> {
    let in_room = conversations::table.filter(conversations::user_id.eq(room)).select(conversations::id);
    let running =
        turns::table.filter(turns::finished_at.is_null().and(turns::conversation_id.eq_any(in_room)));
    dsl::select(dsl::exists(running)).get_result(conn)
}

/// Loads the people who were asked something in a room and have not answered.
pub fn load_people_with_prompts(conn: &mut Conn, room: UserId) -> QueryResult<Vec<UserId>> {
    pending_actions::table
        .inner_join(outbox::table)
        .filter(outbox::room_id.eq(room))
        .select(pending_actions::user_id)
        .load(conn)
}

/// Loads the people whose messages wait in a room.
pub fn load_waiting_authors(conn: &mut Conn, room: UserId) -> QueryResult<Vec<UserId>> {
    inbound_events::table
        .filter(PENDING)
        .filter(inbound_events::room_id.eq(room))
        .select(inbound_events::user_id)
        .distinct()
        .load(conn)
}

/// Loads the room of a conversation; `None` for a conversation with one person.
pub fn load_room_of(conn: &mut Conn, conversation: ConversationId) -> QueryResult<Option<Room>> {
    let owner: UserId = conversations::table.find(conversation).select(conversations::user_id).first(conn)?;
    load_room(conn, owner)
}
