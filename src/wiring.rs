//! Conversion of the configuration to a blueprint.

use std::sync::Arc;

use anyhow::Context;
use jiff::SignedDuration;

use crate::app::{AppBlueprint, Polling};
use crate::config::{self, Config, ConfirmCode};
use crate::conversation::channel_list;
use crate::conversation::deletion::deletion_messages::CodePolicy;
use crate::conversation::grammar::confirmation_reply::ReplyLanguage;
use crate::conversation::routing::senders::Senders;
use crate::conversation::transcript::Address;
use crate::conversation::turn::TurnLimits;
use crate::doctor::phone::PublicAddress;
use crate::engine::{CodeSource, HouseholdSettings, PicturePolicy, Quotas};
use crate::http::{HttpClient, build_network_client};
use crate::llm::embeddings::DEFAULT_SIMILARITY_FLOOR;
use crate::messaging::ChannelPort;
use crate::messaging::alert_sender::AlertSender;
use crate::messaging::alert_targets::AlertTargets;
use crate::messaging::channel_ports::ChannelPorts;
use crate::outbound_clients::{
    build_discovery, build_embedder, build_library, build_media_servers, build_model, build_requests,
    build_smsgate, build_telegram, build_twilio, reuse_instances,
};
use crate::store::database::db::Db;

/// Opens the configured database.
pub(crate) fn open_database(config: &Config) -> anyhow::Result<Db> {
    let database = config.database.to_str().context("use a database path that is not UTF-8")?;
    Ok(Db::open(database)?)
}

/// Builds a blueprint. The clients of unchanged sections of the configuration are those of the `earlier` blueprint.
pub(crate) fn build_blueprint(
    config: &Config,
    earlier: Option<&AppBlueprint>,
) -> anyhow::Result<AppBlueprint> {
    let network = build_network_client().context("set up the HTTP client; hint: install ca-certificates")?;
    let http = HttpClient::over_network(network.clone());
    let earlier = earlier.and_then(|blueprint| Some((blueprint.config.as_deref()?, blueprint)));
    let earlier_if = |is_unchanged: fn(&Config, &Config) -> bool| {
        earlier.filter(|(old, _)| is_unchanged(old, config)).map(|(_, blueprint)| blueprint)
    };
    let model = match earlier_if(|old, new| old.llm == new.llm) {
        Some(earlier) => earlier.model.clone(),
        None => config.llm.as_ref().map(|llm| build_model(llm, &network)).transpose()?,
    };
    let embedder = match earlier_if(|old, new| old.embeddings == new.embeddings) {
        Some(earlier) => earlier.embedder.clone(),
        None => config.embeddings.as_ref().map(|model| build_embedder(model, &network)).transpose()?,
    };
    let twilio = match earlier_if(|old, new| old.twilio == new.twilio) {
        Some(earlier) => earlier.twilio.clone(),
        None => config.twilio.as_ref().map(|account| Arc::new(build_twilio(account, &http))),
    };
    let smsgate = match earlier_if(|old, new| old.smsgate == new.smsgate) {
        Some(earlier) => earlier.smsgate.clone(),
        None => config.smsgate.as_ref().map(|phone| Arc::new(build_smsgate(phone, &http))),
    };
    let telegram = match earlier_if(|old, new| old.telegram == new.telegram) {
        Some(earlier) => earlier.telegram.clone(),
        None => config.telegram.as_ref().map(|bot| Arc::new(build_telegram(bot, &http))),
    };
    let twilio_port = twilio.iter().map(|port| port.clone() as Arc<dyn ChannelPort>);
    let smsgate_port = smsgate.iter().map(|port| port.clone() as Arc<dyn ChannelPort>);
    let telegram_port = telegram.iter().map(|port| port.clone() as Arc<dyn ChannelPort>);
    let configured = twilio_port.chain(smsgate_port).chain(telegram_port);
    let mut library = build_library(&config.libraries, &http);
    if let Some((old, blueprint)) = earlier {
        reuse_instances(&mut library, &config.libraries, (&old.libraries, &blueprint.library));
    }
    library.media_servers = match earlier_if(|old, new| old.media_servers == new.media_servers) {
        Some(earlier) => earlier.library.media_servers.clone(),
        None => build_media_servers(&config.media_servers, &http),
    };
    library.discovery = match earlier_if(|old, new| old.discovery == new.discovery) {
        Some(earlier) => earlier.library.discovery.clone(),
        None => build_discovery(&config.discovery, &http),
    };
    library.requests = build_requests(&config.discovery, &http);
    Ok(AppBlueprint {
        settings: build_settings(config)?,
        admin: config.people.admin.clone(),
        members: config.people.members.clone(),
        model,
        embedder,
        library,
        channels: configured.fold(ChannelPorts::local(), ChannelPorts::with),
        polling: Polling::On,
        arr_secret: config.notifications.secret.clone(),
        config: Some(Arc::new(config.clone())),
        twilio,
        smsgate,
        telegram,
        public_address: config
            .twilio
            .as_ref()
            .map(|twilio| PublicAddress { url: twilio.public_url.as_str().to_owned(), http: http.clone() }),
        alerts: (config.alerts != AlertTargets::default())
            .then(|| AlertSender::new(config.alerts.clone(), http.clone())),
        console: config.console.rules.clone(),
    })
}

/// Logs the warnings of the configuration, and the connections that are not configured.
pub(crate) fn log_configuration_warnings(config: &Config) {
    for note in config.notes.warnings() {
        tracing::warn!("{note}");
    }
    if config.twilio.is_none() && config.smsgate.is_none() && config.telegram.is_none() {
        tracing::warn!(
            "no Twilio account, no phone and no Telegram bot is configured: users cannot send messages"
        );
    }
    if config.notifications.secret.is_none() {
        tracing::warn!("no NOTIFICATION_SECRET is configured: Sonarr and Radarr cannot send events");
    }
    if config.llm.is_none() {
        tracing::warn!("no model is configured: only keyword commands work");
    }
    if config.libraries.radarr.is_none() && config.libraries.radarr_four_k.is_none() {
        tracing::warn!("no Radarr is configured: there are no movies");
    }
    if config.libraries.sonarr.is_none() && config.libraries.sonarr_four_k.is_none() {
        tracing::warn!("no Sonarr is configured: there are no shows");
    }
}

fn build_settings(config: &Config) -> anyhow::Result<HouseholdSettings> {
    let conversation = &config.conversation;
    Ok(HouseholdSettings {
        zone: config.time_zone.clone(),
        idle_timeout: SignedDuration::try_from(conversation.idle)?,
        debounce: conversation.coalesce,
        code_policy: match conversation.confirm_code {
            ConfirmCode::Bulk => CodePolicy::Bulk,
            ConfirmCode::Always => CodePolicy::Always,
        },
        codes: CodeSource::Random,
        confirm_for: SignedDuration::try_from(conversation.confirm)?,
        languages: conversation
            .confirm_languages
            .iter()
            .filter_map(|code| ReplyLanguage::parse(code))
            .collect(),
        limits: TurnLimits::STANDARD,
        max_model_calls: config.llm.as_ref().map_or(1, |llm| llm.max_concurrent),
        quotas: Quotas {
            movies: config.limits.quota_movies,
            seasons: config.limits.quota_seasons,
            space_gb: config.limits.space_gb,
        },
        rate_limit: config.limits.rate,
        prices: config.llm.as_ref().map(|llm| llm.prices).unwrap_or_default(),
        context_window: config.llm.as_ref().and_then(|llm| llm.context_window),
        budget: config.limits.budget,
        triage_level: conversation.routing,
        model_skipping: conversation.model_skipping,
        prompt_addition: conversation.prompt_addition.clone(),
        reactions: conversation.reactions,
        quiet_hours: config.notifications.quiet,
        // Without Twilio, pictures are shown as URLs in the terminal.
        pictures: config.twilio.as_ref().map_or(PicturePolicy::Sent, |twilio| twilio.pictures),
        metadata_source: conversation.notes,
        senders: build_senders(config),
        similarity_floor: config
            .embeddings
            .as_ref()
            .map_or(DEFAULT_SIMILARITY_FLOOR, |embeddings| embeddings.floor),
        retention: SignedDuration::from_hours(24 * i64::from(config.retention_days)),
        watch_sharing: conversation.watch_sharing,
        making_room: config.limits.making_room,
        recovery_delays: config::recovery_delays(),
    })
}

/// Returns our addresses on the configured channels, the default one first: phone numbers before a bot.
pub(crate) fn build_senders(config: &Config) -> Senders {
    let twilio = config.twilio.iter().map(|twilio| twilio.phone_number.as_str().to_owned());
    let smsgate = config
        .smsgate
        .iter()
        .map(|phone| format!("{}{}", channel_list::SMSGATE_PREFIX, phone.phone_number.as_str()));
    let telegram = config.telegram.iter().map(|bot| bot.account.address());
    Senders::from_addresses(twilio.chain(smsgate).map(Address::new).chain(telegram).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{ConfigSection, ConfigSources};

    const UNCHANGED: &str = "TZ=UTC
        RADARR_URL=http://radarr.invalid
        RADARR_API_KEY=0123456789abcdef0123456789abcdef
        TWILIO_ACCOUNT_SID=AC00000000000000000000000000000001
        TWILIO_AUTH_TOKEN=firsttoken
        TWILIO_PHONE_NUMBER=+15550100100
        PUBLIC_URL=https://sms.example.org
        ADMIN_PHONE=+15550100123
        LLM_BASE_URL=http://model.invalid/v1";

    fn config(changed: &str) -> Config {
        let values = UNCHANGED.lines().chain(changed.lines()).filter_map(|line| line.trim().split_once('='));
        let values = values.map(|(name, value)| (name.to_owned(), value.to_owned()));
        Config::from_sources(&ConfigSources::from_environment(values)).unwrap()
    }

    #[test]
    fn changed_model_reuses_the_other_clients() {
        let (old, new) = (config("LLM_MODEL=one\nLLM_API_KEY=a"), config("LLM_MODEL=one\nLLM_API_KEY=b"));
        assert_eq!(old.changed_sections(&new), [ConfigSection::Model]);
        let earlier = build_blueprint(&old, None).unwrap();
        earlier.library.mark_changed("radarr");

        let later = build_blueprint(&new, Some(&earlier)).unwrap();

        let (earlier_model, later_model) = (earlier.model.unwrap(), later.model.unwrap());
        assert!(!Arc::ptr_eq(&earlier_model, &later_model));
        assert!(Arc::ptr_eq(&earlier.twilio.unwrap(), &later.twilio.unwrap()));
        assert_eq!(later.library.movies[0].client.common_api().change_count(), 1);
    }

    #[test]
    fn changed_bot_token_replaces_only_its_own_client() {
        let bot = |token: &str| config(&format!("LLM_MODEL=one\nTELEGRAM_BOT_TOKEN={token}"));
        let (old, new) = (bot("501:first"), bot("501:second"));
        assert_eq!(old.changed_sections(&new), [ConfigSection::Telegram]);
        let earlier = build_blueprint(&old, None).unwrap();

        let later = build_blueprint(&new, Some(&earlier)).unwrap();

        assert!(!Arc::ptr_eq(&earlier.telegram.unwrap(), &later.telegram.unwrap()));
        assert!(Arc::ptr_eq(&earlier.twilio.unwrap(), &later.twilio.unwrap()));
    }

    #[test]
    fn bot_is_a_sender_after_the_phone_numbers() {
        let phone =
            "SMSGATE_URL=http://phone.invalid\nSMSGATE_PHONE_NUMBER=+15550100077\nSMSGATE_PASSWORD=secret";
        let all = config(&format!("LLM_MODEL=one\nTELEGRAM_BOT_TOKEN=501:AAE\n{phone}"));
        let expected = ["+15550100100", "smsgate:+15550100077", "telegram:501"].map(Address::new);
        assert_eq!(build_senders(&all), Senders::from_addresses(expected.to_vec()));
        let blueprint = build_blueprint(&all, None).unwrap();
        assert!(blueprint.channels.get(channel_list::TELEGRAM).is_some());
    }

    #[test]
    fn changed_seerr_replaces_the_source_and_the_client_of_requests() {
        let seerr = |host: &str| {
            let server = format!("SEERR_URL=http://{host}.invalid\nSEERR_API_KEY=0123456789abcdef");
            config(&format!("LLM_MODEL=one\nREQUESTS=seerr\n{server}"))
        };
        let (old, new) = (seerr("first"), seerr("second"));
        assert_eq!(old.changed_sections(&new), [ConfigSection::Discovery]);
        let earlier = build_blueprint(&old, None).unwrap();

        let later = build_blueprint(&new, Some(&earlier)).unwrap();

        let hosts = |blueprint: &AppBlueprint| {
            let parts = (&blueprint.library.discovery, blueprint.library.requests.as_ref().unwrap());
            let shown = format!("{parts:?}");
            ["first.invalid", "second.invalid"].map(|host| shown.matches(host).count() > 1)
        };
        assert_eq!([hosts(&earlier), hosts(&later)], [[true, false], [false, true]]);
    }

    #[test]
    fn changed_library_replaces_only_its_own_client() {
        let (old, new) = (
            config("LLM_MODEL=one"),
            config(
                "LLM_MODEL=one\nSONARR_URL=http://sonarr.invalid\nSONARR_API_KEY=0123456789abcdef0123456789abcdef",
            ),
        );
        assert_eq!(old.changed_sections(&new), [ConfigSection::Libraries]);
        let earlier = build_blueprint(&old, None).unwrap();
        earlier.library.mark_changed("radarr");

        let later = build_blueprint(&new, Some(&earlier)).unwrap();

        assert_eq!(later.library.movies[0].client.common_api().change_count(), 1);
        assert_eq!(later.library.series_names(), ["sonarr"]);
    }
}
