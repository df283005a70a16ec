//! Clients of Twilio, of the model servers, and of Sonarr and Radarr, built from the configuration.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Context;

use crate::arr::radarr::Radarr;
use crate::arr::sonarr::Sonarr;
use crate::config;
use crate::conversation::transcript::Address;
use crate::discovery::{Discovery, DiscoverySource};
use crate::http::HttpClient;
use crate::llm::Model;
use crate::llm::dialect::{AutoSetting, TokenLimitField};
use crate::llm::embeddings::Embedder;
use crate::llm::embeddings::openai::OpenAiEmbedder;
use crate::llm::openai::{OpenAiModel, OpenAiSettings, ResponseTimeouts};
use crate::media_servers::MediaServer;
use crate::media_servers::jellyfin::Jellyfin;
use crate::media_servers::playability::MediaServers;
use crate::media_servers::plex::Plex;
use crate::media_servers::tautulli::Tautulli;
use crate::messaging::smsgate::{GatewayCredentials, SmsGate, SmsGateAccount};
use crate::messaging::telegram::Telegram;
use crate::messaging::twilio::signature::SignatureVerifier;
use crate::messaging::twilio::{Twilio, TwilioAccount, TwilioCredentials, TwilioReceiving, TwilioSender};
use crate::response_budget::ResponseBudget;
use crate::seerr::Seerr;
use crate::tools::library::{ArrInstances, Instance};

/// Builds the client of the configured Twilio account, which also receives its messages.
pub(crate) fn build_twilio(twilio: &config::Twilio, http: &HttpClient) -> Twilio {
    let account = TwilioAccount {
        api_url: twilio.api_url.as_str().to_owned(),
        account_sid: twilio.account_sid.clone(),
        credentials: if twilio.credentials.user == twilio.account_sid {
            TwilioCredentials::AuthToken(twilio.credentials.password.clone())
        } else {
            TwilioCredentials::ApiKey {
                sid: twilio.credentials.user.clone(),
                secret: twilio.credentials.password.clone(),
            }
        },
        sender: match &twilio.messaging_service_sid {
            Some(sid) => TwilioSender::MessagingService(sid.clone()),
            None => TwilioSender::Number,
        },
        public_url: twilio.public_url.as_str().to_owned(),
    };
    let verifier = SignatureVerifier { tokens: twilio.auth_tokens.clone(), shared_keys: BTreeMap::new() };
    let number = Address::new(twilio.phone_number.as_str());
    Twilio::new(account, http.clone()).with_receiving(TwilioReceiving { number, verifier })
}

/// Builds the port of the configured phone.
pub(crate) fn build_smsgate(phone: &config::SmsGate, http: &HttpClient) -> SmsGate {
    let credentials = match &phone.credentials {
        config::SmsGateCredentials::Password(config::Credentials { user, password }) => {
            GatewayCredentials::Password { user: user.clone(), password: password.clone() }
        }
        config::SmsGateCredentials::Token(token) => GatewayCredentials::Token(token.clone()),
    };
    let account = SmsGateAccount {
        url: phone.url.as_str().to_owned(),
        credentials,
        number: phone.phone_number.clone(),
        sim: phone.sim,
        signing_key: phone.webhook_key.clone(),
    };
    SmsGate::new(account, http.clone())
}

/// Builds the port of the configured bot.
pub(crate) fn build_telegram(bot: &config::Telegram, http: &HttpClient) -> Telegram {
    Telegram::new(bot.account.clone(), http.clone())
}

/// Builds the client of the configured model.
pub(crate) fn build_model(llm: &config::Llm, http: &reqwest::Client) -> anyhow::Result<Arc<dyn Model>> {
    let settings = OpenAiSettings {
        base_url: llm.base_url.clone(),
        key: llm.api_key.clone(),
        model: llm.model.clone(),
        reasoning_effort: llm.reasoning_effort.clone().map_or(AutoSetting::Auto, AutoSetting::Fixed),
        token_field: match llm.token_field {
            None => AutoSetting::Auto,
            Some(config::TokenField::MaxTokens) => AutoSetting::Fixed(TokenLimitField::MaxTokens),
            Some(config::TokenField::MaxCompletionTokens) => {
                AutoSetting::Fixed(TokenLimitField::MaxCompletionTokens)
            }
        },
        timeouts: ResponseTimeouts::default(),
    };
    Ok(Arc::new(OpenAiModel::new(http, settings).context("set up the model")?))
}

/// Builds the client of the configured embeddings model.
pub(crate) fn build_embedder(
    embeddings: &config::Embeddings,
    http: &reqwest::Client,
) -> anyhow::Result<Arc<dyn Embedder>> {
    let config::Embeddings { model, base_url, api_key, floor: _ } = embeddings;
    let embedder = OpenAiEmbedder::new(http, base_url, api_key.clone(), model.clone());
    Ok(Arc::new(embedder.context("set up the embeddings model")?))
}

/// Builds the clients of the configured instances of Sonarr and Radarr.
pub(crate) fn build_library(libraries: &config::Libraries, http: &HttpClient) -> ArrInstances {
    let http = http.clone().with_budget(ResponseBudget::default());
    let build_radarr =
        |library: &config::Library| Radarr::new(http.clone(), library.url.clone(), library.api_key.clone());
    let build_sonarr =
        |library: &config::Library| Sonarr::new(http.clone(), library.url.clone(), library.api_key.clone());
    ArrInstances {
        movies: build_instances(
            ["radarr", "radarr-4k"],
            [&libraries.radarr, &libraries.radarr_four_k],
            build_radarr,
        ),
        series: build_instances(
            ["sonarr", "sonarr-4k"],
            [&libraries.sonarr, &libraries.sonarr_four_k],
            build_sonarr,
        ),
        media_servers: MediaServers::default(),
        discovery: Discovery::default(),
        requests: None,
    }
}

/// Builds the client of the Seerr where titles are requested; `None` if they are added to Sonarr and Radarr.
pub(crate) fn build_requests(discovery: &config::Discovery, http: &HttpClient) -> Option<Seerr> {
    match discovery.requests {
        config::RequestBackend::Direct => None,
        config::RequestBackend::Seerr => {
            let server = discovery.seerr.as_ref()?;
            Some(Seerr::new(http.clone(), server.url.clone(), &server.api_key))
        }
    }
}

/// Builds the clients of the configured media servers.
pub(crate) fn build_media_servers(servers: &config::MediaServers, http: &HttpClient) -> MediaServers {
    let jellyfin = servers.jellyfin.iter().map(|server| {
        Arc::new(Jellyfin::new(http.clone(), server.url.clone(), &server.api_key)) as Arc<dyn MediaServer>
    });
    let plex = servers.plex.iter().map(|server| {
        let plex = Plex::new(http.clone(), server.url.clone(), &server.api_key);
        Arc::new(match &servers.tautulli {
            Some(config::Library { url, api_key }) => {
                plex.with_tautulli(Tautulli::new(http.clone(), url.clone(), api_key))
            }
            None => plex,
        }) as Arc<dyn MediaServer>
    });
    MediaServers::new(jellyfin.chain(plex).collect())
}

/// Builds the sources of titles: Seerr, then TMDB.
pub(crate) fn build_discovery(discovery: &config::Discovery, http: &HttpClient) -> Discovery {
    let seerr = discovery
        .seerr
        .iter()
        .map(|server| DiscoverySource::seerr(&Seerr::new(http.clone(), server.url.clone(), &server.api_key)));
    let tmdb = discovery
        .tmdb
        .iter()
        .map(|server| DiscoverySource::tmdb(http.clone(), server.url.clone(), &server.api_key));
    Discovery::new(seerr.chain(tmdb).collect(), discovery.region.clone())
}

/// Replaces the clients of unchanged instances by those of the `earlier` configuration, with their caches.
pub(crate) fn reuse_instances(
    library: &mut ArrInstances,
    libraries: &config::Libraries,
    (old, earlier): (&config::Libraries, &ArrInstances),
) {
    let is_unchanged = |name: &str| old.instance(name) == libraries.instance(name);
    reuse_instances_of_kind(&mut library.movies, &earlier.movies, is_unchanged);
    reuse_instances_of_kind(&mut library.series, &earlier.series, is_unchanged);
}

fn reuse_instances_of_kind<Client: Clone>(
    instances: &mut [Instance<Client>],
    earlier: &[Instance<Client>],
    is_unchanged: impl Fn(&str) -> bool,
) {
    for instance in instances.iter_mut().filter(|instance| is_unchanged(instance.name)) {
        if let Some(kept) = earlier.iter().find(|kept| kept.name == instance.name) {
            *instance = kept.clone();
        }
    }
}

/// Builds up to two instances of one kind, for those that are configured. The second one is for 4K.
fn build_instances<Client>(
    names: [&'static str; 2],
    configured: [&Option<config::Library>; 2],
    build_client: impl Fn(&config::Library) -> Client,
) -> Vec<Instance<Client>> {
    let instances = names.into_iter().zip([false, true]).zip(configured);
    instances
        .filter_map(|((name, four_k), library)| {
            Some(Instance::new(name, four_k, build_client(library.as_ref()?)))
        })
        .collect()
}
