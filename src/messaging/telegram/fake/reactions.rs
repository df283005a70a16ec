//! Reactions of the bot.

use serde::Deserialize;
use serde_json::Value;

use super::api::Refusal;
use super::parameters::MethodParameters;
use super::server::TelegramState;

/// Emoji that can be reactions, from the description of `ReactionTypeEmoji`.
const REACTION_EMOJI: [&str; 73] = [
    "❤",
    "👍",
    "👎",
    "🔥",
    "🥰",
    "👏",
    "😁",
    "🤔",
    "🤯",
    "😱",
    "🤬",
    "😢",
    "🎉",
    "🤩",
    "🤮",
    "💩",
    "🙏",
    "👌",
    "🕊",
    "🤡",
    "🥱",
    "🥴",
    "😍",
    "🐳",
    "❤\u{200d}🔥",
    "🌚",
    "🌭",
    "💯",
    "🤣",
    "⚡",
    "🍌",
    "🏆",
    "💔",
    "🤨",
    "😐",
    "🍓",
    "🍾",
    "💋",
    "🖕",
    "😈",
    "😴",
    "😭",
    "🤓",
    "👻",
    "👨\u{200d}💻",
    "👀",
    "🎃",
    "🙈",
    "😇",
    "😨",
    "🤝",
    "✍",
    "🤗",
    "🫡",
    "🎅",
    "🎄",
    "☃",
    "💅",
    "🤪",
    "🗿",
    "🆒",
    "💘",
    "🙉",
    "🦄",
    "😘",
    "💊",
    "🙊",
    "😎",
    "👾",
    "🤷\u{200d}♂",
    "🤷",
    "🤷\u{200d}♀",
    "😡",
];

#[derive(Deserialize)]
struct ReactionParameter {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    emoji: String,
}

impl TelegramState {
    /// Replaces the reaction of the bot to a message. A bot has at most one.
    pub(super) fn set_message_reaction(&mut self, parameters: &MethodParameters) -> Result<Value, Refusal> {
        let (chat, message) = (parameters.chat()?, parameters.message()?);
        let reactions: Vec<ReactionParameter> = parameters.json("reaction")?.unwrap_or_default();
        let chat = self.writable_chat(chat)?;
        if !chat.messages.contains_key(&message) {
            return Err(Refusal::bad_request("message to react not found"));
        }
        match reactions.as_slice() {
            [] => {
                chat.bot_reactions.remove(&message);
            }
            [reaction] if reaction.kind == "emoji" && REACTION_EMOJI.contains(&reaction.emoji.as_str()) => {
                chat.bot_reactions.insert(message, reaction.emoji.clone());
            }
            [_] => return Err(Refusal::bad_request("REACTION_INVALID")),
            [_, _, ..] => return Err(Refusal::bad_request("REACTIONS_TOO_MANY")),
        }
        Ok(true.into())
    }
}
