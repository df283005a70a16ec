//! From a configuration to the blueprint of the program.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Context;
use jiff::SignedDuration;

use crate::app::{Blueprint, Missed};
use crate::arr::radarr::Radarr;
use crate::arr::server::{App, Server};
use crate::arr::sonarr::Sonarr;
use crate::clock::Clock;
use crate::config::{self, Config, ConfirmCode};
use crate::conversation::consent::Language;
use crate::conversation::deletion::CodePolicy;
use crate::conversation::transcript::Address;
use crate::conversation::turn::Limits;
use crate::engine::{Codes, Pictures, Quotas, Settings};
use crate::http::Http;
use crate::llm::Model;
use crate::llm::dialect::{Setting, TokenField};
use crate::llm::embeddings::openai::OpenAiEmbedder;
use crate::llm::embeddings::{Embedder, USUAL_FLOOR};
use crate::llm::openai::{OpenAi, OpenAiSettings, Patience};
use crate::messaging::Channel;
use crate::messaging::console::Sink;
use crate::messaging::outbox::Channels;
use crate::messaging::signature::Verifier;
use crate::messaging::terminal::Terminal;
use crate::messaging::twilio::{Credentials, Sender, Twilio, TwilioAccount};
use crate::response_budget::ResponseBudget;
use crate::setup::connect::Hook;
use crate::store::db::Db;
use crate::tools::library::{Instance, Library};
use crate::tools::shelf::freshness::Shelf;
use crate::web::Trust;

/// Model calls at the same time where nothing is configured: the keyword brain needs no limit.
const MODEL_CALLS: usize = 8;

pub(crate) fn blueprint(config: &Config) -> anyhow::Result<Blueprint> {
    let http = Http::network().context("set up the HTTP client; hint: install ca-certificates")?;
    let twilio = config.twilio.as_ref().map(|twilio| Arc::new(carrier(twilio, &http)));
    let database = config.database.to_str().context("use a database path that is not UTF-8")?;
    Ok(Blueprint {
        db: Db::open(database)?,
        clock: Clock::service(),
        settings: settings(config)?,
        confirm_for: SignedDuration::try_from(config.conversation.confirm)?,
        retention: SignedDuration::from_hours(24 * i64::from(config.retention_days)),
        admin: config.people.admin.clone(),
        members: config.people.members.clone(),
        model: config.llm.as_ref().map(model).transpose()?,
        embedder: config.embeddings.as_ref().map(embedder).transpose()?,
        library: library(&config.libraries, &http),
        channels: Channels {
            carrier: twilio.clone().map(|twilio| twilio as Arc<dyn Channel>),
            terminal: Arc::new(Terminal),
            console: Arc::new(Sink),
        },
        trust: config.twilio.as_ref().map(|twilio| Arc::new(trust(twilio))),
        report_secret: config.notifications.secret.clone(),
        config: Some(Arc::new(config.clone())),
        missed: twilio
            .zip(config.twilio.as_ref())
            .map(|(twilio, account)| Missed { twilio, number: Address::new(account.phone_number.as_str()) }),
        context_window: config.llm.as_ref().and_then(|llm| llm.context_window),
        console: config.console.rules.clone(),
    })
}

/// Says once at the start what this installation cannot do, and why.
pub(crate) fn tell_what_is_missing(config: &Config) {
    for misspelling in &config.misspelt {
        tracing::warn!("{misspelling}");
    }
    for cut in &config.cut {
        tracing::warn!("{cut}");
    }
    if config.twilio.is_none() {
        tracing::warn!("no Twilio account is configured: nobody can text");
    }
    if config.notifications.secret.is_none() {
        tracing::warn!("no NOTIFICATION_SECRET is configured: Sonarr and Radarr cannot report");
    }
    if config.llm.is_none() {
        tracing::warn!("no model is configured: only the keyword commands are understood");
    }
    if config.libraries.radarr.is_none() && config.libraries.radarr_four_k.is_none() {
        tracing::warn!("no Radarr is configured: there are no movies");
    }
    if config.libraries.sonarr.is_none() && config.libraries.sonarr_four_k.is_none() {
        tracing::warn!("no Sonarr is configured: there are no shows");
    }
}

fn settings(config: &Config) -> anyhow::Result<Settings> {
    let conversation = &config.conversation;
    Ok(Settings {
        zone: config.time_zone.clone(),
        idle: SignedDuration::try_from(conversation.idle)?,
        coalesce: conversation.coalesce,
        code_policy: match conversation.confirm_code {
            ConfirmCode::Bulk => CodePolicy::Bulk,
            ConfirmCode::Always => CodePolicy::Always,
        },
        codes: Codes::Random,
        languages: conversation.confirm_languages.iter().filter_map(|code| Language::parse(code)).collect(),
        limits: Limits::STANDARD,
        model_calls: config.llm.as_ref().map_or(MODEL_CALLS, |llm| llm.max_concurrent),
        quotas: Quotas { movies: config.limits.quota_movies, seasons: config.limits.quota_seasons },
        rate: config.limits.rate,
        prices: config.llm.as_ref().map(|llm| llm.prices).unwrap_or_default(),
        budget: config.limits.budget,
        routing: conversation.routing,
        reactions: conversation.reactions,
        quiet: config.notifications.quiet,
        // The terminal shows their addresses, whoever it is.
        pictures: config.twilio.as_ref().map_or(Pictures::Sent, |twilio| twilio.pictures),
        notes: conversation.notes,
        number: config.twilio.as_ref().map(|twilio| Address::new(twilio.phone_number.as_str())),
        floor: config.embeddings.as_ref().map_or(USUAL_FLOOR, |embeddings| embeddings.floor),
        pace: config::pace(),
    })
}

pub(crate) fn model(llm: &config::Llm) -> anyhow::Result<Arc<dyn Model>> {
    let settings = OpenAiSettings {
        base_url: llm.base_url.clone(),
        key: llm.api_key.clone(),
        model: llm.model.clone(),
        reasoning_effort: llm.reasoning_effort.clone().map_or(Setting::Auto, Setting::Fixed),
        token_field: match llm.token_field {
            None => Setting::Auto,
            Some(config::TokenField::MaxTokens) => Setting::Fixed(TokenField::MaxTokens),
            Some(config::TokenField::MaxCompletionTokens) => Setting::Fixed(TokenField::MaxCompletionTokens),
        },
        patience: Patience::default(),
    };
    Ok(Arc::new(OpenAi::new(settings).context("set up the model")?))
}

pub(crate) fn embedder(embeddings: &config::Embeddings) -> anyhow::Result<Arc<dyn Embedder>> {
    let config::Embeddings { model, base_url, api_key, floor: _ } = embeddings;
    let embedder = OpenAiEmbedder::new(base_url, api_key.clone(), model.clone());
    Ok(Arc::new(embedder.context("set up the embeddings model")?))
}

/// A configured Sonarr or Radarr, as setup and doctor see it.
pub(crate) struct Peer {
    /// As in [`Instance::name`].
    pub(crate) name: &'static str,
    /// The name that people know.
    pub(crate) label: &'static str,
    client: Client,
}

enum Client {
    Sonarr(Sonarr),
    Radarr(Radarr),
}

impl Peer {
    pub(crate) fn app(&self) -> App {
        match self.client {
            Client::Sonarr(_) => App::Sonarr,
            Client::Radarr(_) => App::Radarr,
        }
    }

    pub(crate) fn server(&self) -> Server<'_> {
        match &self.client {
            Client::Sonarr(sonarr) => sonarr.server(),
            Client::Radarr(radarr) => radarr.server(),
        }
    }
}

pub(crate) fn peers(libraries: &config::Libraries, http: &Http) -> Vec<Peer> {
    let http = http.clone().with_budget(ResponseBudget::default());
    let all = [
        ("sonarr", "Sonarr", App::Sonarr, &libraries.sonarr),
        ("radarr", "Radarr", App::Radarr, &libraries.radarr),
        ("sonarr-4k", "Sonarr 4K", App::Sonarr, &libraries.sonarr_four_k),
        ("radarr-4k", "Radarr 4K", App::Radarr, &libraries.radarr_four_k),
    ];
    let configured = all.into_iter().filter_map(|(name, label, app, library)| {
        let config::Library { url, api_key } = library.clone()?;
        let client = match app {
            App::Sonarr => Client::Sonarr(Sonarr::new(http.clone(), url, api_key)),
            App::Radarr => Client::Radarr(Radarr::new(http.clone(), url, api_key)),
        };
        Some(Peer { name, label, client })
    });
    configured.collect()
}

/// The same of the libraries that a program works with.
pub(crate) fn peers_of(library: &Library) -> Vec<Peer> {
    let label = |app, four_k| match (app, four_k) {
        (App::Sonarr, false) => "Sonarr",
        (App::Sonarr, true) => "Sonarr 4K",
        (App::Radarr, false) => "Radarr",
        (App::Radarr, true) => "Radarr 4K",
    };
    let series = library.series.iter().map(|place| Peer {
        name: place.name,
        label: label(App::Sonarr, place.four_k),
        client: Client::Sonarr(place.client.clone()),
    });
    let movies = library.movies.iter().map(|place| Peer {
        name: place.name,
        label: label(App::Radarr, place.four_k),
        client: Client::Radarr(place.client.clone()),
    });
    series.chain(movies).collect()
}

/// Where a server is to report; `None` if nobody said with which secret, or where we are.
pub(crate) fn hook(config: &Config, peer: &Peer) -> Option<Hook> {
    let notifications = &config.notifications;
    let (base, secret) = notifications.url.as_ref().zip(notifications.secret.clone())?;
    let mut address = base.clone();
    address.set_path(&format!("{}/webhook/{}", base.path().trim_end_matches('/'), peer.name));
    Some(Hook { address, secret })
}

fn library(libraries: &config::Libraries, http: &Http) -> Library {
    let http = http.clone().with_budget(ResponseBudget::default());
    let radarr = |found: &Option<config::Library>, name, four_k| {
        found.as_ref().map(|library| Instance {
            name,
            four_k,
            client: Radarr::new(http.clone(), library.url.clone(), library.api_key.clone()),
            shelf: Shelf::default(),
        })
    };
    let sonarr = |found: &Option<config::Library>, name, four_k| {
        found.as_ref().map(|library| Instance {
            name,
            four_k,
            client: Sonarr::new(http.clone(), library.url.clone(), library.api_key.clone()),
            shelf: Shelf::default(),
        })
    };
    Library {
        movies: [
            radarr(&libraries.radarr, "radarr", false),
            radarr(&libraries.radarr_four_k, "radarr-4k", true),
        ]
        .into_iter()
        .flatten()
        .collect(),
        series: [
            sonarr(&libraries.sonarr, "sonarr", false),
            sonarr(&libraries.sonarr_four_k, "sonarr-4k", true),
        ]
        .into_iter()
        .flatten()
        .collect(),
    }
}

pub(crate) fn carrier(twilio: &config::Twilio, http: &Http) -> Twilio {
    let account = TwilioAccount {
        api_url: twilio.api_url.as_str().to_owned(),
        account_sid: twilio.account_sid.clone(),
        credentials: if twilio.credentials.user == twilio.account_sid {
            Credentials::AuthToken(twilio.credentials.password.clone())
        } else {
            Credentials::ApiKey {
                sid: twilio.credentials.user.clone(),
                secret: twilio.credentials.password.clone(),
            }
        },
        sender: match &twilio.messaging_service_sid {
            Some(sid) => Sender::MessagingService(sid.clone()),
            None => Sender::Number,
        },
        public_url: twilio.public_url.as_str().to_owned(),
    };
    Twilio::new(account, http.clone())
}

fn trust(twilio: &config::Twilio) -> Trust {
    Trust {
        verifier: Verifier { tokens: twilio.auth_tokens.clone(), shared_keys: BTreeMap::new() },
        public_url: twilio.public_url.as_str().to_owned(),
        account_sid: twilio.account_sid.clone(),
    }
}
