//! Client of an OpenAI-compatible embeddings server.

use std::fmt;
use std::time::Duration;

use async_openai::Client;
use async_openai::config::Config;
use async_trait::async_trait;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use secrecy::{ExposeSecret, SecretString};
use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};
use tokio::time::timeout;
use url::Url;

use super::{EmbedError, Embedder, vector_checks};
use crate::llm::ModelError;
use crate::llm::error_response::{self, AttemptError};
use crate::llm::openai::InvalidKey;
use crate::llm::transport::{self, ServerEndpoint};

/// Maximum number of texts per request. Some servers accept no more.
const MAX_BATCH_SIZE: usize = 64;
/// Maximum number of embedded characters per text. The rest adds little, and models have a length limit.
const MAX_INPUT_CHARS: usize = 8_000;
/// Time limit of a request. A user waits for the search, which uses only full text if the vectors are late.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// Client of one embeddings model on one server.
pub struct OpenAiEmbedder {
    client: Client<ServerEndpoint>,
    model: String,
    timeout: Duration,
}

impl OpenAiEmbedder {
    /// Creates a client that uses the connections of `http`.
    pub fn new(
        http: &reqwest::Client,
        base_url: &Url,
        key: Option<SecretString>,
        model: String,
    ) -> Result<Self, InvalidKey> {
        Ok(Self { client: transport::build_client(http, base_url, key)?, model, timeout: REQUEST_TIMEOUT })
    }

    /// Sends one request and returns the vectors as received, in the order of the texts.
    async fn request_vectors(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, EmbedError> {
        let body = json!({
            "model": self.model,
            "input": texts.iter().map(|text| truncate_input(text)).collect::<Vec<_>>(),
            "encoding_format": "float",
        });
        let request = async {
            let response = self.client.embeddings().create_byot::<_, EmbeddingsResponse>(body).await?;
            Ok::<_, AttemptError>(response.into_ordered_vectors(texts.len())?)
        };
        let error = match timeout(self.timeout, request).await {
            Ok(Ok(vectors)) => return Ok(vectors),
            Ok(Err(AttemptError::Rejected(response))) => response.into_error(),
            Ok(Err(AttemptError::Failed(error))) => error,
            Err(_) => ModelError::Timeout,
        };
        Err(error_response::redact_error(error, self.client.config().api_key().expose_secret()).into())
    }
}

#[async_trait]
impl Embedder for OpenAiEmbedder {
    fn model(&self) -> &str {
        &self.model
    }

    async fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, EmbedError> {
        vector_checks::check_not_blank(texts)?;
        let mut vectors = Vec::with_capacity(texts.len());
        for batch in texts.chunks(MAX_BATCH_SIZE) {
            vectors.extend(self.request_vectors(batch).await?);
        }
        vector_checks::normalize_vectors(vectors)
    }
}

impl fmt::Debug for OpenAiEmbedder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OpenAiEmbedder({} at {})", self.model, self.client.config().api_base())
    }
}

impl From<ModelError> for EmbedError {
    fn from(error: ModelError) -> Self {
        match error {
            ModelError::RateLimited { retry_after } => Self::RateLimited { retry_after },
            ModelError::Unavailable(message) => Self::Unavailable(message),
            ModelError::Timeout => Self::Timeout,
            ModelError::Malformed(message) => Self::Malformed(message),
            ModelError::ContextTooLong => Self::Rejected("a text is too long for the model".to_owned()),
            ModelError::Unauthorized(message) => Self::Unauthorized(message),
            ModelError::QuotaSpent(message) => Self::QuotaSpent(message),
            ModelError::Rejected(message) => Self::Rejected(message),
        }
    }
}

fn truncate_input(text: &str) -> &str {
    let end = text.char_indices().nth(MAX_INPUT_CHARS).map_or(text.len(), |(end, _)| end);
    &text[..end]
}

/// Response of a server, with only the fields that are used.
#[derive(Default, Deserialize)]
#[serde(default)]
struct EmbeddingsResponse {
    data: Option<Vec<EmbeddingEntry>>,
    /// Set when the response is an error.
    error: Value,
}

#[derive(Deserialize)]
struct EmbeddingEntry {
    index: Option<usize>,
    embedding: EmbeddingVector,
}

impl EmbeddingsResponse {
    fn into_ordered_vectors(self, count: usize) -> Result<Vec<Vec<f32>>, ModelError> {
        if let Some(error) = error_response::error_in_response(&self.error) {
            return Err(error);
        }
        let mut entries = self.data.unwrap_or_default();
        if entries.len() != count {
            let message = format!("the server returned {} vectors for {count} texts", entries.len());
            return Err(ModelError::Malformed(message));
        }
        // Entries without indexes are in the order of the texts.
        if entries.iter().any(|entry| entry.index.is_some()) {
            entries.sort_by_key(|entry| entry.index);
            if !entries.iter().map(|entry| entry.index).eq((0..count).map(Some)) {
                return Err(ModelError::Malformed(
                    "the indexes of the vectors do not match the texts".to_owned(),
                ));
            }
        }
        Ok(entries.into_iter().map(|entry| entry.embedding.0).collect())
    }
}

/// List of numbers, or their bytes in base64. Some servers send base64 although it was not requested.
struct EmbeddingVector(Vec<f32>);

impl<'de> Deserialize<'de> for EmbeddingVector {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // An untagged enum would buffer each number in 32 bytes until the variant is decided.
        deserializer.deserialize_any(EmbeddingVectorVisitor).map(Self)
    }
}

struct EmbeddingVectorVisitor;

impl<'de> Visitor<'de> for EmbeddingVectorVisitor {
    type Value = Vec<f32>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a vector")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut numbers = Vec::new();
        while let Some(number) = list.next_element()? {
            numbers.push(number);
        }
        Ok(numbers)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        let bytes = STANDARD.decode(text).map_err(|_| E::custom("not base64"))?;
        let (numbers, rest) = bytes.as_chunks();
        if !rest.is_empty() {
            return Err(E::custom("the length is not a multiple of 4 bytes"));
        }
        Ok(numbers.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect())
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;
    use crate::http::build_network_client;
    use crate::stub_server::{
        StubResponse, StubServer, empty_response, json_response, raw_response, with_retry_after,
    };

    fn embedder(base: &str) -> OpenAiEmbedder {
        let http = build_network_client().unwrap();
        let (base, key) = (Url::parse(base).unwrap(), Some("secret-key".into()));
        OpenAiEmbedder::new(&http, &base, key, "m".to_owned()).unwrap()
    }

    /// Starts a server that computes each response from the request body.
    async fn server(respond: impl Fn(&Value) -> StubResponse + Send + Sync + 'static) -> StubServer {
        StubServer::start("/embeddings", respond).await
    }

    fn requests(server: &StubServer) -> Vec<Value> {
        server.requests().into_iter().map(|request| request.body).collect()
    }

    fn texts<const N: usize>(texts: [&str; N]) -> Vec<String> {
        texts.map(str::to_owned).to_vec()
    }

    fn entry(index: usize, embedding: &Value) -> Value {
        json!({ "object": "embedding", "index": index, "embedding": embedding })
    }

    /// Checks the result of embedding two texts with this server response.
    async fn check(response: Value, expected: Result<Vec<Vec<f32>>, EmbedError>) {
        let server = server(move |_| json_response(200, &response)).await;
        assert_eq!(embedder(server.uri()).embed(&texts(["a", "b"])).await, expected);
    }

    async fn check_data(data: Value, expected: Result<Vec<Vec<f32>>, EmbedError>) {
        check(json!({ "object": "list", "data": data, "model": "m" }), expected).await;
    }

    fn malformed(reason: &str) -> Result<Vec<Vec<f32>>, EmbedError> {
        Err(EmbedError::Malformed(reason.to_owned()))
    }

    #[tokio::test]
    async fn request_has_the_embeddings_format() {
        let server = server(|_| {
            let data = [entry(0, &json!([0.0, 2.0])), entry(1, &json!([3, -4]))];
            json_response(200, &json!({ "data": data }))
        })
        .await;
        let vectors = embedder(server.uri()).embed(&texts(["find up", "se\u{f1}or"])).await;
        assert_eq!(vectors, Ok(vec![vec![0.0, 1.0], vec![0.6, -0.8]]));
        let requests = server.requests();
        assert_eq!(requests[0].headers["authorization"], "Bearer secret-key");
        assert_eq!(
            requests[0].body,
            json!({ "model": "m", "input": ["find up", "se\u{f1}or"], "encoding_format": "float" })
        );
    }

    #[tokio::test]
    async fn vectors_are_in_the_order_of_the_texts() {
        let (first, second) = (json!([1, 0]), json!([0, 1]));
        let expected = || Ok(vec![vec![1.0, 0.0], vec![0.0, 1.0]]);
        check_data(json!([entry(1, &second), entry(0, &first)]), expected()).await;
        check_data(json!([{ "embedding": first }, { "index": null, "embedding": second }]), expected()).await;
        let reason = "the indexes of the vectors do not match the texts";
        check_data(json!([entry(0, &first), entry(0, &second)]), malformed(reason)).await;
        check_data(json!([entry(1, &first), entry(2, &second)]), malformed(reason)).await;
        check_data(json!([{ "embedding": first }, entry(1, &second)]), malformed(reason)).await;
    }

    #[tokio::test]
    async fn vectors_in_base64_are_decoded() {
        let encoded = |numbers: [f32; 2]| json!(STANDARD.encode(numbers.map(f32::to_le_bytes).concat()));
        let data = json!([entry(0, &encoded([0.5, 0.0])), entry(1, &encoded([0.0, -3.0]))]);
        check_data(data, Ok(vec![vec![1.0, 0.0], vec![0.0, -1.0]])).await;
        for encoded in ["AAAA", "not base64"] {
            let data = json!([entry(0, &json!(encoded)), entry(1, &json!(encoded))]);
            check_data(data, malformed("the response has an unexpected structure")).await;
        }
    }

    #[tokio::test]
    async fn inconsistent_responses_are_malformed() {
        let valid = entry(0, &json!([1, 0]));
        check_data(json!([valid]), malformed("the server returned 1 vectors for 2 texts")).await;
        check_data(json!([valid, valid, valid]), malformed("the server returned 3 vectors for 2 texts"))
            .await;
        check_data(Value::Null, malformed("the server returned 0 vectors for 2 texts")).await;
        for vector in [json!([1, null]), json!(null), json!({ "0": 1 }), json!([[1, 0]])] {
            check_data(
                json!([valid, entry(1, &vector)]),
                malformed("the response has an unexpected structure"),
            )
            .await;
        }
        let with_second = |vector: Value| json!([valid, entry(1, &vector)]);
        check_data(with_second(json!([0, 0])), malformed("a vector is zero or not finite")).await;
        check_data(with_second(json!([1e300, 0])), malformed("a vector is zero or not finite")).await;
        check_data(with_second(json!([1, 0, 0])), malformed("the vectors have different lengths")).await;
        let long = json!([entry(0, &json!(vec![1; 4_097])), entry(1, &json!(vec![1; 4_097]))]);
        check_data(long, malformed("more than 4096 dimensions")).await;
        let error = json!({ "error": { "message": "the model is loading" }, "data": null });
        check(error, Err(EmbedError::Unavailable("the model is loading".to_owned()))).await;
    }

    #[tokio::test]
    async fn errors_are_classified_and_redacted_after_one_request() {
        let embed_error = async |status: u16, error: Value| {
            let response = with_retry_after(json_response(status, &json!({ "error": error })), 40);
            let server = server(move |_| response.clone()).await;
            let error = embedder(server.uri()).embed(&texts(["a"])).await.unwrap_err();
            assert_eq!(requests(&server).len(), 1);
            error
        };
        let reason = |text: &str| text.to_owned();
        for (status, error, expected) in [
            (401, json!("no secret-key here"), EmbedError::Unauthorized(reason("no (key) here"))),
            (404, json!("model \"m\" not found"), EmbedError::Rejected(reason("model \"m\" not found"))),
            (402, json!("no"), EmbedError::QuotaSpent(reason("no"))),
            (503, json!("secret-key?"), EmbedError::Unavailable(reason("(key)?"))),
            (429, json!("slow"), EmbedError::RateLimited { retry_after: Some(Duration::from_secs(40)) }),
            (
                400,
                json!("input is too long"),
                EmbedError::Rejected(reason("a text is too long for the model")),
            ),
        ] {
            assert_eq!(embed_error(status, error).await, expected, "{status}");
        }
    }

    #[tokio::test]
    async fn non_json_response_is_malformed() {
        let server = server(|_| raw_response(200, "text/html", "<html>Sign in</html>")).await;
        let outcome = embedder(server.uri()).embed(&texts(["a"])).await;
        assert_eq!(outcome, malformed("the response is not JSON"));
    }

    #[tokio::test]
    async fn texts_are_batched_and_truncated_between_characters() {
        let server = server(|body| {
            let count = body["input"].as_array().unwrap().len();
            let data: Vec<Value> = (0..count).map(|index| entry(index, &json!([1, index]))).collect();
            json_response(200, &json!({ "data": data }))
        })
        .await;
        let long_texts = vec!["\u{f1}".repeat(MAX_INPUT_CHARS + 1); MAX_BATCH_SIZE + 1];
        let vectors = embedder(server.uri()).embed(&long_texts).await.unwrap();
        assert_eq!((vectors.len(), &vectors[64]), (65, &vec![1.0, 0.0]));
        let requests = requests(&server);
        let sizes = requests.iter().map(|body| body["input"].as_array().unwrap().len());
        assert_eq!(sizes.collect::<Vec<_>>(), [64, 1]);
        assert_eq!(requests[1]["input"][0], "\u{f1}".repeat(MAX_INPUT_CHARS));
    }

    #[tokio::test]
    async fn empty_batch_and_blank_text_cause_no_request() {
        let server = server(|_| empty_response(500)).await;
        let embedder = embedder(server.uri());
        assert_eq!(embedder.embed(&[]).await, Ok(Vec::new()));
        let blank = EmbedError::Blank { text: 1 };
        assert_eq!(embedder.embed(&texts(["a", " \n"])).await, Err(blank));
        assert_eq!(requests(&server), Vec::<Value>::new());
    }

    #[tokio::test]
    async fn timeout_and_refused_connection_are_distinguished() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let mut embedder = embedder(&base);
        embedder.timeout = Duration::from_millis(100);
        assert_eq!(embedder.embed(&texts(["a"])).await, Err(EmbedError::Timeout));
        drop(listener);
        embedder.timeout = REQUEST_TIMEOUT;
        let error = EmbedError::Unavailable("no connection".to_owned());
        assert_eq!(embedder.embed(&texts(["a"])).await, Err(error));
    }

    #[test]
    fn debug_output_hides_the_key() {
        let debug_output = format!("{:?}", embedder("http://127.0.0.1:1/v1"));
        assert_eq!(debug_output, "OpenAiEmbedder(m at http://127.0.0.1:1/v1)");
    }
}
