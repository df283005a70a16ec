//! Radio of the simulated phone: sends waiting messages as time passes.

use jiff::{SignedDuration, Timestamp};

use super::phone::{PhoneProgress, PhoneState, RadioedText};

/// Time from the acceptance of a message to its sending.
const SENDING_TIME: SignedDuration = SignedDuration::from_secs(1);
/// Time from the sending of a message to its delivery.
const DELIVERY_TIME: SignedDuration = SignedDuration::from_secs(2);

impl PhoneState {
    /// Lets the radio work up to a time: waiting messages leave one per [`SENDING_TIME`], the newest first unless the
    /// order was changed.
    pub(super) fn advance(&mut self, now: Timestamp) {
        if self.faults.is_asleep {
            return;
        }
        let mut waiting: Vec<usize> = (0..self.messages.len())
            .filter(|index| self.messages[*index].progress == PhoneProgress::Pending)
            .filter(|index| now.duration_since(self.messages[*index].accepted_at) >= SENDING_TIME)
            .collect();
        if self.settings.processing_order == "LIFO" {
            waiting.reverse();
        }
        for index in waiting {
            self.send(index, now);
        }
        for message in &mut self.messages {
            if let PhoneProgress::Sent(sent_at) = message.progress
                && now.duration_since(sent_at) >= DELIVERY_TIME
            {
                message.progress = PhoneProgress::Delivered { sent_at, at: sent_at + DELIVERY_TIME };
            }
        }
    }

    fn send(&mut self, index: usize, now: Timestamp) {
        let message = &mut self.messages[index];
        let fail = |error: &str| PhoneProgress::Failed { at: now, error: error.to_owned() };
        if now > message.valid_until {
            message.progress = fail("TTL expired");
        } else if self.faults.has_no_signal {
            // The message waits for a signal.
        } else if self.faults.failed_sends > 0 {
            self.faults.failed_sends -= 1;
            message.progress = fail("Send result: RESULT_ERROR_GENERIC_FAILURE");
        } else {
            message.progress = PhoneProgress::Sent(now);
            let text = RadioedText {
                id: message.id.clone(),
                to: message.to.clone(),
                body: message.body.clone(),
                sim: message.sim,
                sent_at: now,
                is_repeat: false,
            };
            self.radioed.push(text.clone());
            if self.faults.kills_after_radio > 0 {
                self.faults.kills_after_radio -= 1;
                self.radioed.push(RadioedText { is_repeat: true, ..text });
            }
        }
    }
}
