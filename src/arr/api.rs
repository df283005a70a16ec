//! Client for single requests to Sonarr or Radarr: the key, the URL base, the timeouts, and a second attempt for reads
//! only.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderValue};
use http::{Method, Request, Response};
use secrecy::{ExposeSecret, SecretString};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::Instant;
use url::Url;

use super::json_array_stream::{JsonArrayReader, MAX_RECORD_BYTES};
use super::{AdditionOutcome, ArrError, response};
use crate::http::{HttpClient, HttpError, ResponseBounds, StreamedResponse};

const READ_TIMEOUT: Duration = Duration::from_secs(10);
/// Timeout of a catalog search, which queries a metadata server on the way.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(20);
const WRITE_TIMEOUT: Duration = Duration::from_secs(20);
/// Size limit above the longest list that is read as a whole, such as all releases for a title.
const MAX_BODY_BYTES: u64 = 32 << 20;
/// Size of one record plus the room to collect it. The same limit applies to the response to a write.
const MAX_ITEM_BYTES: u64 = 2 * MAX_RECORD_BYTES as u64;
const READ_BOUNDS: ResponseBounds = ResponseBounds::for_whole_response(READ_TIMEOUT, MAX_BODY_BYTES);
const ITEM_BOUNDS: ResponseBounds = ResponseBounds::for_whole_response(READ_TIMEOUT, MAX_ITEM_BYTES);
const LOOKUP_BOUNDS: ResponseBounds = ResponseBounds::for_whole_response(LOOKUP_TIMEOUT, MAX_BODY_BYTES);
const WRITE_BOUNDS: ResponseBounds = ResponseBounds::for_whole_response(WRITE_TIMEOUT, MAX_ITEM_BYTES);
/// Bounds of a list of everything: an instance assembles 20,000 movies before it sends the first of them. Only one
/// record is in memory at any moment.
const LIST_BOUNDS: ResponseBounds =
    ResponseBounds { timeout: Duration::from_secs(60), bytes: 1 << 30, reserved_bytes: MAX_ITEM_BYTES };
/// Bounds of a list such as the episodes of a series, of which a part of each record is stored.
const COLLECT_BOUNDS: ResponseBounds =
    ResponseBounds { timeout: READ_TIMEOUT, bytes: 64 << 20, reserved_bytes: MAX_ITEM_BYTES };
/// Bounds of a list of one record, or of all records if the instance ignores the query.
const FIND_BOUNDS: ResponseBounds = ResponseBounds { timeout: READ_TIMEOUT, ..LIST_BOUNDS };
/// Maximum number of bytes that are read of the error response to a list request.
const MAX_COMPLAINT_BYTES: usize = 64 << 10;

/// Query parameters as names and values, not yet encoded.
pub(super) type QueryParameters<'a> = &'a [(&'a str, &'a str)];

/// Version 3 of the API at one URL, with its API key.
#[derive(Debug, Clone)]
pub(super) struct ApiClient {
    base: Url,
    key: SecretString,
    http: HttpClient,
    /// Number of possible changes in the instance. Clones share the counter.
    changes: Arc<AtomicU64>,
}

struct ApiCall<'a> {
    method: Method,
    path: &'a str,
    query: QueryParameters<'a>,
    body: Option<&'a Value>,
    bounds: ResponseBounds,
}

impl ApiClient {
    pub(super) fn new(http: HttpClient, base: Url, key: SecretString) -> Self {
        Self { base, key, http, changes: Arc::default() }
    }

    /// Returns the number of possible changes in the instance: each of our own writes counts, and so does each call of
    /// `record_change`.
    pub(super) fn change_count(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    pub(super) fn record_change(&self) {
        self.changes.fetch_add(1, Ordering::AcqRel);
    }

    pub(super) async fn get<T: DeserializeOwned>(
        &self,
        path: &str,
        query: QueryParameters<'_>,
    ) -> Result<T, ArrError> {
        let call = ApiCall { method: Method::GET, path, query, body: None, bounds: READ_BOUNDS };
        match self.read_bytes(&call).await {
            // These paths exist on every instance with this API.
            Err(ArrError::NotFound) => Err(ArrError::WrongUrl("it knows no such API".into())),
            answer => parse_json(&answer?),
        }
    }

    /// Reads a list of wire records and converts each into our own type.
    pub(super) async fn get_list<W, T>(
        &self,
        path: &str,
        query: QueryParameters<'_>,
    ) -> Result<Vec<T>, ArrError>
    where
        W: DeserializeOwned + Into<T>,
    {
        let call = ApiCall { method: Method::GET, path, query, body: None, bounds: COLLECT_BOUNDS };
        let mut records = Vec::new();
        self.visit_once(&call, |record: W| records.push(record.into())).await?;
        Ok(records)
    }

    /// Reads a list of any length and passes its records to `visit` one by one as they arrive.
    pub(super) async fn visit_each<W: DeserializeOwned>(
        &self,
        path: &str,
        query: QueryParameters<'_>,
        visit: impl FnMut(W),
    ) -> Result<(), ArrError> {
        self.visit_once(&ApiCall { method: Method::GET, path, query, body: None, bounds: LIST_BOUNDS }, visit)
            .await
    }

    /// Returns the first record that matches, from a list that may be the whole library if the instance ignores the
    /// query.
    pub(super) async fn find_in_list<W, T>(
        &self,
        path: &str,
        query: QueryParameters<'_>,
        is_wanted: impl Fn(&T) -> bool,
    ) -> Result<Option<T>, ArrError>
    where
        W: DeserializeOwned + Into<T>,
    {
        let call = ApiCall { method: Method::GET, path, query, body: None, bounds: FIND_BOUNDS };
        let mut found = None;
        let visit = |record: W| {
            if found.is_none() {
                found = Some(record.into()).filter(&is_wanted);
            }
        };
        self.visit_once(&call, visit).await?;
        Ok(found)
    }

    async fn visit_once<W: DeserializeOwned>(
        &self,
        call: &ApiCall<'_>,
        mut visit: impl FnMut(W),
    ) -> Result<(), ArrError> {
        let (begin, mut answer) = match attempt_twice(call, |bounds| self.open_call(call, bounds)).await {
            // These paths exist on every instance with this API.
            Err(ArrError::NotFound) => return Err(ArrError::WrongUrl("it knows no such API".into())),
            opened => opened?,
        };
        let mut elements = JsonArrayReader::default();
        elements.push_bytes(&begin, &mut visit).map_err(ArrError::Unreadable)?;
        while let Some(piece) = answer.next_chunk().await.map_err(ArrError::NoAnswer)? {
            elements.push_bytes(&piece, &mut visit).map_err(ArrError::Unreadable)?;
        }
        elements.finish_reading().map_err(ArrError::Unreadable)
    }

    /// Fetches one record by its id. Returns `None` if there is none.
    pub(super) async fn get_item<W, T>(&self, path: &str) -> Result<Option<T>, ArrError>
    where
        W: DeserializeOwned + Into<T>,
    {
        let call = ApiCall { method: Method::GET, path, query: &[], body: None, bounds: ITEM_BOUNDS };
        match self.read_bytes(&call).await {
            Err(ArrError::NotFound) => Ok(None),
            answer => Ok(Some(parse_json::<W>(&answer?)?.into())),
        }
    }

    /// Fetches the catalog hits for `term`.
    pub(super) async fn get_lookup<W, T>(&self, path: &str, term: &str) -> Result<Vec<T>, ArrError>
    where
        W: DeserializeOwned + Into<T>,
    {
        let term = term.trim();
        if term.is_empty() {
            // For an empty term the instances return the same error as for a catalog that is down.
            return Ok(Vec::new());
        }
        self.slow_list::<W, T>(path, &[("term", term)]).await
    }

    /// Sends an addition once. The body of a successful response is ignored.
    pub(super) async fn post_addition(&self, path: &str, body: &Value) -> Result<AdditionOutcome, ArrError> {
        let call = ApiCall { method: Method::POST, path, query: &[], body: Some(body), bounds: WRITE_BOUNDS };
        match self.send_call(&call, call.bounds).await {
            Ok(_) => Ok(AdditionOutcome::Added),
            Err(ArrError::Refused(why)) if why.iter().any(|it| it.contains("already been added")) => {
                Ok(AdditionOutcome::AlreadyThere)
            }
            Err(error) => Err(error),
        }
    }

    /// Fetches a list that the instance has to request from other services.
    pub(super) async fn slow_list<W, T>(
        &self,
        path: &str,
        query: QueryParameters<'_>,
    ) -> Result<Vec<T>, ArrError>
    where
        W: DeserializeOwned + Into<T>,
    {
        let call = ApiCall { method: Method::GET, path, query, body: None, bounds: LOOKUP_BOUNDS };
        Ok(parse_json::<Vec<W>>(&self.read_bytes(&call).await?)?.into_iter().map(Into::into).collect())
    }

    /// Sends a deletion once. The body of a successful response is ignored.
    pub(super) async fn delete(&self, path: &str, query: QueryParameters<'_>) -> Result<(), ArrError> {
        let call = ApiCall { method: Method::DELETE, path, query, body: None, bounds: WRITE_BOUNDS };
        self.send_call(&call, call.bounds).await.map(drop)
    }

    /// Sends a write once. The body of a successful response is ignored.
    pub(super) async fn write_json(&self, method: Method, path: &str, body: &Value) -> Result<(), ArrError> {
        let call = ApiCall { method, path, query: &[], body: Some(body), bounds: WRITE_BOUNDS };
        self.send_call(&call, call.bounds).await.map(drop)
    }

    /// Sends a POST once, without a body. The body of a successful response is ignored.
    pub(super) async fn post(&self, path: &str) -> Result<(), ArrError> {
        let call = ApiCall { method: Method::POST, path, query: &[], body: None, bounds: WRITE_BOUNDS };
        self.send_call(&call, call.bounds).await.map(drop)
    }

    async fn read_bytes(&self, call: &ApiCall<'_>) -> Result<Bytes, ArrError> {
        attempt_twice(call, |bounds| self.send_call(call, bounds)).await
    }

    async fn send_call(&self, call: &ApiCall<'_>, bounds: ResponseBounds) -> Result<Bytes, ArrError> {
        let request = self.build_request(call)?;
        let writes = call.method != Method::GET;
        if writes {
            // The counter also grows before the request, because the caller may be dropped before it can count
            // afterwards.
            self.record_change();
        }
        let response = self.http.send_within(request, bounds).await;
        if writes {
            self.record_change();
        }
        let response = response.map_err(transport_error)?;
        response::check_response(&response)?;
        Ok(response.into_body())
    }

    /// Opens a successful response. Returns the first piece of its body, and the rest of the response.
    async fn open_call(
        &self,
        call: &ApiCall<'_>,
        bounds: ResponseBounds,
    ) -> Result<(Bytes, StreamedResponse), ArrError> {
        let mut answer =
            self.http.open_response(self.build_request(call)?, bounds).await.map_err(transport_error)?;
        let mut begin = answer.next_chunk().await.map_err(transport_error)?.unwrap_or_default();
        if !answer.head.status.is_success() {
            let mut complaint = begin.to_vec();
            while complaint.len() < MAX_COMPLAINT_BYTES
                && let Some(piece) = answer.next_chunk().await.map_err(transport_error)?
            {
                complaint.extend_from_slice(&piece);
            }
            begin = complaint.into();
        }
        let response = Response::from_parts(answer.head.clone(), begin);
        response::check_response(&response)?;
        Ok((response.into_body(), answer))
    }

    fn build_request(&self, call: &ApiCall<'_>) -> Result<Request<Bytes>, ArrError> {
        self.build_http_request(call).map_err(|error| ArrError::Unreachable(HttpError::NotSent(error.into())))
    }

    fn build_http_request(&self, call: &ApiCall<'_>) -> Result<Request<Bytes>, http::Error> {
        let mut url = self.base.clone();
        url.set_path(&format!("{}/api/v3/{}", self.base.path().trim_end_matches('/'), call.path));
        url.set_fragment(None);
        url.set_query(None);
        if !call.query.is_empty() {
            url.query_pairs_mut().extend_pairs(call.query);
        }
        let mut key = HeaderValue::from_str(self.key.expose_secret())?;
        key.set_sensitive(true);
        let request = Request::builder()
            .method(call.method.clone())
            .uri(url.as_str())
            .header(ACCEPT, "application/json")
            .header("X-Api-Key", key);
        match call.body {
            Some(body) => {
                request.header(CONTENT_TYPE, "application/json").body(Bytes::from(body.to_string()))
            }
            None => request.body(Bytes::new()),
        }
    }
}

/// Sends a read, and a second time if the first attempt certainly had no effect, within the timeout of one attempt.
async fn attempt_twice<R, F>(call: &ApiCall<'_>, attempt: impl Fn(ResponseBounds) -> F) -> Result<R, ArrError>
where
    F: Future<Output = Result<R, ArrError>>,
{
    let deadline = Instant::now() + call.bounds.timeout;
    let first = attempt(call.bounds).await;
    let left = deadline.saturating_duration_since(Instant::now());
    match first {
        Err(ArrError::Unreachable(_) | ArrError::Unavailable(_)) if !left.is_zero() => {
            attempt(ResponseBounds { timeout: left, ..call.bounds }).await
        }
        answer => answer,
    }
}

fn transport_error(error: HttpError) -> ArrError {
    match error {
        HttpError::NotSent(_) => ArrError::Unreachable(error),
        HttpError::TimedOut(_) | HttpError::Broken(_) => ArrError::NoAnswer(error),
    }
}

fn parse_json<T: DeserializeOwned>(body: &[u8]) -> Result<T, ArrError> {
    serde_json::from_slice(body).map_err(ArrError::Unreadable)
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use futures_util::FutureExt;
    use http::Response;
    use serde_json::json;

    use super::*;
    use crate::arr::{QualityProfile, wire};

    /// Peer that returns its responses in order and records the requests.
    struct Peer {
        asked: Mutex<Vec<String>>,
        answers: Mutex<Vec<Response<Bytes>>>,
    }

    fn peer(answers: &[(u16, &'static str)]) -> Arc<Peer> {
        let answers = answers
            .iter()
            .rev()
            .map(|&(status, body)| Response::builder().status(status).body(Bytes::from(body)).unwrap())
            .collect();
        Arc::new(Peer { asked: Mutex::default(), answers: Mutex::new(answers) })
    }

    impl Peer {
        fn at(self: &Arc<Self>, base: &str) -> ApiClient {
            let peer = Arc::clone(self);
            let answer = move |request: Request<Bytes>| {
                let asked = format!("{} {}", request.method(), request.uri());
                peer.asked.lock().unwrap().push(asked);
                let answer = peer.answers.lock().unwrap().pop();
                async move { answer.expect("one request too many") }.boxed()
            };
            ApiClient::new(
                HttpClient::in_process(Arc::new(answer)),
                base.parse().unwrap(),
                SecretString::from("k3y"),
            )
        }

        fn asked(&self) -> Vec<String> {
            self.asked.lock().unwrap().clone()
        }
    }

    async fn check(base: &str, expected: &str) {
        let peer = peer(&[(200, "[]")]);
        let api = peer.at(base);
        let profiles =
            api.get_list::<wire::ProfileResource, QualityProfile>("qualityprofile", &[("a b", "c&d")]);
        assert_eq!(profiles.await.unwrap(), []);
        assert_eq!(peer.asked(), [expected]);
    }

    #[tokio::test]
    async fn url_base_is_kept_with_and_without_a_slash() {
        check("http://nas:8989", "GET http://nas:8989/api/v3/qualityprofile?a+b=c%26d").await;
        check("http://nas:8989/sonarr", "GET http://nas:8989/sonarr/api/v3/qualityprofile?a+b=c%26d").await;
        check("http://nas/sonarr/?x=1#y", "GET http://nas/sonarr/api/v3/qualityprofile?a+b=c%26d").await;
    }

    #[tokio::test]
    async fn read_is_retried_once_during_startup() {
        let starting = (503, r#"{"errorMessage":"starting"}"#);
        let peer = peer(&[starting, (200, r#"[{"id":4,"name":"HD","items":[]}]"#)]);
        let profiles = peer
            .at("http://nas")
            .get_list::<wire::ProfileResource, QualityProfile>("qualityprofile", &[])
            .await;
        assert_eq!(profiles.unwrap(), [QualityProfile { id: 4, name: "HD".into(), four_k: false }]);
    }

    #[tokio::test]
    async fn second_503_is_an_error() {
        let starting = (503, r#"{"errorMessage":"starting"}"#);
        let peer = peer(&[starting, starting]);
        let error = peer.at("http://nas").get::<Value>("queue", &[]).await.unwrap_err();
        assert_eq!(error.to_string(), "use it: starting");
    }

    #[tokio::test]
    async fn write_is_never_retried() {
        let peer = peer(&[(503, "")]);
        let error = peer.at("http://nas").post_addition("movie", &json!({})).await.unwrap_err();
        assert_eq!(error.to_string(), "use it: service unavailable");
        assert_eq!(peer.asked(), ["POST http://nas/api/v3/movie"]);
    }

    #[tokio::test]
    async fn addition_refused_as_existing_is_a_success() {
        let peer = peer(&[(
            400,
            r#"[{"errorMessage":"Path is used"},{"errorMessage":"This movie has already been added"}]"#,
        )]);
        assert_eq!(
            peer.at("http://nas").post_addition("movie", &json!({})).await.unwrap(),
            AdditionOutcome::AlreadyThere
        );
    }

    #[tokio::test]
    async fn missing_entry_is_none_and_missing_list_means_a_wrong_url() {
        let peer = peer(&[(404, ""), (404, "")]);
        let api = peer.at("http://nas");
        assert_eq!(
            api.get_item::<wire::ProfileResource, QualityProfile>("qualityprofile/9").await.unwrap(),
            None
        );
        let error = api.get::<Value>("queue", &[]).await.unwrap_err();
        assert_eq!(error.to_string(), "find the API at this URL: it knows no such API");
    }

    #[tokio::test]
    async fn long_list_is_parsed_record_by_record() {
        let list = Value::from((0..5_000).map(|id| json!({ "id": id, "name": "HD" })).collect::<Vec<_>>());
        let peer = peer(&[(503, ""), (200, list.to_string().leak())]);
        let mut ids = Vec::new();
        let api = peer.at("http://nas");
        let read = api.visit_each("qualityprofile", &[], |it: wire::ProfileResource| {
            ids.push(QualityProfile::from(it).id)
        });
        read.await.unwrap();
        assert_eq!(ids, (0..5_000).collect::<Vec<i64>>());
    }

    async fn check_list(status: u16, body: &'static str, expected: &str) {
        let peer = peer(&[(status, body)]);
        let read = peer.at("http://nas").visit_each("queue", &[], |_: Value| {}).await;
        assert_eq!(read.map_err(|error| format!("{error:?}")), Err(expected.to_owned()));
    }

    #[tokio::test]
    async fn failed_list_is_classified_like_any_read() {
        check_list(401, "", "Unauthorized").await;
        check_list(404, "", r#"WrongUrl("it knows no such API")"#).await;
        check_list(200, "\n<!doctype html>", r#"WrongUrl("it answers with a web page")"#).await;
        let trouble = r#"Server { status: 500, message: "no such table" }"#;
        check_list(500, r#"{"message":"no such table"}"#, trouble).await;
        let half = r#"Unreadable(Error("the list ends in the middle", line: 0, column: 0))"#;
        check_list(200, r#"[{"id":1},{"id""#, half).await;
    }

    #[tokio::test]
    async fn every_write_counts_as_a_change_regardless_of_its_outcome() {
        let peer = peer(&[(200, "[]"), (500, ""), (200, "")]);
        let api = peer.at("http://nas");
        let mut counted = vec![api.change_count()];
        api.get::<Value>("queue", &[]).await.unwrap();
        counted.push(api.change_count());
        api.post_addition("movie", &json!({})).await.unwrap_err();
        counted.push(api.change_count());
        api.clone().delete("movie/1", &[]).await.unwrap();
        counted.push(api.change_count());
        assert_eq!(counted, [0, 0, 2, 4]);
    }

    #[tokio::test]
    async fn empty_search_term_sends_no_request() {
        let peer = peer(&[]);
        let found = peer
            .at("http://nas")
            .get_lookup::<wire::ProfileResource, QualityProfile>("movie/lookup", "  ")
            .await;
        assert_eq!(found.unwrap(), []);
    }

    #[tokio::test(start_paused = true)]
    async fn write_without_a_response_has_an_unknown_outcome() {
        let silent = HttpClient::in_process(Arc::new(|_| std::future::pending().boxed()));
        let api = ApiClient::new(silent, "http://nas".parse().unwrap(), SecretString::from("k3y"));
        let error = api.delete("movie/1", &[]).await.unwrap_err();
        assert!(error.outcome_unknown());
        assert!(matches!(error, ArrError::NoAnswer(HttpError::TimedOut(WRITE_TIMEOUT))));
    }

    #[tokio::test]
    async fn key_is_sent_only_in_its_header() {
        let headers = |request: Request<Bytes>| {
            let headers: Vec<String> =
                request.headers().iter().map(|(name, value)| format!("{name}: {value:?}")).collect();
            async move { Response::new(Bytes::from(json!(headers).to_string())) }.boxed()
        };
        let api = ApiClient::new(
            HttpClient::in_process(Arc::new(headers)),
            "http://nas".parse().unwrap(),
            SecretString::from("k3y"),
        );
        let headers: Vec<String> = api.get("queue", &[]).await.unwrap();
        assert_eq!(headers, [r#"accept: "application/json""#, "x-api-key: Sensitive"]);
    }
}
