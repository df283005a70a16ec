//! `dialarr doctor`: one line per check, and a hint for each check that fails.

use clap::Args;

use super::print_text;
use crate::config::{Config, ConfigProblems};
use crate::doctor::{Finding, FindingGrade, LongRequest, configuration, run_checks};

#[derive(Debug, Args, PartialEq, Eq)]
pub struct DoctorArguments {
    /// Send the model a long request too, of about 9,000 tokens, to see whether its context is long enough; a server
    /// that needs no key is sent one without this option, too
    #[arg(long)]
    model: bool,
}

pub(super) async fn run_doctor(
    config: Result<Config, ConfigProblems>,
    asked: &DoctorArguments,
) -> anyhow::Result<()> {
    let long = if asked.model { LongRequest::Always } else { LongRequest::WhereFree };
    let mut findings = configuration::check_configuration(&config);
    if let Ok(config) = &config {
        findings.extend(run_checks(config, long).await?);
    }
    print_text(&findings.iter().map(finding_lines).collect::<String>())?;
    let failed = findings.iter().filter(|finding| finding.grade == FindingGrade::Failure).count();
    anyhow::ensure!(failed == 0, "pass {failed} of {} checks", findings.len());
    Ok(())
}

fn finding_lines(finding: &Finding) -> String {
    let hint = finding.hint.iter().map(|hint| format!("{:<9}hint: {hint}\n", ""));
    format!("{:<9}{}\n", finding.grade.as_str(), finding.what) + &hint.collect::<String>()
}
