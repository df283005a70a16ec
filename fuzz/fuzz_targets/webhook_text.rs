//! Inbound messages of Twilio: accepted only if the form is signed as received and names sender and recipient.
#![no_main]

use std::cell::RefCell;

use dialarr::messaging::twilio::WEBHOOK_PATH;
use dialarr::messaging::twilio::webhook::parse_inbound_message;
use dialarr::simulation::ACCOUNT;
use dialarr_fuzz::program::{Program, Signed, fields, signed_words};
use jiff::Timestamp;
use libfuzzer_sys::fuzz_target;

thread_local! {
    static PROGRAM: RefCell<Program> = RefCell::default();
}

fuzz_target!(|data: &[u8]| {
    let [how, place, form @ ..] = data else { return };
    let by = match how % 4 {
        0 | 1 => Signed::ByTwilio,
        2 => Signed::BySomebody,
        _ => Signed::Not,
    };
    let mut arrived = form.to_vec();
    if how % 4 == 1 && !arrived.is_empty() {
        let at = usize::from(*place) % arrived.len();
        arrived[at] ^= 1 << (how / 4 % 8);
    }
    let status = PROGRAM.with_borrow_mut(|program| program.form(WEBHOOK_PATH, &arrived, by, form));
    let trusted = by == Signed::ByTwilio && signed_words(form) == signed_words(&arrived);
    let whole = parse_inbound_message(&fields(&arrived), ACCOUNT, Timestamp::UNIX_EPOCH).is_ok();
    match status {
        200 => assert!(trusted && whole, "taken, though not to be trusted or not whole"),
        400 => assert!(trusted, "read, though not to be trusted"),
        403 => assert!(!trusted, "refused, though signed"),
        other => panic!("answered with {other}"),
    }
});
