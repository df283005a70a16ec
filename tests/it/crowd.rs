//! Hundreds of readers of one conversation over real sockets: all get the same events, and the turn ends as without
//! readers.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use dialarr::conversation::stream_events::EventSeq;
use dialarr::conversation::transcript::ConversationId;
use dialarr::web;
use dialarr::web::http_server::{ListenerLimits, raise_file_limit, serve_sockets};
use futures_util::future::join_all;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::harness::model::Holding;
use crate::harness::{ANN, Setup, TestApp};

const READERS: usize = 500;
/// Time limit of the tests. Nothing here takes this long unless it hangs.
const TEST_TIMEOUT: Duration = Duration::from_secs(300);

/// Program whose console listens, with one conversation.
struct Watched {
    app: TestApp,
    model: Arc<Holding>,
    address: SocketAddr,
}

impl Watched {
    async fn start() -> Self {
        raise_file_limit();
        let model = Holding::closed();
        let app = Setup::default().open_console().holding(&model).start().await;
        app.sms("hello there").await;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = web::console_router(app.app().console.clone());
        tokio::spawn(serve_sockets(listener, router, ListenerLimits::CONSOLE, CancellationToken::new()));
        Self { app, model, address }
    }

    async fn crowd(&self, path: &str) -> Vec<Reader> {
        join_all((0..READERS).map(|_| Reader::open(self.address, path))).await
    }

    /// Returns the numbers of the events in the log.
    fn log(&self) -> BTreeSet<String> {
        let log = self.app.app().db.event_log();
        let since = log.events_since(ConversationId(1), EventSeq(0), usize::MAX).unwrap();
        since.events.iter().map(|event| event.seq.to_string()).collect()
    }

    /// Returns the number of the last event in the log.
    fn end(&self) -> i64 {
        self.log().iter().map(|number| number.parse().unwrap()).max().unwrap()
    }

    /// Starts a reply, and returns in the middle of it.
    async fn begins_to_answer(&self) {
        self.app.pass(1);
        assert_eq!(self.app.post(self.app.text(ANN, "please hold")).await, 200);
        self.model.holds().await;
    }

    async fn answers(&self) {
        self.model.let_go();
        self.app.settle().await;
        assert_eq!(self.app.last_to(ANN), "Fine.");
        let states = self.app.lines("SELECT state AS line FROM turns").await;
        assert_eq!(states, ["COMPLETED", "COMPLETED"]);
    }
}

/// Reader, with the lines of the events that it received.
struct Reader {
    stream: TcpStream,
    rest: String,
    lines: Vec<String>,
}

impl Reader {
    async fn open(address: SocketAddr, path: &str) -> Self {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost:3001\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        Self { stream, rest: String::new(), lines: Vec::new() }
    }

    /// Reads up to a line that contains these words.
    async fn reads_up_to(&mut self, words: &str) {
        let mut piece = [0; 4096];
        loop {
            while let Some((line, rest)) = self.rest.split_once('\n') {
                let line = line.trim_end().to_owned();
                self.rest = rest.to_owned();
                assert!(!line.starts_with("HTTP/1.1") || line == "HTTP/1.1 200 OK", "{line}");
                // The other lines belong to the head of the response and to the lengths of its chunks.
                if ["event: ", "id: ", "data: "].iter().any(|field| line.starts_with(field)) {
                    self.lines.push(line);
                    if self.lines.last().is_some_and(|line| line.contains(words)) {
                        return;
                    }
                }
            }
            let length = timeout(TEST_TIMEOUT, self.stream.read(&mut piece)).await.unwrap().unwrap();
            assert!(length > 0, "cut off before {words:?} after {:?}", self.lines.last());
            self.rest.push_str(&String::from_utf8_lossy(&piece[..length]));
        }
    }
}

async fn all_read_up_to(crowd: &mut [Reader], words: &str) {
    join_all(crowd.iter_mut().map(|reader| reader.reads_up_to(words))).await;
}

/// Returns the lines that all readers received; they are the same.
fn common_lines(crowd: &[Reader]) -> &[String] {
    let different: BTreeSet<&[String]> = crowd.iter().map(|reader| reader.lines.as_slice()).collect();
    assert_eq!((crowd.len(), different.len()), (READERS, 1));
    &crowd[0].lines
}

#[tokio::test]
async fn five_hundred_readers_of_a_stream_get_the_same_reply() {
    let watched = Watched::start().await;
    let mut crowd = watched.crowd("/api/v1/conversations/1/events?after=0").await;
    all_read_up_to(&mut crowd, "event: caught_up").await;
    watched.begins_to_answer().await;
    all_read_up_to(&mut crowd, "\"Fi\"").await;
    watched.answers().await;
    all_read_up_to(&mut crowd, &format!("id: {}", watched.end())).await;
    let numbers = common_lines(&crowd).iter().filter_map(|line| line.strip_prefix("id: "));
    assert_eq!(numbers.map(str::to_owned).collect::<BTreeSet<_>>(), watched.log());

    drop(crowd);
    let mut crowd = watched.crowd("/api/v1/conversations/1/events").await;
    all_read_up_to(&mut crowd, "event: caught_up").await;
    assert_eq!(common_lines(&crowd).iter().filter(|line| line.contains("Fine.")).count(), 1);
}

#[tokio::test]
async fn five_hundred_pages_of_a_conversation_show_the_same_reply() {
    let watched = Watched::start().await;
    let mut crowd = watched.crowd(&format!("/conversations/1/live?after={}", watched.end())).await;
    watched.begins_to_answer().await;
    all_read_up_to(&mut crowd, "<p class=\"message-text\">Fi</p>").await;
    watched.answers().await;
    all_read_up_to(&mut crowd, &format!("id: {}", watched.end())).await;
    for reader in &crowd {
        let last = reader.lines.iter().rposition(|line| line.contains("<article id=\"turn-2\"")).unwrap();
        let article = reader.lines[last..].join("\n");
        assert!(
            article.contains("<p class=\"message-text\">Fine.</p>") && !article.contains("Working"),
            "{article}"
        );
    }
}
