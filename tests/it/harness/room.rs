//! Group of a bot at Telegram, in a [`World`].

use dialarr::conversation::people::naming::UserName;
use dialarr::conversation::routing::rooms::RoomMode;
use dialarr::conversation::transcript::UserRights;
use dialarr::messaging::telegram::fake::FakeSentMessage;
use dialarr::store::people::rooms;
use dialarr::store::people::users::{self, FirstContactRole};

use super::telegram::{ANN_ACCOUNT, account};
use super::world::World;

pub(crate) const BOB_ACCOUNT: i64 = 7_000_000_003;
/// Account of a member of the group who is no user.
pub(crate) const STRANGER: i64 = 7_000_000_009;
pub(crate) const FAMILY: i64 = -500;
/// First message of the bot in a group.
pub(crate) const GREETING: &str = "Hi! I can add movies and shows here. Mention me, or reply to one of my messages. What \
                                   concerns only you, I answer in our private chat.";

impl World {
    /// Starts a program whose bot is in the group of Ann, who is an admin, and Bob.
    pub(crate) async fn start_in_room() -> Self {
        let mut world = Self::start_with_bot().await;
        world.open_room().await;
        world
    }

    pub(crate) async fn open_room(&mut self) {
        self.register_household().await;
        self.pass(20).await;
        self.telegram().set_privacy_mode(false);
        self.telegram().create_group(FAMILY, &[ANN_ACCOUNT, BOB_ACCOUNT, STRANGER]);
        self.telegram().add_bot_to_group(FAMILY, ANN_ACCOUNT);
        self.pass(20).await;
        assert_eq!(self.room_texts(), [GREETING]);
    }

    /// Registers Ann as an admin and Bob as a member, who both start the bot.
    pub(crate) async fn register_household(&self) {
        self.make_admin(ANN_ACCOUNT).await;
        self.register(ANN_ACCOUNT, "Ann").await;
        self.register(BOB_ACCOUNT, "Bob").await;
        for person in [ANN_ACCOUNT, BOB_ACCOUNT] {
            self.telegram().start_bot(person, "");
        }
    }

    /// Registers a member with a name, who may delete.
    pub(crate) async fn register(&self, id: i64, name: &'static str) {
        let now = self.now();
        let register = move |conn: &mut _| {
            let user = users::ensure_user(conn, account(id), FirstContactRole::Member, now)?;
            let role = users::load_user(conn, user)?.rights.role;
            users::set_rights(
                conn,
                user,
                UserRights { role, add: true, delete: true, four_k: false, ..UserRights::MEMBER },
                now,
            )?;
            users::set_name(conn, user, &UserName::parse(name).unwrap(), now)
        };
        self.write_database(register).await;
    }

    /// Lets somebody write in the group, and returns what the bot has sent there since the greeting, twenty seconds later.
    pub(crate) async fn write_in_room(&self, person: i64, body: &str) -> Vec<String> {
        self.telegram().group_text(FAMILY, person, body);
        self.pass(20).await;
        self.answers_in_room()
    }

    pub(crate) fn answers_in_room(&self) -> Vec<String> {
        self.room_texts().split_off(1)
    }

    /// Returns what the bot has sent to a person since the answer to /start.
    pub(crate) fn private_texts(&self, person: i64) -> Vec<String> {
        self.telegram().texts_to(person).split_off(1)
    }

    pub(crate) fn room_texts(&self) -> Vec<String> {
        self.telegram().texts_to(FAMILY)
    }

    /// Presses a button in the group.
    pub(crate) async fn press_in_room(&self, person: i64, message: i64, label: &str) -> Vec<String> {
        assert!(self.telegram().press(person, FAMILY, message, label), "there is such a button");
        self.pass(20).await;
        self.answers_in_room()
    }

    /// Returns the newest message in the group.
    pub(crate) fn newest_in_room(&self) -> FakeSentMessage {
        self.telegram().sent_messages().into_iter().rfind(|sent| sent.chat_id == FAMILY).unwrap()
    }

    pub(crate) async fn change_room(&self, mode: RoomMode, remembers: bool) {
        let change = move |conn: &mut _| {
            let room = rooms::load_rooms(conn, 1)?.remove(0);
            rooms::set_mode(conn, room.id, mode)?;
            rooms::set_remembers(conn, room.id, remembers)
        };
        self.write_database(change).await;
    }
}
