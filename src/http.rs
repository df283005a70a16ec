//! Outbound HTTP to Sonarr, Radarr and Twilio: a network client in production, a fake's router called in process in a
//! simulation.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream, StreamExt};
use http::{Request, Response, header, response};
use tokio::time::Instant;

use crate::response_budget::{BudgetReservation, ResponseBudget};

/// Largest response that is read as a whole, so that a misbehaving peer cannot fill the memory.
const MAX_RESPONSE_BYTES: u64 = 64 << 20;
/// Size of the pieces in which an in-process response arrives, about as a socket delivers them.
const PIECE_BYTES: usize = 16 << 10;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Fake peer: takes a request and returns its response.
pub type InProcess = Arc<dyn Fn(Request<Bytes>) -> BoxFuture<'static, Response<Bytes>> + Send + Sync>;

#[derive(Clone)]
pub struct HttpClient {
    transport: HttpTransport,
    /// Budget shared by all responses of this client; `None`: each response has only its own limit.
    budget: Option<ResponseBudget>,
}

#[derive(Clone)]
enum HttpTransport {
    Network(reqwest::Client),
    InProcess(InProcess),
}

/// Reason that a request has no response, distinguished by whether the peer may have acted on the request.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// The peer never saw the request.
    #[error("connect")]
    NotSent(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The response did not arrive in time; the peer may have acted.
    #[error("get an answer within {} s", .0.as_secs())]
    TimedOut(Duration),
    /// The connection broke or the response was unreadable; the peer may have acted.
    #[error("read the answer")]
    Broken(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// Installs the TLS implementation of the process; without it no client can be built.
pub fn install_tls() {
    // The error means that an implementation was installed before, which is equally good.
    let _ = rustls::crypto::ring::default_provider().install_default();
}

impl HttpClient {
    /// Creates a client that follows no redirects (a key in a header would follow them) and repeats no request
    /// automatically.
    pub fn network() -> Result<Self, reqwest::Error> {
        let client = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .connect_timeout(CONNECT_TIMEOUT)
            .user_agent(concat!("dialarr/", env!("CARGO_PKG_VERSION")))
            .build()?;
        Ok(Self { transport: HttpTransport::Network(client), budget: None })
    }

    pub fn in_process(peer: InProcess) -> Self {
        Self { transport: HttpTransport::InProcess(peer), budget: None }
    }

    /// Returns the same client, whose responses reserve their memory from `budget`.
    pub fn with_budget(self, budget: ResponseBudget) -> Self {
        Self { budget: Some(budget), ..self }
    }

    /// Sends one request, once. `timeout` covers the time up to the last byte of the response.
    pub async fn send(
        &self,
        request: Request<Bytes>,
        timeout: Duration,
    ) -> Result<Response<Bytes>, HttpError> {
        self.send_within(request, ResponseBounds::for_whole_response(timeout, MAX_RESPONSE_BYTES)).await
    }

    /// Sends one request with its own bounds. The memory of the body stays reserved until the last clone of the body is
    /// dropped.
    pub async fn send_within(
        &self,
        request: Request<Bytes>,
        bounds: ResponseBounds,
    ) -> Result<Response<Bytes>, HttpError> {
        let mut answer = self.open_response(request, bounds).await?;
        let mut body = Vec::new();
        while let Some(piece) = answer.next_piece().await? {
            append_piece(&mut body, piece.len(), answer.bounds.bytes);
            body.extend_from_slice(&piece);
        }
        let body = match answer.reservation {
            None => Bytes::from(body),
            Some(mut reservation) => {
                reservation.shrink_to(body.capacity() as u64);
                Bytes::from_owner(ReservedBody { body, _reservation: reservation })
            }
        };
        Ok(Response::from_parts(answer.head, body))
    }

    /// Sends one request, once, and leaves the body of the response to be read piece by piece: for a body that is too
    /// large to be held as a whole.
    ///
    /// The future is boxed for the compiler's sake: otherwise it checks each caller, and each caller of a caller, down
    /// to the HTTP library for being `Send`.
    pub fn open_response(
        &self,
        request: Request<Bytes>,
        bounds: ResponseBounds,
    ) -> BoxFuture<'_, Result<StreamedResponse, HttpError>> {
        Box::pin(self.open_response_unboxed(request, bounds))
    }

    async fn open_response_unboxed(
        &self,
        request: Request<Bytes>,
        bounds: ResponseBounds,
    ) -> Result<StreamedResponse, HttpError> {
        let deadline = Instant::now() + bounds.timeout;
        // A read reserves memory once its response begins, so that a server that hangs takes nothing from the others. A
        // write reserves before it is sent, so that a lack of memory never leaves its outcome unknown.
        let is_read = request.method().is_safe();
        let early = if is_read {
            None
        } else {
            self.reserve_budget(bounds, deadline).await.map_err(|error| HttpError::NotSent(error.into()))?
        };
        let opened = async {
            match &self.transport {
                HttpTransport::Network(client) => over_network(client, request).await,
                HttpTransport::InProcess(peer) => {
                    let (head, body) = peer(request).await.into_parts();
                    Ok((head, in_pieces(body)))
                }
            }
        };
        let opened = tokio::time::timeout_at(deadline, opened).await;
        let (head, pieces) = opened.unwrap_or(Err(HttpError::TimedOut(bounds.timeout)))?;
        let bounds = bounds.with_announced_length(&head)?;
        let reservation = match early {
            Some(mut reservation) => {
                reservation.shrink_to(bounds.held);
                Some(reservation)
            }
            None if is_read => self.reserve_budget(bounds, deadline).await?,
            None => None,
        };
        Ok(StreamedResponse { head, pieces, bounds, taken: 0, deadline, reservation })
    }

    async fn reserve_budget(
        &self,
        bounds: ResponseBounds,
        deadline: Instant,
    ) -> Result<Option<BudgetReservation>, HttpError> {
        let Some(budget) = &self.budget else { return Ok(None) };
        match tokio::time::timeout_at(deadline, budget.reserve_bytes(bounds.held)).await {
            Ok(reserved) => reserved.map(Some).map_err(|error| HttpError::Broken(error.into())),
            Err(_) => Err(HttpError::TimedOut(bounds.timeout)),
        }
    }
}

/// Makes room for a piece. A `Vec` would double beyond the limit.
fn append_piece(body: &mut Vec<u8>, piece: usize, limit: u64) {
    let needed = body.len() + piece;
    if needed > body.capacity() {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let capacity = (2 * body.capacity()).min(limit).max(needed);
        body.reserve_exact(capacity - body.len());
    }
}

struct ReservedBody {
    body: Vec<u8>,
    _reservation: BudgetReservation,
}

impl AsRef<[u8]> for ReservedBody {
    fn as_ref(&self) -> &[u8] {
        &self.body
    }
}

/// Limits of a response, from the request to its last byte.
#[derive(Debug, Clone, Copy)]
pub struct ResponseBounds {
    pub timeout: Duration,
    pub bytes: u64,
    /// Number of these bytes that are in memory at the same time. They are reserved.
    pub held: u64,
}

impl ResponseBounds {
    /// Returns the bounds of a response that is read as a whole.
    pub const fn for_whole_response(timeout: Duration, bytes: u64) -> Self {
        Self { timeout, bytes, held: bytes }
    }

    /// Returns the bounds for a response that announces its length. A response that is too long is not read at all.
    fn with_announced_length(self, head: &response::Parts) -> Result<Self, HttpError> {
        let length = head.headers.get(header::CONTENT_LENGTH);
        let length = length.and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
        match length {
            None => Ok(self),
            Some(length) if length > self.bytes => Err(too_large(self.bytes)),
            Some(length) => Ok(Self { bytes: length, held: self.held.min(length), ..self }),
        }
    }
}

fn too_large(limit: u64) -> HttpError {
    HttpError::Broken(format!("the answer is larger than {} MiB", limit >> 20).into())
}

/// Response whose body is still to come.
pub struct StreamedResponse {
    pub head: response::Parts,
    pieces: BodyPieces,
    bounds: ResponseBounds,
    taken: u64,
    deadline: Instant,
    reservation: Option<BudgetReservation>,
}

type BodyPieces = BoxStream<'static, Result<Bytes, HttpError>>;

impl StreamedResponse {
    /// Returns the next piece of the body; `None` after the last one.
    pub async fn next_piece(&mut self) -> Result<Option<Bytes>, HttpError> {
        let next = tokio::time::timeout_at(self.deadline, self.pieces.next()).await;
        let Some(piece) = next.map_err(|_| HttpError::TimedOut(self.bounds.timeout))? else {
            return Ok(None);
        };
        let piece = piece?;
        self.taken += piece.len() as u64;
        if self.taken > self.bounds.bytes {
            return Err(too_large(self.bounds.bytes));
        }
        Ok(Some(piece))
    }
}

async fn over_network(
    client: &reqwest::Client,
    request: Request<Bytes>,
) -> Result<(response::Parts, BodyPieces), HttpError> {
    let request = reqwest::Request::try_from(request).map_err(|error| HttpError::NotSent(error.into()))?;
    let response = client.execute(request).await.map_err(|error| {
        // The URL may contain a phone number or an account id.
        let error = error.without_url();
        if error.is_connect() { HttpError::NotSent(error.into()) } else { HttpError::Broken(error.into()) }
    })?;
    let (mut head, ()) = Response::new(()).into_parts();
    head.status = response.status();
    head.headers.clone_from(response.headers());
    let pieces = response
        .bytes_stream()
        .map(|piece| piece.map_err(|error| HttpError::Broken(error.without_url().into())));
    Ok((head, pieces.boxed()))
}

fn in_pieces(mut body: Bytes) -> BodyPieces {
    let next = move || {
        let length = body.len().min(PIECE_BYTES);
        (length > 0).then(|| Ok(body.split_to(length)))
    };
    stream::iter(std::iter::from_fn(next)).boxed()
}

impl fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.transport {
            HttpTransport::Network(_) => "Http(network)",
            HttpTransport::InProcess(_) => "Http(in process)",
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use futures_util::FutureExt;
    use futures_util::future::join_all;

    use super::*;
    use crate::stub_server::{StubServer, empty_response, redirect_response};
    use crate::telemetry;

    const BODY: usize = 3 * PIECE_BYTES + 1;

    /// Checks the pieces of a response of this many bytes, up to the `bytes` that are allowed.
    async fn check(bytes: u64, expected: &[Result<usize, &str>]) {
        let peer = |_| async { Response::new(Bytes::from(vec![b'x'; BODY])) }.boxed();
        let http = HttpClient::in_process(Arc::new(peer));
        let bounds = ResponseBounds::for_whole_response(Duration::from_secs(1), bytes);
        let mut answer = http.open_response(Request::new(Bytes::new()), bounds).await.unwrap();
        let mut pieces = Vec::new();
        loop {
            match answer.next_piece().await {
                Ok(Some(piece)) => pieces.push(Ok(piece.len())),
                Ok(None) => break,
                Err(error) => {
                    let why = std::error::Error::source(&error).unwrap().to_string();
                    pieces.push(Err(why));
                    break;
                }
            }
        }
        let expected: Vec<_> = expected.iter().map(|piece| piece.map_err(str::to_owned)).collect();
        assert_eq!(pieces, expected);
    }

    #[tokio::test]
    async fn response_is_read_in_chunks_up_to_its_limit() {
        let piece = Ok(PIECE_BYTES);
        check(1 << 20, &[piece, piece, piece, Ok(1)]).await;
        check(PIECE_BYTES as u64 + 1, &[piece, Err("the answer is larger than 0 MiB")]).await;
    }

    #[tokio::test(start_paused = true)]
    async fn missing_response_times_out() {
        let silent = HttpClient::in_process(Arc::new(|_| std::future::pending().boxed()));
        let sent = silent.send(Request::new(Bytes::new()), Duration::from_secs(3)).await;
        assert_eq!(sent.unwrap_err().to_string(), "get an answer within 3 s");
    }

    #[tokio::test]
    async fn refused_connection_is_reported_without_its_address() {
        install_tls();
        // No program listens on port 1 of this machine.
        let request = Request::get("http://127.0.0.1:1/+15550100001?key=a-key").body(Bytes::new()).unwrap();
        let error =
            HttpClient::network().unwrap().send(request, Duration::from_secs(20)).await.err().unwrap();
        assert_eq!(
            telemetry::error_chain(&error),
            "connect: error sending request: client error (Connect): tcp connect error: \
             Connection refused (os error 111)"
        );
    }

    #[tokio::test]
    async fn redirect_is_returned_and_not_followed() {
        let elsewhere = StubServer::start("/", |_| empty_response(200)).await;
        let target = elsewhere.uri().to_owned();
        let leading = StubServer::start("/", move |_| redirect_response(&target)).await;
        install_tls();
        let request = Request::get(leading.uri()).header("x-api-key", "a-key").body(Bytes::new()).unwrap();
        let answer = HttpClient::network().unwrap().send(request, Duration::from_secs(20)).await.unwrap();
        assert_eq!(answer.status(), 307);
        assert_eq!(elsewhere.requests().len(), 0);
    }

    /// Creates a client whose responses share `bytes`, and whose peer yields once before it responds with `body` bytes.
    fn shared(bytes: u32, body: usize) -> (HttpClient, ResponseBudget) {
        let budget = ResponseBudget::new(bytes);
        let peer = move |_| {
            async move {
                tokio::task::yield_now().await;
                Response::new(Bytes::from(vec![b'x'; body]))
            }
            .boxed()
        };
        (HttpClient::in_process(Arc::new(peer)).with_budget(budget.clone()), budget)
    }

    fn bounds(bytes: u64) -> ResponseBounds {
        ResponseBounds::for_whole_response(Duration::from_secs(10), bytes)
    }

    #[tokio::test(start_paused = true)]
    async fn twelve_concurrent_responses_share_one_budget_in_order() {
        let (http, budget) = shared(100_000, 20_000);
        let served = Arc::new(Mutex::new(Vec::new()));
        let members = (0..12).map(|member| {
            let (http, served) = (http.clone(), served.clone());
            async move {
                let answer = http.send_within(Request::new(Bytes::new()), bounds(40_000)).await.unwrap();
                served.lock().unwrap().push(member);
                // Parsing takes some time.
                tokio::time::sleep(Duration::from_millis(100)).await;
                assert_eq!(answer.body().len(), 20_000);
            }
        });
        join_all(members).await;
        assert_eq!(*served.lock().unwrap(), (0..12).collect::<Vec<_>>());
        assert_eq!((budget.peak_bytes() <= 100_000, budget.peak_bytes() > 60_000), (true, true));
        assert_eq!(budget.reserved_bytes(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn read_without_room_times_out_and_write_is_not_sent() {
        let (http, budget) = shared(100_000, 1);
        let _all = budget.reserve_bytes(100_000).await.unwrap();
        let read = http.send_within(Request::new(Bytes::new()), bounds(1_000)).await.unwrap_err();
        assert!(matches!(read, HttpError::TimedOut(_)), "{read}");
        let write = Request::post("/").body(Bytes::new()).unwrap();
        let write = http.send_within(write, bounds(1_000)).await.unwrap_err();
        assert!(matches!(write, HttpError::NotSent(_)), "{write}");
    }

    #[tokio::test]
    async fn response_with_a_limit_above_the_budget_is_refused() {
        let (http, budget) = shared(100_000, 1);
        let refused = http.send_within(Request::new(Bytes::new()), bounds(100_001)).await.unwrap_err();
        assert_eq!(telemetry::error_chain(&refused), "read the answer: reserve 100001 bytes of 100000");
        assert_eq!(budget.peak_bytes(), 0);
    }

    #[tokio::test]
    async fn announced_length_is_reserved_and_checked() {
        let budget = ResponseBudget::new(100_000);
        let peer = |_| {
            let body = Bytes::from(vec![b'x'; 500]);
            async move { Response::builder().header(header::CONTENT_LENGTH, 500).body(body).unwrap() }.boxed()
        };
        let http = HttpClient::in_process(Arc::new(peer)).with_budget(budget.clone());
        let answer = http.send_within(Request::new(Bytes::new()), bounds(90_000)).await.unwrap();
        assert_eq!((budget.reserved_bytes(), budget.peak_bytes()), (500, 500));
        let refused = http.send_within(Request::new(Bytes::new()), bounds(499)).await.unwrap_err();
        assert_eq!(telemetry::error_chain(&refused), "read the answer: the answer is larger than 0 MiB");
        drop(answer);
        assert_eq!(budget.reserved_bytes(), 0);
    }
}
