//! One way out to Sonarr, Radarr and Twilio: a network client in life, a fake's router called in process in a simulation.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream, StreamExt};
use http::{Request, Response, response};
use tokio::time::Instant;

/// Largest answer that is read as a whole, so that a misbehaving peer cannot fill the memory.
const MAX_RESPONSE_BYTES: u64 = 64 << 20;
/// In process an answer comes in pieces of this size, about as a socket brings them.
const PIECE_BYTES: usize = 16 << 10;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A fake peer: takes a request, gives its response.
pub type InProcess = Arc<dyn Fn(Request<Bytes>) -> BoxFuture<'static, Response<Bytes>> + Send + Sync>;

#[derive(Clone)]
pub struct Http(Transport);

#[derive(Clone)]
enum Transport {
    Network(reqwest::Client),
    InProcess(InProcess),
}

/// Why a request has no response, told apart by whether the peer may have acted on it.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// The peer never saw the request.
    #[error("connect")]
    NotSent(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// No answer in time; the peer may have acted.
    #[error("get an answer within {} s", .0.as_secs())]
    TimedOut(Duration),
    /// The connection broke or the answer was unreadable; the peer may have acted.
    #[error("read the answer")]
    Broken(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// Chooses the TLS implementation of the process; without it no client can be built.
pub fn install_tls() {
    // The error says that a choice was made before, which serves as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
}

impl Http {
    /// A client that follows no redirects (a key in a header would follow them) and repeats nothing by itself.
    pub fn network() -> Result<Self, reqwest::Error> {
        let client = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .connect_timeout(CONNECT_TIMEOUT)
            .user_agent(concat!("dialarr/", env!("CARGO_PKG_VERSION")))
            .build()?;
        Ok(Self(Transport::Network(client)))
    }

    pub fn in_process(peer: InProcess) -> Self {
        Self(Transport::InProcess(peer))
    }

    /// Sends one request, once. `timeout` covers everything up to the last byte of the answer.
    pub async fn send(
        &self,
        request: Request<Bytes>,
        timeout: Duration,
    ) -> Result<Response<Bytes>, HttpError> {
        let bounds = Bounds { timeout, bytes: MAX_RESPONSE_BYTES };
        let mut answer = self.open(request, bounds).await?;
        let mut body = BytesMut::new();
        while let Some(piece) = answer.piece().await? {
            body.extend_from_slice(&piece);
        }
        Ok(Response::from_parts(answer.head, body.freeze()))
    }

    /// Sends one request, once, and leaves the body of the answer to be taken piece by piece: for what is too large to
    /// be held as a whole.
    pub async fn open(&self, request: Request<Bytes>, bounds: Bounds) -> Result<Answer, HttpError> {
        let deadline = Instant::now() + bounds.timeout;
        let opened = async {
            match &self.0 {
                Transport::Network(client) => over_network(client, request).await,
                Transport::InProcess(peer) => {
                    let (head, body) = peer(request).await.into_parts();
                    Ok((head, in_pieces(body)))
                }
            }
        };
        let opened = tokio::time::timeout_at(deadline, opened).await;
        let (head, pieces) = opened.unwrap_or(Err(HttpError::TimedOut(bounds.timeout)))?;
        Ok(Answer { head, pieces, bounds, taken: 0, deadline })
    }
}

/// The most that an answer may take, from the request to its last byte.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    pub timeout: Duration,
    pub bytes: u64,
}

/// An answer whose body is still to come.
pub struct Answer {
    pub head: response::Parts,
    pieces: Pieces,
    bounds: Bounds,
    taken: u64,
    deadline: Instant,
}

type Pieces = BoxStream<'static, Result<Bytes, HttpError>>;

impl Answer {
    /// The next piece of the body; `None` behind the last.
    pub async fn piece(&mut self) -> Result<Option<Bytes>, HttpError> {
        let next = tokio::time::timeout_at(self.deadline, self.pieces.next()).await;
        let Some(piece) = next.map_err(|_| HttpError::TimedOut(self.bounds.timeout))? else {
            return Ok(None);
        };
        let piece = piece?;
        self.taken += piece.len() as u64;
        if self.taken > self.bounds.bytes {
            let most = self.bounds.bytes >> 20;
            return Err(HttpError::Broken(format!("the answer is larger than {most} MiB").into()));
        }
        Ok(Some(piece))
    }
}

async fn over_network(
    client: &reqwest::Client,
    request: Request<Bytes>,
) -> Result<(response::Parts, Pieces), HttpError> {
    let request = reqwest::Request::try_from(request).map_err(|error| HttpError::NotSent(error.into()))?;
    let response = client.execute(request).await.map_err(|error| {
        // The URL may carry a phone number or an account id.
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

fn in_pieces(mut body: Bytes) -> Pieces {
    let next = move || {
        let length = body.len().min(PIECE_BYTES);
        (length > 0).then(|| Ok(body.split_to(length)))
    };
    stream::iter(std::iter::from_fn(next)).boxed()
}

impl fmt::Debug for Http {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Transport::Network(_) => "Http(network)",
            Transport::InProcess(_) => "Http(in process)",
        })
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use wiremock::{Mock, MockServer, ResponseTemplate, matchers};

    use super::*;
    use crate::telemetry;

    const BODY: usize = 3 * PIECE_BYTES + 1;

    /// The pieces of an answer of this many bytes, as far as `bytes` are allowed.
    async fn check(bytes: u64, expected: &[Result<usize, &str>]) {
        let peer = |_| async { Response::new(Bytes::from(vec![b'x'; BODY])) }.boxed();
        let http = Http::in_process(Arc::new(peer));
        let bounds = Bounds { timeout: Duration::from_secs(1), bytes };
        let mut answer = http.open(Request::new(Bytes::new()), bounds).await.unwrap();
        let mut pieces = Vec::new();
        loop {
            match answer.piece().await {
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
    async fn an_answer_is_taken_in_pieces_until_it_is_too_large() {
        let piece = Ok(PIECE_BYTES);
        check(1 << 20, &[piece, piece, piece, Ok(1)]).await;
        check(PIECE_BYTES as u64 + 1, &[piece, Err("the answer is larger than 0 MiB")]).await;
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_does_not_come_is_not_waited_for() {
        let silent = Http::in_process(Arc::new(|_| std::future::pending().boxed()));
        let sent = silent.send(Request::new(Bytes::new()), Duration::from_secs(3)).await;
        assert_eq!(sent.unwrap_err().to_string(), "get an answer within 3 s");
    }

    #[tokio::test]
    async fn a_refused_connection_is_told_in_words_and_without_its_address() {
        install_tls();
        // Nothing listens on port 1 of this machine.
        let request = Request::get("http://127.0.0.1:1/+15550100001?key=a-key").body(Bytes::new()).unwrap();
        let error = Http::network().unwrap().send(request, Duration::from_secs(20)).await.err().unwrap();
        assert_eq!(
            telemetry::chain(&error),
            "connect: error sending request: client error (Connect): tcp connect error: \
             Connection refused (os error 111)"
        );
    }

    #[tokio::test]
    async fn a_redirect_is_an_answer_and_no_way() {
        let (elsewhere, leading) = (MockServer::start().await, MockServer::start().await);
        let redirect = ResponseTemplate::new(307).insert_header("location", elsewhere.uri().as_str());
        Mock::given(matchers::any()).respond_with(redirect).mount(&leading).await;
        install_tls();
        let request = Request::get(leading.uri()).header("x-api-key", "a-key").body(Bytes::new()).unwrap();
        let answer = Http::network().unwrap().send(request, Duration::from_secs(20)).await.unwrap();
        assert_eq!(answer.status(), 307);
        assert_eq!(elsewhere.received_requests().await.unwrap().len(), 0);
    }
}
