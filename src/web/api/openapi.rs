//! OpenAPI document: the descriptions of the routes, and the parts that all routes share.

use axum::http::Method;
use utoipa::openapi::path::{Operation, PathItem};
use utoipa::openapi::security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{Components, ContentBuilder, OpenApi, Ref, RefOr, ResponseBuilder, ResponsesBuilder};
use utoipa::{OpenApi as _, ToSchema};

use crate::web::problem::ProblemDetails;
use crate::web::sse_events;

#[derive(utoipa::OpenApi)]
#[openapi(
    info(
        title = "Dialarr",
        description = "Send messages as the users of a household, and follow their processing. Each route requires \
            a key with the scope `read`, `write` (which includes `read`) or `admin` (which includes both); a session \
            of the console opens every route. Every change is recorded in the audit log under its key. Every error \
            response (400 and above) is a problem document as defined in RFC 9457.",
        license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0")
    ),
    tags(
        (name = "audit", description = "Recorded changes"),
        (name = "conversations", description = "Conversations and their messages"),
        (name = "requests", description = "Titles that users asked for, with their progress"),
        (name = "titles", description = "Titles of Sonarr and Radarr"),
        (name = "deliveries", description = "Messages to users, with their delivery status"),
        (name = "memory", description = "Earlier answers that are found again"),
        (name = "messages", description = "Messages in the name of a user"),
        (name = "settings", description = "Settings, without the values of secrets"),
        (name = "spend", description = "Usage and cost"),
        (name = "turns", description = "Processing of messages, up to the reply"),
        (name = "users", description = "Users"),
    )
)]
struct ApiDocument;

/// Names of the schemes for a key.
pub(super) const KEY_SCHEMES: [&str; 2] = ["key", "header"];
/// Name of the scheme for a session of the console.
pub(super) const SESSION_SCHEME: &str = "session";
const PROBLEM_CONTENT_TYPE: &str = "application/problem+json";

/// Responses of every route.
const COMMON_RESPONSES: [(&str, &str); 5] = [
    ("400", "The request is malformed"),
    ("401", "The request has neither a valid key nor a session"),
    (
        "403",
        "The scope of the key does not include the route, or the request was sent by a page of another site",
    ),
    ("421", "The host name is not listed in CONSOLE_HOSTS"),
    ("503", "The database is unavailable"),
];
/// Additional responses of routes that accept a body.
const BODY_RESPONSES: [(&str, &str); 3] = [
    ("413", "The body is over 64 KiB"),
    ("415", "The body is not application/json"),
    ("422", "The body is JSON but does not match the schema; the detail gives the reason"),
];

pub(super) fn base_document() -> OpenApi {
    ApiDocument::openapi()
}

/// Adds the parts that all routes share.
pub(super) fn complete_document(mut api: OpenApi) -> OpenApi {
    let components = api.components.get_or_insert_default();
    add_security_schemes(components);
    components.schemas.insert("Problem".to_owned(), <ProblemDetails as utoipa::PartialSchema>::schema());
    debug_assert_eq!(ProblemDetails::name(), "Problem");
    let events = sse_events::EventSchemas::openapi().components.unwrap_or_default();
    // An existing schema of a route is kept: both are generated from the same type.
    for (name, schema) in events.schemas {
        components.schemas.entry(name).or_insert(schema);
    }
    for item in api.paths.paths.values_mut() {
        for (_, operation) in path_operations(item) {
            complete_operation(operation);
            if operation.operation_id.as_deref() == Some("follow_conversation") {
                let description = operation.description.take().unwrap_or_default();
                operation.description = Some(format!("{description}\n\n{}", sse_events::events_table()));
            }
        }
    }
    api
}

fn add_security_schemes(components: &mut Components) {
    let bearer = HttpBuilder::new()
        .scheme(HttpAuthScheme::Bearer)
        .description(Some("A key created on the console page \"API keys\", as `Authorization: Bearer KEY`"))
        .build();
    let header = ApiKeyValue::with_description("X-Api-Key", "The same key in a separate header");
    let session = ApiKeyValue::with_description(
        "dialarr",
        "The session of a signed-in browser; `__Host-dialarr` with TLS",
    );
    let [key_name, header_name] = KEY_SCHEMES;
    for (name, scheme) in [
        (key_name, SecurityScheme::Http(bearer)),
        (header_name, SecurityScheme::ApiKey(ApiKey::Header(header))),
        (SESSION_SCHEME, SecurityScheme::ApiKey(ApiKey::Cookie(session))),
    ] {
        components.add_security_scheme(name, scheme);
    }
}

/// Returns the operations of a path with their methods.
pub(super) fn path_operations(item: &mut PathItem) -> impl Iterator<Item = (Method, &mut Operation)> {
    let PathItem { get, post, put, delete, patch, .. } = item;
    [
        (Method::GET, get),
        (Method::POST, post),
        (Method::PUT, put),
        (Method::DELETE, delete),
        (Method::PATCH, patch),
    ]
    .into_iter()
    .filter_map(|(method, operation)| Some((method, operation.as_mut()?)))
}

fn complete_operation(operation: &mut Operation) {
    let has_body = operation.request_body.is_some();
    let shared_responses = COMMON_RESPONSES.iter().chain(BODY_RESPONSES.iter().filter(|_| has_body));
    let mut responses = ResponsesBuilder::from(std::mem::take(&mut operation.responses)).build();
    for (status, description) in shared_responses {
        let response = ResponseBuilder::new().description(*description).build();
        responses.responses.entry((*status).to_owned()).or_insert(RefOr::T(response));
    }
    for (status, response) in &mut responses.responses {
        let RefOr::T(response) = response else { continue };
        // Requests for another host name get a plain-text response, on every route.
        if status.starts_with(['4', '5']) && status != "421" {
            let schema = Ref::from_schema_name("Problem");
            let content = ContentBuilder::new().schema(Some(schema)).build();
            response.content.insert(PROBLEM_CONTENT_TYPE.to_owned(), RefOr::T(content));
        }
    }
    operation.responses = responses;
}
