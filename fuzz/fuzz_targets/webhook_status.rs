//! Delivery reports of Twilio: recorded if signed as received, with the query, and with a message and a status; also
//! when repeated.
#![no_main]

use std::cell::RefCell;

use dialarr::messaging::twilio::STATUS_PATH;
use dialarr::messaging::twilio::webhook::{CallbackQuery, parse_status_callback};
use dialarr::simulation::ACCOUNT;
use dialarr_fuzz::program::{Program, Signed, fields, signed_words};
use http::Uri;
use libfuzzer_sys::fuzz_target;

thread_local! {
    static PROGRAM: RefCell<Program> = RefCell::default();
}

fuzz_target!(|data: &[u8]| {
    let [how, rest @ ..] = data else { return };
    let (query, form) = rest.split_at(rest.iter().position(|byte| *byte == b'\n').unwrap_or(0));
    let form = form.strip_prefix(b"\n").unwrap_or(form);
    let Ok(query) = str::from_utf8(query) else { return };
    let Ok(target) = format!("{STATUS_PATH}?{query}").parse::<Uri>() else { return };
    let target = target.to_string();
    let by = match how % 4 {
        0 | 1 => Signed::ByTwilio,
        2 => Signed::BySomebody,
        _ => Signed::Not,
    };
    let whole =
        |form: &[u8]| parse_status_callback(&fields(form), CallbackQuery::from_query(query), ACCOUNT).is_ok();
    let expected = match by {
        Signed::BySomebody | Signed::Not => 403,
        Signed::ByTwilio if whole(form) => 204,
        Signed::ByTwilio => 400,
    };
    PROGRAM.with_borrow_mut(|program| {
        assert_eq!(program.form(&target, form, by, form), expected);
        if how % 4 == 1 {
            assert_eq!(program.form(&target, form, by, form), expected, "it comes again");
            let mut other = form.to_vec();
            other.extend_from_slice(b"&ErrorCode=30007");
            let expected = match (signed_words(&other) == signed_words(form), whole(&other)) {
                (false, _) => 403,
                (true, false) => 400,
                (true, true) => 204,
            };
            assert_eq!(program.form(&target, &other, by, form), expected);
        }
    });
});
