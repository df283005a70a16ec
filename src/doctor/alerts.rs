//! Check of the targets of alerts, each with a test message.

use super::Finding;
use crate::clock::Clock;
use crate::messaging::alert_sender::{AlertError, AlertSender};
use crate::store::queue::alerts::AlertTarget;

/// Sends a test message to each target.
pub(super) async fn check_targets(sender: &AlertSender) -> Vec<Finding> {
    let mut findings = Vec::new();
    for target in sender.targets() {
        findings.push(check_target(sender, target).await);
    }
    findings
}

/// Sends a test message to one target.
pub(super) async fn check_target(sender: &AlertSender, target: AlertTarget) -> Finding {
    let name = target.as_str();
    match sender.send_test(target, Clock::System.now()).await {
        Ok(()) => Finding::ok(format!("alerts: {name} accepted a test message")),
        Err(error) => Finding::failure(format!("alerts: {name}: failed to {error}"), hint(target, &error)),
    }
}

fn hint(target: AlertTarget, error: &AlertError) -> &'static str {
    match (target, error) {
        (_, AlertError::Http(_)) => "check its URL, and that it can be reached from this machine",
        (AlertTarget::Ntfy, _) => "check NTFY_URL, and NTFY_TOKEN if the topic needs one",
        (AlertTarget::Pushover, _) => "check PUSHOVER_TOKEN and PUSHOVER_USER",
        (AlertTarget::Webhook, _) => "check OPERATOR_WEBHOOK_URL, and the log of the program behind it",
    }
}
