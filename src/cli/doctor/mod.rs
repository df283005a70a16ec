//! `dialarr doctor`: looks at everything that has to work, and says for each what to do. Changes nothing.

mod clock;
mod house;
mod library;
mod model;
mod phone;

use anyhow::Context;
use clap::Args;
use futures_util::future::join_all;

use super::wiring;
use crate::config::{Config, Problems};
use crate::http::Http;

#[derive(Debug, Args, PartialEq, Eq)]
pub struct Doctor {
    /// Send the model a long request too, of about 9,000 tokens, to see whether its context is long enough; a server
    /// that needs no key gets one anyway
    #[arg(long)]
    model: bool,
}

/// The outcome of one check.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Finding {
    grade: Grade,
    what: String,
    hint: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Grade {
    Ok,
    Warning,
    Failure,
}

impl Finding {
    fn ok(what: impl Into<String>) -> Self {
        Self { grade: Grade::Ok, what: what.into(), hint: None }
    }

    /// Something works less well than it could. `hint` says what to do.
    fn warning(what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { grade: Grade::Warning, what: what.into(), hint: Some(hint.into()) }
    }

    /// Something does not work.
    fn failure(what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { grade: Grade::Failure, what: what.into(), hint: Some(hint.into()) }
    }

    #[expect(clippy::print_stdout, reason = "the findings are what the command is for")]
    fn print(&self) {
        let grade = match self.grade {
            Grade::Ok => "ok",
            Grade::Warning => "warning",
            Grade::Failure => "failure",
        };
        println!("{grade:<9}{}", self.what);
        if let Some(hint) = &self.hint {
            println!("{:<9}hint: {hint}", "");
        }
    }
}

pub(super) async fn run(config: Result<Config, Problems>, asked: &Doctor) -> anyhow::Result<()> {
    let findings = match &config {
        Ok(config) => examine(config, asked).await?,
        Err(Problems(problems)) => problems
            .iter()
            .map(|problem| {
                let what = format!("configuration: {}: {}", problem.variable, problem.wrong);
                Finding::failure(what, format!("for example {}", problem.example))
            })
            .collect(),
    };
    findings.iter().for_each(Finding::print);
    let failed = findings.iter().filter(|finding| finding.grade == Grade::Failure).count();
    anyhow::ensure!(failed == 0, "pass {failed} of {} checks", findings.len());
    Ok(())
}

async fn examine(config: &Config, asked: &Doctor) -> anyhow::Result<Vec<Finding>> {
    let http = Http::network().context("set up the HTTP client; hint: install ca-certificates")?;
    let peers = wiring::peers(&config.libraries, &http);
    let libraries = join_all(peers.iter().map(|peer| library::check(config, peer)));
    let (clock, libraries, phone, model) = tokio::join!(
        clock::check(config, &http),
        libraries,
        phone::check(config, &http),
        model::check(config.llm.as_ref(), asked),
    );
    let mut findings = vec![Finding::ok("configuration: complete")];
    findings.extend(house::check(&config.database));
    findings.extend(clock);
    if peers.is_empty() {
        findings.push(Finding::warning(
            "libraries: none is configured, so there is nothing to ask for",
            "set SONARR_URL and SONARR_API_KEY, or RADARR_URL and RADARR_API_KEY",
        ));
    }
    findings.extend(libraries.into_iter().flatten());
    findings.extend(phone);
    findings.extend(model);
    Ok(findings)
}

/// A size as people read it.
fn size(bytes: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1_000_000_000_000, "TB"), (1_000_000_000, "GB"), (1_000_000, "MB")];
    match UNITS.into_iter().find(|(unit, _)| bytes >= *unit) {
        Some((unit, name)) => {
            let tenths = u128::from(bytes) * 10 / u128::from(unit);
            format!("{}.{} {name}", tenths / 10, tenths % 10)
        }
        None => "less than 1 MB".to_owned(),
    }
}
