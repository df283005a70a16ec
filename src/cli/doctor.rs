//! `dialarr doctor`: one line per check, and a hint for each check that fails.

use clap::Args;

use super::print_text;
use crate::config::{Config, ConfigSources};
use crate::doctor::{Finding, FindingGrade, LongRequest, configuration, run_checks};
use crate::settings::loading::add_stored_settings;

#[derive(Debug, Args, PartialEq, Eq)]
pub struct DoctorArguments {
    /// Send the model a request of about 9,000 tokens to check its context length; without this option, only a server
    /// that needs no API key gets it
    #[arg(long)]
    model: bool,
}

pub(super) async fn run_doctor(arguments: &DoctorArguments) -> anyhow::Result<()> {
    let sources = ConfigSources::read();
    // A database that cannot be read is a finding of its own.
    let config = Config::from_sources(&add_stored_settings(sources.clone()).unwrap_or(sources));
    let long_request = if arguments.model { LongRequest::Always } else { LongRequest::WithoutKey };
    let mut findings = configuration::check_configuration(&config);
    if let Ok(config) = &config {
        findings.extend(run_checks(config, long_request).await?);
    }
    print_text(&findings.iter().map(format_finding).collect::<String>())?;
    let failed = findings.iter().filter(|finding| finding.grade == FindingGrade::Failure).count();
    anyhow::ensure!(failed == 0, "pass {failed} of {} checks", findings.len());
    Ok(())
}

fn format_finding(finding: &Finding) -> String {
    let hint = finding.hint.iter().map(|hint| format!("{:<9}hint: {hint}\n", ""));
    format!("{:<9}{}\n", finding.grade.as_str(), finding.summary) + &hint.collect::<String>()
}
