//! Setting of a phone with SMS Gateway for Android: the order in which waiting texts leave.

use super::setting_diff::SettingDiff;
use super::{SetupOutcome, SetupRequest};
use crate::messaging::smsgate::SmsGate;
use crate::messaging::smsgate::device::{PhoneError, PhoneState};

/// Order in which texts leave as they were handed over.
const TARGET_ORDER: &str = "FIFO";

pub(crate) async fn set_up(phone: &SmsGate, request: SetupRequest) -> SetupOutcome {
    let changes = match phone.fetch_phone_state().await {
        Ok(state) => setting_diffs(&state),
        Err(error) => return failed(Vec::new(), &error),
    };
    if changes.is_empty() || !request.applies() {
        return SetupOutcome::planned(changes);
    }
    if let Err(error) = phone.set_first_in_first_out().await {
        return failed(changes, &error);
    }
    match phone.fetch_phone_state().await.map(|state| setting_diffs(&state)) {
        Ok(remaining) if remaining.is_empty() => SetupOutcome::Applied(changes),
        Ok(remaining) => SetupOutcome::unchanged(changes, &remaining),
        Err(error) => failed(changes, &error),
    }
}

fn setting_diffs(state: &PhoneState) -> Vec<SettingDiff> {
    let order = state.order.as_deref().unwrap_or_default();
    SettingDiff::between("processing order", order, TARGET_ORDER).into_iter().collect()
}

fn failed(changes: Vec<SettingDiff>, error: &PhoneError) -> SetupOutcome {
    let hint = "open SMS Gateway on the phone, and check SMSGATE_URL and SMSGATE_PASSWORD".to_owned();
    SetupOutcome::Failed { changes, reason: error.to_string(), hint }
}
