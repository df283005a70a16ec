//! Conversation as a browser shows it: the text of its page, and the changes that its script makes from the stream.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::body::Body;
use dialarr::web;
use futures_util::StreamExt;
use http::Request;
use http::header::{COOKIE, HOST};
use tower::ServiceExt;

use super::TestApp;
use super::browser::{Browser, CONSOLE, Page};

/// Silence after which a stream has sent all its events.
const SILENCE: Duration = Duration::from_millis(400);

/// Fragments of a conversation's page by their ids, as a browser holds them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tab {
    pub(crate) pieces: BTreeMap<String, String>,
    /// Cursor at which the stream continues.
    after: String,
}

impl Tab {
    /// Builds the tab from the page, without its script.
    pub(crate) fn of(page: &Page) -> Self {
        let mut pieces = BTreeMap::new();
        for (open, close) in [
            ("<article id=", "</article>"),
            ("<header id=\"head\"", "</header>"),
            ("<div id=\"tail\"", "<div id=\"question\""),
            ("<div id=\"question\"", "<p id="),
        ] {
            for rest in page.html.split(open).skip(1) {
                let piece = format!("{open}{}", rest.split(close).next().unwrap());
                pieces.insert(id(&piece), tidied(&piece, close));
            }
        }
        let (_, after) = page.html.split_once("data-after=\"").unwrap();
        Self { pieces, after: after.split('"').next().unwrap().to_owned() }
    }

    /// Follows the stream until no more events come, or for that many events.
    pub(crate) async fn follow(&mut self, browser: &Browser<'_>, conversation: i64, most: usize) {
        let path = format!("/conversations/{conversation}/live?after={}", self.after);
        let mut body = open(browser, &path).await.into_data_stream();
        let (mut event_count, mut read) = (0, String::new());
        while event_count < most {
            let Ok(Some(piece)) = tokio::time::timeout(SILENCE, body.next()).await else { return };
            read.push_str(std::str::from_utf8(&piece.unwrap()).unwrap());
            while let Some((event, rest)) = read.split_once("\n\n") {
                let (event, rest) = (event.to_owned(), rest.to_owned());
                self.take(&event);
                read = rest;
                event_count += 1;
            }
        }
    }

    fn take(&mut self, event: &str) {
        let fields = |name: &str| {
            let prefix = format!("{name}: ");
            event.lines().filter_map(|line| line.strip_prefix(&prefix)).collect::<Vec<_>>()
        };
        match fields("event").first() {
            None => return,
            Some(&"turn" | &"head") => {}
            Some(other) => panic!("{other}: a page that follows from where it is needs no such event"),
        }
        let html = fields("data").join("\n");
        let close = if html.starts_with("<header") {
            "</header>"
        } else if html.starts_with("<article") {
            "</article>"
        } else {
            "<p id="
        };
        let piece = html.split(close).next().unwrap();
        self.pieces.insert(id(piece), tidied(piece, close));
        if let Some(seq) = fields("id").first() {
            self.after = (*seq).to_owned();
        }
    }

    /// Returns whether any fragment contains the words.
    pub(crate) fn shows(&self, words: &str) -> bool {
        self.pieces.values().any(|piece| piece.contains(words))
    }
}

async fn open(browser: &Browser<'_>, path: &str) -> Body {
    let request = Request::get(format!("{CONSOLE}{path}"))
        .header(HOST, "localhost:3001")
        .header(COOKIE, browser.cookie().unwrap_or_default());
    let router = web::console_router(browser.program().app().console.clone());
    let response = router.oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
    assert_eq!(response.status(), 200);
    response.into_body()
}

fn id(piece: &str) -> String {
    let (_, rest) = piece.split_once("id=\"").unwrap();
    rest.split('"').next().unwrap().to_owned()
}

/// Removes the text between the end of a fragment and the next one, which belongs to neither.
fn tidied(piece: &str, close: &str) -> String {
    let piece = piece.trim();
    if close.starts_with("<p") || close.starts_with("<div") {
        piece.trim_end_matches("</div>").trim().to_owned()
    } else {
        piece.to_owned()
    }
}

impl TestApp {
    /// Returns the beginning of a stream, as it arrives.
    pub(crate) async fn read_live(&self, browser: &Browser<'_>, path: &str) -> String {
        let mut body = open(browser, path).await.into_data_stream();
        let mut read = String::new();
        while let Ok(Some(piece)) = tokio::time::timeout(SILENCE, body.next()).await {
            read.push_str(std::str::from_utf8(&piece.unwrap()).unwrap());
        }
        read
    }

    /// Returns the operator's actions in the console, from the audit log.
    pub(crate) async fn console_actions(&self) -> Vec<String> {
        let done = "SELECT kind || ' ' || subject AS line FROM audit_log \
                    WHERE detail ->> '$.by' = 'console' AND kind <> 'sign_in' ORDER BY id";
        self.lines(done).await
    }
}

impl Browser<'_> {
    /// Sends a message in a test conversation, one second after the last one.
    pub(crate) async fn types(&mut self, conversation: i64, text: &str) -> Page {
        self.program().pass(1);
        let path = format!("/conversations/{conversation}");
        let key = self.get(&path).await.field("key").unwrap_or_default();
        let page = self.submit(&format!("{path}/texts"), &[("text", text), ("key", &key)]).await;
        self.program().settle().await;
        page
    }

    /// Presses a button of the open confirmation prompt.
    pub(crate) async fn answers(&mut self, conversation: i64, answer: &str) -> Page {
        self.program().pass(1);
        let path = format!("/conversations/{conversation}");
        let question = self.get(&path).await.field("question").unwrap_or_default();
        let form = [("question", question.as_str()), ("answer", answer)];
        let page = self.submit(&format!("{path}/question"), &form).await;
        self.program().settle().await;
        page
    }
}
