//! Checks of services and settings, with hints for the operator, for `dialarr doctor` and the console. They change
//! nothing, but send a test message to each target of alerts.

mod alerts;
mod clock;
pub(crate) mod configuration;
pub mod connection_test;
mod discovery;
mod embeddings;
pub(crate) mod host;
mod library;
mod links;
mod media_server;
pub(crate) mod model;
mod operator;
mod own_phone;
pub mod phone;
mod quick_checks;
mod secrets;
pub(crate) mod service;
mod telegram;

use anyhow::Context;
use futures_util::future::join_all;

use crate::config::Config;
use crate::http::{HttpClient, build_network_client};
use crate::llm::embeddings::DEFAULT_SIMILARITY_FLOOR;
use crate::messaging::alert_sender::AlertSender;
use crate::outbound_clients::{
    build_discovery, build_embedder, build_media_servers, build_requests, build_smsgate, build_telegram,
};
use crate::setup::arr_instance::configured_instances;
use crate::setup::connect::WebhookTarget;
use library::WebhookCheck;
use media_server::MediaConnection;

/// Hint for webhooks that are missing or differ.
const INSTALL_WEBHOOKS: &str =
    "install the webhooks in the setup assistant of the console, or with dialarr setup --apply";

/// Outcome of one check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) grade: FindingGrade,
    pub(crate) summary: String,
    pub(crate) hint: Option<String>,
}

/// Grade of a finding; a worse one is greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum FindingGrade {
    Ok,
    Warning,
    Failure,
}

impl FindingGrade {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Failure => "failure",
        }
    }
}

impl Finding {
    pub(crate) fn ok(summary: impl Into<String>) -> Self {
        Self { grade: FindingGrade::Ok, summary: summary.into(), hint: None }
    }

    /// Creates a finding for a degraded part. `hint` is the recommended action.
    pub(crate) fn warning(summary: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { grade: FindingGrade::Warning, summary: summary.into(), hint: Some(hint.into()) }
    }

    /// Creates a finding for a part that does not work.
    pub(crate) fn failure(summary: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { grade: FindingGrade::Failure, summary: summary.into(), hint: Some(hint.into()) }
    }

    /// Combines the findings of one connection into a sentence: the worst of them, or everything that was found if all
    /// is in order. Returns `None` if there are no findings.
    pub(crate) fn combine(findings: Vec<Self>) -> Option<Self> {
        let worst = findings.iter().map(|finding| finding.grade).max()?;
        let mut findings = findings.into_iter();
        if worst != FindingGrade::Ok {
            return findings.find(|finding| finding.grade == worst);
        }
        let mut combined = findings.next()?;
        for Self { summary, .. } in findings {
            // Each summary starts with the name of the connection.
            let (_, text) = summary.split_once(": ").unwrap_or(("", &summary));
            combined.summary = format!("{}; {text}", combined.summary);
        }
        Some(combined)
    }
}

/// Policy for the long test request, which may cost money.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LongRequest {
    /// Sends the long request only if no API key is configured.
    WithoutKey,
    Always,
}

pub(crate) async fn run_checks(config: &Config, long_request: LongRequest) -> anyhow::Result<Vec<Finding>> {
    let network = build_network_client().context("set up the HTTP client; hint: install ca-certificates")?;
    let http = HttpClient::over_network(network.clone());
    let instances = configured_instances(&config.libraries, &http);
    let libraries = join_all(instances.iter().map(|instance| {
        library::check_instance(instance, WebhookCheck::Compare(WebhookTarget::from_config(config, instance)))
    }));
    let media_servers = build_media_servers(&config.media_servers, &http);
    let media_checks = join_all(media_server::connections(&media_servers).map(MediaConnection::check));
    let sources = build_discovery(&config.discovery, &http);
    let source_checks = join_all(sources.sources().iter().map(discovery::check_source));
    let requests = build_requests(&config.discovery, &http);
    let link_check = links::check_links(&config.database, &media_servers, requests.as_ref());
    let embedder = config.embeddings.as_ref().map(|model| build_embedder(model, &network)).transpose()?;
    let floor = config.embeddings.as_ref().map_or(DEFAULT_SIMILARITY_FLOOR, |embeddings| embeddings.floor);
    let alert_sender = AlertSender::new(config.alerts.clone(), http.clone());
    let (service, clock, libraries, media_servers, sources, links, phone, model, embeddings, alerts) = tokio::join!(
        service::check_service(config.listen),
        clock::check_clock(config, &http),
        libraries,
        media_checks,
        source_checks,
        link_check,
        check_phones(config, &http),
        model::check_model(config, &network, long_request),
        embeddings::check_embeddings(embedder.as_deref(), floor),
        alerts::check_targets(&alert_sender),
    );
    let mut findings = secrets::check_secrets_file(&config.secrets_file);
    findings.extend(host::check_host(&config.database));
    findings.extend(service);
    findings.extend(clock);
    if instances.is_empty() {
        findings.push(library::no_instance_finding());
    }
    findings.extend(libraries.into_iter().flatten());
    findings.extend(media_servers.into_iter().flatten());
    findings.extend(sources.into_iter().flatten());
    findings.extend(links);
    findings.extend(phone);
    findings.extend(model.findings);
    findings.extend(embeddings);
    findings.extend(alerts);
    Ok(findings)
}

/// Checks the ways by which people text: a Twilio account, a phone and a bot, as far as they are configured.
async fn check_phones(config: &Config, http: &HttpClient) -> Vec<Finding> {
    let own_phone = config.smsgate.as_ref().map(|phone| build_smsgate(phone, http));
    let account = async {
        let is_left_out = config.twilio.is_none() && (own_phone.is_some() || config.telegram.is_some());
        if is_left_out { Vec::new() } else { phone::check_phone(config, http).await }
    };
    let own = async {
        match &own_phone {
            Some(phone) => own_phone::check_own_phone(phone).await,
            None => Vec::new(),
        }
    };
    let bot = async {
        match &config.telegram {
            Some(bot) => telegram::check_bot(&bot.account, &build_telegram(bot, http)).await,
            None => Vec::new(),
        }
    };
    let (account, own, bot) = tokio::join!(account, own, bot);
    account.into_iter().chain(own).chain(bot).collect()
}

/// Formats a size for people.
pub(crate) fn format_size(bytes: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1_000_000_000_000, "TB"), (1_000_000_000, "GB"), (1_000_000, "MB")];
    match UNITS.into_iter().find(|(unit, _)| bytes >= *unit) {
        Some((unit, name)) => {
            let tenths = u128::from(bytes) * 10 / u128::from(unit);
            format!("{}.{} {name}", tenths / 10, tenths % 10)
        }
        None => "less than 1 MB".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::Finding;

    #[test]
    fn combined_finding_is_the_worst_or_lists_all_that_is_in_order() {
        let ok = ["Radarr: reachable, version 6", "Radarr: quality profiles: 2"].map(Finding::ok);
        let all = Finding::ok("Radarr: reachable, version 6; quality profiles: 2");
        assert_eq!(Finding::combine(ok.to_vec()), Some(all));
        let warning = Finding::warning("Radarr: old", "update it");
        let failure = Finding::failure("Radarr: no root folder", "add one");
        let mixed = [&ok[..], &[warning, failure.clone()]].concat();
        assert_eq!(Finding::combine(mixed), Some(failure));
        assert_eq!(Finding::combine(Vec::new()), None);
    }
}
