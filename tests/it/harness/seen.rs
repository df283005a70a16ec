//! State of a conversation in a client that follows it over the API: the same state results from single events and from
//! a snapshot.

use std::collections::BTreeMap;

use serde_json::Value;

/// Conversation, as far as both events and a snapshot show it. Messages are identified by their ids.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) is_over: bool,
    pub(crate) turns: BTreeMap<i64, Turn>,
    pub(crate) notices: BTreeMap<i64, Message>,
    pub(crate) unanswered: BTreeMap<i64, String>,
    pub(crate) waiting: BTreeMap<i64, String>,
    pub(crate) question: Option<(i64, String)>,
    /// Reactions by their ids: `out 3: \u{1f44d}`.
    pub(crate) reactions: BTreeMap<i64, String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Turn {
    state: String,
    texts: BTreeMap<i64, String>,
    messages: BTreeMap<i64, Message>,
    calls: BTreeMap<i64, Call>,
    /// Blocks by step, attempt, type and index.
    pub(crate) blocks: BTreeMap<String, String>,
}

/// Outbound message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) body: String,
    pub(crate) state: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Call {
    state: String,
    outcome: String,
}

/// Returns a text field. A value that marks a position, or a missing value, yields the empty string.
fn text_field(data: &Value, name: &str) -> String {
    data[name].as_str().unwrap_or_default().to_owned()
}

fn id(data: &Value) -> i64 {
    data["id"].as_i64().unwrap()
}

fn key(data: &Value) -> String {
    let number = |name: &str| data[name].as_u64().unwrap();
    format!("{}.{} {} {}", number("step"), number("attempt"), text_field(data, "type"), number("ord"))
}

impl Seen {
    /// Applies one server-sent event.
    pub(crate) fn take(&mut self, event: &str) {
        let field = |name: &str| event.lines().find_map(|line| line.strip_prefix(name));
        let (Some(name), Some(data)) = (field("event: "), field("data: ")) else { return };
        self.apply_event(name, &serde_json::from_str(data).unwrap());
    }

    fn apply_event(&mut self, name: &str, data: &Value) {
        let state = text_field(data, "state");
        match name {
            "reset" => *self = Self::default(),
            "snapshot" => *self = Self::from_snapshot(data),
            "caught_up" | "block_start" | "block_end" => {}
            "conversation" => {
                self.is_over = state == "ended";
                if self.is_over {
                    self.waiting.clear();
                }
            }
            "turn" => self.turn(data).state = state,
            "block_delta" => {
                self.turn(data).blocks.entry(key(data)).or_default().push_str(&text_field(data, "text"));
            }
            "step_abandoned" => {
                let void = format!("{}.{} ", data["step"], data["attempt"]);
                self.turn(data).blocks.retain(|key, _| !key.starts_with(&void));
            }
            "tool_call" => {
                let call = self.turn(data).calls.entry(id(data)).or_default();
                if state == "complete" {
                    call.outcome = text_field(data, "text");
                }
                call.state = state;
            }
            "question" if state == "closed" => self.question = None,
            "question" if state == "asked" => self.question = Some((id(data), text_field(data, "text"))),
            "question" => {}
            "message" => self.text(data),
            "reaction" if state == "given" => {
                let on = format!("{} {}", text_field(data, "direction"), data["message"]);
                self.reactions.insert(id(data), format!("{on}: {}", text_field(data, "text")));
            }
            "reaction" => drop(self.reactions.remove(&id(data))),
            other => panic!("{other} is no event"),
        }
    }

    fn turn(&mut self, data: &Value) -> &mut Turn {
        self.turns.entry(data["turn"].as_i64().unwrap()).or_default()
    }

    fn text(&mut self, data: &Value) {
        let (id, state, text) =
            (id(data), text_field(data, "state"), data["text"].as_str().map(str::to_owned));
        if text_field(data, "direction") == "in" {
            self.waiting.remove(&id);
            let texts = match state.as_str() {
                "waiting" => &mut self.waiting,
                "skipped" => &mut self.unanswered,
                _ => &mut self.turn(data).texts,
            };
            texts.insert(id, text.unwrap_or_default());
            return;
        }
        let messages = if data["turn"].is_null() { &mut self.notices } else { &mut self.turn(data).messages };
        let message = messages.entry(id).or_default();
        message.state = state;
        message.body = text.unwrap_or(std::mem::take(&mut message.body));
    }

    /// Builds the state from a snapshot.
    fn from_snapshot(data: &Value) -> Self {
        let mut seen = Self { is_over: !data["conversation"]["ended_at"].is_null(), ..Self::default() };
        for turn in data["turns"].as_array().unwrap() {
            let mut shown_turn = Turn { state: text_field(turn, "state"), ..Turn::default() };
            shown_turn.texts = seen.received(&turn["texts"]);
            shown_turn.messages = seen.sent(&turn["messages"]);
            for call in turn["tool_calls"].as_array().unwrap() {
                let outcome = text_field(call, "outcome");
                shown_turn.calls.insert(id(call), Call { state: text_field(call, "state"), outcome });
            }
            for block in turn["blocks"].as_array().unwrap() {
                shown_turn.blocks.insert(key(block), text_field(block, "text"));
            }
            seen.turns.insert(id(turn), shown_turn);
        }
        seen.notices = seen.sent(&data["notices"]);
        seen.unanswered = seen.received(&data["unanswered"]);
        seen.waiting = seen.received(&data["waiting"]);
        let question = &data["question"];
        seen.question = (!question.is_null()).then(|| (id(question), text_field(question, "text")));
        seen
    }

    fn received(&mut self, texts: &Value) -> BTreeMap<i64, String> {
        let texts = texts.as_array().unwrap();
        texts.iter().for_each(|text| self.reacted("in", text));
        texts.iter().map(|text| (id(text), text_field(text, "body"))).collect()
    }

    fn sent(&mut self, texts: &Value) -> BTreeMap<i64, Message> {
        let texts = texts.as_array().unwrap();
        texts.iter().for_each(|text| self.reacted("out", text));
        let message =
            |text| (id(text), Message { body: text_field(text, "body"), state: text_field(text, "state") });
        texts.iter().map(message).collect()
    }

    fn reacted(&mut self, direction: &str, text: &Value) {
        for reaction in text["reactions"].as_array().unwrap() {
            let on = format!("{direction} {}", id(text));
            self.reactions.insert(id(reaction), format!("{on}: {}", text_field(reaction, "emoji")));
        }
    }
}
