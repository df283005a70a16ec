//! Message queues: inbound messages, the outbox, delivery reports of the carrier, and alerts to the operator.

pub mod alerts;
pub mod backlog;
pub mod callbacks;
pub mod delivery_reports;
mod inbound_message_row;
pub mod inbound_messages;
pub mod lookups;
pub mod notifications;
pub mod outbox;
pub(in crate::store) mod outbox_events;
pub mod outbox_schedule;
pub mod resend;
pub mod source_cursors;
