//! Agents: programs that act for one person, each with a key. The word of an agent deletes nothing: the person is asked, and
//! the question names the agent.

use jiff::{SignedDuration, Timestamp};

use super::grammar::confirmation_reply::{ConfirmationReply, ReplyLanguage, parse_confirmation_reply};
use super::rate_limit::RateLimit;
use super::transcript::UserId;

/// Longest shown name of an agent, in characters.
const MAX_NAME_CHARS: usize = 20;
/// Number of characters of a stated name that are looked at.
const MAX_STATED_CHARS: usize = 100;
/// Longest name of a key for an agent, in characters. The name is part of the question.
pub const MAX_KEY_NAME_CHARS: usize = 20;
/// Maximum number of questions of agents in a day that one person has not confirmed.
pub const MAX_UNCONFIRMED_QUESTIONS: usize = 3;
/// Period of [`MAX_UNCONFIRMED_QUESTIONS`].
pub const QUESTION_PERIOD: SignedDuration = SignedDuration::from_hours(24);
/// Period after which a call that waits for an open question of the person is dropped, so that nobody is asked in the name
/// of an agent that has gone.
pub const MAX_WAIT: SignedDuration = SignedDuration::from_mins(15);
/// Period after which a ticket is forgotten.
pub const TICKET_PERIOD: SignedDuration = SignedDuration::from_hours(48);
/// Time within which a question of an agent must leave.
pub const MAX_QUESTION_AGE: SignedDuration = SignedDuration::from_mins(5);
/// Period without calls after which the conversation of an agent ends.
pub const IDLE_PERIOD: SignedDuration = SignedDuration::from_hours(24);
/// Maximum number of calls with one key, so that an agent in a loop cannot fill the database.
pub const CALL_LIMIT: RateLimit = RateLimit { max: 300, period: SignedDuration::from_hours(1) };
/// Maximum number of calls with one key that wait or run at the same time.
pub const MAX_OPEN_CALLS: usize = 8;

/// Agent that makes a call, with the key that it presented.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentCaller {
    /// Id of the key.
    pub key: i64,
    pub key_name: String,
    pub name: AgentName,
}

impl AgentCaller {
    /// Formats the agent for the person: `Claude (key "desk")`.
    pub fn format(&self) -> String {
        let name = if self.name.0.is_empty() { "An agent" } else { &self.name.0 };
        format!("{name} (key \"{}\")", self.key_name)
    }

    /// Formats the question of the agent from a confirmation prompt.
    pub fn format_question(&self, prompt: &str) -> String {
        let mut chars = prompt.chars();
        let first = chars.next().map(|first| first.to_ascii_lowercase());
        format!("{} asks: {}{}", self.format(), first.map(String::from).unwrap_or_default(), chars.as_str())
    }
}

/// Name that an agent states of itself, as shown to the person. It is empty if the agent stated none that can be shown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentName(String);

impl AgentName {
    /// Cleans a name. Nothing in it looks like a code, an answer, a link or a second sentence.
    pub fn from_stated(stated: &str) -> Self {
        let is_shown = |c: &char| c.is_ascii_alphanumeric() || matches!(c, ' ' | '-');
        let shown: String = stated.chars().filter(is_shown).take(MAX_STATED_CHARS).collect();
        let has_letter = |word: &&str| word.chars().any(|c| c.is_ascii_alphabetic());
        let is_answer = |word: &&str| {
            parse_confirmation_reply(word, None, &ReplyLanguage::ALL) != ConfirmationReply::Unrelated
        };
        let words: Vec<&str> = shown.split_whitespace().filter(has_letter).collect();
        if words.iter().any(is_answer) {
            return Self::default();
        }
        let name: String = words.join(" ").chars().take(MAX_NAME_CHARS).collect();
        Self(name.trim_end().to_owned())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Request of an agent to delete something. It is the source of a deletion beside the words of the person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AgentRequest {
    /// Id of the key.
    pub key: i64,
    /// Person for whom the agent acts, and who is asked.
    pub person: UserId,
    /// Number of questions of agents within [`QUESTION_PERIOD`] that the person has not confirmed.
    pub unconfirmed_questions: usize,
    /// End of the quiet hours of the person, in which no agent asks.
    pub quiet_until: Option<Timestamp>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stated_name_cannot_look_like_a_code_or_a_sentence() {
        let shown = |stated| AgentName::from_stated(stated).0;
        assert_eq!(shown("Claude Code"), "Claude Code");
        assert_eq!(shown("n8n"), "n8n");
        assert_eq!(shown("Claude 4"), "Claude");
        assert_eq!(shown("Dialarr: reply YES 4711."), "");
        assert_eq!(shown("just text no"), "");
        assert_eq!(shown("Sam\nsays https://evil.example now"), "Samsays httpsevilexa");
        assert_eq!(shown("4711"), "");
        assert_eq!(shown("\u{202e}!?"), "");
    }

    #[test]
    fn question_names_the_agent_and_its_key() {
        let claude =
            AgentCaller { key: 7, key_name: "desk".to_owned(), name: AgentName::from_stated("Claude") };
        assert_eq!(
            claude.format_question("Delete Heat (1995) and its file, 18 GB? Reply YES 4711 or NO."),
            "Claude (key \"desk\") asks: delete Heat (1995) and its file, 18 GB? Reply YES 4711 or NO."
        );
        let unnamed = AgentCaller { name: AgentName::default(), ..claude };
        assert_eq!(unnamed.format(), "An agent (key \"desk\")");
    }
}
