//! OpenAPI document: the descriptions of the routes, and the parts that all routes share.

use utoipa::openapi::path::{Operation, PathItem};
use utoipa::openapi::security::{
    ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme,
};
use utoipa::openapi::{Components, ContentBuilder, OpenApi, Ref, RefOr, ResponseBuilder, ResponsesBuilder};
use utoipa::{OpenApi as _, ToSchema};

use crate::web::problem::ProblemDetails;
use crate::web::sse_events;

#[derive(utoipa::OpenApi)]
#[openapi(
    info(
        title = "Dialarr",
        description = "Send messages as the users of a household, and follow their processing. Every change is \
            recorded in the audit log under its key. Every error response (400 and above) is a problem \
            document as defined in RFC 9457.",
        license(name = "MIT", identifier = "MIT")
    ),
    tags(
        (name = "conversations", description = "Conversations and their messages"),
        (name = "messages", description = "Messages in the name of a user"),
        (name = "turns", description = "Processing of messages, up to the reply"),
        (name = "users", description = "Users"),
    )
)]
struct ApiDocument;

const PROBLEM_CONTENT_TYPE: &str = "application/problem+json";

/// Responses of every route.
const COMMON_RESPONSES: [(&str, &str); 5] = [
    ("400", "The request is malformed"),
    ("401", "The request has neither a valid key nor a session"),
    ("403", "The request was sent by a page of another site"),
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
        for operation in path_operations(item) {
            complete_operation(operation);
            if operation.operation_id.as_deref() == Some("follow_conversation") {
                let description = operation.description.take().unwrap_or_default();
                operation.description = Some(format!("{description}\n\n{}", sse_events::events_table()));
            }
        }
    }
    let schemes = ["key", "header", "session"];
    api.security =
        Some(schemes.into_iter().map(|name| SecurityRequirement::new(name, Vec::<String>::new())).collect());
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
    for (name, scheme) in [
        ("key", SecurityScheme::Http(bearer)),
        ("header", SecurityScheme::ApiKey(ApiKey::Header(header))),
        ("session", SecurityScheme::ApiKey(ApiKey::Cookie(session))),
    ] {
        components.add_security_scheme(name, scheme);
    }
}

fn path_operations(item: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    let PathItem { get, post, put, delete, patch, .. } = item;
    [get, post, put, delete, patch].into_iter().filter_map(Option::as_mut)
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
