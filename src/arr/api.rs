//! Client for requests to Sonarr or Radarr: authentication, URL base, timeouts, and one retry of reads.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
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
use super::title_limit::{LimitedRecord, TitleLimit};
use super::{AdditionOutcome, ArrError, QualityProfile, response};
use crate::http::{HttpClient, HttpError, ResponseBounds, StreamedResponse};

const READ_TIMEOUT: Duration = Duration::from_secs(10);
/// Timeout of a catalog search, which queries a metadata server on the way.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(20);
const WRITE_TIMEOUT: Duration = Duration::from_secs(20);
/// Size limit of a list that is parsed as a whole, such as the catalog hits for a search term.
const MAX_BODY_BYTES: u64 = 32 << 20;
/// Size limit of a response with one record, of the response to a write, and of the memory for a streamed list.
const MAX_RECORD_RESPONSE_BYTES: u64 = 2 * MAX_RECORD_BYTES as u64;
const READ_BOUNDS: ResponseBounds = ResponseBounds::for_whole_response(READ_TIMEOUT, MAX_BODY_BYTES);
const RECORD_BOUNDS: ResponseBounds =
    ResponseBounds::for_whole_response(READ_TIMEOUT, MAX_RECORD_RESPONSE_BYTES);
const LOOKUP_BOUNDS: ResponseBounds = ResponseBounds::for_whole_response(LOOKUP_TIMEOUT, MAX_BODY_BYTES);
const WRITE_BOUNDS: ResponseBounds =
    ResponseBounds::for_whole_response(WRITE_TIMEOUT, MAX_RECORD_RESPONSE_BYTES);
/// Bounds of a list of the whole library. An instance assembles all titles before it sends the first one, so the
/// timeout is long. Only one record is in memory at any moment.
const LIST_BOUNDS: ResponseBounds = ResponseBounds {
    timeout: Duration::from_secs(60),
    bytes: 1 << 30,
    reserved_bytes: MAX_RECORD_RESPONSE_BYTES,
};
/// Bounds of a list whose records are all collected, such as the episodes of a series.
const COLLECT_BOUNDS: ResponseBounds =
    ResponseBounds { timeout: READ_TIMEOUT, bytes: 64 << 20, reserved_bytes: MAX_RECORD_RESPONSE_BYTES };
/// Bounds of a filtered list, which contains all records if the instance ignores the filter.
const FIND_BOUNDS: ResponseBounds = ResponseBounds { timeout: READ_TIMEOUT, ..LIST_BOUNDS };
/// Number of bytes of an error response to a list request after which reading stops.
const MAX_ERROR_BODY_BYTES: usize = 64 << 10;

/// Query parameters as names and values, not yet encoded.
pub(super) type QueryParameters<'a> = &'a [(&'a str, &'a str)];

/// Client for version 3 of the API of one instance.
#[derive(Debug, Clone)]
pub(super) struct ApiClient {
    base: Url,
    key: SecretString,
    http: HttpClient,
    /// Counter of possible changes in the instance, shared by clones.
    changes: Arc<AtomicU64>,
    /// Quality profiles that were fetched last, shared by clones. Empty before the first fetch.
    profiles: Arc<Mutex<Vec<QualityProfile>>>,
    /// Titles that the reader may see; `None` without a limit.
    limit: Option<Arc<TitleLimit>>,
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
        Self { base, key, http, changes: Arc::default(), profiles: Arc::default(), limit: None }
    }

    /// Returns the same client, which reads only the titles within a limit.
    pub(super) fn limited_to(&self, limit: Option<Arc<TitleLimit>>) -> Self {
        Self { limit, ..self.clone() }
    }

    pub(super) fn limit(&self) -> Option<&Arc<TitleLimit>> {
        self.limit.as_ref()
    }

    /// Returns what the reader may see of a record.
    fn limit_record<T: LimitedRecord>(&self, record: T) -> Option<T> {
        match &self.limit {
            Some(limit) => record.within_limit(limit),
            None => Some(record),
        }
    }

    /// Returns the identity of the server: scheme, host, port and URL base.
    pub(super) fn identity(&self) -> String {
        let base = &self.base;
        let (host, port) = (base.host_str().unwrap_or_default(), base.port_or_known_default().unwrap_or(0));
        format!("{}://{host}:{port}{}", base.scheme(), base.path().trim_end_matches('/'))
    }

    /// Returns the number of possible changes in the instance: each of our own writes counts, and so does each call of
    /// `record_change`.
    pub(super) fn change_count(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    pub(super) fn record_change(&self) {
        self.changes.fetch_add(1, Ordering::AcqRel);
    }

    pub(super) fn known_profiles(&self) -> Vec<QualityProfile> {
        self.profiles.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn remember_profiles(&self, profiles: &[QualityProfile]) {
        *self.profiles.lock().unwrap_or_else(PoisonError::into_inner) = profiles.to_vec();
    }

    pub(super) async fn get<T: DeserializeOwned + LimitedRecord>(
        &self,
        path: &str,
        query: QueryParameters<'_>,
    ) -> Result<T, ArrError> {
        let call = ApiCall { method: Method::GET, path, query, body: None, bounds: READ_BOUNDS };
        match self.read_bytes(&call).await {
            // These paths exist on every instance with this API.
            Err(ArrError::NotFound) => Err(ArrError::WrongUrl("no such endpoint".into())),
            result => self.limit_record(parse_json(&result?)?).ok_or(ArrError::NotFound),
        }
    }

    /// Reads a list of wire records and converts each into our own type.
    pub(super) async fn get_list<W, T>(
        &self,
        path: &str,
        query: QueryParameters<'_>,
    ) -> Result<Vec<T>, ArrError>
    where
        W: DeserializeOwned + LimitedRecord + Into<T>,
    {
        let call = ApiCall { method: Method::GET, path, query, body: None, bounds: COLLECT_BOUNDS };
        let mut records = Vec::new();
        self.visit_records(&call, |record: W| records.push(record.into())).await?;
        Ok(records)
    }

    /// Reads the list of the whole library and passes its records to `visit` one by one as they arrive.
    pub(super) async fn visit_library<W: DeserializeOwned + LimitedRecord>(
        &self,
        path: &str,
        query: QueryParameters<'_>,
        visit: impl FnMut(W),
    ) -> Result<(), ArrError> {
        self.visit_records(
            &ApiCall { method: Method::GET, path, query, body: None, bounds: LIST_BOUNDS },
            visit,
        )
        .await
    }

    /// Returns the first record that matches, from a list that may be the whole library if the instance ignores the
    /// query.
    pub(super) async fn find_in_list<W, T>(
        &self,
        path: &str,
        query: QueryParameters<'_>,
        matches: impl Fn(&T) -> bool,
    ) -> Result<Option<T>, ArrError>
    where
        W: DeserializeOwned + LimitedRecord + Into<T>,
    {
        let call = ApiCall { method: Method::GET, path, query, body: None, bounds: FIND_BOUNDS };
        let mut found = None;
        let visit = |record: W| {
            if found.is_none() {
                found = Some(record.into()).filter(&matches);
            }
        };
        self.visit_records(&call, visit).await?;
        Ok(found)
    }

    async fn visit_records<W: DeserializeOwned + LimitedRecord>(
        &self,
        call: &ApiCall<'_>,
        mut visit: impl FnMut(W),
    ) -> Result<(), ArrError> {
        let (first_chunk, mut response) = match retry_once(call, |bounds| self.open_call(call, bounds)).await
        {
            // These paths exist on every instance with this API.
            Err(ArrError::NotFound) => return Err(ArrError::WrongUrl("no such endpoint".into())),
            opened => opened?,
        };
        let mut visit = |record: W| self.limit_record(record).into_iter().for_each(&mut visit);
        let mut reader = JsonArrayReader::default();
        reader.push_bytes(&first_chunk, &mut visit).map_err(ArrError::Unreadable)?;
        while let Some(chunk) = response.next_chunk().await.map_err(ArrError::NoResponse)? {
            reader.push_bytes(&chunk, &mut visit).map_err(ArrError::Unreadable)?;
        }
        reader.finish_reading().map_err(ArrError::Unreadable)
    }

    /// Fetches one record by its id. Returns `None` if there is none.
    pub(super) async fn get_record<W, T>(&self, path: &str) -> Result<Option<T>, ArrError>
    where
        W: DeserializeOwned + LimitedRecord + Into<T>,
    {
        let call = ApiCall { method: Method::GET, path, query: &[], body: None, bounds: RECORD_BOUNDS };
        match self.read_bytes(&call).await {
            Err(ArrError::NotFound) => Ok(None),
            result => Ok(self.limit_record(parse_json::<W>(&result?)?).map(Into::into)),
        }
    }

    /// Fetches a file of at most `max_bytes`. Returns `None` if there is none.
    pub(super) async fn get_file(&self, path: &str, max_bytes: u64) -> Result<Option<Bytes>, ArrError> {
        if self.limit.is_some() {
            // A file has no rating.
            return Ok(None);
        }
        let bounds = ResponseBounds::for_whole_response(READ_TIMEOUT, max_bytes);
        let call = ApiCall { method: Method::GET, path, query: &[], body: None, bounds };
        match self.read_bytes(&call).await {
            Err(ArrError::NotFound) => Ok(None),
            result => result.map(Some),
        }
    }

    /// Fetches the catalog hits for `term`.
    pub(super) async fn get_lookup<W, T>(&self, path: &str, term: &str) -> Result<Vec<T>, ArrError>
    where
        W: DeserializeOwned + LimitedRecord + Into<T>,
    {
        let term = term.trim();
        if term.is_empty() {
            // For an empty term the instances return the same error as for a catalog that is down.
            return Ok(Vec::new());
        }
        self.get_slow_list::<W, T>(path, &[("term", term)]).await
    }

    /// Sends an addition once. The body of a successful response is ignored.
    pub(super) async fn post_addition(&self, path: &str, body: &Value) -> Result<AdditionOutcome, ArrError> {
        let call = ApiCall { method: Method::POST, path, query: &[], body: Some(body), bounds: WRITE_BOUNDS };
        match self.send_call(&call, call.bounds).await {
            Ok(_) => Ok(AdditionOutcome::Added),
            Err(ArrError::Refused(messages))
                if messages.iter().any(|message| message.contains("already been added")) =>
            {
                Ok(AdditionOutcome::AlreadyExists)
            }
            Err(error) => Err(error),
        }
    }

    /// Fetches a list that the instance has to request from other services.
    pub(super) async fn get_slow_list<W, T>(
        &self,
        path: &str,
        query: QueryParameters<'_>,
    ) -> Result<Vec<T>, ArrError>
    where
        W: DeserializeOwned + LimitedRecord + Into<T>,
    {
        let call = ApiCall { method: Method::GET, path, query, body: None, bounds: LOOKUP_BOUNDS };
        let records = parse_json::<Vec<W>>(&self.read_bytes(&call).await?)?.into_iter();
        Ok(records.filter_map(|record| self.limit_record(record)).map(Into::into).collect())
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
        retry_once(call, |bounds| self.send_call(call, bounds)).await
    }

    async fn send_call(&self, call: &ApiCall<'_>, bounds: ResponseBounds) -> Result<Bytes, ArrError> {
        let request = self.build_request(call)?;
        let is_write = call.method != Method::GET;
        if is_write {
            // The counter also grows before the request, because the caller may be dropped before it can count
            // afterwards.
            self.record_change();
        }
        let response = self.http.send_within(request, bounds).await;
        if is_write {
            self.record_change();
        }
        let response = response.map_err(transport_error)?;
        self.check_response(&response)?;
        Ok(response.into_body())
    }

    /// Opens a successful response. Returns the first chunk of its body and the response, from which the other chunks can
    /// be read.
    async fn open_call(
        &self,
        call: &ApiCall<'_>,
        bounds: ResponseBounds,
    ) -> Result<(Bytes, StreamedResponse), ArrError> {
        let mut stream =
            self.http.open_response(self.build_request(call)?, bounds).await.map_err(transport_error)?;
        let mut body = stream.next_chunk().await.map_err(transport_error)?.unwrap_or_default();
        if !stream.head.status.is_success() {
            let mut error_body = body.to_vec();
            while error_body.len() < MAX_ERROR_BODY_BYTES
                && let Some(chunk) = stream.next_chunk().await.map_err(transport_error)?
            {
                error_body.extend_from_slice(&chunk);
            }
            body = error_body.into();
        }
        let response = Response::from_parts(stream.head.clone(), body);
        self.check_response(&response)?;
        Ok((response.into_body(), stream))
    }

    fn check_response(&self, response: &Response<Bytes>) -> Result<(), ArrError> {
        response::check_response(response)
            .map_err(|error| response::redact_key(error, self.key.expose_secret()))
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

/// Sends a read, and repeats it once if the instance was unreachable or unavailable. Both attempts share the timeout.
async fn retry_once<R, F>(call: &ApiCall<'_>, attempt: impl Fn(ResponseBounds) -> F) -> Result<R, ArrError>
where
    F: Future<Output = Result<R, ArrError>>,
{
    let deadline = Instant::now() + call.bounds.timeout;
    let result = attempt(call.bounds).await;
    let remaining = deadline.saturating_duration_since(Instant::now());
    match result {
        Err(ArrError::Unreachable(_) | ArrError::Unavailable(_)) if !remaining.is_zero() => {
            attempt(ResponseBounds { timeout: remaining, ..call.bounds }).await
        }
        result => result,
    }
}

fn transport_error(error: HttpError) -> ArrError {
    match error {
        HttpError::NotSent(_) => ArrError::Unreachable(error),
        HttpError::TimedOut(_) | HttpError::Broken(_) => ArrError::NoResponse(error),
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

    /// Server that returns the given responses in order and records the requests.
    struct ScriptedServer {
        requests: Mutex<Vec<String>>,
        responses: Mutex<Vec<Response<Bytes>>>,
    }

    fn scripted_server(responses: &[(u16, &'static str)]) -> Arc<ScriptedServer> {
        let responses = responses
            .iter()
            .rev()
            .map(|&(status, body)| Response::builder().status(status).body(Bytes::from(body)).unwrap())
            .collect();
        Arc::new(ScriptedServer { requests: Mutex::default(), responses: Mutex::new(responses) })
    }

    impl ScriptedServer {
        fn client(self: &Arc<Self>, base: &str) -> ApiClient {
            let server = Arc::clone(self);
            let respond = move |request: Request<Bytes>| {
                let line = format!("{} {}", request.method(), request.uri());
                server.requests.lock().unwrap().push(line);
                let response = server.responses.lock().unwrap().pop();
                async move { response.expect("one request too many") }.boxed()
            };
            ApiClient::new(
                HttpClient::in_process(Arc::new(respond)),
                base.parse().unwrap(),
                SecretString::from("k3y"),
            )
        }

        fn requests(&self) -> Vec<String> {
            self.requests.lock().unwrap().clone()
        }
    }

    async fn check_url(base: &str, expected: &str) {
        let server = scripted_server(&[(200, "[]")]);
        let api = server.client(base);
        let profiles =
            api.get_list::<wire::ProfileResource, QualityProfile>("qualityprofile", &[("a b", "c&d")]);
        assert_eq!(profiles.await.unwrap(), []);
        assert_eq!(server.requests(), [expected]);
    }

    #[tokio::test]
    async fn url_base_is_kept_with_and_without_a_slash() {
        check_url("http://nas:8989", "GET http://nas:8989/api/v3/qualityprofile?a+b=c%26d").await;
        check_url("http://nas:8989/sonarr", "GET http://nas:8989/sonarr/api/v3/qualityprofile?a+b=c%26d")
            .await;
        check_url("http://nas/sonarr/?x=1#y", "GET http://nas/sonarr/api/v3/qualityprofile?a+b=c%26d").await;
    }

    #[tokio::test]
    async fn read_is_retried_once_during_startup() {
        let starting = (503, r#"{"errorMessage":"starting"}"#);
        let server = scripted_server(&[starting, (200, r#"[{"id":4,"name":"HD","items":[]}]"#)]);
        let profiles = server
            .client("http://nas")
            .get_list::<wire::ProfileResource, QualityProfile>("qualityprofile", &[])
            .await;
        assert_eq!(profiles.unwrap(), [QualityProfile { id: 4, name: "HD".into(), four_k: false }]);
    }

    #[tokio::test]
    async fn second_503_is_an_error() {
        let starting = (503, r#"{"errorMessage":"starting"}"#);
        let server = scripted_server(&[starting, starting]);
        let error = server.client("http://nas").get::<Value>("queue", &[]).await.unwrap_err();
        assert_eq!(error.to_string(), "complete the request: starting");
    }

    #[tokio::test]
    async fn write_is_never_retried() {
        let server = scripted_server(&[(503, "")]);
        let error = server.client("http://nas").post_addition("movie", &json!({})).await.unwrap_err();
        assert_eq!(error.to_string(), "complete the request: service unavailable");
        assert_eq!(server.requests(), ["POST http://nas/api/v3/movie"]);
    }

    #[tokio::test]
    async fn addition_refused_as_existing_is_a_success() {
        let server = scripted_server(&[(
            400,
            r#"[{"errorMessage":"Path is used"},{"errorMessage":"This movie has already been added"}]"#,
        )]);
        assert_eq!(
            server.client("http://nas").post_addition("movie", &json!({})).await.unwrap(),
            AdditionOutcome::AlreadyExists
        );
    }

    #[tokio::test]
    async fn missing_record_is_none_and_missing_endpoint_means_a_wrong_url() {
        let server = scripted_server(&[(404, ""), (404, "")]);
        let api = server.client("http://nas");
        assert_eq!(
            api.get_record::<wire::ProfileResource, QualityProfile>("qualityprofile/9").await.unwrap(),
            None
        );
        let error = api.get::<Value>("queue", &[]).await.unwrap_err();
        assert_eq!(error.to_string(), "find the API at this URL: no such endpoint");
    }

    #[tokio::test]
    async fn long_list_is_parsed_record_by_record() {
        let list = Value::from((0..5_000).map(|id| json!({ "id": id, "name": "HD" })).collect::<Vec<_>>());
        let server = scripted_server(&[(503, ""), (200, list.to_string().leak())]);
        let mut ids = Vec::new();
        let api = server.client("http://nas");
        let read = api.visit_library("qualityprofile", &[], |profile: wire::ProfileResource| {
            ids.push(QualityProfile::from(profile).id)
        });
        read.await.unwrap();
        assert_eq!(ids, (0..5_000).collect::<Vec<i64>>());
    }

    async fn check_list_error(status: u16, body: &'static str, expected: &str) {
        let server = scripted_server(&[(status, body)]);
        let read = server.client("http://nas").visit_library("queue", &[], |_: Value| {}).await;
        assert_eq!(read.map_err(|error| format!("{error:?}")), Err(expected.to_owned()));
    }

    #[tokio::test]
    async fn failed_list_request_is_classified_like_other_reads() {
        check_list_error(401, "", "Unauthorized").await;
        check_list_error(404, "", r#"WrongUrl("no such endpoint")"#).await;
        check_list_error(200, "\n<!doctype html>", r#"WrongUrl("the response is a web page")"#).await;
        let server_error = r#"Server { status: 500, message: "no such table" }"#;
        check_list_error(500, r#"{"message":"no such table"}"#, server_error).await;
        let truncated = r#"Unreadable(Error("unexpected end of the array", line: 0, column: 0))"#;
        check_list_error(200, r#"[{"id":1},{"id""#, truncated).await;
    }

    #[tokio::test]
    async fn every_write_counts_as_a_change_regardless_of_its_outcome() {
        let server = scripted_server(&[(200, "[]"), (500, ""), (200, "")]);
        let api = server.client("http://nas");
        let mut counts = vec![api.change_count()];
        api.get::<Value>("queue", &[]).await.unwrap();
        counts.push(api.change_count());
        api.post_addition("movie", &json!({})).await.unwrap_err();
        counts.push(api.change_count());
        api.clone().delete("movie/1", &[]).await.unwrap();
        counts.push(api.change_count());
        assert_eq!(counts, [0, 0, 2, 4]);
    }

    #[tokio::test]
    async fn empty_search_term_sends_no_request() {
        let server = scripted_server(&[]);
        let hits = server
            .client("http://nas")
            .get_lookup::<wire::ProfileResource, QualityProfile>("movie/lookup", "  ")
            .await;
        assert_eq!(hits.unwrap(), []);
    }

    #[tokio::test(start_paused = true)]
    async fn write_without_a_response_has_an_unknown_outcome() {
        let hanging = HttpClient::in_process(Arc::new(|_| std::future::pending().boxed()));
        let api = ApiClient::new(hanging, "http://nas".parse().unwrap(), SecretString::from("k3y"));
        let error = api.delete("movie/1", &[]).await.unwrap_err();
        assert!(error.outcome_unknown());
        assert!(matches!(error, ArrError::NoResponse(HttpError::TimedOut(WRITE_TIMEOUT))));
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
