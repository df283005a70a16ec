//! Twilio's message list in pages of the fuzzer: limited, requested from Twilio only, and its messages are in order,
//! recent enough and without NUL characters.
#![no_main]

use bytes::Bytes;
use dialarr::conversation::transcript::{Address, PhoneNumber, UserAddress};
use dialarr::messaging::twilio::{Twilio, TwilioAccount, TwilioCredentials, TwilioSender};
use dialarr_fuzz::peer::{answering, run};
use jiff::Timestamp;
use libfuzzer_sys::fuzz_target;

const HOST: &str = "api.twilio.invalid";
const MAX_PAGES: usize = 20;

fuzz_target!(|data: &[u8]| {
    let pages: Vec<Bytes> = data.split(|byte| *byte == 0).map(Bytes::copy_from_slice).collect();
    let (http, asked) = answering(200, pages);
    let account = TwilioAccount {
        api_url: format!("https://{HOST}"),
        account_sid: "AC0".to_owned(),
        credentials: TwilioCredentials::AuthToken("token".into()),
        sender: TwilioSender::Number,
        public_url: "https://sms.example.org".to_owned(),
    };
    let twilio = Twilio::new(account, http);
    let number = Address::new("+15550100000");
    let since = Timestamp::UNIX_EPOCH;
    let now = Timestamp::from_second(1_800_000_000).expect("an instant");
    let received = run(twilio.fetch_received_since(&number, since, now));
    let asked_for = asked.take();
    assert!((1..=MAX_PAGES).contains(&asked_for.len()), "{} requests", asked_for.len());
    for uri in asked_for {
        let authority = uri.authority().map(ToString::to_string);
        assert_eq!(authority.as_deref(), Some(HOST), "our credentials went elsewhere");
    }
    let received = received.unwrap_or_default();
    assert!(received.is_sorted_by_key(|text| text.provider_at));
    for text in &received {
        assert!(text.provider_at >= since && text.received_at == now);
        assert!(!text.body.contains('\0') && text.media.len() <= 10);
        assert_eq!(UserAddress::parse(text.from.name()).as_ref(), Some(&text.from));
    }
    let ours = PhoneNumber::parse("+15550100000").expect("a number");
    // The content does not matter; one page is requested.
    let deliveries = run(twilio.fetch_recent_deliveries(&ours));
    assert!(asked.take().len() == 1 || deliveries.is_err());
});
