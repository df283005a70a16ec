//! `dialarr eval FILE`: plays scenarios with a scripted model against simulated peers, and judges by what happened:
//! what was written to the libraries, what is pending, what was said.

mod expectation;
mod file;
mod play;

use std::path::Path;

use anyhow::Context;

use file::{File, Scenario};

/// How one scenario went.
enum Verdict {
    Passed,
    Failed(Vec<String>),
    /// It failed, and it is about something that this program does not have yet.
    NotBuilt(&'static str, Vec<String>),
}

#[expect(clippy::print_stdout, reason = "the report is what the command is for")]
pub(super) async fn run(path: &Path) -> anyhow::Result<()> {
    let text = tokio::fs::read_to_string(path).await.with_context(|| format!("read {}", path.display()))?;
    let file: File =
        serde_json::from_str(&text).with_context(|| format!("read {} as scenarios", path.display()))?;
    let (mut passed, mut failed, mut not_built) = (0, 0, 0);
    for scenario in &file.scenarios {
        let name = format!("{} {}", scenario.id, scenario.title);
        match judge(&file, scenario).await.with_context(|| format!("play {name}"))? {
            Verdict::Passed => {
                passed += 1;
                println!("ok        {name}");
            }
            Verdict::Failed(problems) => {
                failed += 1;
                println!("FAILED    {name}");
                problems.iter().for_each(|problem| println!("          {problem}"));
            }
            Verdict::NotBuilt(feature, problems) => {
                not_built += 1;
                println!("not built {name}: needs {feature}");
                problems.iter().for_each(|problem| println!("          {problem}"));
            }
        }
    }
    println!("{} scenarios: {passed} passed, {failed} failed, {not_built} not built", file.scenarios.len());
    anyhow::ensure!(failed == 0, "pass {failed} of {} scenarios", file.scenarios.len());
    Ok(())
}

async fn judge(file: &File, scenario: &Scenario) -> anyhow::Result<Verdict> {
    let problems = play::play(file, scenario).await?;
    Ok(if problems.is_empty() {
        Verdict::Passed
    } else if !scenario.memory.is_empty() {
        Verdict::NotBuilt("memory", problems)
    } else {
        Verdict::Failed(problems)
    })
}
