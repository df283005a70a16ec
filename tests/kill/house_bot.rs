//! Crash test with a bot in a group as the channel: killed at a failpoint, the program loses no message, deletes once, and
//! announces the result of a vote. A message is sent twice at most, and only if the crash hid its outcome.

use std::collections::BTreeMap;
use std::time::Instant;

use dialarr::messaging::telegram::fake::FakeSentMessage;
use futures_util::future::join_all;

use super::ledger::{Ledger, is_settled};
use super::people::REACTION;
use super::stage::{Stage, becomes_true, wait_for};

const ANN: i64 = 15_550_100_002;
const GROUP: i64 = -700;

/// What Ann does in the group.
#[derive(Debug, Clone, Copy)]
enum Scenario {
    /// Deletes a movie, and confirms by a button.
    Delete,
    /// Starts a vote, answers its poll and closes it.
    Vote,
}

/// Failpoints on the way of a message, a prompt, a deletion and a vote.
const PLACES: [(&str, Scenario); 23] = [
    ("missed.read@1", Scenario::Delete),
    ("missed.read@2", Scenario::Delete),
    ("missed.admitted@1", Scenario::Delete),
    ("missed.admitted@2", Scenario::Delete),
    ("turn.begun@1", Scenario::Delete),
    ("outbox.claimed@1", Scenario::Delete),
    ("outbox.sent@1", Scenario::Delete),
    ("outbox.recorded@1", Scenario::Delete),
    ("outbox.sent@2", Scenario::Delete),
    ("question.held@1", Scenario::Delete),
    ("item.started@1", Scenario::Delete),
    ("item.ran@1", Scenario::Delete),
    ("item.recorded@1", Scenario::Delete),
    ("deletion.reported@1", Scenario::Delete),
    ("missed.read@2", Scenario::Vote),
    ("missed.admitted@1", Scenario::Vote),
    ("turn.begun@1", Scenario::Vote),
    ("outbox.claimed@1", Scenario::Vote),
    ("outbox.sent@1", Scenario::Vote),
    ("outbox.recorded@1", Scenario::Vote),
    ("turn.begun@2", Scenario::Vote),
    ("outbox.sent@2", Scenario::Vote),
    ("outbox.recorded@2", Scenario::Vote),
];

#[tokio::test(flavor = "multi_thread")]
async fn crash_in_a_group_loses_nothing_and_deletes_once() {
    // Most of the time, the program waits for updates, or for the end of an unknown outcome.
    let played = PLACES.map(|(place, scenario)| play(place, scenario));
    let broken: Vec<String> = join_all(played).await.into_iter().flatten().collect();
    assert!(broken.is_empty(), "{broken:#?}");
}

/// Plays a scenario with a crash at `place`. Returns the violated invariants.
async fn play(place: &str, scenario: Scenario) -> Vec<String> {
    let stage = Stage::open_by_bot(ANN).await;
    open_group(&stage).await;
    let title = stage.deletable();
    let read = stage.telegram.sent_messages().len();
    let mut ann = Member { arrived: vec![Instant::now(); read], read, sent: 1, has_closed: false };
    let opening = match scenario {
        Scenario::Delete => format!("@home_bot delete {}", title.name),
        Scenario::Vote => "@home_bot vote Dune, Heat".to_owned(),
    };
    stage.telegram.group_text(GROUP, ANN, &opening);
    let mut running = stage.start(Some(place));
    wait_for(&format!("the death at {place}"), async || {
        ann.answer(&stage);
        running.ended().is_some()
    })
    .await;
    if !running.aborted() {
        return vec![format!("{place}: ended otherwise: {:?}\n{}", running.ended(), stage.log())];
    }
    let running = stage.start(None);
    let end = match scenario {
        Scenario::Delete => "Deleted ",
        Scenario::Vote => "What should we watch? Heat wins with 1 of 1 vote.",
    };
    let has_ended = becomes_true(async || {
        ann.answer(&stage);
        stage.telegram.texts_to(GROUP).iter().any(|text| text.starts_with(end)) && is_settled(&stage)
    })
    .await;
    if !has_ended {
        let texts = stage.telegram.texts_to(GROUP);
        return vec![format!("{place} {scenario:?}: no end after {texts:#?}\n{}", stage.log())];
    }
    let deleted = match scenario {
        Scenario::Delete => vec![title.id],
        Scenario::Vote => Vec::new(),
    };
    let broken = broken(&stage, &deleted, ann.sent);
    running.kill();
    let name = |what: String| format!("{place} {scenario:?}: {what}\n{}", stage.log());
    broken.into_iter().map(name).collect()
}

/// Lets the bot join a group of Ann, who has a private chat with it.
async fn open_group(stage: &Stage) {
    stage.telegram.start_bot(ANN, "");
    stage.telegram.create_group(GROUP, &[ANN]);
    stage.telegram.add_bot_to_group(GROUP, ANN);
    let running = stage.start(None);
    wait_for("the greeting", async || {
        stage.telegram.unread_updates() == 0
            && !stage.telegram.texts_to(GROUP).is_empty()
            && is_settled(stage)
    })
    .await;
    running.kill();
}

/// Ann's part of the conversation.
struct Member {
    /// Times when messages arrived, in their order.
    arrived: Vec<Instant>,
    /// Number of messages that she has read.
    read: usize,
    /// Number of texts and presses that she has sent in the group.
    sent: usize,
    has_closed: bool,
}

impl Member {
    /// Presses the button of each prompt, answers each poll, and closes the vote, after the time that she needs to read.
    fn answer(&mut self, stage: &Stage) {
        let sent = stage.telegram.sent_messages();
        self.arrived.resize(sent.len(), Instant::now());
        while self.arrived.get(self.read).is_some_and(|arrived| arrived.elapsed() >= REACTION) {
            self.answer_message(stage, &sent[self.read]);
            self.read += 1;
        }
    }

    fn answer_message(&mut self, stage: &Stage, sent: &FakeSentMessage) {
        if stage.telegram.press(ANN, GROUP, sent.message_id, "Yes") {
            self.sent += 1;
        }
        if sent.poll.is_some() {
            stage.telegram.vote(ANN, GROUP, sent.message_id, &[1]);
            if !self.has_closed {
                self.has_closed = true;
                stage.telegram.group_text(GROUP, ANN, "@home_bot close vote");
                self.sent += 1;
            }
        }
    }
}

fn broken(stage: &Stage, deleted: &[i64], messages: usize) -> Vec<String> {
    let ledger = Ledger::read(stage);
    let mut broken: Vec<String> =
        ledger.open.iter().map(|open| format!("left open: {}", open.what)).collect();
    let unanswered = ledger.events.iter().filter(|event| event.outcome.as_deref() != Some("replied"));
    broken.extend(unanswered.map(|event| format!("no answer: {event:?}")));
    // Ann's /start is the first message.
    if ledger.events.len() != messages + 1 {
        broken.push(format!(
            "{messages} messages, and {} are known: {:?}",
            ledger.events.len(),
            ledger.events
        ));
    }
    let mut copies: BTreeMap<&str, usize> = BTreeMap::new();
    let sent = stage.telegram.sent_messages();
    for message in &sent {
        *copies.entry(&message.text).or_default() += 1;
    }
    for row in &ledger.outbox {
        // A poll shows the options of its text itself.
        let text = row.body.lines().next().unwrap_or_default();
        let arrived = copies.get(row.body.as_str()).or_else(|| copies.get(text)).copied().unwrap_or(0);
        let written = ledger.outbox.iter().filter(|other| other.body == row.body).count();
        if row.state != "accepted" || !(written..=written + 1).contains(&arrived) {
            broken.push(format!("{arrived} copies of {row:?}"));
        }
    }
    if sent.len() > ledger.outbox.len() + 1 {
        broken.push(format!("{} messages for {} rows", sent.len(), ledger.outbox.len()));
    }
    if stage.radarr.removed_ids() != deleted {
        broken.push(format!("deleted {:?} in place of {deleted:?}", stage.radarr.removed_ids()));
    }
    broken
}
