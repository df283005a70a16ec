//! Ports of the configured channels.

use std::sync::Arc;

use super::ChannelPort;
use super::console::ConsoleChannel;
use super::terminal::TerminalChannel;
use crate::conversation::channel::Channel;

/// Ports of the configured channels, at most one per channel.
#[derive(Clone)]
pub struct ChannelPorts(Vec<Arc<dyn ChannelPort>>);

impl ChannelPorts {
    /// Returns the ports that need no configuration: the console and the terminal.
    pub fn local() -> Self {
        Self(vec![Arc::new(TerminalChannel), Arc::new(ConsoleChannel)])
    }

    /// Adds a port, in place of the earlier one of its channel.
    #[must_use]
    pub fn with(mut self, port: Arc<dyn ChannelPort>) -> Self {
        self.remove(port.channel());
        self.0.push(port);
        self
    }

    pub fn remove(&mut self, channel: Channel) {
        self.0.retain(|port| port.channel() != channel);
    }

    /// Returns the port of a channel; `None` if the channel is not configured.
    pub fn get(&self, channel: Channel) -> Option<Arc<dyn ChannelPort>> {
        self.0.iter().find(|port| port.channel() == channel).cloned()
    }

    /// Returns the ports of all configured channels.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<dyn ChannelPort>> {
        self.0.iter()
    }
}
