//! Clients of a stream over real sockets that reconnect hundreds of times: each gets the whole log once, in order, and
//! the same final state. After a restart, each starts again from a snapshot.

use std::net::SocketAddr;
use std::time::Duration;

use dialarr::app::App;
use dialarr::conversation::stream_events::EventSeq;
use dialarr::conversation::transcript::ConversationId;
use dialarr::web;
use dialarr::web::http_server::{ListenerLimits, serve_sockets};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::harness::model::{calls, says};
use crate::harness::seen::Seen;
use crate::harness::{ANN, BOB, Has, Setup, TestApp};

/// Number of messages before the first client, with the clients, and after the restart.
const TEXTS: usize = 6;
/// Numbers of events after which each client disconnects, repeatedly.
const PACES: [&[usize]; 4] = [&[1], &[1, 3, 2], &[2, 1, 5, 1], &[3, 1]];
/// Time limit of the tests. Nothing here takes this long unless it hangs.
const TEST_TIMEOUT: Duration = Duration::from_secs(60);

/// Listener of the console during one run of the program.
struct Served {
    stop: CancellationToken,
    server: JoinHandle<std::io::Result<()>>,
}

impl Served {
    async fn open(app: &App, addresses: &watch::Sender<SocketAddr>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        let router = web::console_router(app.console.clone());
        let server = tokio::spawn(serve_sockets(listener, router, ListenerLimits::CONSOLE, stop.clone()));
        addresses.send_replace(address);
        Self { stop, server }
    }

    /// Stops like a kill: running responses are cut off.
    async fn dies(self) {
        self.stop.cancel();
        self.server.abort();
        assert!(self.server.await.is_err_and(|ended| ended.is_cancelled()));
    }
}

/// End of the log, once it is known.
type End = watch::Receiver<Option<i64>>;

/// Client with its received events.
struct Client {
    addresses: watch::Receiver<SocketAddr>,
    end: End,
    /// Numbers and names of the events.
    events: Vec<(i64, String)>,
    /// State that results from the events.
    seen: Seen,
    connections: usize,
}

impl Client {
    fn new(addresses: &watch::Sender<SocketAddr>, end: &End) -> Self {
        Self {
            addresses: addresses.subscribe(),
            end: end.clone(),
            events: Vec::new(),
            seen: Seen::default(),
            connections: 0,
        }
    }

    fn place(&self) -> i64 {
        self.events.last().map_or(0, |(number, _)| *number)
    }

    fn is_at_the_end(&self) -> bool {
        self.end.borrow().is_some_and(|end| self.place() >= end)
    }

    /// Continues with the next run of the program, whose events are counted anew.
    fn continues(mut self, end: &End) -> (Self, i64) {
        let place = self.place();
        (self.end, self.events, self.connections) = (end.clone(), vec![(place, "cursor".to_owned())], 0);
        (self, place)
    }

    /// Reads up to the end of the log, and disconnects after each of these numbers of events.
    async fn follows(mut self, paces: &[usize]) -> Self {
        let mut end = self.end.clone();
        for events in paces.iter().cycle() {
            end.mark_unchanged();
            if self.is_at_the_end() {
                break;
            }
            self.connections += 1;
            tokio::select! {
                read = self.read_events(*events) => match read {
                    Ok(()) => {}
                    // The program is down, and its next address is another.
                    Err(_) => self.addresses.changed().await.unwrap(),
                },
                changed = end.changed() => changed.unwrap(),
            }
        }
        self
    }

    /// Reads this many events over one connection, or fewer at the end of the log.
    async fn read_events(&mut self, most: usize) -> std::io::Result<()> {
        let address = *self.addresses.borrow_and_update();
        let mut stream = TcpStream::connect(address).await?;
        let request = format!(
            "GET /api/v1/conversations/1/events HTTP/1.1\r\nHost: localhost:3001\r\nLast-Event-ID: {}\r\n\r\n",
            self.place()
        );
        stream.write_all(request.as_bytes()).await?;
        let enough = self.events.len() + most;
        let (mut read, mut piece) = (Vec::new(), [0; 512]);
        loop {
            let length = stream.read(&mut piece).await?;
            if length == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
            read.extend(&piece[..length]);
            while let Some(end) = read.windows(2).position(|pair| pair == b"\n\n") {
                let event = String::from_utf8(read.drain(..end + 2).collect()).unwrap();
                self.events.extend(parse_event(&event));
                self.seen.take(&event);
                if self.events.len() == enough || self.is_at_the_end() {
                    return Ok(());
                }
            }
        }
    }
}

/// Returns the number and the name of an event. The marker between missed and live events is not part of the log.
fn parse_event(event: &str) -> Option<(i64, String)> {
    let field = |name: &str| event.lines().find_map(|line| line.strip_prefix(name));
    let (name, number) = (field("event: ")?, field("id: ")?);
    (name != "caught_up").then(|| (number.parse().unwrap(), name.to_owned()))
}

async fn texts(app: &TestApp) {
    for number in 0..TEXTS {
        app.pass(60);
        app.model_plays([calls("check_status", json!({})), says("Nothing is downloading.")]);
        app.sms(&format!("what is going on, for the {number}th time?")).await;
    }
    app.sms_from(BOB, "tell everyone movie night at 8").await;
    app.sms(&format!("Loved \u{201c}{}\u{201d}", app.last_to(ANN))).await;
    app.sms("thanks!").await;
}

/// Returns the state of the conversation for a client without a cursor.
async fn standing(address: SocketAddr) -> Seen {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = "GET /api/v1/conversations/1/events HTTP/1.1\r\nHost: localhost:3001\r\n\r\n";
    stream.write_all(request.as_bytes()).await.unwrap();
    let (mut read, mut piece) = (Vec::new(), [0; 4096]);
    while !String::from_utf8_lossy(&read).contains("event: caught_up\n") {
        let length = stream.read(&mut piece).await.unwrap();
        assert_ne!(length, 0, "the stream goes on");
        read.extend(&piece[..length]);
    }
    let mut seen = Seen::default();
    String::from_utf8(read).unwrap().split("\n\n").for_each(|event| seen.take(event));
    seen
}

/// Returns the numbers of the events of Ann's conversation in the log.
fn log_numbers(app: &TestApp, after: i64) -> Vec<i64> {
    let since =
        app.app().db.event_log().events_since(ConversationId(1), EventSeq(after), usize::MAX).unwrap();
    since.events.iter().map(|event| event.seq.0).collect()
}

/// Returns the position of the last event in the log, of any conversation.
async fn log_end(app: &TestApp) -> i64 {
    app.app().db.read_with_position(ConversationId(1), |_, position| Ok(position.cursor.0)).await.unwrap()
}

#[tokio::test]
async fn reconnecting_readers_get_the_whole_log_once() {
    let mut app = Setup::default().open_console().start().await;
    app.register_user(BOB, Has::EveryRight).await;
    texts(&app).await;
    let (addresses, _) = watch::channel(SocketAddr::from(([127, 0, 0, 1], 0)));
    let (ended, end) = watch::channel(None);
    let served = Served::open(app.app(), &addresses).await;
    let clients = PACES.map(|paces| tokio::spawn(Client::new(&addresses, &end).follows(paces)));
    texts(&app).await;
    // During the pause, only admins are answered.
    app.register_user(ANN, Has::AddRight).await;
    app.sms_from(BOB, "pause").await;
    app.sms("is anybody there?").await;

    let log = log_numbers(&app, 0);
    ended.send_replace(log.last().copied());
    let at_once = [log.len()];
    let whole = timeout(TEST_TIMEOUT, Client::new(&addresses, &end).follows(&at_once)).await.unwrap();
    assert_eq!(whole.events.iter().map(|(number, _)| *number).collect::<Vec<_>>(), log);
    let (mut connections, mut followers) = (0, Vec::new());
    for client in clients {
        let client = timeout(TEST_TIMEOUT, client).await.unwrap().unwrap();
        assert_eq!(client.events, whole.events);
        assert_eq!(client.seen, whole.seen);
        connections += client.connections;
        followers.push(client);
    }
    let Seen { notices, unanswered, waiting, reactions, .. } = &whole.seen;
    // Two announcements, each with a reaction, and the pause notice.
    assert_eq!([notices.len(), reactions.len(), unanswered.len(), waiting.len()], [3, 2, 4, 1]);
    assert_eq!(standing(*addresses.borrow()).await, whole.seen);
    assert!(connections > 300, "{connections} connections are none too many");
    served.dies().await;

    app.restart().await;
    let restarted_at = log_end(&app).await;
    let served = Served::open(app.app(), &addresses).await;
    let (ended, end) = watch::channel(None);
    let followers = followers.into_iter().zip(PACES).map(|(client, paces)| {
        let (client, place) = client.continues(&end);
        (place, tokio::spawn(client.follows(paces)))
    });
    let followers: Vec<_> = followers.collect();
    app.sms_from(BOB, "resume").await;
    texts(&app).await;
    let log = log_numbers(&app, restarted_at);
    ended.send_replace(log.last().copied());
    let standing = standing(*addresses.borrow()).await;
    for (place, client) in followers {
        let client = timeout(TEST_TIMEOUT, client).await.unwrap().unwrap();
        assert_eq!(client.seen, standing);
        let [(_, cursor), (snapshot, name), events @ ..] = &client.events[..] else {
            panic!("too few events")
        };
        assert_eq!((cursor.as_str(), name.as_str()), ("cursor", "snapshot"));
        let numbers: Vec<i64> = events.iter().map(|(number, _)| *number).collect();
        let expected: Vec<i64> = log.iter().copied().filter(|number| number > snapshot).collect();
        assert!(*snapshot > place, "numbers rise across a restart");
        assert_eq!(numbers, expected);
    }
    served.dies().await;
}
