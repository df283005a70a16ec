//! Part of a schedule that needs a phone of the household: which carriers are configured, and the faults of the phone.

use jiff::SignedDuration;

use crate::plan::{Act, Plan};
use crate::rng::Rng;

/// Configured carriers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Carriers {
    Twilio,
    Phone,
    Both,
}

/// Phone of a schedule.
#[derive(Debug, Clone)]
pub(crate) struct PhonePlan {
    /// Carriers at the start.
    pub first: Carriers,
    /// Percentage of requests to the phone that fail.
    pub storm: u64,
}

/// Event at the phone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PhoneAct {
    Sleeps,
    Wakes,
    LosesSignal,
    FindsSignal,
    /// The radio fails to send this number of messages.
    FailsSends(u32),
    /// The phone dies between its radio and its record, and sends the next message twice.
    DiesAfterRadio,
    ClockIsAhead(SignedDuration),
    /// Another program has a message under the id of our next one.
    IdIsOccupied,
}

impl Plan {
    /// Adds the phone. This part uses a separate random stream.
    pub(crate) fn add_phone(&mut self, rng: &mut Rng, end: u64) {
        self.phone = Some(PhonePlan {
            first: rng.one_of(&[Carriers::Both, Carriers::Both, Carriers::Phone, Carriers::Twilio]),
            storm: rng.one_of(&[0, 0, 10, 25, 45]),
        });
        let moments: Vec<u64> = self.acts.iter().map(|(at, _)| *at).collect();
        // Most events hit a conversation that a message has begun.
        let moment = |rng: &mut Rng| match rng.below(4) {
            0 => rng.within(500, end + 20_000),
            _ => rng.one_of(&moments) + rng.within(0, 30_000),
        };
        for _ in 0..rng.below(4) {
            let carriers = rng.one_of(&[Carriers::Both, Carriers::Phone, Carriers::Twilio]);
            self.acts.push((moment(rng), Act::ChangesCarriers(carriers)));
        }
        for (begins, ends) in [
            (PhoneAct::Sleeps, PhoneAct::Wakes),
            (PhoneAct::Sleeps, PhoneAct::Wakes),
            (PhoneAct::LosesSignal, PhoneAct::FindsSignal),
        ] {
            if rng.percent(25) {
                let at = moment(rng);
                let lasts =
                    if rng.percent(70) { rng.within(1_000, 120_000) } else { rng.within(120_000, 3_600_000) };
                self.acts.extend([(at, Act::Phone(begins)), (at + lasts, Act::Phone(ends))]);
            }
        }
        let skew = SignedDuration::from_secs(i64::try_from(rng.within(0, 300)).unwrap() - 150);
        let faults = [
            (30, PhoneAct::FailsSends(1)),
            (10, PhoneAct::FailsSends(2)),
            (25, PhoneAct::DiesAfterRadio),
            (25, PhoneAct::IdIsOccupied),
            (15, PhoneAct::ClockIsAhead(skew)),
        ];
        for (chance, fault) in faults {
            if rng.percent(chance) {
                self.acts.push((moment(rng), Act::Phone(fault)));
            }
        }
    }
}
