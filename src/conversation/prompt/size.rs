//! How long a request is, by which it is judged before a model reads it.

use super::{Message, ModelRequest, PromptCall};

impl ModelRequest {
    /// All its texts together, in bytes.
    pub fn size(&self) -> usize {
        let tools = self
            .tools
            .iter()
            .map(|tool| tool.name.len() + tool.description.len() + tool.parameters.text().len());
        self.system.len() + tools.sum::<usize>() + self.messages.iter().map(Message::size).sum::<usize>()
    }
}

impl Message {
    fn size(&self) -> usize {
        match self {
            Self::User(text) => text.len(),
            Self::Assistant { text, calls } => text.len() + calls.iter().map(PromptCall::size).sum::<usize>(),
            Self::ToolResult { content, .. } => content.len(),
        }
    }
}

impl PromptCall {
    fn size(&self) -> usize {
        let arguments = self.arguments.iter().map(|(name, value)| name.len() + value.to_string().len());
        self.name.len() + arguments.sum::<usize>()
    }
}
