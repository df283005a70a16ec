//! Looks at everything that has to work, and says for each what to do: for `dialarr doctor` and for the console's health
//! page. Changes nothing.

pub mod checkup;
mod clock;
pub(crate) mod configuration;
mod embeddings;
pub(crate) mod house;
mod library;
mod model;
mod phone;
pub(crate) mod service;

use anyhow::Context;
use futures_util::future::join_all;

use crate::config::Config;
use crate::http::Http;
use crate::llm::embeddings::USUAL_FLOOR;
use crate::outbound_clients::build_embedder;
use crate::setup::arr_instance::configured_instances;
use crate::setup::connect::Hook;
use library::Reporting;

/// The outcome of one check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) grade: Grade,
    pub(crate) what: String,
    pub(crate) hint: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Grade {
    Ok,
    Warning,
    Failure,
}

impl Grade {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Failure => "failure",
        }
    }
}

impl Finding {
    pub(crate) fn ok(what: impl Into<String>) -> Self {
        Self { grade: Grade::Ok, what: what.into(), hint: None }
    }

    /// Something works less well than it could. `hint` says what to do.
    pub(crate) fn warning(what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { grade: Grade::Warning, what: what.into(), hint: Some(hint.into()) }
    }

    /// Something does not work.
    pub(crate) fn failure(what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { grade: Grade::Failure, what: what.into(), hint: Some(hint.into()) }
    }
}

/// Whether the model is sent a request as long as turns make them, which may cost money.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LongRequest {
    /// To a server that needs no key alone.
    WhereFree,
    Always,
}

pub(crate) async fn examine(config: &Config, long: LongRequest) -> anyhow::Result<Vec<Finding>> {
    let http = Http::network().context("set up the HTTP client; hint: install ca-certificates")?;
    let instances = configured_instances(&config.libraries, &http);
    let libraries = join_all(
        instances
            .iter()
            .map(|instance| library::check(instance, Reporting::To(Hook::from_config(config, instance)))),
    );
    let embedder = config.embeddings.as_ref().map(build_embedder).transpose()?;
    let floor = config.embeddings.as_ref().map_or(USUAL_FLOOR, |embeddings| embeddings.floor);
    let (service, clock, libraries, phone, model, embeddings) = tokio::join!(
        service::check(config.listen),
        clock::check(config, &http),
        libraries,
        phone::check(config, &http),
        model::check(config.llm.as_ref(), config.limits.budget, long),
        embeddings::check(embedder.as_deref(), floor),
    );
    let mut findings = house::check(&config.database);
    findings.extend(service);
    findings.extend(clock);
    if instances.is_empty() {
        findings.push(Finding::warning(
            "libraries: none is configured, so there is nothing to ask for",
            "set SONARR_URL and SONARR_API_KEY, or RADARR_URL and RADARR_API_KEY",
        ));
    }
    findings.extend(libraries.into_iter().flatten());
    findings.extend(phone);
    findings.extend(model);
    findings.extend(embeddings);
    Ok(findings)
}

/// A size as people read it.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1_000_000_000_000, "TB"), (1_000_000_000, "GB"), (1_000_000, "MB")];
    match UNITS.into_iter().find(|(unit, _)| bytes >= *unit) {
        Some((unit, name)) => {
            let tenths = u128::from(bytes) * 10 / u128::from(unit);
            format!("{}.{} {name}", tenths / 10, tenths % 10)
        }
        None => "less than 1 MB".to_owned(),
    }
}
