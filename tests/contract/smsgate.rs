//! Requests to a phone with SMS Gateway for Android against a third-party mock, which validates them by the app's
//! description. `DIALARR_SMSGATE_URL` is its address; without it nothing is checked.

use std::env;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use dialarr::conversation::transcript::{Address, OutboxId, PhoneNumber};
use dialarr::http::HttpClient;
use dialarr::messaging::smsgate::{GatewayCredentials, SmsGate, SmsGateAccount};
use dialarr::messaging::{ChannelPort, OutboundMessage, SendError};
use dialarr::store::queue::callbacks::CallbackToken;
use jiff::Timestamp;

/// Returns a client of the mock; `None` without a mock.
fn phone() -> Result<Option<SmsGate>> {
    let Ok(url) = env::var("DIALARR_SMSGATE_URL") else { return Ok(None) };
    let account = SmsGateAccount {
        url,
        credentials: GatewayCredentials::Password { user: "sms".to_owned(), password: "0123abcd".into() },
        number: PhoneNumber::parse("+15550100077").context("a number")?,
        sim: Some(1),
        signing_key: None,
    };
    Ok(Some(SmsGate::new(account, HttpClient::network().context("failed to set up the client")?)))
}

fn text() -> OutboundMessage {
    OutboundMessage {
        id: OutboxId(7),
        attempt: 1,
        to: Address::new("smsgate:+15550100001"),
        from: Address::new("smsgate:+15550100077"),
        body: "Added Dune (2021) & more.".to_owned(),
        media: Vec::new(),
        reacts_to: None,
        quotes: None,
        poll: None,
        buttons: Vec::new(),
        valid_for: Duration::from_secs(3600),
        callback_token: CallbackToken::from_stored("0123456789abcdef0123456789abcdef"),
    }
}

#[tokio::test]
async fn phone_mock_accepts_an_outbound_message() -> Result<()> {
    let Some(phone) = phone()? else { return Ok(()) };
    let accepted = phone.send(&text()).await?;
    ensure!(accepted.sid == text().callback_token.as_str(), "{accepted:?}");
    Ok(())
}

#[tokio::test]
async fn phone_mock_rejects_a_message_without_text() -> Result<()> {
    let Some(phone) = phone()? else { return Ok(()) };
    let refused = phone.send(&OutboundMessage { body: String::new(), ..text() }).await;
    ensure!(matches!(refused, Err(SendError::Permanent { .. })), "{refused:?}");
    Ok(())
}

#[tokio::test]
async fn phone_mock_answers_a_search_for_a_message() -> Result<()> {
    let Some(phone) = phone()? else { return Ok(()) };
    // The mock returns the examples of the description, which are another message.
    let found = phone.find_accepted(&text(), Timestamp::UNIX_EPOCH).await?;
    ensure!(found.is_empty(), "{found:?}");
    Ok(())
}

#[tokio::test]
async fn phone_mock_answers_the_questions_of_the_doctor() -> Result<()> {
    let Some(phone) = phone()? else { return Ok(()) };
    let state = phone.fetch_phone_state().await?;
    ensure!(!state.sims.is_empty(), "{state:?}");
    phone.set_first_in_first_out().await?;
    Ok(())
}
