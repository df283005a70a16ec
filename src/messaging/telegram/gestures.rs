//! Gestures at Telegram: answers to polls, and reactions to messages.

use super::account::TelegramAccount;
use super::received::is_person;
use super::wire::{Person, PollChoice, ReactionUpdate, Update};
use crate::conversation::channel_list;
use crate::conversation::transcript::UserAddress;
use crate::messaging::{Gesture, PlacedReaction, PollAnswer, ReactionChange};

impl TelegramAccount {
    /// Reads a gesture; `None` for every other update.
    pub(super) fn read_gesture(&self, update: &Update) -> Option<Gesture> {
        match (&update.poll_answer, &update.message_reaction) {
            (Some(answer), _) => read_poll_answer(answer, update.update_id).map(Gesture::PollAnswer),
            (None, Some(reaction)) => self.read_reaction(reaction, update.update_id).map(Gesture::Reaction),
            (None, None) => None,
        }
    }

    fn read_reaction(&self, reaction: &ReactionUpdate, number: i64) -> Option<PlacedReaction> {
        let change = match reaction.new_reaction.last() {
            Some(newest) => ReactionChange::Placed(newest.emoji.clone()),
            None => ReactionChange::Removed,
        };
        Some(PlacedReaction {
            channel: channel_list::TELEGRAM,
            message: self.message_id(reaction.chat.id, reaction.message_id),
            person: address_of(reaction.user.as_ref())?,
            change,
            number,
        })
    }
}

fn read_poll_answer(answer: &PollChoice, number: i64) -> Option<PollAnswer> {
    let voter = address_of(answer.user.as_ref())?;
    let choice = answer.option_ids.first().map(|position| position.saturating_add(1));
    Some(PollAnswer { poll: answer.poll_id.clone(), voter, choice, number })
}

fn address_of(person: Option<&Person>) -> Option<UserAddress> {
    let person = person.filter(|person| is_person(person))?;
    UserAddress::parse(&format!("{}{}", channel_list::TELEGRAM_PREFIX, person.id))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::messaging::telegram::BotToken;

    fn read(update: Value) -> Option<Gesture> {
        let token = BotToken::parse("501:AAE").unwrap();
        let account =
            TelegramAccount { api_url: "https://telegram.invalid".to_owned(), token, webhook_url: None };
        let update: Update = serde_json::from_value(update).unwrap();
        account.read_gesture(&update)
    }

    #[test]
    fn answer_to_a_poll_has_a_voter_and_a_number() {
        let answer = |options: &[u8]| {
            let answer = json!({ "poll_id": "77", "user": { "id": 9 }, "option_ids": options });
            match read(json!({ "update_id": 1, "poll_answer": answer })) {
                Some(Gesture::PollAnswer(answer)) => answer,
                other => panic!("{other:?}"),
            }
        };
        let chosen = answer(&[1]);
        assert_eq!(
            (chosen.poll.as_str(), chosen.voter.to_text().as_str(), chosen.choice),
            ("77", "telegram:9", Some(2))
        );
        assert_eq!(answer(&[]).choice, None);
        let of_a_group = json!({ "poll_id": "77", "voter_chat": { "id": -5 }, "option_ids": [0] });
        assert_eq!(read(json!({ "update_id": 1, "poll_answer": of_a_group })), None);
    }

    #[test]
    fn reaction_has_the_message_and_the_newest_emoji() {
        let reaction = |user: Value, new: Value| {
            let chat = json!({ "id": -5, "type": "group" });
            read(json!({ "update_id": 1, "message_reaction": {
                "chat": chat, "message_id": 7, "user": user, "old_reaction": [], "new_reaction": new,
            }}))
        };
        let changes = |new: Value| match reaction(json!({ "id": 9 }), new) {
            Some(Gesture::Reaction(reaction)) => {
                assert!(reaction.message.starts_with("7."), "{}", reaction.message);
                reaction.change
            }
            other => panic!("{other:?}"),
        };
        let thumb = json!({ "type": "emoji", "emoji": "\u{1f44d}" });
        assert_eq!(changes(json!([thumb])), ReactionChange::Placed(Some("\u{1f44d}".to_owned())));
        let custom = json!({ "type": "custom_emoji", "custom_emoji_id": "5" });
        assert_eq!(changes(json!([custom])), ReactionChange::Placed(None));
        assert_eq!(changes(json!([])), ReactionChange::Removed);
        assert_eq!(reaction(json!({ "id": 9, "is_bot": true }), json!([])), None);
        assert_eq!(reaction(Value::Null, json!([])), None);
    }
}
