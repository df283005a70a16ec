//! States of sent messages, as the phone reports them.

use jiff::{SignedDuration, Timestamp};

use super::client::SmsGate;
use super::wire::GatewayMessage;
use crate::conversation::delivery_status::DeliveryStatus;
use crate::messaging::{LookupError, Poll, UnfinishedMessage};
use crate::store::queue::delivery_reports::{DeliveryReport, ReportKey, ReportWay};
use crate::store::queue::second_attempt::is_second_attempt;

/// Difference of the clocks up to which a yes counts.
pub(super) const MAX_CLOCK_SKEW: SignedDuration = SignedDuration::from_secs(60);

/// Delay before a message that the radio failed to send is sent once more.
const SECOND_ATTEMPT_DELAY: SignedDuration = SignedDuration::from_mins(1);
/// Beginning of the reason of a failure of the radio. Other failures are final.
const RADIO_FAILURE: &str = "Send result: RESULT_";

/// Age up to which a sent message is asked for its delivery.
const MAX_DELIVERY_TIME: SignedDuration = SignedDuration::from_mins(5);

impl SmsGate {
    /// Fetches the states of messages that the phone has not finished. Returns those that changed. Many carriers report
    /// no delivery, so a sent message is asked for only for a while.
    pub(super) async fn fetch_reports(&self, poll: &Poll) -> Result<Vec<DeliveryReport>, LookupError> {
        let mut reports = Vec::new();
        let is_recent = |message: &&UnfinishedMessage| {
            !message.was_sent() || poll.now.duration_since(message.accepted_at) < MAX_DELIVERY_TIME
        };
        for message in poll.unfinished.iter().filter(is_recent) {
            let Some(stored) = self.fetch_message(&message.sid).await? else { continue };
            self.measure_skew(&stored, message.accepted_at);
            let progress =
                |status: Option<DeliveryStatus>| status.map_or(0, DeliveryStatus::carrier_progress);
            let Some(status) = stored.delivery() else { continue };
            self.record_left(&message.sid);
            if progress(Some(status)) > progress(message.delivery) {
                reports.push(self.report((&message.sid, ReportWay::Poll), status, stored.error()));
            }
        }
        Ok(reports)
    }

    pub(super) fn report(
        &self,
        (sid, way): (&str, ReportWay),
        status: DeliveryStatus,
        error: Option<&str>,
    ) -> DeliveryReport {
        DeliveryReport {
            sid: sid.to_owned(),
            status: status.as_str().to_owned(),
            key: ReportKey::MessageId(way),
            to: self.address(),
            error_code: None,
            error_meaning: error.map(str::to_owned),
            second_attempt_after: may_succeed_later(sid, status, error).then_some(SECOND_ATTEMPT_DELAY),
        }
    }

    /// Compares the time at which the phone accepted a message with ours.
    fn measure_skew(&self, stored: &GatewayMessage, accepted_at: Timestamp) {
        if let Some(at) = stored.accepted_at() {
            self.lock_poll_state().clock_skew = Some(at.duration_since(accepted_at));
        }
    }
}

/// Returns whether a message failed in the radio at its first attempt.
fn may_succeed_later(sid: &str, status: DeliveryStatus, error: Option<&str>) -> bool {
    status == DeliveryStatus::Failed
        && error.is_some_and(|error| error.starts_with(RADIO_FAILURE))
        && !is_second_attempt(sid)
}
