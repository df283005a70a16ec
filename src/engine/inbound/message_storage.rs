//! Storage of a message, with the effects that cannot wait for its turn.

use crate::conversation::routing::inbound_message::ReceivedMessage;
use crate::conversation::routing::urgency::MessageUrgency;
use crate::store::confirmation::pending_action;
use crate::store::people::addresses::{self, OptOutcome, OptTarget};
use crate::store::queue::inbound_messages::{self, AdmissionOutcome, DebouncePolicy};
use crate::store::queue::suppression;
use crate::store::turns::turn_lifecycle;
use crate::store::{Conn, QueryResult};

/// Effect that a message has before its turn, and the debounce policy of that turn.
#[derive(Debug, Clone, Copy)]
pub(super) struct AdmissionPlan {
    pub(super) urgency: MessageUrgency,
    pub(super) debounce: DebouncePolicy,
}

/// Stores a message of a private chat.
pub(super) fn store_message(
    conn: &mut Conn,
    received: &ReceivedMessage,
    plan: AdmissionPlan,
) -> QueryResult<AdmissionOutcome> {
    let admission = inbound_messages::admit_message(conn, received, plan.debounce)?;
    let AdmissionOutcome::New { user, address, .. } = admission else { return Ok(admission) };
    let now = received.received_at;
    match plan.urgency {
        MessageUrgency::OptsOut => {
            // The opt-out is applied now, because the reply of a running turn must not be sent.
            let target = OptTarget { user, address };
            if addresses::opt_out(conn, target, received.provider_at, now)? == OptOutcome::Changed {
                suppression::suppress_messages_to(conn, target, now)?;
                turn_lifecycle::request_cancel_from(conn, target, now)?;
            }
        }
        MessageUrgency::CancelsTurn => turn_lifecycle::request_cancel(conn, user, now)?,
        MessageUrgency::CancelsTurnOrAnswers => {
            if pending_action::load_pending_action(conn, user)?.is_none() {
                turn_lifecycle::request_cancel(conn, user, now)?;
            }
        }
        MessageUrgency::Immediate | MessageUrgency::MayWait => {}
    }
    Ok(admission)
}
