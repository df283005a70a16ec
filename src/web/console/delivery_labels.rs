//! Labels for the delivery status of outbound messages: one label for each status, on all pages.

use crate::conversation::delivery_status::DeliveryStatus;
use crate::messaging::twilio::error_codes;
use crate::store::conversation::record::delivery::DeliveryFailure;
use crate::store::conversation::record::messages::OutboundRecord;
use crate::store::skip_unreadable;

/// Label with a sign and a color, which only supplement it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DeliveryLabel {
    pub(super) label: &'static str,
    pub(super) sign: &'static str,
    pub(super) class: &'static str,
}

pub(super) fn delivery_label(status: DeliveryStatus) -> DeliveryLabel {
    let (class, sign, label) = match status {
        DeliveryStatus::Queued => ("", "\u{25cb}", "Waiting"),
        DeliveryStatus::Delayed => ("warn", "\u{25cb}", "Delayed"),
        DeliveryStatus::Attempting => ("", "\u{2192}", "Sending"),
        DeliveryStatus::Unknown => ("warn", "?", "Unknown"),
        DeliveryStatus::Shown => ("", "\u{2013}", "Displayed only"),
        DeliveryStatus::Accepted
        | DeliveryStatus::Scheduled
        | DeliveryStatus::QueuedByCarrier
        | DeliveryStatus::Sending
        | DeliveryStatus::Sent => ("", "\u{2713}", "Sent"),
        DeliveryStatus::Delivered => ("good", "\u{2713}\u{2713}", "Delivered"),
        DeliveryStatus::Read => ("good", "\u{2713}\u{2713}", "Read"),
        DeliveryStatus::Undelivered | DeliveryStatus::Failed | DeliveryStatus::Canceled => {
            ("bad", "\u{00d7}", "Failed")
        }
        DeliveryStatus::Suppressed => ("", "\u{2013}", "Not sent"),
    };
    DeliveryLabel { label, sign, class }
}

/// Explanation shown next to the label.
pub(in crate::web) fn delivery_reason(message: &OutboundRecord) -> Option<String> {
    let failure = || skip_unreadable(message.failure()).unwrap_or_default();
    match message.status() {
        DeliveryStatus::Delayed => failure().meaning,
        DeliveryStatus::Undelivered | DeliveryStatus::Failed | DeliveryStatus::Canceled => {
            Some(failure_reason(failure()))
        }
        DeliveryStatus::Unknown => Some("it may have been sent; Dialarr is checking".to_owned()),
        DeliveryStatus::Suppressed => Some("the recipient opted out, was blocked or was erased".to_owned()),
        DeliveryStatus::Queued
        | DeliveryStatus::Attempting
        | DeliveryStatus::Shown
        | DeliveryStatus::Accepted
        | DeliveryStatus::Scheduled
        | DeliveryStatus::QueuedByCarrier
        | DeliveryStatus::Sending
        | DeliveryStatus::Sent
        | DeliveryStatus::Delivered
        | DeliveryStatus::Read => None,
    }
}

/// Meaning of the error code, or else the recorded note.
fn failure_reason(failure: DeliveryFailure) -> String {
    let meaning = failure.code.and_then(error_codes::look_up_error_code).map(|code| code.meaning.to_owned());
    let meaning = meaning.or(failure.meaning);
    match (meaning, failure.code) {
        (Some(meaning), Some(code)) => format!("{meaning} (code {code})"),
        (Some(meaning), None) => meaning,
        (None, Some(code)) => format!("code {code}"),
        (None, None) => "the carrier gave no reason".to_owned(),
    }
}

/// Counts messages by outcome, in the order of the chart. Messages in progress count as waiting, and those that were
/// only displayed are left out.
pub(super) fn count_outcomes(deliveries: impl Iterator<Item = DeliveryStatus>) -> [(&'static str, u64); 5] {
    let charted = [
        DeliveryStatus::Delivered,
        DeliveryStatus::Sent,
        DeliveryStatus::Queued,
        DeliveryStatus::Failed,
        DeliveryStatus::Suppressed,
    ];
    let mut counts = charted.map(|status| (delivery_label(status).label, 0));
    for status in deliveries {
        let index = match status {
            DeliveryStatus::Delivered | DeliveryStatus::Read => 0,
            DeliveryStatus::Accepted
            | DeliveryStatus::Scheduled
            | DeliveryStatus::QueuedByCarrier
            | DeliveryStatus::Sending
            | DeliveryStatus::Sent => 1,
            DeliveryStatus::Queued
            | DeliveryStatus::Delayed
            | DeliveryStatus::Attempting
            | DeliveryStatus::Unknown => 2,
            DeliveryStatus::Undelivered | DeliveryStatus::Failed | DeliveryStatus::Canceled => 3,
            DeliveryStatus::Suppressed => 4,
            DeliveryStatus::Shown => continue,
        };
        counts[index].1 += 1;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chart_uses_the_delivery_labels_of_the_lists() {
        let deliveries = [
            DeliveryStatus::Read,
            DeliveryStatus::Delivered,
            DeliveryStatus::Shown,
            DeliveryStatus::Unknown,
            DeliveryStatus::Queued,
            DeliveryStatus::Failed,
        ];
        assert_eq!(
            count_outcomes(deliveries.into_iter()),
            [("Delivered", 2), ("Sent", 0), ("Waiting", 2), ("Failed", 1), ("Not sent", 0)]
        );
    }
}
