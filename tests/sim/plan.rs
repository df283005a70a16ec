//! Events of a schedule and their times, derived from its seed alone.

use jiff::SignedDuration;

use crate::agent_plan::{AgentAct, PlannedAgent};
use crate::bot_plan::{BotAct, BotPlan};
use crate::operator::OperatorMessage;
use crate::phone_plan::{Carriers, PhoneAct, PhonePlan};
use crate::rng::Rng;

pub(crate) const ANN: &str = "+15550100002";
pub(crate) const BOB: &str = "+15550100003";
pub(crate) const CAT: &str = "+15550100004";
pub(crate) const DOT: &str = "+15550100005";
/// Unknown number.
pub(crate) const EVE: &str = "+15550100006";
/// Member who sets quiet hours and requests the erasure of all her data.
pub(crate) const FAY: &str = "+15550100007";
/// Three minutes to ten in the evening, in milliseconds after the start.
const BEFORE_TEN: u64 = 53 * 60 * 1_000;
/// Title that only Fay requests.
pub(crate) const BRAZIL: i64 = 68;
/// Admin, member who may not delete, and two members who may.
pub(crate) const PEOPLE: [&str; 4] = [ANN, BOB, CAT, DOT];

/// Complete schedule.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub seed: u64,
    /// Percentage of requests that fail, by peer.
    pub twilio: u64,
    pub radarr: u64,
    pub sonarr: u64,
    pub model: u64,
    /// Percentage of webhooks and callbacks that fail to arrive directly.
    pub webhooks: u64,
    pub answers: Answers,
    /// Phone of the household; `None` in most schedules, in which Twilio is the only carrier.
    pub phone: Option<PhonePlan>,
    /// Percentage of failed requests to the media server; `None` without one.
    pub jellyfin: Option<u64>,
    /// Percentage of failed requests to the Seerr where titles are requested; `None` without one.
    pub seerr: Option<u64>,
    /// Percentage of failed requests to TMDB; `None` without an account there.
    pub tmdb: Option<u64>,
    /// Bot at Telegram; `Some` in the schedules in which it is the only carrier.
    pub bot: Option<BotPlan>,
    /// Programs that act for people; empty in most schedules.
    pub agents: Vec<PlannedAgent>,
    /// Makes every step take little time, so that a schedule has few moments.
    pub brisk: bool,
    /// Acts in order of their time, in milliseconds after the start.
    pub acts: Vec<(u64, Act)>,
}

/// Behavior of users at confirmation prompts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answers {
    AsTheyLike,
    Yes,
}

#[derive(Debug, Clone)]
pub(crate) enum Act {
    Text {
        from: &'static str,
        body: String,
        way: DeliveryMode,
    },
    Stop {
        how: Stop,
    },
    Start {
        interrupted: bool,
    },
    LibrariesDown(bool),
    LosesRights(&'static str),
    /// Changes the size of a title outside the program's control.
    Grows,
    /// Makes Radarr import this movie, if Radarr has it.
    Imports(&'static str),
    /// Delivers a user's recorded message as an admin's message with this text.
    Forged(&'static str),
    /// Sets the wall clock of the program forward or back.
    SetClock(SignedDuration),
    /// Replaces all configured parts of the running program. The change is dropped after the time in milliseconds.
    Reconfigures {
        dropped_after: u64,
    },
    /// Stores a changed setting and applies it to the program, or stores it while the program is down.
    ChangesSetting(SettingChange),
    DiskFills(DiskFault),
    DiskIsFreed,
    /// Adds or removes a carrier, and applies that to the program.
    ChangesCarriers(Carriers),
    Phone(PhoneAct),
    Bot(BotAct),
    OperatorWrites(OperatorMessage),
    /// Act of the agent at this position.
    Agent(usize, AgentAct),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SettingChange {
    /// Another address of Radarr, at which the program knows no id and asks for no outcome.
    MovesRadarr,
    MovesSonarr,
    /// The model instead of keywords, or the reverse.
    SwitchesModel,
}

/// Moment at which a write fails on a full disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DiskFault {
    AtStatement,
    AtCommit,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    Kill,
    Drain,
    /// The disk keeps all synced commits, and this percentage of the others.
    PowerCut(u64),
}

/// Path by which a message reaches the webhook, if it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DeliveryMode {
    Straight,
    Late(u64),
    Twice(u64),
    /// Arrival by the second URL, after the first did not respond.
    Fallback(u64),
    Lost,
}

impl Plan {
    /// Creates a plan without failures and without events.
    pub(crate) fn calm(seed: u64) -> Self {
        let (answers, acts) = (Answers::AsTheyLike, Vec::new());
        let (phone, bot, brisk) = (None, None, true);
        Self {
            seed,
            twilio: 0,
            radarr: 0,
            sonarr: 0,
            model: 0,
            webhooks: 0,
            answers,
            phone,
            jellyfin: None,
            seerr: None,
            tmdb: None,
            bot,
            agents: Vec::new(),
            brisk,
            acts,
        }
    }

    pub(crate) fn of(seed: u64) -> Self {
        let mut rng = Rng::of(seed, "plan");
        let storms = [0, 0, 10, 25, 45];
        let mut plan = Self {
            twilio: rng.one_of(&storms),
            radarr: rng.one_of(&storms),
            sonarr: rng.one_of(&storms),
            model: rng.one_of(&[0, 10, 25, 45]),
            webhooks: rng.one_of(&storms),
            brisk: false,
            ..Self::calm(seed)
        };
        let people = &PEOPLE[..usize::try_from(rng.within(1, 4)).unwrap()];
        let mut at = 1_000;
        for _ in 0..rng.within(3, 12) {
            at += pause(&mut rng);
            let from = rng.one_of(people);
            let (body, way) = (body(&mut rng), way(&mut rng, plan.webhooks));
            plan.acts.push((at, Act::Text { from, body, way }));
        }
        let end = at;
        plan.add_crashes(&mut rng, end);
        plan.add_changes(&mut rng, end, people);
        plan.add_household(&mut Rng::of(seed, "household"), end);
        // No seed of the list of failures has a phone, so that those schedules stay the same.
        let has_phone = seed % 11 < 2;
        // The same holds for the bot.
        let has_bot = !has_phone && matches!(seed % 24, 2 | 7 | 14);
        if has_phone {
            plan.add_phone(&mut Rng::of(seed, "phone"), end);
        } else if has_bot {
            plan.add_bot(&mut Rng::of(seed, "bot"), end, people);
        } else {
            plan.add_forgeries(&mut Rng::of(seed, "forgeries"), end);
        }
        if !has_phone {
            plan.add_clock_steps(&mut Rng::of(seed, "clock"), end);
        }
        plan.add_restarts(&mut Rng::of(seed, "restarts"), end);
        if !has_phone {
            plan.add_notifications(&mut Rng::of(seed, "notifications"), end);
        }
        plan.add_disk_faults(&mut Rng::of(seed, "disk"), end);
        plan.add_reconfigurations(&mut Rng::of(seed, "configuration"), end);
        plan.add_setting_changes(&mut Rng::of(seed, "settings"), end);
        let messages = plan.operator_messages();
        plan.acts.extend(messages.into_iter().map(|(at, message)| (at, Act::OperatorWrites(message))));
        plan.acts.sort_by_key(|(at, _)| *at);
        // The schedules of the list of failures stay the same, and so do those of a bot among the first, in which every
        // kind of event happens.
        let is_kept = crate::has_failed_before(seed) || (seed < 60 && plan.bot.is_some());
        if seed % 3 == 1 && !is_kept {
            plan.jellyfin = Some(Rng::of(seed, "jellyfin").one_of(&storms));
        }
        if !is_kept {
            plan.add_catalogs();
        }
        plan.add_viewing_questions();
        if plan.makes_room() {
            plan.add_proposals(&mut Rng::of(seed, "room"), end);
            plan.acts.sort_by_key(|(at, _)| *at);
        }
        plan.add_tonight();
        if !is_kept {
            plan.add_agents(&mut Rng::of(seed, "agents"), end);
        }
        plan
    }

    fn add_crashes(&mut self, rng: &mut Rng, end: u64) {
        let moments: Vec<u64> = self.acts.iter().map(|(at, _)| *at).collect();
        for _ in 0..rng.below(5) {
            // Most crashes hit work that a message has begun.
            let at = match rng.below(4) {
                0 => rng.within(500, end + 20_000),
                1 => rng.one_of(&moments) + rng.within(0, 60),
                _ => rng.one_of(&moments) + rng.within(0, 12_000),
            };
            let down = match rng.below(10) {
                0..6 => rng.within(1_000, 5_000),
                6..8 => rng.within(5_000, 120_000),
                8 => rng.within(120_000, 1_800_000),
                _ => rng.within(1_800_000, 10_800_000),
            };
            let how = if rng.percent(25) { Stop::Drain } else { Stop::Kill };
            self.acts.push((at, Act::Stop { how }));
            self.acts.push((at + down, Act::Start { interrupted: rng.percent(15) }));
        }
    }

    fn add_changes(&mut self, rng: &mut Rng, end: u64, people: &[&'static str]) {
        if rng.percent(25) {
            let at = rng.within(1_000, end);
            self.acts.push((at, Act::LibrariesDown(true)));
            self.acts.push((at + rng.within(5_000, 200_000), Act::LibrariesDown(false)));
        }
        if rng.percent(15) {
            self.acts.push((rng.within(1_000, end + 20_000), Act::LosesRights(rng.one_of(people))));
        }
        if rng.percent(20) {
            self.acts.push((rng.within(1_000, end + 20_000), Act::Grows));
        }
    }
}

impl Plan {
    /// Adds recorded messages that were reassembled. This part also uses a separate random stream.
    fn add_forgeries(&mut self, rng: &mut Rng, end: u64) {
        if rng.percent(30) {
            for _ in 0..rng.within(1, 4) {
                let body = rng.one_of(&["yes", "YES 47", "yes", "approve 0000", "pause", "STOP", "START"]);
                self.acts.push((rng.within(1_000, end + 20_000), Act::Forged(body)));
            }
        }
    }

    /// Adds newcomers, removal requests and pauses. This part uses a separate random stream, so that older schedules
    /// otherwise stay the same.
    fn add_household(&mut self, rng: &mut Rng, end: u64) {
        let says = |plan: &mut Self, at: u64, from, body: &str| {
            let way = way(&mut Rng::of(plan.seed, &format!("way of {at}")), plan.webhooks);
            plan.acts.push((at, Act::Text { from, body: body.to_owned(), way }));
        };
        if rng.percent(40) {
            for _ in 0..rng.within(1, 2) {
                let title = rng.one_of(&["Dune", "Heat", "Alien", "Severance"]);
                says(self, rng.within(1_000, end), BOB, &format!("delete {title}"));
            }
        }
        if rng.percent(30) {
            let mut at = rng.within(500, end);
            for body in ["add Tenet", "Eve", "delete Heat"] {
                says(self, at, EVE, body);
                at += rng.within(100, 90_000);
            }
        }
        if rng.percent(15) {
            let at = rng.within(500, end);
            says(self, at, ANN, "pause");
            says(self, at + rng.within(5_000, 900_000), ANN, "resume");
        }
    }
}

impl Plan {
    /// Adds changes of the configuration, most of them while a message is being processed, and some of them
    /// interrupted. This part uses a separate random stream.
    fn add_reconfigurations(&mut self, rng: &mut Rng, end: u64) {
        let moments: Vec<u64> = self.acts.iter().map(|(at, _)| *at).collect();
        for _ in 0..rng.below(4) {
            let at = match rng.below(4) {
                0 => rng.within(500, end + 20_000),
                _ => rng.one_of(&moments) + rng.within(0, 12_000),
            };
            let dropped_after = if rng.percent(20) { rng.within(0, 5) } else { 60_000 };
            self.acts.push((at, Act::Reconfigures { dropped_after }));
        }
    }

    /// Adds changed settings, most of them while a message is being processed. The first schedules have none, because they
    /// are the usual run, in which every kind of event happens. This part uses a separate random stream.
    fn add_setting_changes(&mut self, rng: &mut Rng, end: u64) {
        if self.seed < 60 || !rng.percent(30) {
            return;
        }
        let moments: Vec<u64> = self.acts.iter().map(|(at, _)| *at).collect();
        for _ in 0..rng.within(1, 4) {
            let at = match rng.below(4) {
                0 => rng.within(500, end + 20_000),
                _ => rng.one_of(&moments) + rng.within(0, 12_000),
            };
            let changes =
                [SettingChange::MovesRadarr, SettingChange::MovesSonarr, SettingChange::SwitchesModel];
            self.acts.push((at, Act::ChangesSetting(rng.one_of(&changes))));
        }
    }

    /// Adds clock steps of up to a day in both directions, also while the program is down. This part uses a separate
    /// random stream.
    fn add_clock_steps(&mut self, rng: &mut Rng, end: u64) {
        if !rng.percent(35) {
            return;
        }
        let stops: Vec<u64> =
            self.acts.iter().filter_map(|(at, act)| matches!(act, Act::Stop { .. }).then_some(*at)).collect();
        let moments: Vec<u64> = self.acts.iter().map(|(at, _)| *at).collect();
        for _ in 0..rng.within(1, 3) {
            let at = match rng.below(4) {
                0 => rng.within(500, end + 20_000),
                1 if !stops.is_empty() => rng.one_of(&stops) + rng.within(0, 1_500),
                _ => rng.one_of(&moments) + rng.within(0, 15_000),
            };
            let by = match rng.below(4) {
                0 => rng.within(3_000, 600_000),
                1 => rng.within(600_000, 10_800_000),
                _ => rng.within(10_800_000, 86_400_000),
            };
            let by = SignedDuration::from_millis(i64::try_from(by).unwrap());
            self.acts.push((at, Act::SetClock(if rng.percent(60) { -by } else { by })));
        }
    }

    /// Adds notifications that are held up and released: by quiet hours, an outage, a lasting confirmation prompt, or
    /// permanently. This part uses a separate random stream.
    fn add_notifications(&mut self, rng: &mut Rng, end: u64) {
        if !rng.percent(35) {
            return;
        }
        let text = |body: &str| Act::Text { from: FAY, body: body.to_owned(), way: DeliveryMode::Straight };
        let mut at = rng.within(500, end);
        let hours = rng.one_of(&["quiet 21-7", "quiet 21-23", "quiet 22-7", "quiet 22-7"]);
        self.acts.push((at, text(hours)));
        at += rng.within(3_000, 60_000);
        self.acts.push((at, text("find Brazil")));
        at += rng.within(8_000, 30_000);
        self.acts.push((at, Act::LibrariesDown(true)));
        self.acts.push((at + 500, text("want Brazil")));
        at += rng.within(30_000, 120_000);
        self.acts.push((at, Act::LibrariesDown(false)));
        // The addition is retried within minutes, and imported titles are read within five minutes.
        at += rng.within(100_000, 1_200_000);
        if hours == "quiet 22-7" && at < BEFORE_TEN {
            // A confirmation prompt that is open at ten holds up the notification from before ten.
            self.acts.push((BEFORE_TEN, Act::Imports("Brazil")));
            self.acts.push((BEFORE_TEN + rng.within(1_000, 120_000), text("delete Alien")));
            return;
        }
        self.acts.push((at, Act::Imports("Brazil")));
        let after = at + rng.within(1_000, 4_000_000);
        let last = rng.one_of(&["quiet off", "quiet 21-8", "notify off", "forget all", "forget all"]);
        self.acts.push((after, text(last)));
        // The subject of a request to the admins is erased with all other data.
        if last != "forget all" && rng.percent(30) {
            self.acts.push((at + rng.within(0, 250_000), text("delete Alien")));
        }
    }

    /// Adds bursts of quick restarts, as of a program that a supervisor restarts again and again. This part uses a
    /// separate random stream.
    fn add_restarts(&mut self, rng: &mut Rng, end: u64) {
        if !rng.percent(25) {
            return;
        }
        let moments: Vec<u64> =
            self.acts.iter().filter(|(_, act)| matches!(act, Act::Text { .. })).map(|(at, _)| *at).collect();
        for _ in 0..rng.within(1, 3) {
            // Most restarts hit the answer to a confirmation prompt, which follows its message.
            let mut at = match rng.below(4) {
                0 => rng.within(500, end + 20_000),
                _ => rng.one_of(&moments) + rng.within(0, 40_000),
            };
            for _ in 0..rng.within(5, 12) {
                self.acts.push((at, Act::Stop { how: Stop::Kill }));
                at += rng.within(50, 900);
                self.acts.push((at, Act::Start { interrupted: false }));
                at += rng.within(20, 2_500);
            }
        }
    }
}

impl Plan {
    /// Adds losses of power, and times in which the disk is full. This part uses a separate random stream.
    fn add_disk_faults(&mut self, rng: &mut Rng, end: u64) {
        let moments: Vec<u64> =
            self.acts.iter().filter(|(_, act)| matches!(act, Act::Text { .. })).map(|(at, _)| *at).collect();
        let moment = |rng: &mut Rng| match rng.below(4) {
            0 => rng.within(500, end + 20_000),
            1 => rng.one_of(&moments) + rng.within(0, 12_000),
            // Most work for a message takes a few hundred milliseconds.
            _ => rng.one_of(&moments) + rng.within(0, 400),
        };
        if rng.percent(30) {
            for _ in 0..rng.within(1, 3) {
                let at = moment(rng);
                let how = Stop::PowerCut(rng.one_of(&[0, 0, 30, 60, 100]));
                self.acts.push((at, Act::Stop { how }));
                self.acts.push((at + rng.within(1_000, 60_000), Act::Start { interrupted: rng.percent(15) }));
            }
        }
        if rng.percent(20) {
            let at = moment(rng);
            let fault = if rng.percent(50) { DiskFault::AtStatement } else { DiskFault::AtCommit };
            self.acts.push((at, Act::DiskFills(fault)));
            self.acts.push((at + rng.within(10, 90_000), Act::DiskIsFreed));
        }
    }
}

fn pause(rng: &mut Rng) -> u64 {
    match rng.below(20) {
        0..6 => rng.within(50, 900),
        6..16 => rng.within(2_000, 40_000),
        16..19 => rng.within(60_000, 400_000),
        _ => rng.within(1_900_000, 4_200_000),
    }
}

fn body(rng: &mut Rng) -> String {
    let owned = ["Dune", "Heat", "Alien", "Severance"];
    let wanted = ["Arrival", "Sicario", "Tenet", "Dark"];
    match rng.below(30) {
        0..9 => format!("delete {}", rng.one_of(&owned)),
        9..11 => "delete Dune and Heat".to_owned(),
        11 => format!("delete {}", rng.one_of(&wanted)),
        12..18 => format!("add {}", rng.one_of(&wanted)),
        18 => format!("add {}", rng.one_of(&owned)),
        19..21 => rng.one_of(&["status", "status?", "upcoming", "what is new?"]).to_owned(),
        21..23 => rng.one_of(&["hello there", "thanks a lot", "tell me a story"]).to_owned(),
        23..26 => rng.one_of(&["yes", "no", "YES 47", "y", "ok thanks"]).to_owned(),
        26 => "/clear".to_owned(),
        27 => "never mind".to_owned(),
        28 => "STOP".to_owned(),
        _ => rng.one_of(&["START", "yes", "more", "commands"]).to_owned(),
    }
}

/// Chooses the path of a message. `astray` percent of the messages do not arrive directly.
pub(crate) fn way(rng: &mut Rng, astray: u64) -> DeliveryMode {
    if !rng.percent(astray) {
        return DeliveryMode::Straight;
    }
    match rng.below(5) {
        0 => DeliveryMode::Lost,
        1 => DeliveryMode::Late(rng.within(500, 14_000)),
        2 | 3 => DeliveryMode::Twice(rng.within(0, 15_000)),
        _ => DeliveryMode::Fallback(rng.within(1_000, 15_000)),
    }
}
