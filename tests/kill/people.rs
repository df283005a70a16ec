//! Users at their phones: each user has wishes, sends messages one after the other and answers the confirmation
//! prompts.

use std::sync::Arc;
use std::time::Duration;

use dialarr::messaging::fake::SentText;
use tokio::sync::broadcast::Receiver;

use super::stage::{PATIENCE, Stage, Title};

/// Time for reading a prompt and typing the answer.
const REACTION: Duration = Duration::from_millis(120);

#[derive(Debug, Clone)]
pub(crate) enum Wish {
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
    inbox: Receiver<SentText>,
    pub(crate) diary: Vec<Entry>,
}

/// Wish and all messages about it.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) wish: Wish,
    pub(crate) lines: Vec<Line>,
}

#[derive(Debug, Clone)]
pub(crate) enum Line {
    Said { sid: String, body: String, acknowledged: bool },
    Got { body: String },
}

impl Person {
    pub(crate) fn new(stage: &Arc<Stage>, phone: &str) -> Self {
        let inbox = stage.twilio.subscribe();
        Self { phone: phone.to_owned(), stage: Arc::clone(stage), inbox, diary: Vec::new() }
    }

    /// Sends a wish, answers every confirmation prompt about it, and returns once there is a reply without a prompt.
    pub(crate) async fn wish(&mut self, wish: Wish) {
        let said = self.says(&wish.words()).await;
        self.sees_through(wish, said).await;
    }

    /// Follows up on a wish whose message never reached the webhook.
    pub(crate) async fn wished(&mut self, wish: Wish, said: Line) {
        self.sees_through(wish, said).await;
    }

    /// Sends a message that only the carrier knows of.
    pub(crate) fn says_in_vain(&self, body: &str) -> Line {
        let (sid, _lost) = self.stage.text(&self.phone, body);
        Line::Said { sid, body: body.to_owned(), acknowledged: false }
    }

    async fn sees_through(&mut self, wish: Wish, said: Line) {
        let mut lines = vec![said];
        while let Some(answer) = self.is_asked(&wish, &mut lines).await {
            lines.push(self.says(&answer).await);
        }
        self.diary.push(Entry { wish, lines });
    }

    /// Reads the messages until there is a prompt that no other message follows for a moment, or a reply without a
    /// prompt. Returns the text to answer.
    async fn is_asked(&mut self, wish: &Wish, lines: &mut Vec<Line>) -> Option<String> {
        let Ok(mut text) = tokio::time::timeout(PATIENCE, self.gets()).await else {
            panic!("{} was never answered on {wish:?}: {lines:#?}\n{}", self.phone, self.stage.log());
        };
        loop {
            let answer = wish.answer(&text.body);
            lines.push(Line::Got { body: text.body });
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
        Line::Said { sid, body: body.to_owned(), acknowledged }
    }

    async fn gets(&mut self) -> SentText {
        loop {
            let text = self.inbox.recv().await.unwrap();
            if text.to.as_str() == self.phone {
                return text;
            }
        }
    }
}

impl Wish {
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
