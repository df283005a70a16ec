//! Routes of the API, each with the scope that it requires of a key. The scope is also part of the description.

use utoipa::openapi::security::SecurityRequirement;
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouter};

use super::API_PREFIX;
use super::openapi::{KEY_SCHEMES, SESSION_SCHEME, path_operations};
use crate::web::auth::route_scopes::{RequiredScope, RouteScopes};
use crate::web::console_state::ConsoleState;

/// Described routes with their scopes.
#[derive(Default)]
pub(super) struct ScopedRoutes {
    router: OpenApiRouter<ConsoleState>,
    scopes: RouteScopes,
}

impl ScopedRoutes {
    /// Adds the routes of one path.
    pub(super) fn routes(
        mut self,
        scope: RequiredScope,
        (schemas, mut paths, methods): UtoipaMethodRouter<ConsoleState>,
    ) -> Self {
        for (path, item) in &mut paths.paths {
            for (method, operation) in path_operations(item) {
                operation.security = Some(security_requirements(scope));
                self.scopes.declare(method, format!("{API_PREFIX}{path}"), scope);
            }
        }
        self.router = self.router.routes((schemas, paths, methods));
        self
    }

    pub(super) fn into_parts(self) -> (OpenApiRouter<ConsoleState>, RouteScopes) {
        (self.router, self.scopes)
    }
}

/// Returns the alternatives for access to a route: a key with the scope in either header, or a session.
fn security_requirements(scope: RequiredScope) -> Vec<SecurityRequirement> {
    let keys = KEY_SCHEMES.map(|scheme| SecurityRequirement::new(scheme, [scope.word()]));
    let session = SecurityRequirement::new(SESSION_SCHEME, Vec::<String>::new());
    keys.into_iter().chain([session]).collect()
}
