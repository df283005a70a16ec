//! Description of the API in the form that the console shows, built from the OpenAPI document.

use axum::http::Method;
use utoipa::openapi::path::{Operation, Parameter, ParameterIn};
use utoipa::openapi::schema::Schema;
use utoipa::openapi::{Components, OpenApi, RefOr, Required};

use super::openapi::path_operations;
use crate::web::auth::route_scopes::RouteScopes;

/// Routes of the API, resource by resource.
pub(in crate::web) struct ApiDescription {
    pub(in crate::web) groups: Vec<RouteGroup>,
}

/// Routes of a resource.
pub(in crate::web) struct RouteGroup {
    pub(in crate::web) name: String,
    pub(in crate::web) description: String,
    pub(in crate::web) routes: Vec<DescribedRoute>,
}

/// Route with its inputs.
pub(in crate::web) struct DescribedRoute {
    pub(in crate::web) method: String,
    pub(in crate::web) path: String,
    pub(in crate::web) summary: String,
    /// Scope that a key needs.
    pub(in crate::web) scope: &'static str,
    pub(in crate::web) inputs: Vec<RouteInput>,
}

/// Parameter of a route, or field of its body.
pub(in crate::web) struct RouteInput {
    pub(in crate::web) name: String,
    /// Part of the request that contains the input.
    pub(in crate::web) part: &'static str,
    pub(in crate::web) is_required: bool,
    pub(in crate::web) description: String,
}

impl ApiDescription {
    pub(super) fn from_document(mut document: OpenApi, scopes: &RouteScopes) -> Self {
        let tags = document.tags.take().unwrap_or_default();
        let components = document.components.take().unwrap_or_default();
        let mut routes: Vec<(Option<String>, DescribedRoute)> = Vec::new();
        for (path, item) in &mut document.paths.paths {
            for (method, operation) in path_operations(item) {
                let tag = operation.tags.iter().flatten().next().cloned();
                routes.push((
                    tag,
                    DescribedRoute::from_operation(&method, path, operation, scopes, &components),
                ));
            }
        }
        let groups = tags.into_iter().map(|tag| RouteGroup {
            routes: routes
                .extract_if(.., |(name, _)| name.as_deref() == Some(&tag.name))
                .map(|(_, route)| route)
                .collect(),
            description: tag.description.unwrap_or_default(),
            name: tag.name,
        });
        Self { groups: groups.collect() }
    }
}

impl DescribedRoute {
    fn from_operation(
        method: &Method,
        path: &str,
        operation: &Operation,
        scopes: &RouteScopes,
        components: &Components,
    ) -> Self {
        let parameters =
            operation.parameters.iter().flatten().filter_map(resolved).map(RouteInput::from_parameter);
        Self {
            method: method.to_string(),
            path: path.to_owned(),
            summary: operation.summary.clone().unwrap_or_default(),
            scope: scopes.find(method, path).map_or("none", |scope| scope.word()),
            inputs: parameters.chain(body_inputs(operation, components)).collect(),
        }
    }
}

impl RouteInput {
    fn from_parameter(parameter: &Parameter) -> Self {
        Self {
            name: parameter.name.clone(),
            part: match parameter.parameter_in {
                ParameterIn::Path => "path",
                ParameterIn::Query | ParameterIn::QueryString => "query",
                ParameterIn::Header => "header",
                ParameterIn::Cookie => "cookie",
            },
            is_required: matches!(parameter.required, Required::True),
            description: plain_text(parameter.description.as_deref()),
        }
    }
}

/// Returns the fields of the JSON object in the body.
fn body_inputs(operation: &Operation, components: &Components) -> Vec<RouteInput> {
    let Some(RefOr::T(body)) = &operation.request_body else { return Vec::new() };
    let contents = body.content.values().filter_map(resolved);
    let schemas = contents.filter_map(|content| resolve_schema(content.schema.as_ref()?, components));
    let fields = schemas.flat_map(|schema| match schema {
        Schema::Object(object) => object
            .properties
            .iter()
            .map(|(name, field)| RouteInput {
                name: name.clone(),
                part: "body",
                is_required: object.required.contains(name),
                description: plain_text(field_description(field)),
            })
            .collect(),
        _ => Vec::new(),
    });
    fields.collect()
}

fn resolved<T>(part: &RefOr<T>) -> Option<&T> {
    match part {
        RefOr::T(part) => Some(part),
        RefOr::Ref(_) => None,
    }
}

fn resolve_schema<'a>(schema: &'a RefOr<Schema>, components: &'a Components) -> Option<&'a Schema> {
    match schema {
        RefOr::T(schema) => Some(schema),
        RefOr::Ref(reference) => {
            let (_, name) = reference.ref_location.rsplit_once('/')?;
            components.schemas.get(name).and_then(resolved)
        }
    }
}

fn field_description(field: &RefOr<Schema>) -> Option<&str> {
    match field {
        RefOr::T(Schema::Object(object)) => object.description.as_deref(),
        RefOr::T(Schema::Array(array)) => array.description.as_deref(),
        RefOr::T(_) => None,
        RefOr::Ref(reference) => Some(reference.description.as_str()),
    }
}

/// Removes the marks of code and the line breaks of the source.
fn plain_text(description: Option<&str>) -> String {
    description.unwrap_or_default().replace('`', "").split_whitespace().collect::<Vec<_>>().join(" ")
}
