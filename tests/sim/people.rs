//! Behavior of the users and their carrier: they send messages, answer confirmation prompts, and report the delivery of
//! outbound messages.

use std::time::Duration;

use dialarr::messaging::twilio::fake::{FakeDelivery, SentMessage};

use crate::carriers::Carrier;
use crate::house_agents;
use crate::house_tonight;
use crate::plan::{self, Answers, DeliveryMode, Plan};
use crate::rng::Rng;
use crate::world::{World, pass};
use crate::{bot_people, phone_people};

/// Code that matches no request: the codes begin at 4747.
const GUESS: &str = "approve 0001";

/// Outbound message as its reader sees it.
pub(crate) struct ReadMessage {
    pub id: String,
    pub to: String,
    pub body: String,
}

/// Sends a user's message, which reaches the program as `way` specifies.
pub(crate) fn text(world: &World, from: &str, body: &str, way: DeliveryMode) {
    if world.plan.bot.is_some() {
        return bot_people::text(world, from, body, way);
    }
    match world.choose_carrier(from) {
        Some(Carrier::Twilio) => text_by_twilio(world, from, body, way),
        Some(Carrier::Phone) => phone_people::text(world, from, body, way),
        None => world.journal.note(format!("{from} cannot text {body:?}: no carrier is set up")),
    }
}

fn text_by_twilio(world: &World, from: &str, body: &str, way: DeliveryMode) {
    let number = world.sent_in.lock().unwrap().len();
    let sid = format!("SM{number:032x}");
    world.sent_in.lock().unwrap().insert(sid.clone());
    world.journal.note(format!("{from} texts {body:?} ({way:?}) {sid}"));
    let form = world.peers.twilio.inbound_form(from, body).with_sid(&sid);
    let straight = form.clone().into_signed_request().unwrap();
    let fallback =
        form.with_field("ErrorUrl", "https://sms.example.org/webhook/twilio").into_signed_request().unwrap();
    let world = world.clone();
    world.clone().later(async move {
        let second = match way {
            DeliveryMode::Lost => return,
            DeliveryMode::Straight => None,
            DeliveryMode::Late(ms) => {
                pass(Duration::from_millis(ms)).await;
                None
            }
            DeliveryMode::Twice(ms) => Some((ms, straight.clone())),
            DeliveryMode::Fallback(ms) => {
                pass(Duration::from_millis(ms)).await;
                return bring(&world, &sid, fallback).await;
            }
        };
        pass(Duration::from_millis(120)).await;
        bring(&world, &sid, straight).await;
        if let Some((ms, again)) = second {
            pass(Duration::from_millis(ms)).await;
            bring(&world, &sid, again).await;
        }
    });
}

async fn bring(world: &World, sid: &str, request: http::Request<bytes::Bytes>) {
    if world.bring(request).await == Some(200) {
        world.acknowledged.lock().unwrap().insert(sid.to_owned());
    }
}

/// Lets users and the carrier react to each outbound message.
pub(crate) fn react(world: &World, plan: &Plan) {
    if world.plan.phone.is_some() {
        phone_people::react(world);
    }
    if world.plan.bot.is_some() {
        bot_people::react(world);
    }
    let (world, plan) = (world.clone(), plan.clone());
    let mut ours = world.peers.twilio.subscribe();
    tokio::spawn(async move {
        while let Ok(sent) = ours.recv().await {
            let mut rng = Rng::of(plan.seed, &sent.sid);
            report(&world, &plan, &mut rng, &sent);
            let (id, to, body) = (sent.sid, sent.to.as_str().to_owned(), sent.body);
            world.carriers.note_habit(&to, Carrier::Twilio);
            read(&world, &plan, &mut rng, &ReadMessage { id, to, body });
        }
    });
}

/// Lets a user read a message, and reply if it asks for that.
pub(crate) fn read(world: &World, plan: &Plan, rng: &mut Rng, sent: &ReadMessage) {
    house_agents::text_back(world, sent);
    if sent.body.contains("Reply YES") {
        answer(world, plan, rng, sent);
    }
    if world.plan.bot.is_none() {
        house_tonight::answer(world, rng, sent);
    }
    // One message may list several requests that wait.
    for code in codes(&sent.body) {
        settle(world, plan, rng, sent, code);
    }
}

/// Sends status callbacks, of which some are lost, repeated, or overtake each other.
fn report(world: &World, plan: &Plan, rng: &mut Rng, sent: &SentMessage) {
    let end =
        rng.one_of(&[FakeDelivery::Delivered, FakeDelivery::Delivered, FakeDelivery::Undelivered(30_005)]);
    for delivery in [FakeDelivery::Sending, FakeDelivery::Sent, end] {
        let (lost, twice) = (rng.percent(20 + plan.webhooks), rng.percent(20));
        let delays = [rng.ms(0, 3_000), rng.ms(0, 60_000)];
        if lost {
            continue;
        }
        let Ok(Some(request)) = world.peers.twilio.status_callback(sent, delivery) else { continue };
        for delay in &delays[..if twice { 2 } else { 1 }] {
            let (world, request, delay) = (world.clone(), request.clone(), *delay);
            world.clone().later(async move {
                pass(delay).await;
                // The carrier does not repeat a report.
                let _ = world.bring(request).await;
            });
        }
    }
}

/// Returns the codes that an admin is asked to answer with.
fn codes(body: &str) -> impl Iterator<Item = &str> {
    body.match_indices("APPROVE ").filter_map(|(at, word)| body.get(at + word.len()..at + word.len() + 4))
}

/// Sends an admin's answer to a pending request.
fn settle(world: &World, plan: &Plan, rng: &mut Rng, sent: &ReadMessage, code: &str) {
    let soon = rng.within(1_000, 60_000);
    let words: Vec<(u64, &str)> = match rng.below(10) {
        0..5 => vec![(soon, "approve")],
        5 => vec![(soon, "approve"), (soon + rng.within(0, 3_000), "approve")],
        6 => vec![(soon, "approve"), (soon + rng.within(0, 3_000), "deny")],
        7 => vec![(soon, "deny")],
        8 => vec![(soon, "block")],
        // A sender who forges the number guesses codes.
        _ => {
            (0..6).map(|guess| (soon + 7_000 * guess, "guess")).chain([(soon + 45_000, "approve")]).collect()
        }
    };
    for (after, verdict) in words {
        let way = plan::way(rng, plan.webhooks / 2);
        let body = if verdict == "guess" { GUESS.to_owned() } else { format!("{verdict} {code}") };
        let from = sent.to.clone();
        let world = world.clone();
        world.clone().later(async move {
            pass(Duration::from_millis(after)).await;
            text(&world, &from, &body, way);
        });
    }
}

fn answer(world: &World, plan: &Plan, rng: &mut Rng, sent: &ReadMessage) {
    let yes = if sent.body.contains("YES 47") { "YES 47" } else { "yes" };
    let soon = rng.within(1_500, 30_000);
    if plan.answers == Answers::Yes {
        let (world, from) = (world.clone(), sent.to.clone());
        world.clone().later(async move {
            pass(Duration::from_millis(600)).await;
            text(&world, &from, yes, DeliveryMode::Straight);
        });
        return;
    }
    let answers: Vec<(u64, &str)> = match rng.below(16) {
        0..6 => vec![(soon, yes)],
        6 | 7 => vec![(soon, yes), (soon + rng.within(0, 2_000), yes)],
        8 => vec![(soon, "no")],
        9 => vec![(soon, yes), (soon + rng.within(0, 1_500), "no")],
        10 => vec![(rng.within(250_000, 400_000), yes)],
        11 => vec![(soon, "YES 48"), (soon + 20_000, yes)],
        12 => vec![(soon, "ok thanks"), (soon + rng.within(5_000, 20_000), yes)],
        13 => vec![(soon, "add Tenet")],
        14 => vec![(rng.within(0, 200), yes)],
        _ => Vec::new(),
    };
    let from = sent.to.clone();
    // This part uses a separate random stream, so that older schedules otherwise stay the same.
    let mut noes = Rng::of(plan.seed, &format!("noes to {}", sent.id));
    let around_a_request = [(soon, "no"), (soon, "add Tenet"), (soon, "no thanks")];
    let answers = if noes.percent(8) { around_a_request.to_vec() } else { answers };
    for (after, body) in answers {
        let way = plan::way(rng, plan.webhooks / 2);
        let (world, from, body) = (world.clone(), from.clone(), body.to_owned());
        world.clone().later(async move {
            pass(Duration::from_millis(after)).await;
            text(&world, &from, &body, way);
        });
    }
}
