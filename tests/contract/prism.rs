//! Requests to Twilio against a third-party mock, which validates them by Twilio's published description.
//! `DIALARR_PRISM_URL` is its address; without it nothing is checked.

use std::env;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use dialarr::conversation::transcript::{Address, OutboxId};
use dialarr::http::HttpClient;
use dialarr::messaging::twilio::{Twilio, TwilioAccount, TwilioCredentials, TwilioSender};
use dialarr::messaging::{ChannelPort, OutboundMessage, SendError};
use dialarr::store::queue::callbacks::CallbackToken;
use http::header::AUTHORIZATION;
use http::{Response, StatusCode};
use jiff::Timestamp;
use secrecy::SecretString;

/// Time limit for a list whose next page never ends.
const TEST_TIMEOUT: Duration = Duration::from_secs(60);

/// Returns a client of the mock; `None` without a mock.
fn twilio(http: HttpClient) -> Option<Twilio> {
    let api_url = env::var("DIALARR_PRISM_URL").ok()?;
    let account = TwilioAccount {
        api_url,
        account_sid: "AC0123456789abcdef0123456789abcdef".to_owned(),
        credentials: TwilioCredentials::AuthToken(SecretString::from("a-token".to_owned())),
        sender: TwilioSender::Number,
        public_url: "https://sms.example.org".to_owned(),
    };
    Some(Twilio::new(account, http))
}

fn network() -> Result<HttpClient> {
    HttpClient::network().context("failed to set up the client")
}

/// Builds a network client without credentials.
fn anonymous() -> Result<HttpClient> {
    let network = network()?;
    Ok(HttpClient::in_process(Arc::new(move |mut request| {
        request.headers_mut().remove(AUTHORIZATION);
        let network = network.clone();
        Box::pin(async move {
            let unreachable = |_| {
                let mut response = Response::default();
                *response.status_mut() = StatusCode::BAD_GATEWAY;
                response
            };
            network.send(request, TEST_TIMEOUT).await.unwrap_or_else(unreachable)
        })
    })))
}

fn text() -> OutboundMessage {
    OutboundMessage {
        id: OutboxId(7),
        attempt: 1,
        to: Address::new("+15550100001"),
        from: Address::new("+15550100000"),
        body: "Added Dune (2021) & more.".to_owned(),
        media: Vec::new(),
        reacts_to: None,
        quotes: None,
        poll: None,
        buttons: Vec::new(),
        valid_for: Duration::from_secs(3600),
        callback_token: CallbackToken::from_stored("0123"),
    }
}

#[tokio::test]
async fn prism_accepts_an_outbound_message() -> Result<()> {
    let Some(twilio) = twilio(network()?) else { return Ok(()) };
    let accepted = twilio.send(&text()).await?;
    ensure!(accepted.sid.starts_with("SM") && accepted.created_at.is_some(), "{accepted:?}");
    Ok(())
}

#[tokio::test]
async fn endless_prism_list_is_bounded() -> Result<()> {
    let Some(twilio) = twilio(network()?) else { return Ok(()) };
    let long_ago = Timestamp::UNIX_EPOCH;
    let sought = tokio::time::timeout(TEST_TIMEOUT, twilio.find_accepted(&text(), long_ago)).await;
    sought.context("failed to stop looking for a text")??;
    let number = Address::new("+15550100000");
    let received =
        tokio::time::timeout(TEST_TIMEOUT, twilio.fetch_received_since(&number, long_ago, Timestamp::now()))
            .await;
    received.context("failed to stop reading received texts")??;
    Ok(())
}

#[tokio::test]
async fn refusal_by_prism_needs_an_operator() -> Result<()> {
    let Some(twilio) = twilio(anonymous()?) else { return Ok(()) };
    let outcome = twilio.send(&text()).await;
    ensure!(matches!(outcome, Err(SendError::Misconfigured { .. })), "{outcome:?}");
    let found = twilio.find_accepted(&text(), Timestamp::UNIX_EPOCH).await;
    ensure!(found.as_ref().is_err_and(|error| error.to_string().contains("401")), "{found:?}");
    Ok(())
}
