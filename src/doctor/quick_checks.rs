//! Checks of the connections that the running program repeats: quick ones every minute, others every hour. None calls a
//! model.

use std::time::Duration;

use futures_util::future::join_all;

use super::connection_test::{ConnectionKind, ConnectionTester};
use super::library::WebhookCheck;
use super::{
    Finding, FindingGrade, configuration, discovery, library, media_server, model, own_phone, phone, telegram,
};
use crate::messaging::ChannelPort;
use crate::setup::arr_instance::ConfiguredInstance;

/// Time limit of the quick check of one connection.
const QUICK_TIMEOUT: Duration = Duration::from_secs(15);
/// Time limit of a check with several requests.
const THOROUGH_TIMEOUT: Duration = Duration::from_secs(30);

fn library_kind(instance: &ConfiguredInstance) -> ConnectionKind {
    ConnectionKind::Library(instance.name, instance.label)
}

impl ConnectionTester {
    /// Checks Sonarr, Radarr, the carrier, the public address and the model, with at most one request each. Returns `None`
    /// for what is not configured.
    pub(crate) async fn check_quickly(&self) -> Vec<(ConnectionKind, Option<Finding>)> {
        let (parts, instances) = (self.parts(), self.parts().instances());
        let libraries = join_all(instances.iter().map(|instance| async {
            let outcome = tokio::time::timeout(QUICK_TIMEOUT, library::check_identity(instance)).await;
            let finding = outcome.unwrap_or_else(|_| no_response(instance.label));
            (library_kind(instance), Some(finding))
        }));
        let media_servers = media_server::connections(&parts.library.media_servers);
        let media_servers = join_all(media_servers.map(|server| async move {
            let outcome = tokio::time::timeout(QUICK_TIMEOUT, server.check_status()).await;
            let finding = outcome.unwrap_or_else(|_| no_response(server.kind().label()));
            (server.kind(), Some(finding))
        }));
        // TMDB is not asked every minute: each question shows whether it answers.
        let sources = parts.library.discovery.sources().iter().filter(|source| source.is_in_household());
        let sources = join_all(sources.map(|source| async move {
            let outcome = tokio::time::timeout(QUICK_TIMEOUT, discovery::check_access(source)).await;
            let finding = outcome.unwrap_or_else(|_| no_response(source.label()));
            (discovery::kind(source), Some(finding))
        }));
        let public_address = async {
            let address = parts.public_address.as_ref()?;
            Some(phone::check_public_address(address).await)
        };
        let (libraries, media_servers, sources, public_address, model) =
            tokio::join!(libraries, media_servers, sources, public_address, parts.models.check_server());
        let model = model.as_ref().map(model::last_request_finding);
        let carrier =
            parts.carrier.as_ref().map(|carrier| phone::last_request_finding(carrier.last_outcome()));
        let own_phone = parts.smsgate.as_ref();
        let own_phone = own_phone.map(|phone| own_phone::last_request_finding(phone.last_outcome()));
        let missing = [("sonarr", "Sonarr"), ("radarr", "Radarr")]
            .into_iter()
            .filter(|(name, _)| !instances.iter().any(|instance| instance.name.starts_with(name)));
        let missing = missing.map(|(name, label)| (ConnectionKind::Library(name, label), None));
        let others = [
            (ConnectionKind::Phone, carrier),
            (ConnectionKind::Webhook, public_address),
            (ConnectionKind::Model, model),
        ];
        let own_phone = own_phone.map(|finding| (ConnectionKind::OwnPhone, Some(finding)));
        let bot = parts.telegram.as_ref();
        let bot = bot.map(|bot| telegram::last_request_finding(bot.last_outcome()));
        let bot = bot.map(|finding| (ConnectionKind::Telegram, Some(finding)));
        libraries
            .into_iter()
            .chain(missing)
            .chain(media_servers)
            .chain(sources)
            .chain(others)
            .chain(own_phone)
            .chain(bot)
            .collect()
    }

    /// Finds the failures of Sonarr, Radarr, Twilio and Telegram that doctor reports, with several requests each.
    pub(crate) async fn find_failures(&self) -> Vec<(ConnectionKind, Finding)> {
        let (parts, instances) = (self.parts(), self.parts().instances());
        let libraries = join_all(instances.iter().map(|instance| async {
            let check = library::check_instance(instance, WebhookCheck::Skip);
            let findings = tokio::time::timeout(THOROUGH_TIMEOUT, check).await;
            // The quick check reports an instance that does not respond.
            (library_kind(instance), findings.unwrap_or_default())
        }));
        let account = async {
            let Some((twilio, client)) = parts.twilio_account() else { return Vec::new() };
            // The state of the last request reports a carrier that does not respond.
            let check = phone::check_account(twilio, client);
            tokio::time::timeout(THOROUGH_TIMEOUT, check).await.unwrap_or_default()
        };
        let bot = async {
            let Some((account, bot)) = parts.telegram_bot() else { return Vec::new() };
            let check = telegram::check_bot(account, bot);
            tokio::time::timeout(THOROUGH_TIMEOUT, check).await.unwrap_or_default()
        };
        let (libraries, account, bot) = tokio::join!(libraries, account, bot);
        let carriers = [(ConnectionKind::Phone, account), (ConnectionKind::Telegram, bot)];
        let findings = libraries.into_iter().chain(carriers);
        let first_failure = |(kind, findings): (ConnectionKind, Vec<Finding>)| {
            let failure = findings.into_iter().find(|finding| finding.grade == FindingGrade::Failure)?;
            Some((kind, failure))
        };
        findings.filter_map(first_failure).collect()
    }

    /// Returns what is missing from the configuration, and its failures. Makes no request.
    pub(crate) fn setup_findings(&self) -> Vec<Finding> {
        let parts = self.parts();
        let library = parts.instances().is_empty().then(library::no_instance_finding);
        let has_no_channel = parts.carrier.is_none() && parts.smsgate.is_none() && parts.telegram.is_none();
        let carrier = has_no_channel.then(phone::no_account_finding);
        let config = parts.config.iter().flat_map(|config| {
            configuration::unusable_secret_findings(config).chain(phone::private_address_finding(config))
        });
        library.into_iter().chain(carrier).chain(config).collect()
    }
}

fn no_response(label: &str) -> Finding {
    let seconds = QUICK_TIMEOUT.as_secs();
    Finding::failure(
        format!("{label}: no response within {seconds} s"),
        "check its URL, and that it is running",
    )
}
