//! Polls: the native form of a vote in a group.

use super::api::BotApiError;
use super::port::Telegram;
use super::received::is_person;
use super::sending::message_number;
use super::wire::{PollOption, ReplyParameters, SendPoll, SentMessage, StopPoll, Update};
use crate::conversation::channel_list;
use crate::conversation::transcript::UserAddress;
use crate::conversation::votes::VoteQuestion;
use crate::messaging::PollAnswer;

impl Update {
    /// Reads the answer of a person to a poll.
    pub(super) fn read_poll_answer(&self) -> Option<PollAnswer> {
        let answer = self.poll_answer.as_ref()?;
        let person = answer.user.as_ref().filter(|person| is_person(person))?;
        let voter = UserAddress::parse(&format!("{}{}", channel_list::TELEGRAM_PREFIX, person.id))?;
        let choice = answer.option_ids.first().map(|position| position.saturating_add(1));
        Some(PollAnswer { poll: answer.poll_id.clone(), voter, choice })
    }
}

impl Telegram {
    pub(super) async fn send_poll(
        &self,
        chat: i64,
        question: &VoteQuestion,
        reply_parameters: Option<ReplyParameters>,
    ) -> Result<SentMessage, BotApiError> {
        let options = question.options().iter().map(|text| PollOption { text }).collect();
        let parameters = SendPoll {
            chat_id: chat,
            question: question.text(),
            options,
            is_anonymous: false,
            reply_parameters,
        };
        self.call("sendPoll", &parameters).await
    }

    /// Ends polls. One that is gone or has ended needs nothing.
    pub(super) async fn end_polls(&self, chat: i64, messages: &[String]) -> Result<(), BotApiError> {
        for message_id in messages.iter().filter_map(|id| message_number(id)) {
            let parameters = StopPoll { chat_id: chat, message_id };
            match self.call::<serde_json::Value>("stopPoll", &parameters).await {
                Ok(_) => {}
                Err(BotApiError::Refused(reason)) => tracing::debug!(%reason, "poll has ended already"),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn answer_to_a_poll_has_a_voter_and_a_number() {
        let read = |answer: serde_json::Value| {
            let update: Update =
                serde_json::from_value(json!({ "update_id": 1, "poll_answer": answer })).unwrap();
            update.read_poll_answer()
        };
        let answer = |options: &[u8]| json!({ "poll_id": "77", "user": { "id": 9 }, "option_ids": options });
        let chosen = read(answer(&[1])).unwrap();
        assert_eq!(
            (chosen.poll.as_str(), chosen.voter.to_text().as_str(), chosen.choice),
            ("77", "telegram:9", Some(2))
        );
        assert_eq!(read(answer(&[])).unwrap().choice, None);
        let of_a_group =
            json!({ "poll_id": "77", "voter_chat": { "id": -5, "type": "group" }, "option_ids": [0] });
        assert_eq!(read(of_a_group), None);
    }
}
