//! Past turns that the prompts of several turns repeat, and whose messages are built only once.

use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use super::material::PastTurn;
use super::turn_messages::build_turn_messages;
use crate::conversation::model_request::EncodedMessage;

/// Past turn with its messages. Clones share both.
#[derive(Debug, Clone)]
pub struct SharedTurn(Arc<BuiltTurn>);

#[derive(Debug)]
struct BuiltTurn {
    turn: PastTurn,
    byte_size: usize,
    messages: OnceLock<Vec<EncodedMessage>>,
}

impl SharedTurn {
    /// Returns the approximate length of the turn in a request, in bytes.
    pub fn byte_size(&self) -> usize {
        self.0.byte_size
    }

    /// Returns the messages of the turn. Only the first call builds them.
    pub(super) fn messages(&self) -> &[EncodedMessage] {
        self.0.messages.get_or_init(|| build_turn_messages(&self.0.turn))
    }
}

impl From<PastTurn> for SharedTurn {
    fn from(turn: PastTurn) -> Self {
        Self(Arc::new(BuiltTurn { byte_size: turn.estimated_bytes(), turn, messages: OnceLock::new() }))
    }
}

impl Deref for SharedTurn {
    type Target = PastTurn;

    fn deref(&self) -> &PastTurn {
        &self.0.turn
    }
}

impl PartialEq for SharedTurn {
    fn eq(&self, other: &Self) -> bool {
        self.0.turn == other.0.turn
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::transcript::TurnId;

    #[test]
    fn clones_of_a_turn_share_its_messages() {
        let turn = SharedTurn::from(PastTurn {
            id: TurnId(1),
            author: None,
            context: None,
            texts: vec!["hi".to_owned()],
            steps: Vec::new(),
            answer: Some("Hello.".to_owned()),
            about_viewing: false,
        });
        assert_eq!(turn.messages().len(), 2);
        assert_eq!(turn.clone().messages().as_ptr(), turn.messages().as_ptr());
    }
}
