//! Imports of the demo: a movie or season that was added is imported shortly after, and the simulated Radarr or Sonarr
//! sends the event to the webhook.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::net::SocketAddr;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::Request;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use tokio::time::{Instant, sleep};

use crate::arr::fake::activity::download;
use crate::arr::fake::radarr::FakeRadarr;
use crate::arr::fake::sonarr::FakeSonarr;
use crate::http::HttpClient;
use crate::media_servers::fake::LibraryMirror;
use crate::simulation::SimulatedPeers;

/// Time from an addition to the start of its download, and to its import.
const DOWNLOAD_DELAY: Duration = Duration::from_secs(3);
const IMPORT_DELAY: Duration = Duration::from_secs(20);
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
const WEBHOOK_TIMEOUT: Duration = Duration::from_secs(10);

/// Simulated libraries that import what is added to them.
pub(super) struct DemoImports {
    radarr: FakeRadarr,
    sonarr: FakeSonarr,
    webhook: HttpClient,
    address: SocketAddr,
    secret: SecretString,
    /// Downloads by instance and name, such as `Dark S01`, with the time of their addition.
    wanted: HashMap<(&'static str, String), WantedDownload>,
    /// Media server that shows the imported files.
    mirror: Option<LibraryMirror>,
}

struct WantedDownload {
    added_at: Instant,
    stage: DownloadStage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DownloadStage {
    /// The download was there when the demo started.
    Earlier,
    Added,
    Downloading,
    Imported,
}

impl DemoImports {
    pub(super) fn new(
        peers: &SimulatedPeers,
        webhook: HttpClient,
        address: SocketAddr,
        secret: SecretString,
    ) -> Self {
        let (radarr, sonarr) = (peers.radarr.clone(), peers.sonarr.clone());
        let mut imports =
            Self { radarr, sonarr, webhook, address, secret, wanted: HashMap::new(), mirror: None };
        imports.find_wanted(DownloadStage::Earlier);
        imports
    }

    /// Lets a media server show the imported files.
    pub(super) fn shown_by(self, mirror: Option<LibraryMirror>) -> Self {
        Self { mirror, ..self }
    }

    /// Imports additions until the task is aborted.
    pub(super) async fn run(mut self) {
        loop {
            sleep(CHECK_INTERVAL).await;
            self.find_wanted(DownloadStage::Added);
            let events = self.advance();
            if let Some(mirror) = &mut self.mirror {
                mirror.scan();
            }
            for (instance, event) in events {
                if let Err(error) = self.send_event(instance, &event).await {
                    tracing::warn!(error = format!("{error:#}"), "failed to deliver an event of the demo");
                }
            }
        }
    }

    /// Registers titles and seasons that are newly missing, and drops those that are there.
    fn find_wanted(&mut self, stage: DownloadStage) {
        let movies = self.radarr.titles().into_iter();
        let movies = movies
            .filter(|movie| movie.monitored && movie.details.available && movie.size_bytes == 0)
            .map(|movie| ("radarr", movie.title));
        let series = self.sonarr.titles().into_iter().filter(|series| series.monitored);
        let seasons = series.flat_map(|series| {
            let on_disk = series.episodes_on_disk();
            let missing =
                series.monitored_episodes().into_iter().filter(|episode| !on_disk.contains(episode));
            let seasons: BTreeSet<u32> = missing.map(|(season, _)| season).collect();
            seasons.into_iter().map(move |season| ("sonarr", format!("{} S{season:02}", series.title)))
        });
        let missing: HashSet<(&'static str, String)> = movies.chain(seasons).collect();
        // A title that was deleted can be added again.
        self.wanted.retain(|key, _| missing.contains(key));
        let added_at = Instant::now();
        for key in missing {
            self.wanted.entry(key).or_insert(WantedDownload { added_at, stage });
        }
    }

    /// Starts downloads and finishes them when their time has come. Returns the events of the imports.
    fn advance(&mut self) -> Vec<(&'static str, Value)> {
        let mut events = Vec::new();
        for ((instance, title), wanted) in &mut self.wanted {
            let age = wanted.added_at.elapsed();
            match wanted.stage {
                DownloadStage::Added if age >= DOWNLOAD_DELAY => {
                    wanted.stage = DownloadStage::Downloading;
                    match *instance {
                        "radarr" => self.radarr.add_to_queue(download(title).percent(40).minutes_left(1)),
                        _ => self.sonarr.add_to_queue(download(title).percent(40).minutes_left(1)),
                    }
                }
                DownloadStage::Downloading if age >= IMPORT_DELAY => {
                    wanted.stage = DownloadStage::Imported;
                    events.push(match *instance {
                        "radarr" => {
                            self.radarr.finish_download(title);
                            (*instance, self.radarr.import_event_json(title))
                        }
                        _ => {
                            self.sonarr.finish_download(title);
                            (*instance, self.sonarr.import_event_json(title))
                        }
                    });
                }
                _ => {}
            }
        }
        events
    }

    async fn send_event(&self, instance: &str, event: &Value) -> anyhow::Result<()> {
        let credentials = STANDARD.encode(format!("dialarr:{}", self.secret.expose_secret()));
        let request = Request::post(format!("http://{}/webhook/{instance}", self.address))
            .header(CONTENT_TYPE, "application/json")
            .header(AUTHORIZATION, format!("Basic {credentials}"))
            .body(Bytes::from(event.to_string()))?;
        let response = self.webhook.send(request, WEBHOOK_TIMEOUT).await?;
        anyhow::ensure!(response.status().is_success(), "the webhook answered {}", response.status());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use http::Response;

    use super::*;
    use crate::arr::fake::media_fixtures::{movie, series};
    use crate::clock::Clock;

    #[tokio::test(start_paused = true)]
    async fn additions_are_imported_once_and_reported_to_the_webhook() {
        let (radarr, sonarr) = (FakeRadarr::new(), FakeSonarr::new());
        radarr.add(movie("Chef"));
        let peers = SimulatedPeers::new(Clock::System, radarr.clone(), sonarr.clone(), "http://127.0.0.1:1");
        let received: Arc<Mutex<Vec<(String, String)>>> = Arc::default();
        let events = received.clone();
        let webhook = HttpClient::in_process(Arc::new(move |request: Request<Bytes>| {
            let event: Value = serde_json::from_slice(request.body()).unwrap();
            let kind = event["eventType"].as_str().unwrap_or_default().to_owned();
            events.lock().unwrap().push((request.uri().path().to_owned(), kind));
            Box::pin(async { Response::new(Bytes::new()) })
        }));
        let address = "127.0.0.1:1".parse().unwrap();
        let task = tokio::spawn(DemoImports::new(&peers, webhook, address, "a-secret".into()).run());

        let tenet = radarr.add(movie("Tenet"));
        let dark = sonarr.add(series("Dark").seasons(1).episodes(8).missing(8));
        sleep(Duration::from_secs(60)).await;
        task.abort();

        assert!(radarr.title(tenet).unwrap().size_bytes > 0);
        assert_eq!(sonarr.title(dark).unwrap().episodes_on_disk().len(), 8);
        let mut received = received.lock().unwrap().clone();
        received.sort();
        let import = |path: &str| (path.to_owned(), "Download".to_owned());
        assert_eq!(received, [import("/webhook/radarr"), import("/webhook/sonarr")]);
        assert_eq!(radarr.titles()[0].size_bytes, 0, "the movie was missing before the demo started");
    }
}
