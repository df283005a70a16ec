//! Requests to one JSON server, such as a media server: base URL, headers, bounds, and the classes of errors.

pub mod fake;

use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER};
use http::{Method, Request, Response};
use serde::de::DeserializeOwned;
use serde_json::Value;
use url::Url;
use url::form_urlencoded::{self, byte_serialize};

use crate::http::{HttpClient, HttpError, ResponseBounds, is_web_page, redirect_message};

/// Bounds of every response. A page of titles has about 1 MiB.
const BOUNDS: ResponseBounds = ResponseBounds::for_whole_response(Duration::from_secs(15), 10 << 20);

/// Pause after a server has limited the requests without a time.
const DEFAULT_PAUSE: Duration = Duration::from_secs(10);
const MAX_PAUSE: Duration = Duration::from_secs(60 * 60);

/// Query parameters as names and values, not yet encoded.
pub type QueryParameters<'a> = &'a [(&'a str, &'a str)];

/// Client for the requests to one server. The headers contain the key, so they are not shown.
#[derive(Clone)]
pub struct ServerApi {
    base: Url,
    headers: Vec<(HeaderName, HeaderValue)>,
    http: HttpClient,
}

impl std::fmt::Debug for ServerApi {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerApi").field("base", &self.base.as_str()).finish_non_exhaustive()
    }
}

impl ServerApi {
    /// Creates a client that sends `headers` with each request. The base URL may have a path, as behind a proxy.
    pub(crate) fn new(http: HttpClient, base: Url, headers: Vec<(HeaderName, HeaderValue)>) -> Self {
        Self { base, headers, http }
    }

    pub(crate) async fn get<T: DeserializeOwned>(
        &self,
        path: &str,
        query: QueryParameters<'_>,
    ) -> Result<T, ServerError> {
        let response = self.send(Method::GET, path, query, None).await?;
        serde_json::from_slice(response.body()).map_err(ServerError::Unreadable)
    }

    /// Sends a POST once, and ignores the body of the response.
    pub(crate) async fn post(
        &self,
        path: &str,
        query: QueryParameters<'_>,
        body: Option<&Value>,
    ) -> Result<(), ServerError> {
        self.send(Method::POST, path, query, body).await.map(drop)
    }

    /// Sends a GET that starts an action, and ignores the body of a success, which some servers label as a web page.
    pub(crate) async fn trigger(&self, path: &str, query: QueryParameters<'_>) -> Result<(), ServerError> {
        let response = self.fetch_response(Method::GET, path, query, None).await?;
        if response.status().is_success() { Ok(()) } else { check_response(&response) }
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        query: QueryParameters<'_>,
        body: Option<&Value>,
    ) -> Result<Response<Bytes>, ServerError> {
        let response = self.fetch_response(method, path, query, body).await?;
        check_response(&response)?;
        Ok(response)
    }

    /// Returns the same client with one more header, such as that of the user for whom it acts.
    pub(crate) fn with_header(&self, name: HeaderName, value: HeaderValue) -> Self {
        let mut api = self.clone();
        api.headers.push((name, value));
        api
    }

    /// Sends a request once, and returns its response with any status.
    pub(crate) async fn fetch_response(
        &self,
        method: Method,
        path: &str,
        query: QueryParameters<'_>,
        body: Option<&Value>,
    ) -> Result<Response<Bytes>, ServerError> {
        let request = self
            .build_request(method, path, query, body)
            .map_err(|error| ServerError::Unreachable(HttpError::NotSent(error.into())))?;
        self.http.send_within(request, BOUNDS).await.map_err(ServerError::Unreachable)
    }

    fn build_request(
        &self,
        method: Method,
        path: &str,
        query: QueryParameters<'_>,
        body: Option<&Value>,
    ) -> Result<Request<Bytes>, http::Error> {
        let mut url = self.base.clone();
        url.set_path(&format!("{}/{path}", self.base.path().trim_end_matches('/')));
        url.set_fragment(None);
        url.set_query(None);
        if !query.is_empty() {
            url.set_query(Some(&encode_query(query)));
        }
        let mut request =
            Request::builder().method(method).uri(url.as_str()).header(ACCEPT, "application/json");
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        match body {
            Some(body) => {
                request.header(CONTENT_TYPE, "application/json").body(Bytes::from(body.to_string()))
            }
            None => request.body(Bytes::new()),
        }
    }
}

/// Failure of a request to a server. What was asked is then unknown.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    #[error("reach the server")]
    Unreachable(#[source] HttpError),
    /// Error status of a server that is starting or broken.
    #[error("complete the request: status {0}")]
    Unavailable(u16),
    #[error("authenticate: the key was rejected")]
    Unauthorized,
    /// Redirect or web page instead of JSON, because the URL or its base path is wrong.
    #[error("find the API at this URL: {0}")]
    WrongUrl(String),
    #[error("find the record")]
    NotFound,
    #[error("get the request accepted: status {0}")]
    Refused(u16),
    /// The server limits the number of requests, and accepts further ones after this time.
    #[error("ask so often: the server wants a pause of {} s", .0.as_secs())]
    RateLimited(Duration),
    #[error("parse the response")]
    Unreadable(#[source] serde_json::Error),
}

impl ServerError {
    /// Converts the failure of a task that reads from the server.
    pub(crate) fn from_panic(error: tokio::task::JoinError) -> Self {
        Self::Unreachable(HttpError::Broken(error.into()))
    }

    /// Returns whether the server may have done what it was asked to do, although its response did not say so.
    pub fn may_have_happened(&self) -> bool {
        match self {
            Self::Unreachable(HttpError::NotSent(_)) => false,
            Self::Unreachable(HttpError::TimedOut(_) | HttpError::Broken(_)) => true,
            Self::Unavailable(_) | Self::Unreadable(_) => true,
            Self::Unauthorized
            | Self::WrongUrl(_)
            | Self::NotFound
            | Self::Refused(_)
            | Self::RateLimited(_) => false,
        }
    }

    /// Returns whether all other questions to the server would fail in the same way, not only those about one title.
    pub fn affects_all_titles(&self) -> bool {
        match self {
            Self::Unreachable(_)
            | Self::Unavailable(_)
            | Self::Unauthorized
            | Self::WrongUrl(_)
            | Self::RateLimited(_) => true,
            Self::NotFound | Self::Refused(_) | Self::Unreadable(_) => false,
        }
    }
}

/// Encodes a text as a part of a path or of a header field.
pub(crate) fn encode(text: &str) -> String {
    byte_serialize(text.as_bytes()).collect()
}

/// Encodes the parameters of a query. Seerr refuses a space that is encoded as `+`, and a plain `*`.
fn encode_query(query: QueryParameters<'_>) -> String {
    let encoded = form_urlencoded::Serializer::new(String::new()).extend_pairs(query).finish();
    encoded.replace('+', "%20").replace('*', "%2A")
}

/// Converts the status of an unsuccessful response into an error.
pub(crate) fn check_response(response: &Response<Bytes>) -> Result<(), ServerError> {
    match response.status().as_u16() {
        200..=299 if is_web_page(response) => Err(ServerError::WrongUrl("the response is a web page".into())),
        200..=299 => Ok(()),
        300..=399 => Err(ServerError::WrongUrl(redirect_message(response))),
        401 | 403 => Err(ServerError::Unauthorized),
        404 if is_web_page(response) => Err(ServerError::WrongUrl("the response is a web page".into())),
        404 => Err(ServerError::NotFound),
        405 => Err(ServerError::WrongUrl("no such endpoint".into())),
        429 => Err(ServerError::RateLimited(requested_pause(response))),
        status @ 400..=499 => Err(ServerError::Refused(status)),
        status => Err(ServerError::Unavailable(status)),
    }
}

/// Returns the pause that a response requests, in seconds. A date counts as no request.
fn requested_pause(response: &Response<Bytes>) -> Duration {
    let value = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
    let seconds = value.and_then(|text| text.trim().parse().ok()).map(Duration::from_secs);
    seconds.unwrap_or(DEFAULT_PAUSE).clamp(Duration::from_secs(1), MAX_PAUSE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn query_is_encoded_without_reserved_characters() {
        let query = [("query", "M*A*S*H 1+1=2 it's"), ("genre", "28,80")];
        let encoded = encode_query(&query);
        assert_eq!(encoded, "query=M%2AA%2AS%2AH%201%2B1%3D2%20it%27s&genre=28%2C80");
        let decoded: Vec<_> = form_urlencoded::parse(encoded.as_bytes()).collect();
        assert!(decoded.iter().map(|(name, value)| (&**name, &**value)).eq(query));
    }
}
