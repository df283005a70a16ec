//! Description of the API: the routes' own descriptions, and rules that apply to all of them.

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
            recorded in the audit log under its key. Every response above 399 is a problem as in RFC 9457.",
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

const PROBLEM: &str = "application/problem+json";

/// Responses of every route.
const ALWAYS: [(&str, &str); 5] = [
    ("400", "The request cannot be read"),
    ("401", "Neither a valid key nor a session came with the request"),
    ("403", "The request was sent by a page that is not ours"),
    ("421", "The request is addressed to a name that CONSOLE_HOSTS does not have"),
    ("503", "The database does not answer"),
];
/// Additional responses of routes that accept a body.
const WITH_BODY: [(&str, &str); 3] = [
    ("413", "The body is over 64 KiB"),
    ("415", "The body is not application/json"),
    ("422", "The body is JSON, but not what is described; the detail says where"),
];

pub(super) fn base_document() -> OpenApi {
    ApiDocument::openapi()
}

/// Adds to the document the parts that its routes need not repeat.
pub(super) fn complete_document(mut api: OpenApi) -> OpenApi {
    let components = api.components.get_or_insert_default();
    add_security_schemes(components);
    components.schemas.insert("Problem".to_owned(), <ProblemDetails as utoipa::PartialSchema>::schema());
    debug_assert_eq!(ProblemDetails::name(), "Problem");
    let events = sse_events::EventSchemas::openapi().components.unwrap_or_default();
    // A schema of a route is not replaced: both are generated from the same type.
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
        .description(Some("A key from the console page API keys, as `Authorization: Bearer KEY`"))
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
    let with_body = operation.request_body.is_some();
    let shared = ALWAYS.iter().chain(WITH_BODY.iter().filter(|_| with_body));
    let mut responses = ResponsesBuilder::from(std::mem::take(&mut operation.responses)).build();
    for (status, description) in shared {
        let response = ResponseBuilder::new().description(*description).build();
        responses.responses.entry((*status).to_owned()).or_insert(RefOr::T(response));
    }
    for (status, response) in &mut responses.responses {
        let RefOr::T(response) = response else { continue };
        // Requests for another host name get a plain-text response, on every route.
        if status.starts_with(['4', '5']) && status != "421" {
            let schema = Ref::from_schema_name("Problem");
            let content = ContentBuilder::new().schema(Some(schema)).build();
            response.content.insert(PROBLEM.to_owned(), RefOr::T(content));
        }
    }
    operation.responses = responses;
}
