//! HTTP transport for the requests of the async-openai library. A request is sent once, to the configured address.
//! Refusals are read before the library loses their status.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use async_openai::Client;
use async_openai::config::Config;
use async_openai::error::OpenAIError;
use async_openai::middleware::HttpRequestFactory;
use bytes::Bytes;
use http::header::{AUTHORIZATION, InvalidHeaderValue};
use http::{HeaderMap, HeaderValue};
use http_body_util::{BodyExt, Limited};
use secrecy::{ExposeSecret, SecretString};
use url::Url;

use super::openai::OpenAiError;
use super::server_refusal::ServerRefusal;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum size of a body. A stream wraps every few letters in a few hundred bytes.
const MAX_BODY_BYTES: usize = 16 << 20;
const MAX_REFUSAL_BYTES: usize = 64 << 10;

/// Creates a client without redirects and automatic retries.
pub(super) fn build_client(
    base: &Url,
    key: Option<SecretString>,
) -> Result<Client<ServerEndpoint>, OpenAiError> {
    crate::http::install_tls();
    let http = reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .connect_timeout(CONNECT_TIMEOUT)
        .user_agent(concat!("dialarr/", env!("CARGO_PKG_VERSION")))
        .build()?;
    let endpoint = ServerEndpoint::new(base, key)?;
    Ok(Client::build(http.clone(), endpoint).with_http_service(SingleSend(http)))
}

/// Address of the server. Unlike the library's own configuration, it never reads the environment.
#[derive(Clone)]
pub(super) struct ServerEndpoint {
    base: String,
    key: SecretString,
    authorization: HeaderValue,
}

impl ServerEndpoint {
    fn new(base: &Url, key: Option<SecretString>) -> Result<Self, InvalidHeaderValue> {
        // A server without keys ignores the key, so a key is always sent.
        let key = key.filter(|key| !key.expose_secret().is_empty()).unwrap_or_else(|| "none".into());
        let mut authorization = HeaderValue::from_str(&format!("Bearer {}", key.expose_secret()))?;
        authorization.set_sensitive(true);
        Ok(Self { base: base.as_str().trim_end_matches('/').to_owned(), key, authorization })
    }
}

impl Config for ServerEndpoint {
    fn headers(&self) -> HeaderMap {
        HeaderMap::from_iter([(AUTHORIZATION, self.authorization.clone())])
    }

    fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    fn query(&self) -> Vec<(&str, &str)> {
        Vec::new()
    }

    fn api_base(&self) -> &str {
        &self.base
    }

    fn api_key(&self) -> &SecretString {
        &self.key
    }
}

/// HTTP service that sends a request once, and reads refusals before the library, which loses their status.
#[derive(Clone)]
struct SingleSend(reqwest::Client);

impl tower::Service<HttpRequestFactory> for SingleSend {
    type Response = reqwest::Response;
    type Error = OpenAIError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: HttpRequestFactory) -> Self::Future {
        let client = self.0.clone();
        Box::pin(async move {
            let response = client.execute(request.build().await?).await?;
            let (head, body) = http::Response::<reqwest::Body>::from(response).into_parts();
            if head.status.is_success() {
                let body = reqwest::Body::wrap(Limited::new(body, MAX_BODY_BYTES));
                return Ok(http::Response::from_parts(head, body).into());
            }
            // The status is enough if the body cannot be read.
            let body = Limited::new(body, MAX_REFUSAL_BYTES).collect().await;
            let body = body.map_or_else(|_| Bytes::new(), http_body_util::Collected::to_bytes);
            Err(OpenAIError::Boxed(Box::new(ServerRefusal::from_response(head.status, &head.headers, &body))))
        })
    }
}
