//! `dialarr doctor`: one line per check, and what to do about what does not work.

use clap::Args;

use super::print;
use crate::config::{Config, Problems};
use crate::doctor::{Finding, Grade, LongRequest, configuration, examine};

#[derive(Debug, Args, PartialEq, Eq)]
pub struct Doctor {
    /// Send the model a long request too, of about 9,000 tokens, to see whether its context is long enough; a server
    /// that needs no key is sent one without this option, too
    #[arg(long)]
    model: bool,
}

pub(super) async fn run(config: Result<Config, Problems>, asked: &Doctor) -> anyhow::Result<()> {
    let long = if asked.model { LongRequest::Always } else { LongRequest::WhereFree };
    let mut findings = configuration::check(&config);
    if let Ok(config) = &config {
        findings.extend(examine(config, long).await?);
    }
    print(&findings.iter().map(lines).collect::<String>())?;
    let failed = findings.iter().filter(|finding| finding.grade == Grade::Failure).count();
    anyhow::ensure!(failed == 0, "pass {failed} of {} checks", findings.len());
    Ok(())
}

fn lines(finding: &Finding) -> String {
    let hint = finding.hint.iter().map(|hint| format!("{:<9}hint: {hint}\n", ""));
    format!("{:<9}{}\n", finding.grade.word(), finding.what) + &hint.collect::<String>()
}
