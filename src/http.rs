//! One way out to Sonarr, Radarr and Twilio: a network client in life, a fake's router called in process in a simulation.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use http::{Request, Response};

/// Largest answer that is read, so that a misbehaving peer cannot fill the memory.
const MAX_RESPONSE_BYTES: usize = 64 << 20;
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
        let answer = async {
            match &self.0 {
                Transport::Network(client) => over_network(client, request).await,
                Transport::InProcess(peer) => Ok(peer(request).await),
            }
        };
        tokio::time::timeout(timeout, answer).await.unwrap_or(Err(HttpError::TimedOut(timeout)))
    }
}

async fn over_network(
    client: &reqwest::Client,
    request: Request<Bytes>,
) -> Result<Response<Bytes>, HttpError> {
    let request = reqwest::Request::try_from(request).map_err(|error| HttpError::NotSent(error.into()))?;
    let response = client.execute(request).await.map_err(|error| {
        // The URL may carry a phone number or an account id.
        let error = error.without_url();
        if error.is_connect() { HttpError::NotSent(error.into()) } else { HttpError::Broken(error.into()) }
    })?;
    let mut head = Response::builder().status(response.status());
    if let Some(headers) = head.headers_mut() {
        headers.clone_from(response.headers());
    }
    let mut body = BytesMut::new();
    let mut chunks = response.bytes_stream();
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(|error| HttpError::Broken(error.without_url().into()))?;
        if body.len() + chunk.len() > MAX_RESPONSE_BYTES {
            return Err(HttpError::Broken("the answer is larger than 64 MiB".into()));
        }
        body.extend_from_slice(&chunk);
    }
    head.body(body.freeze()).map_err(|error| HttpError::Broken(error.into()))
}

impl fmt::Debug for Http {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Transport::Network(_) => "Http(network)",
            Transport::InProcess(_) => "Http(in process)",
        })
    }
}
