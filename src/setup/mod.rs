//! What Sonarr, Radarr and Twilio have to be told of us: as it is, as it should be, and making it so.

pub(crate) mod arr_instance;
pub(crate) mod change;
pub(crate) mod connect;
pub(crate) mod number;

use change::Change;

/// What is asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Work {
    pub(crate) mode: Mode,
    pub(crate) secret: Secret,
    pub(crate) namesakes: Namesakes,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Show,
    Apply,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Secret {
    Keep,
    Renew,
}

/// What becomes of a webhook with our name that leads elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Namesakes {
    Leave,
    /// It is led here, unless another one leads here already.
    TakeOver,
}

impl Work {
    fn applies(self) -> bool {
        self.mode == Mode::Apply
    }
}

/// What became of one part of the setup.
pub(crate) enum Outcome {
    Skipped {
        why: String,
        hint: String,
    },
    AsItShouldBe,
    Planned(Vec<Change>),
    /// And read back.
    Done(Vec<Change>),
    /// `why` fits after "failed to".
    Failed {
        changes: Vec<Change>,
        why: String,
        hint: String,
    },
}

impl Outcome {
    fn planned(changes: Vec<Change>) -> Self {
        if changes.is_empty() { Self::AsItShouldBe } else { Self::Planned(changes) }
    }

    /// It was accepted, and reading it back shows otherwise.
    fn unchanged(changes: Vec<Change>, left: &[Change]) -> Self {
        let left: Vec<String> = left.iter().map(ToString::to_string).collect();
        Self::Failed {
            changes,
            why: format!("see it changed: still {}", left.join("; ")),
            hint: "set it by hand: docs/OPERATIONS.md says how".to_owned(),
        }
    }
}
