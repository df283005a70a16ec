//! Requests to one media server: base URL, headers, bounds, and the classes of errors.

use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue};
use http::{Method, Request, Response};
use serde::de::DeserializeOwned;
use serde_json::Value;
use url::Url;
use url::form_urlencoded::byte_serialize;

use super::MediaServerError;
use crate::http::{HttpClient, HttpError, ResponseBounds, is_web_page, redirect_message};

/// Bounds of every response. A page of titles has about 1 MiB.
const BOUNDS: ResponseBounds = ResponseBounds::for_whole_response(Duration::from_secs(15), 10 << 20);

/// Query parameters as names and values, not yet encoded.
pub(super) type QueryParameters<'a> = &'a [(&'a str, &'a str)];

/// Client for the requests to one server. The headers contain the key, so they are not shown.
#[derive(Clone)]
pub(super) struct ServerApi {
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
    pub(super) fn new(http: HttpClient, base: Url, headers: Vec<(HeaderName, HeaderValue)>) -> Self {
        Self { base, headers, http }
    }

    pub(super) async fn get<T: DeserializeOwned>(
        &self,
        path: &str,
        query: QueryParameters<'_>,
    ) -> Result<T, MediaServerError> {
        let response = self.send(Method::GET, path, query, None).await?;
        serde_json::from_slice(response.body()).map_err(MediaServerError::Unreadable)
    }

    /// Sends a POST once, and ignores the body of the response.
    pub(super) async fn post(
        &self,
        path: &str,
        query: QueryParameters<'_>,
        body: Option<&Value>,
    ) -> Result<(), MediaServerError> {
        self.send(Method::POST, path, query, body).await.map(drop)
    }

    /// Sends a GET that starts an action, and ignores the body of a success, which some servers label as a web page.
    pub(super) async fn trigger(
        &self,
        path: &str,
        query: QueryParameters<'_>,
    ) -> Result<(), MediaServerError> {
        let response = self.fetch_response(Method::GET, path, query, None).await?;
        if response.status().is_success() { Ok(()) } else { check_response(&response) }
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        query: QueryParameters<'_>,
        body: Option<&Value>,
    ) -> Result<Response<Bytes>, MediaServerError> {
        let response = self.fetch_response(method, path, query, body).await?;
        check_response(&response)?;
        Ok(response)
    }

    async fn fetch_response(
        &self,
        method: Method,
        path: &str,
        query: QueryParameters<'_>,
        body: Option<&Value>,
    ) -> Result<Response<Bytes>, MediaServerError> {
        let request = self
            .build_request(method, path, query, body)
            .map_err(|error| MediaServerError::Unreachable(HttpError::NotSent(error.into())))?;
        self.http.send_within(request, BOUNDS).await.map_err(MediaServerError::Unreachable)
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
            url.query_pairs_mut().extend_pairs(query);
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

/// Encodes a text as a part of a path or of a header field.
pub(super) fn encode(text: &str) -> String {
    byte_serialize(text.as_bytes()).collect()
}

fn check_response(response: &Response<Bytes>) -> Result<(), MediaServerError> {
    match response.status().as_u16() {
        200..=299 if is_web_page(response) => {
            Err(MediaServerError::WrongUrl("the response is a web page".into()))
        }
        200..=299 => Ok(()),
        300..=399 => Err(MediaServerError::WrongUrl(redirect_message(response))),
        401 | 403 => Err(MediaServerError::Unauthorized),
        404 if is_web_page(response) => Err(MediaServerError::WrongUrl("the response is a web page".into())),
        404 => Err(MediaServerError::NotFound),
        405 => Err(MediaServerError::WrongUrl("no such endpoint".into())),
        status @ 400..=499 => Err(MediaServerError::Refused(status)),
        status => Err(MediaServerError::Unavailable(status)),
    }
}
