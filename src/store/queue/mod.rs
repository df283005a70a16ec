//! Message queues: inbound messages, the outbox, delivery reports of the carrier, and alerts to the operator.

pub mod alerts;
pub mod backlog;
pub mod callbacks;
pub mod claimed_messages;
pub mod delivery_reports;
mod due_message;
pub mod due_texts;
mod inbound_message_row;
pub mod inbound_messages;
pub mod limited_messages;
pub mod lookups;
pub mod message_verification;
pub mod next_work;
pub mod notifications;
pub mod opt_out_confirmation;
pub mod outbox;
pub(in crate::store) mod outbox_events;
pub mod outbox_schedule;
mod pressed_message;
pub mod queued_claim;
mod repeated_message;
pub mod resend;
pub mod second_attempt;
pub mod source_cursors;
pub mod suppression;
pub mod test_text;
