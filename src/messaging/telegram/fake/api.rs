//! Requests to the simulated Bot API, and its answers.

use std::sync::Arc;

use axum::Router;
use bytes::Bytes;
use futures_util::FutureExt;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, Request, Response, StatusCode, Uri};
use serde_json::{Value, json};

use super::parameters::MethodParameters;
use super::server::{FakeTelegram, TelegramState};
use crate::http::InProcess;

/// Answer that reports a failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) code: u16,
    pub(super) description: String,
    pub(super) parameters: Option<Value>,
}

impl Refusal {
    pub(super) fn bad_request(reason: &str) -> Self {
        Self { code: 400, description: format!("Bad Request: {reason}"), parameters: None }
    }

    pub(super) fn forbidden(reason: &str) -> Self {
        Self { code: 403, description: format!("Forbidden: {reason}"), parameters: None }
    }

    pub(super) fn conflict(reason: &str) -> Self {
        Self { code: 409, description: format!("Conflict: {reason}"), parameters: None }
    }

    pub(super) fn unauthorized() -> Self {
        Self { code: 401, description: "Unauthorized".to_owned(), parameters: None }
    }

    pub(super) fn migrated(new_id: i64) -> Self {
        let parameters = json!({ "migrate_to_chat_id": new_id });
        let reason = "group chat was upgraded to a supergroup chat";
        Self { parameters: Some(parameters), ..Self::bad_request(reason) }
    }

    fn not_found() -> Self {
        Self { code: 404, description: "Not Found".to_owned(), parameters: None }
    }
}

impl FakeTelegram {
    /// Returns the Bot API as an in-process server, which needs no socket.
    pub fn in_process(&self) -> InProcess {
        let telegram = self.clone();
        Arc::new(move |request| {
            let telegram = telegram.clone();
            async move { telegram.handle_request(&request).await }.boxed()
        })
    }

    /// Returns the Bot API as a router, for use behind a socket.
    pub fn router(&self) -> Router {
        let telegram = self.clone();
        Router::new().fallback(move |method: Method, uri: Uri, body: Bytes| async move {
            let mut request = Request::new(body);
            (*request.method_mut(), *request.uri_mut()) = (method, uri);
            telegram.handle_request(&request).await.map(axum::body::Body::from)
        })
    }

    async fn handle_request(&self, request: &Request<Bytes>) -> Response<Bytes> {
        if self.lock_state().faults.is_asleep {
            return std::future::pending().await;
        }
        let outcome = match self.authorize(request) {
            Ok(method) => self.answer_method(method, request).await,
            Err(refusal) => Err(refusal),
        };
        into_response(outcome)
    }

    /// Returns the method in the path if the token before it is the one of the bot.
    fn authorize<'a>(&self, request: &'a Request<Bytes>) -> Result<&'a str, Refusal> {
        let path = request.uri().path().strip_prefix("/bot").ok_or_else(Refusal::not_found)?;
        let (token, method) = path.split_once('/').ok_or_else(Refusal::not_found)?;
        let mut state = self.lock_state();
        state.requests.push(method.to_owned());
        if token != self.bot.token || state.faults.is_revoked {
            return Err(Refusal::unauthorized());
        }
        Ok(method)
    }

    async fn answer_method(&self, method: &str, request: &Request<Bytes>) -> Result<Value, Refusal> {
        if !matches!(*request.method(), Method::GET | Method::POST) {
            return Err(Refusal::not_found());
        }
        let parameters = MethodParameters::from_request(request)?;
        if method == "getUpdates" {
            return self.get_updates(&parameters).await;
        }
        let is_send = matches!(method, "sendMessage" | "sendPhoto" | "sendPoll");
        let answer = self.change_state(|state| {
            if is_send && let Some(refusal) = state.faults.take_send_refusal() {
                return Some(Err(refusal));
            }
            let outcome = state.call_method(method, &parameters);
            let is_lost = is_send && outcome.is_ok() && state.faults.take_lost_answer();
            (!is_lost).then_some(outcome)
        });
        match answer {
            Some(outcome) => outcome,
            None => std::future::pending().await,
        }
    }
}

impl TelegramState {
    fn call_method(&mut self, method: &str, parameters: &MethodParameters) -> Result<Value, Refusal> {
        match method {
            "getMe" => Ok(self.bot_profile()),
            "getWebhookInfo" => Ok(self.webhook_info()),
            "setWebhook" => self.set_webhook(parameters),
            "deleteWebhook" => Ok(self.delete_webhook(parameters)),
            "sendMessage" => self.send_message(parameters),
            "sendPhoto" => self.send_photo(parameters),
            "sendPoll" => self.send_poll(parameters),
            "stopPoll" => self.stop_poll(parameters),
            "setMessageReaction" => self.set_message_reaction(parameters),
            "sendChatAction" => self.send_chat_action(parameters),
            "answerCallbackQuery" => self.answer_callback_query(parameters),
            "editMessageReplyMarkup" => self.edit_message_reply_markup(parameters),
            "getChatMember" => self.get_chat_member(parameters),
            _ => Err(Refusal::not_found()),
        }
    }

    fn bot_profile(&self) -> Value {
        let mut bot = self.bot_json();
        bot["can_join_groups"] = true.into();
        bot["can_read_all_group_messages"] = (!self.has_privacy_mode).into();
        bot["supports_inline_queries"] = false.into();
        bot["has_main_web_app"] = false.into();
        bot
    }
}

fn into_response(outcome: Result<Value, Refusal>) -> Response<Bytes> {
    let (status, body) = match outcome {
        Ok(result) => (200, json!({ "ok": true, "result": result })),
        Err(refusal) => {
            let code = refusal.code;
            let mut body = json!({ "ok": false, "error_code": code, "description": refusal.description });
            if let Some(parameters) = refusal.parameters {
                body["parameters"] = parameters;
            }
            (code, body)
        }
    };
    let mut response = Response::new(Bytes::from(body.to_string()));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
