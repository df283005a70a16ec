//! HTTP client for Sonarr, Radarr and Twilio. In simulations it calls the router of a fake in process.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream, StreamExt};
use http::{Request, Response, header, response};
use tokio::time::Instant;

use crate::response_budget::{BudgetReservation, ResponseBudget};

/// Maximum size of a response that is read as a whole, so that a misbehaving peer cannot exhaust the memory.
const MAX_RESPONSE_BYTES: u64 = 64 << 20;
/// Chunk size of an in-process response, similar to that of a socket.
const CHUNK_BYTES: usize = 16 << 10;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// In-process peer: a function from a request to its response.
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

/// Error of a request without a usable response. The variants distinguish whether the peer may have acted on the
/// request.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// The request was certainly not sent.
    #[error("connect")]
    NotSent(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The response did not arrive in time; the peer may have acted.
    #[error("get a response within {} s", .0.as_secs())]
    TimedOut(Duration),
    /// The connection broke or the response was unreadable; the peer may have acted.
    #[error("read the response")]
    Broken(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// Installs the TLS implementation of the process, which every network client needs.
pub fn install_tls() {
    // An error means that an implementation is already installed.
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// Builds the network client of the process, whose clones share its connections. It follows no redirects, which would
/// leak the API key in the header, and retries no request.
pub fn build_network_client() -> Result<reqwest::Client, reqwest::Error> {
    install_tls();
    reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .connect_timeout(CONNECT_TIMEOUT)
        .user_agent(concat!("dialarr/", env!("CARGO_PKG_VERSION")))
        .build()
}

impl HttpClient {
    /// Creates a client with connections of its own.
    pub fn network() -> Result<Self, reqwest::Error> {
        build_network_client().map(Self::over_network)
    }

    /// Creates a client that uses the connections of `client`.
    pub fn over_network(client: reqwest::Client) -> Self {
        Self { transport: HttpTransport::Network(client), budget: None }
    }

    pub fn in_process(peer: InProcess) -> Self {
        Self { transport: HttpTransport::InProcess(peer), budget: None }
    }

    /// Returns a client whose responses reserve their memory from `budget`.
    pub fn with_budget(self, budget: ResponseBudget) -> Self {
        Self { budget: Some(budget), ..self }
    }

    /// Sends a request once. `timeout` covers the time up to the last byte of the response.
    pub async fn send(
        &self,
        request: Request<Bytes>,
        timeout: Duration,
    ) -> Result<Response<Bytes>, HttpError> {
        self.send_within(request, ResponseBounds::for_whole_response(timeout, MAX_RESPONSE_BYTES)).await
    }

    /// Sends a request once, with bounds for its response. The memory of the body stays reserved until the last clone
    /// of the body is dropped.
    pub async fn send_within(
        &self,
        request: Request<Bytes>,
        bounds: ResponseBounds,
    ) -> Result<Response<Bytes>, HttpError> {
        let mut response = self.open_response(request, bounds).await?;
        let mut body = Vec::new();
        while let Some(chunk) = response.next_chunk().await? {
            reserve_chunk(&mut body, chunk.len(), response.bounds.bytes);
            body.extend_from_slice(&chunk);
        }
        let body = match response.reservation {
            None => Bytes::from(body),
            Some(mut reservation) => {
                reservation.shrink_to(body.capacity() as u64);
                Bytes::from_owner(ReservedBody { body, _reservation: reservation })
            }
        };
        Ok(Response::from_parts(response.head, body))
    }

    /// Sends a request once, and returns the response with a body that is read in chunks, for a body that is too large
    /// to be in memory as a whole.
    ///
    /// The future is boxed to reduce compile time: otherwise the compiler checks the whole HTTP library for `Send` in
    /// every caller.
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
        // A read reserves memory when its response begins, so that a hanging server reserves nothing. A write reserves
        // memory before it is sent, so that a lack of memory never leaves its outcome unknown.
        let is_read = request.method().is_safe();
        let write_reservation = if is_read {
            None
        } else {
            self.reserve_budget(bounds, deadline).await.map_err(|error| HttpError::NotSent(error.into()))?
        };
        let opened = async {
            match &self.transport {
                HttpTransport::Network(client) => send_over_network(client, request).await,
                HttpTransport::InProcess(peer) => {
                    let (head, body) = peer(request).await.into_parts();
                    Ok((head, split_into_chunks(body)))
                }
            }
        };
        let opened = tokio::time::timeout_at(deadline, opened).await;
        let (head, chunks) = opened.unwrap_or(Err(HttpError::TimedOut(bounds.timeout)))?;
        let bounds = bounds.with_announced_length(&head)?;
        let reservation = match write_reservation {
            Some(mut reservation) => {
                reservation.shrink_to(bounds.reserved_bytes);
                Some(reservation)
            }
            None if is_read => self.reserve_budget(bounds, deadline).await?,
            None => None,
        };
        Ok(StreamedResponse { head, chunks, bounds, received_bytes: 0, deadline, reservation })
    }

    async fn reserve_budget(
        &self,
        bounds: ResponseBounds,
        deadline: Instant,
    ) -> Result<Option<BudgetReservation>, HttpError> {
        let Some(budget) = &self.budget else { return Ok(None) };
        match tokio::time::timeout_at(deadline, budget.reserve_bytes(bounds.reserved_bytes)).await {
            Ok(reserved) => reserved.map(Some).map_err(|error| HttpError::Broken(error.into())),
            Err(_) => Err(HttpError::TimedOut(bounds.timeout)),
        }
    }
}

/// Reserves capacity for the next chunk without exceeding the limit, which a doubling `Vec` would.
fn reserve_chunk(body: &mut Vec<u8>, chunk_bytes: usize, limit: u64) {
    let needed = body.len() + chunk_bytes;
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

/// Limits of a response: time from the request to the last byte, size, and memory.
#[derive(Debug, Clone, Copy)]
pub struct ResponseBounds {
    pub timeout: Duration,
    /// Maximum size of the body.
    pub bytes: u64,
    /// Maximum part of the body that is in memory at the same time, which is reserved.
    pub reserved_bytes: u64,
}

impl ResponseBounds {
    /// Returns the bounds of a response that is read as a whole.
    pub const fn for_whole_response(timeout: Duration, bytes: u64) -> Self {
        Self { timeout, bytes, reserved_bytes: bytes }
    }

    /// Lowers the bounds to the announced length of a response. A response that is too long is not read at all.
    fn with_announced_length(self, head: &response::Parts) -> Result<Self, HttpError> {
        let header = head.headers.get(header::CONTENT_LENGTH);
        let length = header.and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
        match length {
            None => Ok(self),
            Some(length) if length > self.bytes => Err(too_large(self.bytes)),
            Some(length) => {
                Ok(Self { bytes: length, reserved_bytes: self.reserved_bytes.min(length), ..self })
            }
        }
    }
}

fn too_large(limit: u64) -> HttpError {
    HttpError::Broken(format!("the response is larger than {} MiB", limit >> 20).into())
}

/// Response whose body is read in chunks.
pub struct StreamedResponse {
    pub head: response::Parts,
    chunks: BodyChunks,
    bounds: ResponseBounds,
    received_bytes: u64,
    deadline: Instant,
    reservation: Option<BudgetReservation>,
}

type BodyChunks = BoxStream<'static, Result<Bytes, HttpError>>;

impl StreamedResponse {
    /// Returns the next chunk of the body; `None` after the last one.
    pub async fn next_chunk(&mut self) -> Result<Option<Bytes>, HttpError> {
        let next = tokio::time::timeout_at(self.deadline, self.chunks.next()).await;
        let Some(chunk) = next.map_err(|_| HttpError::TimedOut(self.bounds.timeout))? else {
            return Ok(None);
        };
        let chunk = chunk?;
        self.received_bytes += chunk.len() as u64;
        if self.received_bytes > self.bounds.bytes {
            return Err(too_large(self.bounds.bytes));
        }
        Ok(Some(chunk))
    }
}

async fn send_over_network(
    client: &reqwest::Client,
    request: Request<Bytes>,
) -> Result<(response::Parts, BodyChunks), HttpError> {
    let request = reqwest::Request::try_from(request).map_err(|error| HttpError::NotSent(error.into()))?;
    let response = client.execute(request).await.map_err(|error| {
        // The URL may contain a phone number or an account id.
        let error = error.without_url();
        if error.is_connect() { HttpError::NotSent(error.into()) } else { HttpError::Broken(error.into()) }
    })?;
    let (mut head, ()) = Response::new(()).into_parts();
    head.status = response.status();
    head.headers.clone_from(response.headers());
    let chunks = response
        .bytes_stream()
        .map(|chunk| chunk.map_err(|error| HttpError::Broken(error.without_url().into())));
    Ok((head, chunks.boxed()))
}

fn split_into_chunks(mut body: Bytes) -> BodyChunks {
    let next_chunk = move || {
        let length = body.len().min(CHUNK_BYTES);
        (length > 0).then(|| Ok(body.split_to(length)))
    };
    stream::iter(std::iter::from_fn(next_chunk)).boxed()
}

/// Returns whether the body is a web page, as of a sign-in page or of another program at the same address.
pub fn is_web_page(response: &Response<Bytes>) -> bool {
    let has_html_type = response
        .headers()
        .get(header::CONTENT_TYPE)
        .is_some_and(|content_type| content_type.as_bytes().starts_with(b"text/html"));
    has_html_type || response.body().trim_ascii_start().starts_with(b"<")
}

/// Returns a phrase with the target of a redirect, without its query, which may repeat the query of the request.
pub fn redirect_message(response: &Response<Bytes>) -> String {
    let target = response.headers().get(header::LOCATION).and_then(|location| location.to_str().ok());
    match target {
        Some(target) => format!("the server redirects to {}", target.split('?').next().unwrap_or(target)),
        None => "the server redirects".into(),
    }
}

impl fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.transport {
            HttpTransport::Network(_) => "HttpClient(network)",
            HttpTransport::InProcess(_) => "HttpClient(in process)",
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

    const BODY: usize = 3 * CHUNK_BYTES + 1;

    /// Checks the chunk sizes of a response that is limited to `bytes`.
    async fn check_chunks(bytes: u64, expected: &[Result<usize, &str>]) {
        let peer = |_| async { Response::new(Bytes::from(vec![b'x'; BODY])) }.boxed();
        let http = HttpClient::in_process(Arc::new(peer));
        let bounds = ResponseBounds::for_whole_response(Duration::from_secs(1), bytes);
        let mut response = http.open_response(Request::new(Bytes::new()), bounds).await.unwrap();
        let mut chunks = Vec::new();
        loop {
            match response.next_chunk().await {
                Ok(Some(chunk)) => chunks.push(Ok(chunk.len())),
                Ok(None) => break,
                Err(error) => {
                    let reason = std::error::Error::source(&error).unwrap().to_string();
                    chunks.push(Err(reason));
                    break;
                }
            }
        }
        let expected: Vec<_> = expected.iter().map(|chunk| chunk.map_err(str::to_owned)).collect();
        assert_eq!(chunks, expected);
    }

    #[tokio::test]
    async fn response_is_read_in_chunks_up_to_its_limit() {
        let chunk = Ok(CHUNK_BYTES);
        check_chunks(1 << 20, &[chunk, chunk, chunk, Ok(1)]).await;
        check_chunks(CHUNK_BYTES as u64 + 1, &[chunk, Err("the response is larger than 0 MiB")]).await;
    }

    #[tokio::test(start_paused = true)]
    async fn missing_response_times_out() {
        let hanging_client = HttpClient::in_process(Arc::new(|_| std::future::pending().boxed()));
        let outcome = hanging_client.send(Request::new(Bytes::new()), Duration::from_secs(3)).await;
        assert_eq!(outcome.unwrap_err().to_string(), "get a response within 3 s");
    }

    #[tokio::test]
    async fn refused_connection_is_reported_without_its_address() {
        // No program listens on port 1.
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
        let redirect_target = StubServer::start("/", |_| empty_response(200)).await;
        let location = redirect_target.uri().to_owned();
        let redirecting = StubServer::start("/", move |_| redirect_response(&location)).await;
        let request =
            Request::get(redirecting.uri()).header("x-api-key", "a-key").body(Bytes::new()).unwrap();
        let response = HttpClient::network().unwrap().send(request, Duration::from_secs(20)).await.unwrap();
        assert_eq!(response.status(), 307);
        assert_eq!(redirect_target.requests().len(), 0);
    }

    /// Creates a client with a budget of `bytes`, whose peer yields once before it responds with `body` bytes.
    fn client_with_budget(bytes: u32, body: usize) -> (HttpClient, ResponseBudget) {
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
        let (http, budget) = client_with_budget(100_000, 20_000);
        let completed = Arc::new(Mutex::new(Vec::new()));
        let requests = (0..12).map(|number| {
            let (http, completed) = (http.clone(), completed.clone());
            async move {
                let response = http.send_within(Request::new(Bytes::new()), bounds(40_000)).await.unwrap();
                completed.lock().unwrap().push(number);
                // The time that parsing takes.
                tokio::time::sleep(Duration::from_millis(100)).await;
                assert_eq!(response.body().len(), 20_000);
            }
        });
        join_all(requests).await;
        assert_eq!(*completed.lock().unwrap(), (0..12).collect::<Vec<_>>());
        assert_eq!((budget.peak_bytes() <= 100_000, budget.peak_bytes() > 60_000), (true, true));
        assert_eq!(budget.reserved_bytes(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn read_without_budget_times_out_and_write_is_not_sent() {
        let (http, budget) = client_with_budget(100_000, 1);
        let _reservation = budget.reserve_bytes(100_000).await.unwrap();
        let read = http.send_within(Request::new(Bytes::new()), bounds(1_000)).await.unwrap_err();
        assert!(matches!(read, HttpError::TimedOut(_)), "{read}");
        let write = Request::post("/").body(Bytes::new()).unwrap();
        let write = http.send_within(write, bounds(1_000)).await.unwrap_err();
        assert!(matches!(write, HttpError::NotSent(_)), "{write}");
    }

    #[tokio::test]
    async fn response_with_a_limit_above_the_budget_is_rejected() {
        let (http, budget) = client_with_budget(100_000, 1);
        let rejected = http.send_within(Request::new(Bytes::new()), bounds(100_001)).await.unwrap_err();
        assert_eq!(telemetry::error_chain(&rejected), "read the response: reserve 100001 bytes of 100000");
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
        let response = http.send_within(Request::new(Bytes::new()), bounds(90_000)).await.unwrap();
        assert_eq!((budget.reserved_bytes(), budget.peak_bytes()), (500, 500));
        let rejected = http.send_within(Request::new(Bytes::new()), bounds(499)).await.unwrap_err();
        assert_eq!(telemetry::error_chain(&rejected), "read the response: the response is larger than 0 MiB");
        drop(response);
        assert_eq!(budget.reserved_bytes(), 0);
    }
}
