//! Simulated peers behind sockets, for tests in which the built program must reach them.

use std::collections::BTreeMap;

use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::routing::post;
use axum::{Json, Router};
use dialarr::arr::fake::radarr::FakeRadarr;
use dialarr::arr::fake::sonarr::FakeSonarr;
use dialarr::clock::Clock;
use dialarr::conversation::transcript::Address;
use dialarr::http::HttpClient;
use dialarr::messaging::telegram::Telegram;
use dialarr::messaging::telegram::fake::{FakeBot, FakeTelegram};
use dialarr::messaging::twilio::fake::{FakeAccount, FakeTwilio};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::cli::{Cli, Ended, Served};

pub(crate) const ACCOUNT: &str = "AC00000000000000000000000000000000";
pub(crate) const TOKEN: &str = "a-simulated-token";
pub(crate) const SECRET: &str = "a-long-random-word";
/// Token of the simulated bot.
pub(crate) const BOT_TOKEN: &str = "501:AAE-simulated_token";

/// Household with all services, fully configured.
pub(crate) struct ServedPeers {
    pub(crate) sonarr: FakeSonarr,
    pub(crate) radarr: FakeRadarr,
    pub(crate) twilio: FakeTwilio,
    pub(crate) cli: Cli,
    environment: BTreeMap<&'static str, String>,
}

impl ServedPeers {
    pub(crate) async fn open() -> Self {
        let clock = Clock::System;
        let (radarr, sonarr) = (FakeRadarr::with_clock(clock.clone()), FakeSonarr::with_clock(clock.clone()));
        let account = FakeAccount {
            account_sid: ACCOUNT.to_owned(),
            auth_token: TOKEN.to_owned().into(),
            number: Address::new("+15550100000"),
            public_url: "https://sms.example.org".to_owned(),
        };
        let twilio = FakeTwilio::new(account, clock);
        let urls = [serve(radarr.router()).await, serve(sonarr.router()).await, serve(twilio.router()).await];
        let [radarr_url, sonarr_url, twilio_url] = urls;
        let environment = [
            ("PUBLIC_URL", "https://sms.example.org".to_owned()),
            ("ADMIN_PHONE", "+15550100002".to_owned()),
            ("TWILIO_ACCOUNT_SID", ACCOUNT.to_owned()),
            ("TWILIO_AUTH_TOKEN", TOKEN.to_owned()),
            ("TWILIO_PHONE_NUMBER", "+15550100000".to_owned()),
            ("TWILIO_API_URL", twilio_url),
            ("SONARR_URL", sonarr_url),
            ("SONARR_API_KEY", sonarr.api_key().to_owned()),
            ("RADARR_URL", radarr_url),
            ("RADARR_API_KEY", radarr.api_key().to_owned()),
            ("NOTIFICATION_URL", "http://dialarr:3000".to_owned()),
            ("NOTIFICATION_SECRET", SECRET.to_owned()),
        ];
        Self { sonarr, radarr, twilio, cli: Cli::new(), environment: environment.into() }
    }

    /// Sets a variable of the configuration; an empty value counts as not set.
    pub(crate) fn set(&mut self, variable: &'static str, value: &str) {
        self.environment.insert(variable, value.to_owned());
    }

    pub(crate) fn get(&self, variable: &'static str) -> &str {
        &self.environment[variable]
    }

    /// Runs the program to its end, while the peers respond.
    pub(crate) fn run(&self, arguments: &[&str]) -> Ended {
        let environment: Vec<(&str, &str)> =
            self.environment.iter().map(|(name, value)| (*name, value.as_str())).collect();
        tokio::task::block_in_place(|| self.cli.run(arguments, &environment))
    }

    /// Starts `serve`, and returns once the program listens.
    pub(crate) fn program(&self) -> Served {
        let environment: Vec<(&str, &str)> =
            self.environment.iter().map(|(name, value)| (*name, value.as_str())).collect();
        tokio::task::block_in_place(|| self.cli.serve(&environment))
    }
}

/// Creates a simulated Bot API with one bot.
pub(crate) fn telegram() -> FakeTelegram {
    let bot = FakeBot { token: BOT_TOKEN.to_owned(), username: "films_bot".to_owned() };
    FakeTelegram::new(bot, Clock::System)
}

/// Sets the webhook of the bot as another program does.
pub(crate) async fn set_webhook_elsewhere(telegram: &FakeTelegram) {
    let account = telegram.client_account("http://telegram.invalid");
    let other = Telegram::new(account, HttpClient::in_process(telegram.in_process()));
    other.api().set_webhook("https://other.example/501:AAE-simulated_token").await.unwrap();
}

/// Response of a model's server to a request.
#[derive(Clone, Copy)]
pub(crate) enum Answers {
    WithTheCall,
    WithWords,
}

/// Builds a model's server that reads no more than `context` tokens of a request, and shows this only by its token
/// count.
pub(crate) fn model(answers: Answers, context: usize) -> Router {
    let answer = move |body: String| async move {
        let delta = match answers {
            Answers::WithTheCall => json!({ "tool_calls": [{ "index": 0, "id": "c1", "type": "function",
                "function": { "name": "check_status", "arguments": "{}" } }] }),
            Answers::WithWords => json!({ "content": "Nothing is downloading." }),
        };
        let read = (body.len() / 4).min(context);
        let chunk = json!({ "id": "r1",
            "choices": [{ "index": 0, "delta": delta, "finish_reason": "stop" }],
            "usage": { "prompt_tokens": read, "completion_tokens": 10, "total_tokens": read + 10 } });
        ([(CONTENT_TYPE, "text/event-stream")], format!("data: {chunk}\n\ndata: [DONE]\n\n"))
    };
    Router::new().route("/v1/chat/completions", post(answer))
}

/// Builds a model's server that refuses every key as Google does, with its error in a list.
pub(crate) fn model_that_refuses_the_key() -> Router {
    let error = json!({ "code": 400, "message": "API key not valid. Please pass a valid API key.",
        "status": "INVALID_ARGUMENT" });
    let answer =
        move || std::future::ready((StatusCode::BAD_REQUEST, Json(json!([{ "error": error.clone() }]))));
    Router::new().route("/v1/chat/completions", post(answer))
}

/// Builds an embeddings server that makes all texts similar by `alike`, from 0 to 1, except the first and second, third
/// and fourth and so on, which get the same vector.
pub(crate) fn embeddings(alike: f64) -> Router {
    let answer = move |Json(body): Json<Value>| async move {
        let texts = body["input"].as_array().cloned().unwrap_or_default();
        let data = texts.iter().enumerate().map(|(index, _)| {
            // One number that all texts share, and one for each pair.
            let mut vector = vec![0.0; 1 + texts.len().div_ceil(2)];
            vector[0] = alike.sqrt();
            vector[1 + index / 2] = (1.0 - alike).sqrt();
            json!({ "object": "embedding", "index": index, "embedding": vector })
        });
        Json(json!({ "object": "list", "data": data.collect::<Vec<_>>(), "model": body["model"] }))
    };
    Router::new().route("/v1/embeddings", post(answer))
}

/// Builds a server that refuses requests without a signature, as Dialarr does.
pub(crate) fn signature_check() -> Router {
    Router::new().route("/webhook/twilio", post(|| async { StatusCode::FORBIDDEN }))
}

/// Serves on loopback for as long as the test runs, and returns the URL.
pub(crate) async fn serve(router: Router) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    url
}
