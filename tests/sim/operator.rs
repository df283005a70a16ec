//! Texts that the operator writes on the pages, from the household or in the name of a user. I21: each stored text is kept
//! once, and a text in the name of a user confirms nothing, commands nothing, and changes no opt-out.

use dialarr::app::App;
use dialarr::conversation::transcript::ConversationId;
use dialarr::engine::operator::conversations::{OperatorText, OperatorTextOutcome};

use crate::plan::{PEOPLE, Plan};
use crate::records::{Records, number, word};
use crate::rng::Rng;
use crate::world::World;

/// Text that the operator writes in the open conversation of a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OperatorMessage {
    to: &'static str,
    body: &'static str,
    in_name_of_user: bool,
    /// True if the form is sent twice.
    is_repeated: bool,
}

/// Text that was handed to the program.
#[derive(Debug, Clone)]
pub(crate) struct WrittenText {
    key: String,
    in_name_of_user: bool,
    was_stored: bool,
}

impl OperatorMessage {
    /// Draws texts, most of them while a message is being processed.
    pub(crate) fn draw(rng: &mut Rng, moments: &[u64]) -> Vec<(u64, Self)> {
        let bodies = [
            "delete Heat",
            "add Tenet",
            "yes",
            "YES 47",
            "no",
            "STOP",
            "pause",
            "approve 4747",
            "status",
            "hello there",
        ];
        let message = |rng: &mut Rng| Self {
            to: rng.one_of(&PEOPLE),
            body: rng.one_of(&bodies),
            in_name_of_user: rng.percent(70),
            is_repeated: rng.percent(25),
        };
        (0..rng.within(1, 5)).map(|_| (rng.one_of(moments) + rng.within(0, 40_000), message(rng))).collect()
    }

    pub(crate) async fn write(&self, world: &World, app: &App) {
        let Some(conversation) = open_conversation(world, self.to) else { return };
        let key = format!("simulated-{}", world.written.lock().unwrap().len());
        let mut was_stored = false;
        for _ in 0..=usize::from(self.is_repeated) {
            let text = OperatorText { body: self.body.to_owned(), key: key.clone() };
            let actions = &app.engine.conversation_actions;
            let outcome = match self.in_name_of_user {
                true => actions.write_as_user(conversation, text).await,
                false => actions.write_to_user(conversation, text).await,
            };
            was_stored |= matches!(outcome, Ok(OperatorTextOutcome::Stored));
            world.journal.note(format!("the operator writes {self:?}: {outcome:?}"));
        }
        let written = WrittenText { key, in_name_of_user: self.in_name_of_user, was_stored };
        world.written.lock().unwrap().push(written);
    }
}

impl Plan {
    /// Draws the texts of the operator, from a separate random stream.
    pub(crate) fn operator_messages(&self) -> Vec<(u64, OperatorMessage)> {
        if self.seed % 13 != 8 {
            return Vec::new();
        }
        let moments: Vec<u64> = self.acts.iter().map(|(at, _)| *at).collect();
        OperatorMessage::draw(&mut Rng::of(self.seed, "operator"), &moments)
    }
}

fn open_conversation(world: &World, phone: &str) -> Option<ConversationId> {
    let records = Records::of(&world.database);
    let user = records.users.iter().find(|user| word(user, "phone") == phone)?;
    let is_open = |row: &&serde_json::Value| {
        row["user_id"] == user["id"] && row["ended_at"].is_null() && row["agent_key_id"].is_null()
    };
    records.conversations.iter().find(is_open).map(|row| ConversationId(number(row, "id")))
}

/// Returns the violations of I21.
pub(crate) fn check(world: &World, records: &Records) -> Vec<String> {
    let mut broken = Vec::new();
    for written in world.written.lock().unwrap().iter() {
        let event_id = format!("operator:{}", written.key);
        let events = records.events.iter().filter(|event| word(event, "external_id") == event_id);
        let message_key = format!("household:{}:", written.key);
        let messages = records.outbox.iter().filter(|row| word(row, "dedupe_key").starts_with(&message_key));
        let count = if written.in_name_of_user { events.clone().count() } else { messages.count() };
        if count > 1 || (written.was_stored && count == 0) {
            broken.push(format!("I21 {written:?} is kept {count} times"));
        }
        for event in events {
            let confirms = records.calls.iter().any(|call| call["confirmed_by"] == event["id"]);
            let opts = matches!(word(event, "outcome_reason"), "opt_out" | "opted_in");
            let turn = records.turns.iter().find(|turn| turn["id"] == event["turn_id"]);
            let orders = turn.is_some_and(|turn| {
                records.pauses.iter().any(|pause| pause["begun_at"] == turn["created_at"])
                    || records.approvals.iter().any(|asked| asked["settled_at"] == turn["created_at"])
            });
            if confirms || opts || orders {
                broken.push(format!("I21 a text of the operator decides: {event}"));
            }
        }
    }
    broken
}
