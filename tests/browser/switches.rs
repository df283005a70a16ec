//! Switches with which the browser's script breaks a connection of the program, and repairs it: `GET /radarr/broken` and
//! `GET /radarr/working`.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, bail};
use async_trait::async_trait;
use axum::Router;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::get;
use bytes::Bytes;
use dialarr::app::{App, AppBlueprint};
use dialarr::conversation::channel::Channel;
use dialarr::conversation::channel_list;
use dialarr::conversation::routing::verification::MessageFields;
use dialarr::doctor::phone::PublicAddress;
use dialarr::http::HttpClient;
use dialarr::messaging::{
    CarrierReceipt, ChannelPort, LookupError, OutboundMessage, SendError, WebhookContent, WebhookRefusal,
    WebhookRequest,
};
use dialarr::simulation::SimulatedPeers;
use futures_util::FutureExt;
use jiff::Timestamp;

use super::{ANN, bring};

/// Parts of the program's world that can be broken.
#[derive(Clone)]
pub(crate) struct Switches {
    pub(crate) peers: SimulatedPeers,
    pub(crate) database: PathBuf,
    pub(crate) model_is_down: Arc<AtomicBool>,
    carrier_is_down: Arc<AtomicBool>,
    address_is_down: Arc<AtomicBool>,
}

/// Carrier whose account can be suspended.
struct SwitchedCarrier {
    carrier: Arc<dyn ChannelPort>,
    is_down: Arc<AtomicBool>,
}

#[async_trait]
impl ChannelPort for SwitchedCarrier {
    fn channel(&self) -> Channel {
        self.carrier.channel()
    }

    fn claims_authenticity(&self, headers: &HeaderMap) -> bool {
        self.carrier.claims_authenticity(headers)
    }

    fn read_webhook(&self, request: &WebhookRequest<'_>) -> Result<WebhookContent, WebhookRefusal> {
        self.carrier.read_webhook(request)
    }

    async fn send(&self, message: &OutboundMessage) -> Result<CarrierReceipt, SendError> {
        self.carrier.send(message).await
    }

    async fn find_accepted(
        &self,
        message: &OutboundMessage,
        since: Timestamp,
    ) -> Result<Vec<CarrierReceipt>, LookupError> {
        self.carrier.find_accepted(message, since).await
    }

    async fn fetch_received(&self, sid: &str) -> Result<Option<MessageFields>, LookupError> {
        self.carrier.fetch_received(sid).await
    }

    fn last_outcome(&self) -> Option<Result<(), String>> {
        let problem = "use the Twilio account: Twilio refused the account's credentials";
        Some(if self.is_down.load(Ordering::Relaxed) { Err(problem.to_owned()) } else { Ok(()) })
    }
}

impl Switches {
    pub(crate) fn new(peers: &SimulatedPeers, database: PathBuf, model_is_down: Arc<AtomicBool>) -> Self {
        let (carrier_is_down, address_is_down) = (Arc::default(), Arc::default());
        Self { peers: peers.clone(), database, model_is_down, carrier_is_down, address_is_down }
    }

    /// Connects the program to the carrier and the public address that can be broken.
    pub(crate) fn apply(&self, blueprint: &mut AppBlueprint) {
        let is_down = self.carrier_is_down.clone();
        if let Some(carrier) = blueprint.channels.get(channel_list::TWILIO) {
            let switched = Arc::new(SwitchedCarrier { carrier, is_down });
            blueprint.channels = blueprint.channels.clone().with(switched);
        }
        let is_down = self.address_is_down.clone();
        let respond = move |_| {
            let is_down = is_down.load(Ordering::Relaxed);
            let mut response = http::Response::new(Bytes::new());
            *response.status_mut() = match is_down {
                true => StatusCode::BAD_GATEWAY,
                false => StatusCode::METHOD_NOT_ALLOWED,
            };
            async { response }.boxed()
        };
        let http = HttpClient::in_process(Arc::new(respond));
        blueprint.public_address = Some(PublicAddress { url: "https://sms.example.org".to_owned(), http });
    }

    pub(crate) fn router(self, app: Arc<App>) -> Router {
        Router::new().route("/{connection}/{state}", get(switch)).with_state((self, app))
    }

    /// Breaks or repairs a connection, and lets the program check all of them.
    async fn set(&self, connection: &str, is_down: bool, app: &App) -> Result<()> {
        match connection {
            "radarr" => self.peers.radarr.set_down(is_down),
            "sonarr" => self.peers.sonarr.set_down(is_down),
            "phone" => self.carrier_is_down.store(is_down, Ordering::Relaxed),
            "webhook" => self.address_is_down.store(is_down, Ordering::Relaxed),
            "database" => {
                let aside = self.database.with_extension("aside");
                let (from, to) = if is_down { (&self.database, &aside) } else { (&aside, &self.database) };
                fs::rename(from, to)?;
            }
            "model" => {
                self.model_is_down.store(is_down, Ordering::Relaxed);
                if is_down {
                    bring((ANN, "tell me a story"), app, &self.peers).await?;
                    app.engine.scheduler.wait_until_idle().await;
                }
            }
            _ => bail!("no connection is called {connection}"),
        }
        app.check_connections_once().await.context("failed to check the connections")
    }
}

async fn switch(
    State((switches, app)): State<(Switches, Arc<App>)>,
    Path((connection, state)): Path<(String, String)>,
) -> Result<(), (StatusCode, String)> {
    let outcome = switches.set(&connection, state == "broken", &app).await;
    outcome.map_err(|error| (StatusCode::INTERNAL_SERVER_ERROR, format!("{error:#}")))
}
