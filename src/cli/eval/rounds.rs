//! Plays the scenarios of a file, each as often as asked for, some at the same time.

use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream;

use super::file::{File, Scenario};
use super::measure::{Round, Run, Verdict};
use super::play::{self, Brain};

/// Shorter ones are no phone numbers.
const DIGITS_OF_A_NUMBER: usize = 7;

/// What is played, and how.
pub(super) struct Plan {
    pub(super) file: Arc<File>,
    pub(super) brain: Brain,
    pub(super) times: usize,
    /// Runs at the same time.
    pub(super) at_once: usize,
}

impl Plan {
    /// Gives the rounds in the order of the file, and tells each to `told` as soon as it and those before it are over.
    pub(super) async fn play(&self, mut told: impl FnMut(&Round)) -> Vec<Round> {
        let scenarios = &self.file.scenarios;
        let plays = scenarios.iter().map(|scenario| if self.plays(scenario) { self.times } else { 0 });
        let jobs = plays.clone().enumerate().flat_map(|(place, plays)| (0..plays).map(move |_| place));
        let runs = jobs.map(|place| run(self.file.clone(), place, self.brain.clone()));
        let mut runs = stream::iter(runs).buffered(self.at_once.max(1));
        let mut rounds = Vec::new();
        for (scenario, plays) in scenarios.iter().zip(plays) {
            let mut of_scenario = Vec::new();
            for _ in 0..plays {
                of_scenario.extend(runs.next().await);
            }
            let round = Round {
                id: scenario.id.clone(),
                title: scenario.title.clone(),
                verdict: verdict(scenario, &of_scenario),
                runs: of_scenario,
            };
            told(&round);
            rounds.push(round);
        }
        rounds
    }

    fn plays(&self, scenario: &Scenario) -> bool {
        match self.brain {
            Brain::Scripted => true,
            Brain::Live { .. } => scenario.scripted_only.is_none(),
        }
    }
}

/// A task of its own, so that a run which panics fails alone.
async fn run(file: Arc<File>, place: usize, brain: Brain) -> Run {
    let played = tokio::spawn(async move { play::play(&file, &file.scenarios[place], &brain).await });
    match played.await {
        Ok(Ok(run)) => private(run),
        Ok(Err(error)) => stopped(&format!("{error:#}")),
        Err(error) => stopped(&error.to_string()),
    }
}

fn stopped(why: &str) -> Run {
    private(Run { problems: vec![format!("could not be played: {why}")], texts: Vec::new() })
}

fn private(run: Run) -> Run {
    Run { problems: run.problems.iter().map(|problem| without_numbers(problem)).collect(), ..run }
}

/// Phone numbers, as texts and errors may hold them, do not belong into what is passed on.
fn without_numbers(text: &str) -> String {
    let mut parts = text.split('+');
    let mut kept = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|char: char| !char.is_ascii_digit() && !" -().".contains(char));
        let number = part[..end.unwrap_or(part.len())].trim_end_matches(|char: char| !char.is_ascii_digit());
        if number.chars().filter(char::is_ascii_digit).count() >= DIGITS_OF_A_NUMBER {
            kept.push_str("[number]");
        } else {
            kept.push('+');
            kept.push_str(number);
        }
        kept.push_str(&part[number.len()..]);
    }
    kept
}

fn verdict(scenario: &Scenario, runs: &[Run]) -> Verdict {
    if let (Some(why), []) = (&scenario.scripted_only, runs) {
        Verdict::NotPlayed(why.clone())
    } else if runs.iter().all(Run::passed) {
        Verdict::Passed
    } else {
        Verdict::Failed
    }
}
