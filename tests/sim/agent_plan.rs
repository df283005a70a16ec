//! Part of a schedule in which agents act for people, each with a key of one person.

use crate::plan::{ANN, Act, BOB, DOT, Plan};
use crate::rng::Rng;

/// Percentage of the schedules with agents.
const CHANCE: u64 = 34;

/// Agent of a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PlannedAgent {
    /// Person for whom it acts.
    pub person: &'static str,
    pub key_name: &'static str,
    /// Name that it states of itself.
    pub name: &'static str,
}

/// Agent of the admin, who may delete.
pub(crate) const DESK: PlannedAgent = PlannedAgent { person: ANN, key_name: "desk", name: "Claude" };

/// Act of an agent. Each of them takes one or more calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AgentAct {
    Finds(&'static str),
    Adds(&'static str),
    Deletes {
        title: &'static str,
        /// Delay in milliseconds after which the same call is repeated.
        repeats_after: Option<u64>,
    },
    ChecksTickets,
    /// A program with an API key sends this text as the person of the agent.
    TextsAsPerson(&'static str),
}

impl Plan {
    /// Adds one or two agents to some schedules. This part uses a separate random stream, and the schedules that stay the
    /// same have none.
    pub(crate) fn add_agents(&mut self, rng: &mut Rng, end: u64) {
        if !rng.percent(CHANCE) {
            return;
        }
        let other = match rng.percent(70) {
            true => PlannedAgent { person: DOT, key_name: "couch", name: "n8n" },
            // Bob may not delete, and an unnamed program is an agent too.
            false => PlannedAgent { person: BOB, key_name: "bob", name: "" },
        };
        self.agents = match rng.below(4) {
            0 => vec![DESK],
            1 => vec![other],
            _ => vec![DESK, other],
        };
        let moments: Vec<u64> = self.acts.iter().map(|(at, _)| *at).collect();
        let stops: Vec<u64> =
            self.acts.iter().filter_map(|(at, act)| matches!(act, Act::Stop { .. }).then_some(*at)).collect();
        for _ in 0..rng.within(3, 9) {
            let at = match rng.below(4) {
                0 => rng.within(500, end + 20_000),
                // The program stops while a call runs.
                1 if !stops.is_empty() => rng.one_of(&stops).saturating_sub(rng.within(20, 1_500)),
                _ => rng.one_of(&moments) + rng.within(0, 12_000),
            };
            let agent = usize::try_from(rng.below(self.agents.len() as u64)).unwrap();
            self.acts.push((at, Act::Agent(agent, draw_act(rng))));
        }
        self.acts.sort_by_key(|(at, _)| *at);
    }
}

fn draw_act(rng: &mut Rng) -> AgentAct {
    let owned = ["Dune", "Heat", "Alien", "Severance"];
    let wanted = ["Arrival", "Sicario", "Tenet"];
    match rng.below(20) {
        0..2 => AgentAct::Finds(rng.one_of(&owned)),
        2..6 => AgentAct::Adds(rng.one_of(&wanted)),
        6..15 => {
            let repeats_after = rng.percent(35).then(|| rng.within(0, 9_000));
            AgentAct::Deletes { title: rng.one_of(&owned), repeats_after }
        }
        15..18 => AgentAct::ChecksTickets,
        _ => AgentAct::TextsAsPerson(rng.one_of(&["YES 47", "yes", "YES 0000", "approve 4747"])),
    }
}
