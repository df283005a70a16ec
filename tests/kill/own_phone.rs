//! Crash test with a phone of the household as the channel: killed at a failpoint, the program loses no text and sends none
//! twice.

use std::collections::BTreeSet;

use dialarr::clock::Clock;
use futures_util::future::join_all;
use jiff::{SignedDuration, Timestamp};

use super::crash_points::first_reading;
use super::ledger::{Ledger, is_settled};
use super::stage::{Stage, Title, wait_for};

const ANN: &str = "+15550100002";
/// Failpoints on the way of a text, a prompt and a deletion. The third and the fourth poll see the prompt and the reply.
const PLACES: [&str; 14] = [
    "missed.read@1",
    "missed.read@4",
    "missed.admitted@1",
    "missed.admitted@2",
    "turn.begun@1",
    "outbox.claimed@1",
    "outbox.sent@1",
    "outbox.recorded@1",
    "outbox.sent@2",
    "question.held@1",
    "item.started@1",
    "item.ran@1",
    "item.recorded@1",
    "deletion.reported@1",
];
/// Time for reading a prompt and typing the answer. A yes in the first ten seconds of a run only repeats the prompt.
const REACTION: SignedDuration = SignedDuration::from_secs(11);
/// Spellings of a yes. The same text within ten seconds would count as one message, stored twice by the app.
const YES: [&str; 6] = ["yes", "Yes", "YES", "yes!", "Yes!", "YES!"];

#[tokio::test(flavor = "multi_thread")]
async fn crash_with_a_phone_loses_and_repeats_no_text() {
    // Most of the time, the program waits for the next poll.
    let broken: Vec<String> = join_all(PLACES.map(play)).await.into_iter().flatten().collect();
    assert!(broken.is_empty(), "{broken:#?}");
}

/// Deletes a movie by text, with a crash at `place`. Returns the violated invariants.
async fn play(place: &str) -> Vec<String> {
    let stage = Stage::open_by_phone(&[ANN.to_owned()]).await;
    first_reading(&stage).await;
    let title = stage.deletable();
    // The first poll of a run finds the request at once.
    stage.phone.receive_text(ANN, &format!("delete {}", title.name));
    let mut running = stage.start(Some(place));
    let mut texts = Conversation { answered: 0, sent: 1 };
    wait_for(&format!("the death at {place}"), async || {
        texts.answer_prompts(&stage);
        running.ended().is_some()
    })
    .await;
    if !running.aborted() {
        return vec![format!("{place}: ended otherwise: {:?}\n{}", running.ended(), stage.log())];
    }
    let running = stage.start(None);
    wait_for(&format!("the report after {place}"), async || {
        texts.answer_prompts(&stage);
        stage.phone.radioed_texts().iter().any(|text| text.body.starts_with("Deleted "))
    })
    .await;
    wait_for("the program to be done", async || is_settled(&stage)).await;
    let broken = broken(&stage, &title, texts.sent);
    running.kill();
    broken.into_iter().map(|what| format!("{place}: {what}\n{}", stage.log())).collect()
}

/// Ann's part of the conversation.
struct Conversation {
    /// Number of texts of the phone that she has read.
    answered: usize,
    /// Number of texts that she has sent.
    sent: usize,
}

impl Conversation {
    /// Confirms each prompt, a moment after the phone has sent it.
    fn answer_prompts(&mut self, stage: &Stage) {
        let is_readable = |sent_at: Timestamp| Clock::System.now().duration_since(sent_at) >= REACTION;
        for text in stage.phone.radioed_texts().split_off(self.answered) {
            let is_prompt = text.body.contains("Reply YES");
            if is_prompt && !is_readable(text.sent_at) {
                return;
            }
            self.answered += 1;
            if is_prompt {
                stage.phone.receive_text(ANN, YES[(self.sent - 1) % YES.len()]);
                self.sent += 1;
            }
        }
    }
}

fn broken(stage: &Stage, title: &Title, texts: usize) -> Vec<String> {
    let ledger = Ledger::read(stage);
    let mut broken: Vec<String> =
        ledger.open.iter().map(|open| format!("left open: {}", open.what)).collect();
    let unanswered = ledger.events.iter().filter(|event| event.outcome.as_deref() != Some("replied"));
    broken.extend(unanswered.map(|event| format!("no answer: {event:?}")));
    if ledger.events.len() != texts {
        broken.push(format!("{texts} texts, and {} are known: {:?}", ledger.events.len(), ledger.events));
    }
    let written: BTreeSet<(&str, &str)> = ledger
        .outbox
        .iter()
        .map(|text| (text.provider_sid.as_deref().unwrap_or_default(), text.body.as_str()))
        .collect();
    let radioed = stage.phone.radioed_texts();
    let sent: BTreeSet<(&str, &str)> =
        radioed.iter().map(|text| (text.id.as_str(), text.body.as_str())).collect();
    if written != sent || sent.len() != radioed.len() {
        broken.push(format!("the radio sent {radioed:?} for {written:?}"));
    }
    if stage.radarr.removed_ids() != [title.id] {
        broken.push(format!("deleted {:?}", stage.radarr.removed_ids()));
    }
    broken
}
