//! Messages that several requests contain, and that a model adapter encodes only once.

use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use serde_json::value::RawValue;

use super::model_request::ModelMessage;

/// Message of one or more requests, with its JSON in the format of the model server. Clones share both.
#[derive(Debug, Clone)]
pub struct SharedMessage(Arc<EncodedMessage>);

#[derive(Debug)]
struct EncodedMessage {
    message: ModelMessage,
    byte_size: usize,
    json: OnceLock<Box<RawValue>>,
}

impl SharedMessage {
    /// Returns the length of the texts of the message in bytes.
    pub(super) fn byte_size(&self) -> usize {
        self.0.byte_size
    }

    /// Returns the JSON of the message. Only the first call encodes it.
    pub fn json(&self, encode: impl FnOnce(&ModelMessage) -> Box<RawValue>) -> &RawValue {
        self.0.json.get_or_init(|| encode(&self.0.message))
    }
}

impl From<ModelMessage> for SharedMessage {
    fn from(message: ModelMessage) -> Self {
        Self(Arc::new(EncodedMessage { byte_size: message.byte_size(), message, json: OnceLock::new() }))
    }
}

impl Deref for SharedMessage {
    type Target = ModelMessage;

    fn deref(&self) -> &ModelMessage {
        &self.0.message
    }
}

impl PartialEq for SharedMessage {
    fn eq(&self, other: &Self) -> bool {
        self.0.message == other.0.message
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use serde_json::value::to_raw_value;

    use super::*;

    #[test]
    fn clones_of_a_message_share_its_json() {
        let encodings = Cell::new(0);
        let encode = |message: &ModelMessage| {
            encodings.set(encodings.get() + 1);
            to_raw_value(&format!("{message:?}")).unwrap()
        };
        let message = SharedMessage::from(ModelMessage::User("hi".to_owned()));
        let [first, second] =
            [message.json(encode).get(), message.clone().json(encode).get()].map(str::to_owned);
        assert_eq!((first.as_str(), encodings.get()), (second.as_str(), 1));
    }
}
