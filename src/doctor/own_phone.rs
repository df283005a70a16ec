//! Check of a phone with SMS Gateway for Android.

use jiff::{SignedDuration, Timestamp};

use super::Finding;
use crate::messaging::smsgate::SmsGate;
use crate::messaging::smsgate::device::{PhoneError, PhoneState};

/// Charge in percent below which the battery is reported.
const LOW_BATTERY: i64 = 25;
/// Difference of the clocks from which no yes counts.
const MAX_CLOCK_SKEW: SignedDuration = SignedDuration::from_secs(60);

/// Checks the phone. Without an account at a carrier, a sender number is as easy to forge as with one.
pub(super) async fn check_own_phone(phone: &SmsGate) -> Vec<Finding> {
    let mut findings = match phone.fetch_phone_state().await {
        Ok(state) => state_findings(phone, &state),
        Err(error) => return vec![error_finding(phone, &error)],
    };
    findings.extend(skew_finding(phone.clock_skew()));
    findings.push(Finding::ok(
        "Own phone: a sender number is as easy to forge as at any carrier; CONFIRM_CODE=always protects deletions",
    ));
    findings
}

/// Returns a finding on the last request to the phone.
pub(super) fn last_request_finding(outcome: Option<Result<(), String>>) -> Finding {
    match outcome {
        None => Finding::ok("Own phone: no request was made yet"),
        Some(Ok(())) => Finding::ok("Own phone: answers"),
        Some(Err(problem)) => Finding::failure(
            format!("Own phone: failed to {problem}; texts wait here, none are lost"),
            "open SMS Gateway on the phone and turn on Local server; give the phone a fixed address in the router",
        ),
    }
}

fn error_finding(phone: &SmsGate, error: &PhoneError) -> Finding {
    match error {
        PhoneError::Unreachable(_) => Finding::failure(
            format!("Own phone: the phone does not answer at {}", phone.url()),
            "check that SMS Gateway is open, that Local server is on, and that the phone is in the same network",
        ),
        PhoneError::Refused => Finding::failure(
            "Own phone: the phone refuses the user name or password",
            "copy both from the app to SMSGATE_USER and SMSGATE_PASSWORD",
        ),
        PhoneError::Unusable(problem) => Finding::failure(
            format!("Own phone: unusable answer: {problem}"),
            "update SMS Gateway on the phone, and check SMSGATE_URL",
        ),
    }
}

fn state_findings(phone: &SmsGate, state: &PhoneState) -> Vec<Finding> {
    let version = state.version.as_deref().unwrap_or("unknown");
    let mut findings = vec![Finding::ok(format!("Own phone: reachable, version {version}"))];
    match phone.sim() {
        _ if state.sims.is_empty() => findings.push(Finding::failure(
            "Own phone: the phone reports no SIM card",
            "insert one, and allow the app to read the phone state",
        )),
        Some(sim) if !state.sims.contains(&sim) => findings.push(Finding::failure(
            format!("Own phone: the phone reports no SIM {sim}"),
            "set SMSGATE_SIM to one of its SIMs, counted from 1",
        )),
        None if state.sims.len() > 1 => findings.push(Finding::warning(
            "Own phone: the phone has several SIMs, so texts to all of them are read",
            "set SMSGATE_SIM to the one that people text",
        )),
        Some(_) | None => {}
    }
    if state.order.as_deref() != Some("FIFO") {
        findings.push(Finding::warning(
            "Own phone: texts may leave in the wrong order",
            "choose FIFO as the processing order in the app, or run dialarr setup --apply",
        ));
    }
    if let Some(level) = state.battery.filter(|level| *level < LOW_BATTERY) {
        findings.push(Finding::warning(
            format!("Own phone: the phone is at {level} %"),
            "keep it on a charger, and turn off battery saving for the app",
        ));
    }
    if let Some(failed) = state.failed_messages.filter(|failed| *failed > 0) {
        findings.push(Finding::warning(
            format!("Own phone: {failed} texts failed in the last hour"),
            "check the signal and the plan of the SIM, and the app's permission to send texts",
        ));
    }
    findings.push(Finding::ok(format!("Own phone: texts that wait in the phone: {}", state.waiting)));
    findings.push(match state.last_received_at {
        Some(at) => Finding::ok(format!("Own phone: last text received at {}", format_time(at))),
        None => Finding::warning(
            "Own phone: no text was ever received",
            "turn off RCS chats on both phones, and allow the app to read and receive texts",
        ),
    });
    findings
}

fn skew_finding(skew: Option<SignedDuration>) -> Option<Finding> {
    let skew = skew.filter(|skew| skew.abs() > MAX_CLOCK_SKEW)?;
    let seconds = skew.abs().as_secs();
    Some(Finding::failure(
        format!("Own phone: its clock differs by {seconds} s, so no yes counts"),
        "turn on the automatic time in the settings of the phone",
    ))
}

fn format_time(at: Timestamp) -> String {
    at.strftime("%Y-%m-%d %H:%M UTC").to_string()
}
