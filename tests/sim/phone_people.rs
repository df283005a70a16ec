//! Users who write to the phone of the household: their texts arrive late, in another order or twice, and they read what
//! its radio sends.

use std::sync::atomic::Ordering;
use std::time::Duration;

use jiff::SignedDuration;

use crate::carriers::{Carrier, PhoneText};
use crate::people::{self, ReadMessage};
use crate::plan::DeliveryMode;
use crate::records::{Records, number, word};
use crate::rng::Rng;
use crate::world::{World, pass};

/// Interval at which the users look at their phones.
const GLANCE: Duration = Duration::from_secs(1);
/// Time by which the app dates the second copy of a text earlier.
const COPY_EARLIER: SignedDuration = SignedDuration::from_secs(4);
/// Age up to which the program asks for the delivery of a message.
const ASKED_MS: i64 = 6 * 60 * 1000;

/// Sends a text to the phone, which reaches its inbox as `way` specifies.
pub(crate) fn text(world: &World, from: &str, body: &str, way: DeliveryMode) {
    world.journal.note(format!("{from} texts {body:?} to the phone ({way:?})"));
    let sent_at = world.now();
    let sent = PhoneText { from: from.to_owned(), body: body.to_owned(), sent_at, arrived_at: sent_at };
    let mut rng = Rng::of(world.plan.seed, &format!("way of {from} at {sent_at}"));
    let world = world.clone();
    world.clone().later(async move {
        pass(rng.ms(300, 3_000)).await;
        match way {
            DeliveryMode::Straight => arrive(&world, sent),
            DeliveryMode::Late(ms) => {
                pass(Duration::from_millis(ms)).await;
                arrive(&world, sent);
            }
            DeliveryMode::Twice(ms) => {
                arrive(&world, sent.clone());
                pass(Duration::from_millis(ms)).await;
                arrive(&world, PhoneText { sent_at: sent_at - COPY_EARLIER, ..sent });
            }
            // The message center keeps it for a while, but not for long at the end of a schedule.
            DeliveryMode::Lost => {
                let longest = if world.calm.load(Ordering::SeqCst) { 60_000 } else { 2_400_000 };
                pass(rng.ms(20_000, longest)).await;
                arrive(&world, sent);
            }
            DeliveryMode::Fallback(_) => report(&world, sent).await,
        }
    });
}

fn arrive(world: &World, text: PhoneText) {
    world.carriers.phone.fake.receive_text_sent_at(&text.from, &text.body, text.sent_at);
    note(world, text);
}

fn note(world: &World, text: PhoneText) {
    world.journal.note(format!("the phone has {:?} of {}, sent at {}", text.body, text.from, text.sent_at));
    let arrived_at = world.true_clock.now();
    world.carriers.phone.texts.lock().unwrap().push(PhoneText { arrived_at, ..text });
}

/// Puts a text into the inbox, and reports it to the webhook.
async fn report(world: &World, text: PhoneText) {
    let request = world.carriers.phone.fake.report_text(&text.from, &text.body).unwrap();
    note(world, PhoneText { sent_at: world.now(), ..text });
    // The inbox has the text too.
    let _ = world.bring(request).await;
}

/// Lets users react to each text of the phone, and the app report some of its states.
pub(crate) fn react(world: &World) {
    let world = world.clone();
    tokio::spawn(async move {
        let mut read = 0;
        loop {
            pass(GLANCE).await;
            for sent in world.carriers.phone.fake.radioed_texts().split_off(read) {
                read += 1;
                world.journal.note(format!("the radio sends {:?} to {}: {}", sent.body, sent.to, sent.id));
                let mut rng = Rng::of(world.plan.seed, &format!("{} {}", sent.to, sent.sent_at));
                if rng.percent(15) {
                    report_state(&world, &sent.id, rng.ms(0, 5_000));
                }
                world.carriers.note_habit(&sent.to, Carrier::Phone);
                let message = ReadMessage { id: sent.id, to: sent.to, body: sent.body };
                people::read(&world, &world.plan, &mut rng, &message);
            }
        }
    });
}

fn report_state(world: &World, id: &str, after: Duration) {
    let (world, request) = (world.clone(), world.carriers.phone.fake.report_state("sms:sent", id).unwrap());
    world.clone().later(async move {
        pass(after).await;
        // The state is also polled.
        let _ = world.bring(request).await;
    });
}

/// Returns the work at the phone that is still to be done.
pub(crate) fn unfinished(world: &World, records: &Records) -> Vec<String> {
    let texts = world.carriers.phone.texts.lock().unwrap().clone();
    let is_known = |id: &str| records.events.iter().any(|event| word(event, "external_id") == id);
    let is_admitted = |text: &PhoneText| {
        texts.iter().any(|same| same.is_same_message(text) && is_known(&same.external_id()))
    };
    let waiting = texts.iter().filter(|text| !is_admitted(text)).map(|text| format!("{text:?} not admitted"));
    let now = world.now().as_millisecond();
    let is_asked_for = |row: &&serde_json::Value| {
        word(row, "from_addr").starts_with("smsgate:")
            && word(row, "state") == "accepted"
            && !matches!(word(row, "delivery"), "delivered" | "failed")
            && now < number(row, "accepted_at") + ASKED_MS
    };
    let asked = records.outbox.iter().filter(is_asked_for).map(|row| format!("state of {row}"));
    waiting.chain(asked).collect()
}
