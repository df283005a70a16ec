//! Users at their phones: each user has wishes, sends messages one after the other and answers the confirmation
//! prompts.

use std::sync::Arc;
use std::time::Duration;

use dialarr::messaging::twilio::fake::{FakeDelivery, SentMessage};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::JoinHandle;

use super::stage::{Stage, TEST_TIMEOUT, Title};

/// Time for reading a prompt and typing the answer.
pub(crate) const REACTION: Duration = Duration::from_millis(120);

#[derive(Debug, Clone)]
pub(crate) enum UserRequest {
    Add(Title),
    Delete(Vec<Title>, Consent),
    Look,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Consent {
    Yes,
    No,
}

pub(crate) struct Person {
    pub(crate) phone: String,
    stage: Arc<Stage>,
    inbox: UnboundedReceiver<SentMessage>,
    /// Task that sends the delivery reports of the last message.
    reports: Option<JoinHandle<()>>,
    pub(crate) diary: Vec<Entry>,
}

/// Wish and all messages about it.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) request: UserRequest,
    pub(crate) lines: Vec<Line>,
}

#[derive(Debug, Clone)]
pub(crate) enum Line {
    Sent { sid: String, body: String, acknowledged: bool },
    Received { body: String },
}

impl Person {
    pub(crate) fn new(stage: &Arc<Stage>, phone: &str) -> Self {
        let inbox = stage.twilio.subscribe_to(phone);
        Self { phone: phone.to_owned(), stage: Arc::clone(stage), inbox, reports: None, diary: Vec::new() }
    }

    /// Sends a request, answers every confirmation prompt about it, and returns once there is a reply without a prompt.
    pub(crate) async fn make_request(&mut self, request: UserRequest) {
        let sent = self.says(&request.words()).await;
        self.complete_request(request, sent).await;
    }

    /// Follows up on a request whose message never reached the webhook.
    pub(crate) async fn resume_request(&mut self, request: UserRequest, sent: Line) {
        self.complete_request(request, sent).await;
    }

    /// Sends a message that only the carrier knows of.
    pub(crate) fn undelivered_line(&self, body: &str) -> Line {
        let (sid, _lost) = self.stage.text(&self.phone, body);
        Line::Sent { sid, body: body.to_owned(), acknowledged: false }
    }

    async fn complete_request(&mut self, request: UserRequest, sent: Line) {
        let mut lines = vec![sent];
        while let Some(answer) = self.next_answer(&request, &mut lines).await {
            lines.push(self.says(&answer).await);
        }
        self.diary.push(Entry { request, lines });
    }

    /// Reads the messages until there is a prompt that no other message follows for a moment, or a reply without a
    /// prompt. Returns the text to answer.
    async fn next_answer(&mut self, request: &UserRequest, lines: &mut Vec<Line>) -> Option<String> {
        let Ok(mut text) = tokio::time::timeout(TEST_TIMEOUT, self.gets()).await else {
            panic!("{} was never answered on {request:?}: {lines:#?}\n{}", self.phone, self.stage.log());
        };
        loop {
            let answer = request.answer(&text.body);
            lines.push(Line::Received { body: text.body });
            let answer = answer?;
            match tokio::time::timeout(REACTION, self.gets()).await {
                Ok(further) => text = further,
                Err(_) => return Some(answer),
            }
        }
    }

    async fn says(&self, body: &str) -> Line {
        let (sid, request) = self.stage.text(&self.phone, body);
        let acknowledged = self.stage.deliver(request).await;
        Line::Sent { sid, body: body.to_owned(), acknowledged }
    }

    /// Waits until the carrier has sent the delivery reports of the last message.
    pub(crate) async fn wait_for_reports(&mut self) {
        if let Some(reports) = self.reports.take() {
            reports.await.unwrap();
        }
    }

    async fn gets(&mut self) -> SentMessage {
        let text = self.inbox.recv().await.unwrap();
        self.reports = Some(tokio::spawn(report_delivery(Arc::clone(&self.stage), text.clone())));
        text
    }
}

/// Sends the delivery reports of a message, each once.
pub(crate) async fn report_delivery(stage: Arc<Stage>, sent: SentMessage) {
    for delivery in [FakeDelivery::Queued, FakeDelivery::Sent, FakeDelivery::Delivered] {
        if let Some(report) = stage.twilio.status_callback(&sent, delivery).unwrap() {
            stage.deliver(report).await;
        }
    }
}

impl UserRequest {
    pub(crate) fn words(&self) -> String {
        match self {
            Self::Add(title) => format!("add {}", title.name),
            Self::Delete(titles, _) => {
                let names: Vec<&str> = titles.iter().map(|title| title.name.as_str()).collect();
                format!("delete {}", names.join(" and "))
            }
            Self::Look => "what is downloading".to_owned(),
        }
    }

    /// Returns the answer to a message that asks for consent.
    fn answer(&self, text: &str) -> Option<String> {
        let asked = text.split("Reply YES").nth(1)?;
        let code: String = asked.chars().filter(char::is_ascii_digit).collect();
        match self {
            Self::Delete(_, Consent::Yes) => Some(format!("yes {code}").trim().to_owned()),
            Self::Delete(_, Consent::No) | Self::Add(_) | Self::Look => Some("no".to_owned()),
        }
    }
}
