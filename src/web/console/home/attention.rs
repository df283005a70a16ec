//! Items that need the operator's attention, with the button or link that helps.

use askama::Template;

use super::sections::MAX_FAILED_MESSAGES;
use crate::connections::states::ConnectionState;
use crate::conversation::people::naming;
use crate::conversation::transcript::User;
use crate::doctor::Finding;
use crate::doctor::connection_test::ConnectionKind;
use crate::store::console::attention::{AttentionItems, UnresolvedEffect, UnresolvedEffectKind};
use crate::store::console::deliveries::DeliverySummary;
use crate::web::console::delivery_labels;
use crate::web::console::format::{UserLink, display_name};
use crate::web::console::layout::DisplayTime;
use crate::web::console::requests::RemovalRequestLine;
use crate::web::console_state::ConsoleState;
use crate::web::health::{HealthCheckResult, HealthReport};

#[derive(Template)]
#[template(path = "home_attention.html")]
pub(super) struct AttentionView<'a> {
    token: &'a str,
    /// False until the connections are checked for the first time.
    is_checked: bool,
    paused_since: Option<DisplayTime>,
    newcomers: Vec<NewcomerLine>,
    removal_requests: Vec<RemovalRequestLine>,
    /// Parts of the configuration that are missing or cannot be used.
    setup: Vec<Finding>,
    /// True if the console changes the configuration.
    has_settings: bool,
    failures: Vec<FailureLine>,
    problems: Vec<ProblemLine>,
    /// True if there are failed messages beyond those in the list of problems.
    more_failed: bool,
}

/// Connection that does not work.
struct FailureLine {
    name: &'static str,
    label: &'static str,
    sentence: String,
    hint: Option<String>,
    since: Option<DisplayTime>,
    can_be_tested: bool,
}

struct NewcomerLine {
    id: i64,
    name: String,
    number: String,
}

/// Problem for the operator to check, without a button.
struct ProblemLine {
    headline: &'static str,
    user: Option<UserLink>,
    /// Text of the message or the name of the conversation.
    about: String,
    reason: String,
    at: Option<DisplayTime>,
    path: String,
}

impl<'a> AttentionView<'a> {
    pub(super) fn build(
        console: &ConsoleState,
        token: &'a str,
        (attention, failed): (&AttentionItems, &[DeliverySummary]),
        readiness: &HealthReport,
    ) -> Self {
        let removal_requests = attention.removal_requests.iter();
        let connections = console.connections.current();
        let tester = console.connection_tester.current();
        let failures: Vec<FailureLine> =
            connections.iter().filter_map(|state| FailureLine::from_state(state, console)).collect();
        // The missing file of the database is listed once.
        let database_fails = failures.iter().any(|failure| failure.name == ConnectionKind::Database.as_str());
        let health_problems = health_problems(readiness)
            .filter(|problem| !database_fails || problem.about != HealthReport::DATABASE_FILE);
        Self {
            token,
            is_checked: !connections.is_empty(),
            paused_since: attention.paused_since.map(|at| console.display_time(at)),
            newcomers: attention.newcomers.iter().map(NewcomerLine::from_user).collect(),
            removal_requests: removal_requests
                .filter_map(|(request, user)| RemovalRequestLine::from_approval(request, user))
                .collect(),
            setup: tester.setup_findings(),
            has_settings: console.settings.is_some(),
            failures,
            problems: health_problems.chain(list_problems(attention, failed, console)).collect(),
            more_failed: failed.len() > MAX_FAILED_MESSAGES,
        }
    }

    fn item_count(&self) -> usize {
        usize::from(self.paused_since.is_some())
            + self.newcomers.len()
            + self.removal_requests.len()
            + self.setup.len()
            + self.failures.len()
            + self.problems.len()
    }

    /// Returns the section in one sentence, for screen readers.
    fn summary(&self) -> String {
        match self.item_count() {
            0 => "All clear.".to_owned(),
            1 => "1 item needs attention.".to_owned(),
            count => format!("{count} items need attention."),
        }
    }

    /// Returns the items with buttons. When they change, the buttons are disabled for a moment.
    fn decisions(&self) -> String {
        let newcomers = self.newcomers.iter().map(|newcomer| format!("user {} ", newcomer.id));
        let requests = self.removal_requests.iter().map(|request| format!("request {} ", request.id));
        newcomers.chain(requests).collect()
    }
}

impl FailureLine {
    fn from_state(state: &ConnectionState, console: &ConsoleState) -> Option<Self> {
        let failure = state.failure()?;
        Some(Self {
            name: state.kind.as_str(),
            label: state.kind.label(),
            sentence: state.sentence(),
            hint: failure.hint.clone(),
            since: state.failing_since.map(|since| console.display_time(since)),
            can_be_tested: console.connection_tester.current().connections().contains(&state.kind),
        })
    }
}

/// Returns the failed checks of `/ready` as problems.
fn health_problems(report: &HealthReport) -> impl Iterator<Item = ProblemLine> {
    let problem = |check: &HealthCheckResult| ProblemLine {
        headline: "Not ready",
        user: None,
        about: check.name.to_owned(),
        reason: check.detail.clone(),
        at: None,
        path: "/health-checks".to_owned(),
    };
    report.checks.iter().filter(|check| !check.ok).map(problem)
}

impl NewcomerLine {
    fn from_user(user: &User) -> Self {
        Self {
            id: user.id.0,
            name: user.name.clone().unwrap_or_default(),
            number: naming::format_address(user),
        }
    }
}

fn list_problems(
    attention: &AttentionItems,
    failed: &[DeliverySummary],
    console: &ConsoleState,
) -> Vec<ProblemLine> {
    let unresolved = attention.unresolved.iter().map(|effect| ProblemLine::from_unresolved(effect, console));
    let failed = failed.iter().take(MAX_FAILED_MESSAGES).map(|delivery| ProblemLine {
        headline: "A text was not delivered",
        user: Some(UserLink::from(&delivery.to)),
        about: delivery.message.body.clone(),
        reason: delivery_labels::delivery_reason(&delivery.message).unwrap_or_default(),
        at: Some(console.display_time(delivery.message.written_at)),
        path: "/deliveries?which=failed".to_owned(),
    });
    let failed_turns = attention.failed_turns.iter().map(|turn| ProblemLine {
        headline: "A reply failed",
        user: Some(UserLink::from(&turn.user)),
        about: turn.name.clone(),
        reason: "the conversation shows where it ended".to_owned(),
        at: Some(console.display_time(turn.at)),
        path: format!("/conversations/{}", turn.conversation),
    });
    let opted_out = attention.opted_out_admins.iter().map(|admin| ProblemLine {
        headline: "An admin has opted out",
        user: None,
        about: display_name(admin),
        reason: "they get no texts until they text START".to_owned(),
        at: None,
        path: format!("/users/{}", admin.id),
    });
    let suspended = attention.suspended_users.iter().map(|user| ProblemLine {
        headline: "Deletions by text suspended",
        user: None,
        about: display_name(user),
        reason: "deletions and approvals by text are suspended until tomorrow; allow them again on the user's page"
            .to_owned(),
        at: None,
        path: format!("/users/{}", user.id),
    });
    let backup = attention.backup_failed_at.map(|at| ProblemLine {
        headline: "The last backup failed",
        user: None,
        about: String::new(),
        reason: "the output of dialarr backup has the reason; the next one that succeeds removes this line"
            .to_owned(),
        at: Some(console.display_time(at)),
        path: "/health-checks".to_owned(),
    });
    let people = suspended.chain(unresolved).chain(failed).chain(failed_turns).chain(opted_out);
    people.chain(backup).collect()
}

impl ProblemLine {
    fn from_unresolved(effect: &UnresolvedEffect, console: &ConsoleState) -> Self {
        let (headline, about, fallback_path) = match &effect.kind {
            UnresolvedEffectKind::Message => {
                ("Delivery status unknown", String::new(), "/deliveries?which=waiting")
            }
            UnresolvedEffectKind::Call(tool) => {
                ("Outcome of a change unknown", tool.replace('_', " "), "/conversations")
            }
        };
        let conversation = effect.conversation.map(|id| format!("/conversations/{id}"));
        Self {
            headline,
            user: None,
            about,
            reason: "Dialarr is checking it".to_owned(),
            at: Some(console.display_time(effect.since)),
            path: conversation.unwrap_or_else(|| fallback_path.to_owned()),
        }
    }
}
