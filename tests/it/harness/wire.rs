//! Requests to the webhook as carriers, proxies and unknown clients send them.

use std::convert::Infallible;

use axum::body::Body;
use bytes::Bytes;
use dialarr::messaging::twilio::fake::{FakeDelivery, SentMessage};
use dialarr::messaging::twilio::signature::{SIGNATURE_HEADER, sign_form};
use dialarr::simulation::ACCOUNT;
use dialarr::web;
use futures_util::StreamExt;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HOST};
use http::{HeaderValue, Method, Request, Response};
use secrecy::SecretString;
use tower::ServiceExt;

use super::{PUBLIC_URL, TestApp};

/// Response to Twilio: a document without any message.
pub(crate) const ACCEPTED: (u16, &str, &str) =
    (200, "text/xml; charset=utf-8", r#"<?xml version="1.0" encoding="UTF-8"?><Response/>"#);

/// Auth token with which simulated requests are signed.
pub(crate) const TOKEN: &str = "a-simulated-token";

/// Form to the webhook with the given fields, signed or unsigned.
pub(crate) struct Form {
    fields: Vec<(String, String)>,
    token: &'static str,
    signed_for: String,
}

const SID: &str = "SM00000000000000000000000000000001";

/// Fields of every message, as Ann sends it.
pub(crate) const TEXT: [(&str, &str); 11] = [
    ("AccountSid", ACCOUNT),
    ("ApiVersion", "2010-04-01"),
    ("Body", "hello"),
    ("From", super::ANN),
    ("MessageSid", SID),
    ("NumMedia", "0"),
    ("NumSegments", "1"),
    ("SmsMessageSid", SID),
    ("SmsSid", SID),
    ("SmsStatus", "received"),
    ("To", "+15550100000"),
];

impl Form {
    /// Builds a message from Ann.
    pub(crate) fn text() -> Self {
        Self::of(&TEXT)
    }

    pub(crate) fn of(fields: &[(&str, &str)]) -> Self {
        let fields = fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Self { fields, token: TOKEN, signed_for: format!("{PUBLIC_URL}/webhook/twilio") }
    }

    pub(crate) fn without(mut self, field: &str) -> Self {
        self.fields.retain(|(name, _)| name != field);
        self
    }

    pub(crate) fn set(mut self, field: &str, value: &str) -> Self {
        self = self.without(field);
        self.fields.push((field.to_owned(), value.to_owned()));
        self
    }

    /// Builds another message, by its number.
    pub(crate) fn number(self, number: u32) -> Self {
        let sid = format!("SM{number:032x}");
        ["MessageSid", "SmsMessageSid", "SmsSid"].iter().fold(self, |form, name| form.set(name, &sid))
    }

    pub(crate) fn signed_with(self, token: &'static str) -> Self {
        Self { token, ..self }
    }

    pub(crate) fn signed_for(self, url: &str) -> Self {
        Self { signed_for: url.to_owned(), ..self }
    }

    pub(crate) fn request(&self) -> Request<Bytes> {
        let body = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(&self.fields).finish();
        self.with_body(body)
    }

    /// Replaces the body with other bytes than the fields encode to, under the signature of the fields.
    pub(crate) fn with_body(&self, body: impl Into<Bytes>) -> Request<Bytes> {
        let token = SecretString::from(self.token.to_owned());
        Request::post("/webhook/twilio")
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .header(SIGNATURE_HEADER, sign_form(&token, &self.signed_for, &self.fields))
            .body(body.into())
            .unwrap()
    }
}

/// Returns the same request to another host name.
pub(crate) fn to_host(mut request: Request<Bytes>, host: &'static str) -> Request<Bytes> {
    request.headers_mut().insert(HOST, HeaderValue::from_static(host));
    request
}

/// Returns the same request behind a proxy that removes the first part of the path.
pub(crate) fn through_proxy(mut request: Request<Bytes>, prefix: &str) -> Request<Bytes> {
    let path = request.uri().path_and_query().unwrap().as_str().strip_prefix(prefix).unwrap();
    *request.uri_mut() = path.parse().unwrap();
    request
}

pub(crate) fn unsigned(mut request: Request<Bytes>) -> Request<Bytes> {
    request.headers_mut().remove(SIGNATURE_HEADER);
    request
}

/// Returns the status, content type and body of a response.
pub(crate) fn seen(response: &Response<Bytes>) -> (u16, &str, &str) {
    let content_type = response.headers().get(CONTENT_TYPE).map_or("", |value| value.to_str().unwrap());
    (response.status().as_u16(), content_type, std::str::from_utf8(response.body()).unwrap())
}

impl TestApp {
    pub(crate) async fn status_of(&self, request: Request<Bytes>) -> u16 {
        self.request(request).await.status().as_u16()
    }

    pub(crate) async fn visit(&self, method: Method, path: &str) -> u16 {
        let request = Request::builder().method(method).uri(path).body(Bytes::new()).unwrap();
        self.status_of(request).await
    }

    /// Delivers the carrier's report on the delivery status of a message.
    pub(crate) async fn report(&self, text: &SentMessage, delivery: FakeDelivery) -> u16 {
        self.status_of(self.twilio().status_callback(text, delivery).unwrap().unwrap()).await
    }

    /// Delivers a signed report on a message to Ann, with any id and address.
    pub(crate) async fn report_of(&self, sid: &str, status: &str, query: &str) -> u16 {
        let target = format!("/webhook/twilio/status?{query}");
        let fields = [
            ("AccountSid", ACCOUNT),
            ("ApiVersion", "2010-04-01"),
            ("From", "+15550100000"),
            ("MessageSid", sid),
            ("MessageStatus", status),
            ("SmsSid", sid),
            ("SmsStatus", status),
            ("To", super::ANN),
        ];
        let form = Form::of(&fields).signed_for(&format!("{PUBLIC_URL}{target}"));
        let mut request = form.request();
        *request.uri_mut() = target.parse().unwrap();
        self.status_of(request).await
    }

    /// Announces ten megabytes, and fails the test if the server requests any of them.
    pub(crate) async fn announce_ten_megabytes(&self) -> u16 {
        let body = Body::from_stream(futures_util::stream::once(async {
            panic!("a body of which the length says enough was read");
            #[expect(unreachable_code, reason = "names the type of the stream")]
            Ok::<Bytes, Infallible>(Bytes::new())
        }));
        let (mut head, _) = Form::text().request().into_parts();
        head.headers.insert(CONTENT_LENGTH, HeaderValue::from(10 << 20));
        self.raw(Request::from_parts(head, body)).await
    }

    /// Sends ten megabytes in pieces without announcing their number. Returns the number of pieces that were read.
    pub(crate) async fn pour_ten_megabytes(&self) -> (u16, usize) {
        let (taken, counter) = std::sync::mpsc::channel();
        let pieces = futures_util::stream::iter(0..10 << 10).map(move |_| {
            taken.send(()).unwrap();
            Ok::<_, Infallible>(Bytes::from_static(&[b'a'; 1 << 10]))
        });
        let (head, _) = Form::text().request().into_parts();
        let status = self.raw(Request::from_parts(head, Body::from_stream(pieces))).await;
        (status, counter.try_iter().count())
    }

    async fn raw(&self, request: Request<Body>) -> u16 {
        let Ok(response) = web::webhook_router(self.app().webhooks.clone()).oneshot(request).await;
        response.status().as_u16()
    }
}
