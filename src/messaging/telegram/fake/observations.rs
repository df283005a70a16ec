//! What tests observe: the messages, reactions, answers and requests of the bot.

use super::sending::FakeSentMessage;
use super::server::FakeTelegram;

impl FakeTelegram {
    /// Returns all accepted messages in their order, also those whose answer was lost.
    pub fn sent_messages(&self) -> Vec<FakeSentMessage> {
        self.lock_state().sent.clone()
    }

    /// Returns the texts and captions that the bot sent to a chat, in their order.
    pub fn texts_to(&self, chat: i64) -> Vec<String> {
        let state = self.lock_state();
        let sent = state.sent.iter().filter(|message| message.chat_id == chat);
        sent.map(|message| message.text.clone()).collect()
    }

    /// Returns the current reactions of the bot in a chat, each with the number of its message.
    pub fn reactions_in(&self, chat: i64) -> Vec<(i64, String)> {
        let state = self.lock_state();
        let reactions = state.chats.get(&chat).map(|chat| chat.bot_reactions.clone()).unwrap_or_default();
        reactions.into_iter().collect()
    }

    /// Returns how often the bot showed that it types.
    pub fn typing_count(&self, chat: i64) -> usize {
        self.lock_state().chats.get(&chat).map_or(0, |chat| chat.typing_count)
    }

    /// Returns the number of answers to presses, also of those that were refused.
    pub fn answered_presses(&self) -> usize {
        self.lock_state().answer_count
    }

    /// Returns the number of presses that have no answer yet.
    pub fn open_presses(&self) -> usize {
        self.lock_state().presses.iter().filter(|press| !press.is_answered).count()
    }

    /// Returns the number of updates that no offset has confirmed.
    pub fn unread_updates(&self) -> usize {
        self.lock_state().updates.unread_count()
    }

    /// Returns the methods of all requests in their order.
    pub fn requests(&self) -> Vec<String> {
        self.lock_state().requests.clone()
    }
}
