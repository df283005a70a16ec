//! Scopes that the routes require of an API key. The request guard asks here about every request with a key, and a route
//! without a declared scope is refused for every key.

use std::collections::HashMap;

use axum::http::Method;

use crate::store::console_access::KeyScope;

/// Routes that keys from before scopes open. This list is complete: a later route needs a key with a scope.
const UNSCOPED_ROUTES: [&str; 19] = [
    "GET /api/v1/conversations",
    "GET /api/v1/conversations/{id}",
    "GET /api/v1/conversations/{id}/events",
    "POST /api/v1/conversations/{id}/reopen",
    "GET /api/v1/memory/context",
    "POST /api/v1/memory/process-pending",
    "POST /api/v1/memory/responses",
    "DELETE /api/v1/memory/responses/{id}",
    "GET /api/v1/memory/stats",
    "POST /api/v1/messages",
    "GET /api/v1/messages/{id}",
    "GET /api/v1/openapi.json",
    "POST /api/v1/turns/{id}/cancel",
    "POST /api/v1/turns/{id}/resume",
    "GET /api/v1/users",
    "POST /api/v1/users/{id}/approve",
    "POST /api/v1/users/{id}/block",
    "POST /api/v1/users/{id}/clear",
    "GET /metrics",
];

/// Scope that a route requires of an API key. Each includes the ones before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::web) enum RequiredScope {
    Read,
    Write,
    Admin,
}

impl RequiredScope {
    /// Returns the word for the scope in the API and in its description.
    pub(in crate::web) fn word(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Admin => "admin",
        }
    }
}

/// Declared scopes by the path of the route, with its braces.
#[derive(Debug, Clone, Default)]
pub(in crate::web) struct RouteScopes(HashMap<String, Vec<(Method, RequiredScope)>>);

/// Decision on a request with an API key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum KeyDecision {
    Admitted,
    /// The scope of the key does not include the required one.
    ScopeTooLow {
        held: RequiredScope,
        required: RequiredScope,
    },
    /// The key has no scope, and the route did not exist when such keys were created.
    NeedsScope,
    /// The path has routes, but none with this method. The value is the `Allow` header.
    MethodNotAllowed(String),
    /// The route declares no scope.
    Undeclared,
}

impl RouteScopes {
    pub(in crate::web) fn declare(&mut self, method: Method, path: String, scope: RequiredScope) {
        self.0.entry(path).or_default().push((method, scope));
    }

    /// Returns the declared scope of a route.
    pub(in crate::web) fn find(&self, method: &Method, path: &str) -> Option<RequiredScope> {
        let mut routes = self.0.get(path)?.iter();
        routes.find(|(declared, _)| declared == method).map(|(_, scope)| *scope)
    }

    /// Decides whether a key opens a route.
    pub(super) fn decide(&self, key: KeyScope, method: &Method, path: &str) -> KeyDecision {
        let Some(routes) = self.0.get(path) else { return KeyDecision::Undeclared };
        let method = if method == Method::HEAD { &Method::GET } else { method };
        let Some((_, required)) = routes.iter().find(|(declared, _)| declared == method) else {
            let methods: Vec<&str> = routes.iter().map(|(declared, _)| declared.as_str()).collect();
            return KeyDecision::MethodNotAllowed(methods.join(", "));
        };
        let held = match key {
            KeyScope::Unscoped if UNSCOPED_ROUTES.contains(&format!("{method} {path}").as_str()) => {
                return KeyDecision::Admitted;
            }
            KeyScope::Unscoped => return KeyDecision::NeedsScope,
            KeyScope::Read => RequiredScope::Read,
            KeyScope::Write => RequiredScope::Write,
            KeyScope::Admin => RequiredScope::Admin,
        };
        if held >= *required {
            KeyDecision::Admitted
        } else {
            KeyDecision::ScopeTooLow { held, required: *required }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decide(key: KeyScope, method: &Method, path: &str) -> KeyDecision {
        let mut scopes = RouteScopes::default();
        scopes.declare(Method::GET, "/metrics".to_owned(), RequiredScope::Read);
        scopes.declare(Method::GET, "/api/v1/settings".to_owned(), RequiredScope::Admin);
        scopes.declare(Method::PATCH, "/api/v1/settings".to_owned(), RequiredScope::Admin);
        scopes.decide(key, method, path)
    }

    #[test]
    fn route_without_a_declared_scope_admits_no_key() {
        for key in [KeyScope::Unscoped, KeyScope::Read, KeyScope::Write, KeyScope::Admin] {
            assert_eq!(decide(key, &Method::GET, "/api/v1/new"), KeyDecision::Undeclared);
        }
    }

    #[test]
    fn method_without_a_declared_scope_admits_no_key() {
        let allowed = KeyDecision::MethodNotAllowed("GET, PATCH".to_owned());
        assert_eq!(decide(KeyScope::Admin, &Method::POST, "/api/v1/settings"), allowed);
    }

    #[test]
    fn each_scope_includes_the_lower_ones_only() {
        assert_eq!(decide(KeyScope::Admin, &Method::HEAD, "/metrics"), KeyDecision::Admitted);
        assert_eq!(decide(KeyScope::Admin, &Method::PATCH, "/api/v1/settings"), KeyDecision::Admitted);
        assert_eq!(
            decide(KeyScope::Write, &Method::GET, "/api/v1/settings"),
            KeyDecision::ScopeTooLow { held: RequiredScope::Write, required: RequiredScope::Admin }
        );
    }

    #[test]
    fn key_without_a_scope_opens_only_earlier_routes() {
        assert_eq!(decide(KeyScope::Unscoped, &Method::GET, "/metrics"), KeyDecision::Admitted);
        assert_eq!(decide(KeyScope::Unscoped, &Method::GET, "/api/v1/settings"), KeyDecision::NeedsScope);
    }
}
