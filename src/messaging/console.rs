//! Texts of conversations that are only tried out: nobody is sent anything.

use async_trait::async_trait;
use jiff::Timestamp;

use super::{Accepted, Channel, LookError, Outgoing, SendError};
use crate::conversation::verification::TextFields;

/// Has each text accepted at once: the console shows it from where it is stored.
#[derive(Debug, Clone, Copy)]
pub struct Sink;

#[async_trait]
impl Channel for Sink {
    async fn send(&self, text: &Outgoing) -> Result<Accepted, SendError> {
        Ok(shown(text))
    }

    /// What is stored is shown, so it was taken.
    async fn find(&self, text: &Outgoing, _since: Timestamp) -> Result<Vec<Accepted>, LookError> {
        Ok(vec![shown(text)])
    }

    /// Nobody sends it texts.
    async fn fetch_received(&self, _sid: &str) -> Result<Option<TextFields>, LookError> {
        Ok(None)
    }
}

fn shown(text: &Outgoing) -> Accepted {
    Accepted { sid: format!("console-{}", text.id), created_at: None }
}
