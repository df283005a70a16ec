//! Meanings of Twilio's error codes and their consequences.

/// Consequence of an error code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// The request failed, and can be repeated after a while.
    Later,
    /// Same as `Later`, but a limit applies until the next day.
    NextDay,
    /// The message was not delivered, and one more attempt makes sense.
    Once,
    /// The request may have succeeded.
    Ambiguous,
    Permanent,
    OptedOut,
    /// An operator must act first.
    Misconfigured,
    /// Twilio could not use a response of our webhook; no message of ours is affected.
    OurWebhook,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ErrorCode {
    pub code: u32,
    pub class: Class,
    /// Sentence fragment for use after a colon.
    pub meaning: &'static str,
}

pub fn look_up(code: u32) -> Option<&'static ErrorCode> {
    TABLE.binary_search_by_key(&code, |row| row.code).map(|at| &TABLE[at]).ok()
}

/// Returns the class of a refusal by its HTTP status, for codes that are not in the table.
pub fn class_of_status(status: u16) -> Class {
    match status {
        429 => Class::Later,
        401..=403 | 407 => Class::Misconfigured,
        // No address of ours redirects, so the configured API address is wrong.
        300..=399 => Class::Misconfigured,
        408 => Class::Ambiguous,
        400..=499 => Class::Permanent,
        _ => Class::Ambiguous,
    }
}

const fn row(code: u32, class: Class, meaning: &'static str) -> ErrorCode {
    ErrorCode { code, class, meaning }
}

/// Table in ascending order of codes.
const TABLE: &[ErrorCode] = &[
    row(11200, Class::OurWebhook, "our webhook failed or could not be reached"),
    row(11205, Class::OurWebhook, "our webhook refused the connection"),
    row(11750, Class::OurWebhook, "our webhook's answer is too large"),
    row(12100, Class::OurWebhook, "our webhook's answer is not valid XML"),
    row(12200, Class::OurWebhook, "our webhook's answer does not follow the schema"),
    row(12300, Class::OurWebhook, "our webhook's answer has an unusable content type"),
    row(14107, Class::Permanent, "too many replies between two numbers in a short time"),
    row(20001, Class::Permanent, "a parameter is invalid"),
    row(20003, Class::Misconfigured, "Twilio refused the account's credentials"),
    row(20007, Class::Permanent, "the page size is too large"),
    row(20404, Class::Permanent, "the account or resource does not exist"),
    row(20429, Class::Later, "too many requests at once"),
    row(20500, Class::Ambiguous, "an internal error at Twilio"),
    row(20503, Class::Ambiguous, "Twilio is unavailable for a moment"),
    row(21211, Class::Permanent, "the number to text is not valid"),
    row(21212, Class::Misconfigured, "the sending number is not valid"),
    row(21265, Class::Permanent, "short codes cannot be texted"),
    row(21408, Class::Misconfigured, "texting this region is switched off for the account"),
    row(21602, Class::Permanent, "the text is empty"),
    row(21603, Class::Misconfigured, "the sender is missing"),
    row(21604, Class::Permanent, "the number to text is missing"),
    row(21606, Class::Misconfigured, "the sending number cannot text this destination"),
    row(21608, Class::Misconfigured, "only verified numbers can be texted until the account is approved"),
    row(21609, Class::Misconfigured, "the status callback URL is not valid"),
    row(21610, Class::OptedOut, "the person has opted out"),
    row(21611, Class::Later, "the sending number's queue is full"),
    row(21612, Class::Permanent, "the number cannot be reached from this sender"),
    row(21614, Class::Permanent, "the number is not a mobile number"),
    row(21617, Class::Permanent, "the text is longer than 1,600 characters"),
    row(21619, Class::Permanent, "the text is empty"),
    row(21620, Class::Permanent, "a media URL is not valid"),
    row(21623, Class::Permanent, "more than ten media"),
    row(21635, Class::Permanent, "the number is a landline"),
    row(21703, Class::Misconfigured, "the messaging service has no usable number"),
    row(21705, Class::Misconfigured, "the messaging service does not exist"),
    row(30001, Class::Later, "the queue overflowed"),
    row(30002, Class::Misconfigured, "the account is suspended"),
    row(30003, Class::Once, "the phone cannot be reached at present"),
    row(30004, Class::Permanent, "the phone or its carrier blocks the text"),
    row(30005, Class::Permanent, "the number is unknown to its carrier"),
    row(30006, Class::Permanent, "the number is a landline or its carrier cannot be reached"),
    row(30007, Class::Permanent, "the text was filtered as spam"),
    row(30008, Class::Once, "the carrier gave no reason"),
    row(30009, Class::Permanent, "a part of the received text is missing"),
    row(30010, Class::Permanent, "the price is above the maximum"),
    row(30017, Class::Later, "the carrier is congested"),
    row(30019, Class::Permanent, "the media are too large for the carrier"),
    row(30022, Class::Later, "the carrier's rate limit for the number is reached"),
    row(30023, Class::NextDay, "the carrier's daily limit is reached"),
    row(30024, Class::Misconfigured, "the carrier does not know the sending number"),
    row(30027, Class::NextDay, "T-Mobile's daily limit is reached"),
    row(30032, Class::Misconfigured, "the toll-free number is not verified"),
    row(30033, Class::Misconfigured, "the campaign of the number is suspended"),
    row(30034, Class::Misconfigured, "the number is not registered for A2P 10DLC"),
    row(30035, Class::Misconfigured, "the registration of the number is not finished"),
    row(30036, Class::Permanent, "the text expired before it could be sent"),
    row(30044, Class::Misconfigured, "the text is too long for a trial account"),
    row(30410, Class::Later, "the carrier did not answer in time"),
    row(30450, Class::Permanent, "blocked as suspected SMS pumping"),
    row(63003, Class::Permanent, "the address does not exist on this channel"),
    row(63007, Class::Misconfigured, "the sender does not exist on this channel"),
    row(63014, Class::OptedOut, "the person has blocked the sender"),
    row(63016, Class::Permanent, "WhatsApp's 24-hour window has passed"),
    row(63018, Class::Later, "the channel's rate limit is reached"),
    row(63024, Class::Permanent, "the recipient is not valid"),
    row(63036, Class::Permanent, "the recipient cannot be reached by RCS"),
    row(63038, Class::NextDay, "the account's daily limit is reached"),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::Value;

    use super::{Class, TABLE, class_of_status, look_up};

    const CODES: &str = include_str!("../../tests/data/twilio/error_codes.json");

    fn class_named(name: &str) -> Class {
        match name {
            "retry" => Class::Later,
            "retry_next_day" => Class::NextDay,
            "retry_once" => Class::Once,
            "retry_ambiguous" => Class::Ambiguous,
            "permanent" => Class::Permanent,
            "opt_out" => Class::OptedOut,
            "config" => Class::Misconfigured,
            "ours" => Class::OurWebhook,
            other => panic!("{other}"),
        }
    }

    #[test]
    fn the_table_is_the_researched_one() {
        let codes: Value = serde_json::from_str(CODES).unwrap();
        let researched: BTreeMap<u32, Class> = codes["codes"]
            .as_array()
            .unwrap()
            .iter()
            .map(|row| {
                let code = u32::try_from(row["code"].as_u64().unwrap()).unwrap();
                (code, class_named(row["class"].as_str().unwrap()))
            })
            .collect();
        let ours: BTreeMap<u32, Class> = TABLE.iter().map(|row| (row.code, row.class)).collect();
        assert_eq!(ours, researched);
    }

    #[test]
    fn every_code_is_found() {
        for row in TABLE {
            assert_eq!(look_up(row.code), Some(row));
        }
        assert_eq!(look_up(99_999), None);
    }

    #[test]
    fn an_unknown_code_is_judged_by_its_status() {
        let judged = [301, 400, 401, 403, 404, 408, 429, 500, 503, 99].map(class_of_status);
        let expected = [
            Class::Misconfigured,
            Class::Permanent,
            Class::Misconfigured,
            Class::Misconfigured,
            Class::Permanent,
            Class::Ambiguous,
            Class::Later,
            Class::Ambiguous,
            Class::Ambiguous,
            Class::Ambiguous,
        ];
        assert_eq!(judged, expected);
    }
}
