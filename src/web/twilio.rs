//! A text that Twilio brings: told to be Twilio's, read, stored, acknowledged. Nothing else is waited for.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::extract::{OriginalUri, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use tokio::time::timeout;

use super::client_shares::{ConnectionSlot, SlotOutcome};
use super::{Trust, Webhooks};
use crate::conversation::transcript::{Address, ChannelKind, Media, OptWord, Received, Via};
use crate::failpoint;
use crate::messaging::signature::{self, Claim, SETTINGS_HEADER, SIGNATURE_HEADER};

/// Twilio's own limit is 64 kB; a text has at most 1,600 characters.
const MAX_BODY_BYTES: usize = 64 << 10;
/// From the end of the header to that of the body. Twilio sends both at once, and only with the body is it known whether
/// it was Twilio.
const MAX_BODY_TIME: Duration = Duration::from_secs(3);
/// Twilio brings at most this many.
const MAX_MEDIA: usize = 10;
/// A valid TwiML document that says nothing. Any text in it would be sent to the person.
const EMPTY_TWIML: &str = r#"<?xml version="1.0" encoding="UTF-8"?><Response/>"#;

/// Why a request is not taken in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refusal {
    #[error("serve Twilio: no account is configured")]
    NoAccount,
    #[error("take a body over 64 KiB")]
    TooLarge,
    #[error("wait for a body for more than 3 s")]
    TooSlow,
    #[error("serve a client that holds as many connections as any other")]
    Displaced,
    #[error("trust a request without Twilio's signature")]
    Unsigned,
    #[error("read the form: {0}")]
    Unreadable(&'static str),
    #[error("store the text")]
    NotStored,
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let status = match self {
            Self::NoAccount | Self::NotStored | Self::Displaced => StatusCode::SERVICE_UNAVAILABLE,
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::TooSlow => StatusCode::REQUEST_TIMEOUT,
            Self::Unsigned => StatusCode::FORBIDDEN,
            Self::Unreadable(_) => StatusCode::BAD_REQUEST,
        };
        status.into_response()
    }
}

pub(super) async fn receive(State(webhooks): State<Webhooks>, request: Request) -> Result<Response, Refusal> {
    let outcome = admit(&webhooks, request).await;
    if let Err(refusal) = &outcome {
        tracing::warn!(%refusal, "webhook refused");
    }
    outcome.map(|()| ([(header::CONTENT_TYPE, "text/xml; charset=utf-8")], EMPTY_TWIML).into_response())
}

async fn admit(webhooks: &Webhooks, request: Request) -> Result<(), Refusal> {
    let form = trusted_form(webhooks, request).await?;
    let received = read(&form, webhooks.clock.now())?;
    match webhooks.engine.admit(received).await {
        Ok(admission) => {
            failpoint::reached("admit.stored");
            tracing::info!(?admission, "text received");
            Ok(())
        }
        Err(error) => {
            tracing::error!(
                error = format!("{:#}", anyhow::Error::from(error)),
                "a text could not be stored"
            );
            Err(Refusal::NotStored)
        }
    }
}

/// The decoded form of a request that Twilio signed. The cheapest checks come first.
pub(super) async fn trusted_form(
    webhooks: &Webhooks,
    request: Request,
) -> Result<Vec<(String, String)>, Refusal> {
    let trust = webhooks.twilio.as_ref().ok_or(Refusal::NoAccount)?;
    let (parts, body) = request.into_parts();
    if declared_length(&parts.headers).is_some_and(|length| length > MAX_BODY_BYTES) {
        return Err(Refusal::TooLarge);
    }
    if !parts.headers.contains_key(SIGNATURE_HEADER) {
        return Err(Refusal::Unsigned);
    }
    let target = match parts.extensions.get::<OriginalUri>() {
        Some(OriginalUri(uri)) => uri.path_and_query().map(ToString::to_string),
        None => parts.uri.path_and_query().map(ToString::to_string),
    };
    let body = read_body(body).await?;
    let form: Vec<(String, String)> =
        serde_urlencoded::from_bytes(&body).map_err(|_| Refusal::Unreadable("not a form"))?;
    verify(trust, &parts.headers, &target.unwrap_or_default(), &form)?;
    match parts.extensions.get::<Arc<ConnectionSlot>>().map(|slot| slot.prove_sender()) {
        None | Some(SlotOutcome::Granted) => Ok(form),
        Some(SlotOutcome::Refused) => Err(Refusal::Displaced),
    }
}

async fn read_body(body: Body) -> Result<Bytes, Refusal> {
    let body = timeout(MAX_BODY_TIME, to_bytes(body, MAX_BODY_BYTES)).await;
    body.map_err(|_| Refusal::TooSlow)?.map_err(|_| Refusal::TooLarge)
}

fn declared_length(headers: &HeaderMap) -> Option<usize> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

fn verify(
    trust: &Trust,
    headers: &HeaderMap,
    target: &str,
    form: &[(String, String)],
) -> Result<(), Refusal> {
    let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or_default());
    let claim = Claim {
        signature: text(SIGNATURE_HEADER).ok_or(Refusal::Unsigned)?,
        settings: text(SETTINGS_HEADER),
    };
    let url = signature::signed_url(&trust.public_url, target);
    trust.verifier.verify(&url, signature::Body::Form(form), claim).map_err(|_| Refusal::Unsigned)
}

pub(super) fn field<'a>(form: &'a [(String, String)], name: &str) -> Option<&'a str> {
    form.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
}

fn read(form: &[(String, String)], now: jiff::Timestamp) -> Result<Received, Refusal> {
    let required = |name, missing| {
        field(form, name).filter(|value| !value.is_empty()).ok_or(Refusal::Unreadable(missing))
    };
    let external_id = required("MessageSid", "no MessageSid")?;
    let from = Address::new(required("From", "no From")?);
    let from = from.phone().map_err(|_| Refusal::Unreadable("From is no phone number"))?;
    let to = Address::new(required("To", "no To")?);
    // SQLite and C libraries around it end a text at a NUL.
    let body = field(form, "Body").unwrap_or_default().replace('\0', "\u{fffd}");
    // Twilio says what went wrong with the first URL only when it calls the second.
    let via = if field(form, "ErrorUrl").is_some() { Via::Fallback } else { Via::Webhook };
    Ok(Received {
        channel: ChannelKind::Twilio,
        external_id: external_id.to_owned(),
        from,
        to,
        body,
        media: media(form),
        via,
        carrier_word: carrier_word(form),
        provider_at: now,
        received_at: now,
    })
}

/// What Twilio took the text for, in any language: told by numbers with its Advanced Opt-Out
/// (<https://www.twilio.com/docs/messaging/tutorials/advanced-opt-out>).
fn carrier_word(form: &[(String, String)]) -> Option<OptWord> {
    match field(form, "OptOutType")? {
        "STOP" => Some(OptWord::Out),
        "START" => Some(OptWord::In),
        "HELP" => Some(OptWord::Help),
        _ => None,
    }
}

fn media(form: &[(String, String)]) -> Vec<Media> {
    (0..MAX_MEDIA)
        .map_while(|index| {
            let url = field(form, &format!("MediaUrl{index}"))?.to_owned();
            let content_type =
                field(form, &format!("MediaContentType{index}")).unwrap_or_default().to_owned();
            Some(Media { url, content_type })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use proptest::prelude::{Just, Strategy, any, prop_oneof, proptest};

    use super::*;

    fn fields() -> impl Strategy<Value = Vec<(String, String)>> {
        let names =
            ["MessageSid", "From", "To", "Body", "MediaUrl0", "MediaUrl1", "MediaUrl11", "ErrorUrl", "Other"];
        let value = prop_oneof![Just("+15550100101".to_owned()), any::<String>(), Just("a\0b".to_owned())];
        proptest::collection::vec((proptest::sample::select(names.to_vec()), value), 0..14)
            .prop_map(|form| form.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    }

    proptest! {
        #[test]
        fn any_form_is_a_text_exactly_if_it_says_who_texts_whom(form in fields()) {
            let said = |name| field(&form, name).filter(|value| !value.is_empty());
            let from = said("From").and_then(|from| Address::new(from).phone().ok());
            let whole = said("MessageSid").is_some() && said("To").is_some() && from.is_some();
            let text = read(&form, Timestamp::UNIX_EPOCH);
            assert_eq!(text.is_ok(), whole);
            if let Ok(text) = text {
                assert_eq!(Some(&text.from), from.as_ref());
                assert_eq!(Some(text.external_id.as_str()), said("MessageSid"));
                assert!(!text.body.contains('\0') && text.media.len() <= MAX_MEDIA);
            }
        }
    }
}
