//! Simulated phone of `dialarr demo --phone`: each typed line is a text in its inbox, and each text that it sends is
//! printed.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::app::{AppBlueprint, Polling};
use crate::clock::Clock;
use crate::conversation::channel_list;
use crate::conversation::routing::senders::Senders;
use crate::conversation::transcript::{InvalidPhoneNumber, PhoneNumber};
use crate::http::HttpClient;
use crate::messaging::smsgate::SmsGate;
use crate::messaging::smsgate::fake::{FakePhone, FakePhoneAccount, RadioedText};

/// Number of the SIM in the phone.
const PHONE_NUMBER: &str = "+15550100077";
const PHONE_URL: &str = "http://phone.invalid:8080";
/// Interval at which the sent texts are printed.
const PRINT_INTERVAL: Duration = Duration::from_millis(200);

/// Creates the phone.
pub(super) fn create_phone() -> Result<FakePhone, InvalidPhoneNumber> {
    let account = FakePhoneAccount {
        number: PhoneNumber::parse(PHONE_NUMBER)?,
        user: "sms".to_owned(),
        password: "0123abcd".into(),
        signing_key: "a-long-random-word".into(),
    };
    let phone = FakePhone::new(account, Clock::System);
    phone.set_processing_order("FIFO");
    Ok(phone)
}

/// Replaces Twilio by the phone.
pub(super) fn use_phone(blueprint: &mut AppBlueprint, phone: &FakePhone) {
    let http = HttpClient::in_process(phone.in_process());
    let port = SmsGate::new(phone.client_account(PHONE_URL), http);
    blueprint.settings.senders = Senders::from_addresses(vec![port.address()]);
    blueprint.channels.remove(channel_list::TWILIO);
    blueprint.channels = blueprint.channels.clone().with(Arc::new(port));
    blueprint.polling = Polling::On;
}

/// Waits until everything in the phone was read: the texts that it received, and that it sent the replies.
pub(super) async fn wait_until_read(phone: &FakePhone) {
    while !phone.is_fully_read() {
        tokio::time::sleep(PRINT_INTERVAL).await;
    }
    // What was read last is stored.
    tokio::time::sleep(PRINT_INTERVAL).await;
}

/// Prints the texts that the phone sends, until `stop` is canceled.
pub(super) async fn print_texts(phone: FakePhone, print: impl Fn(&RadioedText), stop: CancellationToken) {
    let mut printed = 0;
    while !stop.is_cancelled() {
        let texts = phone.radioed_texts();
        texts.iter().skip(printed).for_each(&print);
        printed = texts.len();
        tokio::select! {
            () = tokio::time::sleep(PRINT_INTERVAL) => {}
            () = stop.cancelled() => {}
        }
    }
}
