//! Polls of the bot, and the votes of people.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::api::Refusal;
use super::parameters::MethodParameters;
use super::sending::{FakePoll, MessageContent, utf16_length};
use super::server::{FakeTelegram, TelegramState, user_json};

const MAX_QUESTION_LENGTH: usize = 300;
const MAX_OPTION_LENGTH: usize = 100;
const MAX_OPTIONS: usize = 12;

impl FakeTelegram {
    /// Chooses options of a poll by their positions; none withdraws the vote. Returns whether the poll is open.
    pub fn vote(&self, person: i64, chat: i64, message_id: i64, options: &[usize]) -> bool {
        self.change_state(|state| {
            let poll = state.find_sent(chat, message_id).and_then(|sent| sent.poll.as_mut());
            let Some(poll) = poll.filter(|poll| !poll.is_closed) else { return false };
            if options.is_empty() {
                poll.votes.remove(&person);
            } else {
                poll.votes.insert(person, options.to_vec());
            }
            let answer = json!({ "poll_id": poll.id, "user": user_json(person), "option_ids": options });
            if !poll.is_anonymous {
                state.updates.push("poll_answer", answer);
            }
            true
        })
    }
}

impl TelegramState {
    pub(super) fn send_poll(&mut self, parameters: &MethodParameters) -> Result<Value, Refusal> {
        let question = parameters.text("question");
        let options = parse_options(parameters)?;
        match utf16_length(question) {
            0 => return Err(Refusal::bad_request("poll question must be non-empty")),
            1..=MAX_QUESTION_LENGTH => {}
            _ => return Err(Refusal::bad_request("poll question length must not exceed 300")),
        }
        let poll = FakePoll {
            id: format!("{}", 5_300_000_000_000_001_u64 + self.sent.len() as u64),
            question: question.to_owned(),
            options,
            is_anonymous: parameters.flag("is_anonymous", true),
            is_closed: false,
            votes: BTreeMap::new(),
        };
        let (fields, text) = (json!({ "poll": poll_json(&poll) }), question.to_owned());
        self.accept_message(parameters, MessageContent { fields, text, photo: None, poll: Some(poll) })
    }

    pub(super) fn stop_poll(&mut self, parameters: &MethodParameters) -> Result<Value, Refusal> {
        let (chat, message) = (parameters.chat()?, parameters.message()?);
        self.writable_chat(chat)?;
        let poll = self.find_sent(chat, message).and_then(|sent| sent.poll.as_mut());
        let poll = poll.ok_or_else(|| Refusal::bad_request("message with poll to stop not found"))?;
        if poll.is_closed {
            return Err(Refusal::bad_request("poll has already been closed"));
        }
        poll.is_closed = true;
        Ok(poll_json(poll))
    }
}

fn parse_options(parameters: &MethodParameters) -> Result<Vec<String>, Refusal> {
    let options: Vec<Value> = parameters.json("options")?.unwrap_or_default();
    // An option is an object with a text, or only the text.
    let text = |option: &Value| option["text"].as_str().or(option.as_str()).unwrap_or_default().to_owned();
    let options: Vec<String> = options.iter().map(text).collect();
    let lengths: Vec<usize> = options.iter().map(|option| utf16_length(option)).collect();
    if options.is_empty() {
        Err(Refusal::bad_request("poll must have at least 1 option"))
    } else if options.len() > MAX_OPTIONS {
        Err(Refusal::bad_request("poll can't have more than 12 options"))
    } else if lengths.contains(&0) {
        Err(Refusal::bad_request("poll options must be non-empty"))
    } else if lengths.iter().any(|length| *length > MAX_OPTION_LENGTH) {
        Err(Refusal::bad_request("poll options length must not exceed 100"))
    } else {
        Ok(options)
    }
}

fn poll_json(poll: &FakePoll) -> Value {
    let count = |option: usize| poll.votes.values().filter(|chosen| chosen.contains(&option)).count();
    let options = poll.options.iter().enumerate();
    let options: Value =
        options.map(|(position, text)| json!({ "text": text, "voter_count": count(position) })).collect();
    json!({
        "id": poll.id, "question": poll.question, "options": options, "total_voter_count": poll.votes.len(),
        "is_closed": poll.is_closed, "is_anonymous": poll.is_anonymous, "type": "regular",
        "allows_multiple_answers": false,
    })
}
