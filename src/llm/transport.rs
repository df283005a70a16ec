//! HTTP transport for async-openai. Sends each request once, to the configured address, and reads error responses
//! itself, because async-openai discards their HTTP status.

use std::pin::Pin;
use std::task::{Context, Poll};

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

use super::error_response::ErrorResponse;
use super::openai::InvalidKey;

/// Maximum size of a successful response body. Each streamed chunk has a few hundred bytes of JSON around its text.
const MAX_BODY_BYTES: usize = 16 << 20;
const MAX_ERROR_BODY_BYTES: usize = 64 << 10;

/// Creates a client for a model server that uses the connections of `http`.
pub(super) fn build_client(
    http: &reqwest::Client,
    base: &Url,
    key: Option<SecretString>,
) -> Result<Client<ServerEndpoint>, InvalidKey> {
    let endpoint = ServerEndpoint::new(base, key)?;
    Ok(Client::build(http.clone(), endpoint).with_http_service(SingleAttempt(http.clone())))
}

/// Base URL and API key of the model server. Unlike the library's own configuration, it never reads the environment.
#[derive(Clone)]
pub(super) struct ServerEndpoint {
    base: String,
    key: SecretString,
    authorization: HeaderValue,
}

impl ServerEndpoint {
    fn new(base: &Url, key: Option<SecretString>) -> Result<Self, InvalidHeaderValue> {
        // A server without keys ignores the header, so a placeholder is sent if no key is configured.
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

/// HTTP service that sends a request once and converts an error response to an `ErrorResponse`.
#[derive(Clone)]
struct SingleAttempt(reqwest::Client);

impl tower::Service<HttpRequestFactory> for SingleAttempt {
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
            let (parts, body) = http::Response::<reqwest::Body>::from(response).into_parts();
            if parts.status.is_success() {
                let body = reqwest::Body::wrap(Limited::new(body, MAX_BODY_BYTES));
                return Ok(http::Response::from_parts(parts, body).into());
            }
            // The status is enough if the body cannot be read.
            let body = Limited::new(body, MAX_ERROR_BODY_BYTES).collect().await;
            let body = body.map_or_else(|_| Bytes::new(), http_body_util::Collected::to_bytes);
            Err(OpenAIError::Boxed(Box::new(ErrorResponse::from_response(
                parts.status,
                &parts.headers,
                &body,
            ))))
        })
    }
}
