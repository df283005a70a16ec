//! Labels for the delivery status of outbound messages: one label for each status, on all pages.

use crate::conversation::delivery_status::DeliveryStatus;
use crate::messaging::error_codes;
use crate::store::conversation::record::delivery::DeliveryFailure;

/// Label with its sign and its color, neither of which replaces the label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DeliveryLabel {
    pub(super) word: &'static str,
    pub(super) sign: &'static str,
    pub(super) class: &'static str,
}

pub(super) fn delivery_label(status: DeliveryStatus) -> DeliveryLabel {
    let (class, sign, word) = match status {
        DeliveryStatus::Queued => ("", "\u{25cb}", "Waiting"),
        DeliveryStatus::Delayed => ("warn", "\u{25cb}", "Delayed"),
        DeliveryStatus::Attempting => ("", "\u{2192}", "Sending"),
        DeliveryStatus::Unknown => ("warn", "?", "Unknown"),
        DeliveryStatus::Shown => ("", "\u{2013}", "Shown, not sent"),
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
    DeliveryLabel { word, sign, class }
}

/// Explanation shown next to the label.
pub(super) fn delivery_reason(status: DeliveryStatus, why: &DeliveryFailure) -> Option<String> {
    match status {
        DeliveryStatus::Delayed => why.meaning.clone(),
        DeliveryStatus::Undelivered | DeliveryStatus::Failed | DeliveryStatus::Canceled => {
            Some(failure_reason(why))
        }
        DeliveryStatus::Unknown => Some("it may have been taken; that is being looked into".to_owned()),
        DeliveryStatus::Suppressed => {
            Some("whom it was for has opted out, was blocked or forgotten".to_owned())
        }
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

/// Meaning of the error code, or the noted cause.
fn failure_reason(why: &DeliveryFailure) -> String {
    let meaning = why.code.and_then(error_codes::look_up).map(|code| code.meaning.to_owned());
    let meaning = meaning.or_else(|| why.meaning.clone());
    match (meaning, why.code) {
        (Some(meaning), Some(code)) => format!("{meaning} (code {code})"),
        (Some(meaning), None) => meaning,
        (None, Some(code)) => format!("code {code}"),
        (None, None) => "the carrier gave no reason".to_owned(),
    }
}

/// Counts of messages by outcome, in the order of a drawing. Messages still in progress count as waiting, and those
/// that were only shown are left out.
pub(super) fn count_outcomes(deliveries: impl Iterator<Item = DeliveryStatus>) -> [(&'static str, u64); 5] {
    let drawn = [
        DeliveryStatus::Delivered,
        DeliveryStatus::Sent,
        DeliveryStatus::Queued,
        DeliveryStatus::Failed,
        DeliveryStatus::Suppressed,
    ];
    let mut counts = drawn.map(|status| (delivery_label(status).word, 0));
    for status in deliveries {
        let place = match status {
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
        counts[place].1 += 1;
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
