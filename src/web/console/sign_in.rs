//! Sign-in pages: by password and by link, and signing out.

use std::time::Duration;

use askama::Template;
use axum::Form;
use axum::extract::{Query, State};
use axum::http::header::{RETRY_AFTER, SET_COOKIE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{AppendHeaders, IntoResponse, Redirect, Response};
use secrecy::SecretString;
use serde::Deserialize;

use super::error_page::error_response;
use super::layout::render_page;
use super::setup_assistant::SETUP_PATH;
use crate::settings::setup_step::is_setup_unfinished;
use crate::store::database::db::DbError;
use crate::store::people::users;
use crate::web::auth::sign_in::{self, SignInOutcome};
use crate::web::auth::{Operator, SignedForm};
use crate::web::console_state::ConsoleState;

#[derive(Template)]
#[template(path = "sign_in.html")]
struct SignInPage {
    has_password: bool,
    next: String,
    problem: Option<String>,
}

#[derive(Template)]
#[template(path = "sign_in_link.html")]
struct SignInLinkPage {
    /// Token of the link. `None`: the link is not valid.
    token: Option<String>,
}

/// Page to open after the sign-in.
#[derive(Deserialize)]
pub(in crate::web) struct SignInQuery {
    next: Option<String>,
}

#[derive(Deserialize)]
pub(in crate::web) struct PasswordForm {
    password: String,
    next: Option<String>,
}

#[derive(Deserialize)]
pub(in crate::web) struct LinkForm {
    #[serde(default)]
    token: String,
}

#[derive(Deserialize)]
pub(in crate::web) struct SignOutForm {}

pub(in crate::web) async fn show_sign_in(
    State(console): State<ConsoleState>,
    operator: Result<Operator, Redirect>,
    Query(query): Query<SignInQuery>,
) -> Response {
    let next = local_path(query.next);
    match operator {
        Ok(_) => Redirect::to(&next).into_response(),
        Err(_) => {
            render_page(&SignInPage { has_password: console.access.has_password(), next, problem: None })
        }
    }
}

pub(in crate::web) async fn submit_password(
    State(console): State<ConsoleState>,
    headers: HeaderMap,
    Form(form): Form<PasswordForm>,
) -> Response {
    let next = local_path(form.next);
    let retry_page = |problem: String| {
        render_page(&SignInPage {
            has_password: console.access.has_password(),
            next: next.clone(),
            problem: Some(problem),
        })
    };
    match sign_in::sign_in_with_password(&console, &headers, SecretString::from(form.password)).await {
        Ok(SignInOutcome::SignedIn(cookie)) => {
            ([(SET_COOKIE, cookie)], Redirect::to(&landing_path(&console, next).await)).into_response()
        }
        Ok(SignInOutcome::Refused) => {
            (StatusCode::FORBIDDEN, retry_page("Wrong password.".to_owned())).into_response()
        }
        Ok(SignInOutcome::RetryAfter(wait)) => {
            let seconds = wait.as_secs().max(1);
            let problem = format!("Too many failed attempts. Try again in {}.", format_wait(wait));
            (StatusCode::TOO_MANY_REQUESTS, [(RETRY_AFTER, seconds.to_string())], retry_page(problem))
                .into_response()
        }
        Err(error) => error_response(error),
    }
}

pub(in crate::web) async fn show_link(
    State(console): State<ConsoleState>,
    Query(link): Query<LinkForm>,
) -> Response {
    match sign_in::is_link_valid(&console, &link.token).await {
        Ok(true) => render_page(&SignInLinkPage { token: Some(link.token) }),
        Ok(false) => invalid_link_response(),
        Err(error) => error_response(error),
    }
}

pub(in crate::web) async fn use_link(
    State(console): State<ConsoleState>,
    headers: HeaderMap,
    Form(link): Form<LinkForm>,
) -> Response {
    match sign_in::sign_in_with_link(&console, &headers, &link.token).await {
        Ok(SignInOutcome::SignedIn(cookie)) => {
            let path = landing_path(&console, "/".to_owned()).await;
            ([(SET_COOKIE, cookie)], Redirect::to(&path)).into_response()
        }
        Ok(SignInOutcome::Refused | SignInOutcome::RetryAfter(_)) => invalid_link_response(),
        Err(error) => error_response(error),
    }
}

pub(in crate::web) async fn sign_out(
    State(console): State<ConsoleState>,
    headers: HeaderMap,
    SignedForm(SignOutForm {}): SignedForm<SignOutForm>,
) -> Response {
    match sign_in::sign_out(&console, &headers).await {
        Ok(cookies) => {
            let cookies = AppendHeaders(cookies.map(|cookie| (SET_COOKIE, cookie)));
            (cookies, Redirect::to("/sign-in")).into_response()
        }
        Err(error) => error_response(error),
    }
}

/// Returns the page to open after a sign-in: the setup assistant instead of Home while the setup is unfinished.
async fn landing_path(console: &ConsoleState, next: String) -> String {
    let Some(settings) = console.settings.as_ref().filter(|_| next == "/") else { return next };
    let load = async || {
        let has_admin = console.db.read(users::has_admin).await?;
        Ok::<_, DbError>(is_setup_unfinished(&settings.load_sources().await?, has_admin))
    };
    match load().await {
        Ok(true) => SETUP_PATH.to_owned(),
        Ok(false) => next,
        Err(error) => {
            tracing::warn!(%error, "failed to check whether the setup is finished");
            next
        }
    }
}

fn invalid_link_response() -> Response {
    (StatusCode::GONE, render_page(&SignInLinkPage { token: None })).into_response()
}

/// Returns the path if it is local, or else `/`, against open redirects. Browsers treat `//host` and `/\host` as
/// another host, and ignore some whitespace in a URL.
fn local_path(next: Option<String>) -> String {
    let is_local = |next: &String| {
        next.starts_with('/')
            && !next.starts_with("//")
            && next.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\')
    };
    next.filter(is_local).unwrap_or_else(|| "/".to_owned())
}

fn format_wait(wait: Duration) -> String {
    match wait.as_secs() {
        0..=1 => "a second".to_owned(),
        seconds @ 2..=90 => format!("{seconds} seconds"),
        seconds => format!("{} minutes", seconds.div_ceil(60)),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{format_wait, local_path};

    #[track_caller]
    fn check(next: &str, expected: &str) {
        assert_eq!(local_path(Some(next.to_owned())), expected, "{next:?}");
    }

    #[test]
    fn only_local_paths_are_redirect_targets() {
        check("/conversations/5?after=3", "/conversations/5?after=3");
        check("https://evil.example/", "/");
        check("//evil.example/", "/");
        check("/\\evil.example/", "/");
        check("/\t/evil.example/", "/");
        check("/a\r\nSet-Cookie: dialarr=x", "/");
        check("conversations", "/");
        check("", "/");
        assert_eq!(local_path(None), "/");
    }

    #[test]
    fn wait_is_formatted_in_seconds_or_minutes() {
        let waits = [1, 30, 90, 91, 240].map(|seconds| format_wait(Duration::from_secs(seconds)));
        assert_eq!(waits, ["a second", "30 seconds", "90 seconds", "2 minutes", "4 minutes"]);
    }
}
