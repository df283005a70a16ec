//! Simulated server of alerts, in the place of ntfy, Pushover or a webhook.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use dialarr::http::HttpClient;
use dialarr::messaging::alert_sender::AlertSender;
use dialarr::messaging::alert_targets::{AlertTargets, Ntfy};
use futures_util::FutureExt;
use http::{Request, Response};
use secrecy::SecretString;

use super::TestApp;

/// Server that records requests, and responds with the next of its statuses or with 200.
#[derive(Clone, Default)]
pub(crate) struct FakeAlertServer {
    pub(crate) statuses: Arc<Mutex<Vec<u16>>>,
    pub(crate) requests: Arc<Mutex<Vec<Request<Bytes>>>>,
}

impl FakeAlertServer {
    pub(crate) fn sender(&self, targets: AlertTargets) -> AlertSender {
        let server = self.clone();
        let respond = move |request| {
            server.requests.lock().unwrap().push(request);
            let status = server.statuses.lock().unwrap().pop().unwrap_or(200);
            async move { Response::builder().status(status).body(Bytes::new()).unwrap() }.boxed()
        };
        AlertSender::new(targets, HttpClient::in_process(Arc::new(respond)))
    }

    /// Returns the bodies of all requests, oldest first.
    pub(crate) fn bodies(&self) -> Vec<String> {
        let requests = self.requests.lock().unwrap();
        requests.iter().map(|request| String::from_utf8(request.body().to_vec()).unwrap()).collect()
    }
}

pub(crate) fn ntfy() -> AlertTargets {
    let (url, token) = ("https://ntfy.invalid/topic".parse().unwrap(), Some(SecretString::from("tk_1")));
    AlertTargets { ntfy: Some(Ntfy { url, token }), ..AlertTargets::default() }
}

impl TestApp {
    /// Sends the alerts that are due, as the program does every minute.
    pub(crate) async fn send_alerts(&self) {
        self.app().send_alerts_once().await.unwrap();
    }

    /// Checks the connections, as the program does every minute.
    pub(crate) async fn check_connections(&self) {
        self.app().check_connections_once().await.unwrap();
    }
}
