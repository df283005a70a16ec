//! Twilio's error codes, with their meanings and consequences.

/// Consequence of an error code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorCodeClass {
    /// The request failed and can be retried later.
    Later,
    /// The request failed because of a limit that applies until the next day.
    NextDay,
    /// The message was not delivered, and one more attempt may succeed.
    Once,
    /// The request may have succeeded.
    Ambiguous,
    /// Retries fail in the same way.
    Permanent,
    OptedOut,
    /// Requests fail until an operator resolves the error.
    Misconfigured,
    /// Twilio could not use the response of our webhook. No outbound message is affected.
    OurWebhook,
}

/// Error code with its consequence and meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ErrorCode {
    pub code: u32,
    pub class: ErrorCodeClass,
    /// Clause that can follow a colon.
    pub meaning: &'static str,
}

pub fn look_up_error_code(code: u32) -> Option<&'static ErrorCode> {
    TABLE.binary_search_by_key(&code, |row| row.code).map(|index| &TABLE[index]).ok()
}

/// Classifies an error response by its HTTP status, for codes that are not in the table.
pub fn classify_status(status: u16) -> ErrorCodeClass {
    match status {
        429 => ErrorCodeClass::Later,
        401..=403 | 407 => ErrorCodeClass::Misconfigured,
        // Twilio's API does not redirect, so the configured API URL is wrong.
        300..=399 => ErrorCodeClass::Misconfigured,
        408 => ErrorCodeClass::Ambiguous,
        400..=499 => ErrorCodeClass::Permanent,
        _ => ErrorCodeClass::Ambiguous,
    }
}

const fn error_code(code: u32, class: ErrorCodeClass, meaning: &'static str) -> ErrorCode {
    ErrorCode { code, class, meaning }
}

/// Known codes in ascending order, for binary search.
const TABLE: &[ErrorCode] = &[
    error_code(11200, ErrorCodeClass::OurWebhook, "our webhook failed or could not be reached"),
    error_code(11205, ErrorCodeClass::OurWebhook, "our webhook refused the connection"),
    error_code(11750, ErrorCodeClass::OurWebhook, "our webhook's response is too large"),
    error_code(12100, ErrorCodeClass::OurWebhook, "our webhook's response is not valid XML"),
    error_code(12200, ErrorCodeClass::OurWebhook, "our webhook's response does not follow the schema"),
    error_code(12300, ErrorCodeClass::OurWebhook, "our webhook's response has an unusable content type"),
    error_code(14107, ErrorCodeClass::Permanent, "too many replies between two numbers in a short time"),
    error_code(20001, ErrorCodeClass::Permanent, "a parameter is invalid"),
    error_code(20003, ErrorCodeClass::Misconfigured, "Twilio refused the account's credentials"),
    error_code(20007, ErrorCodeClass::Permanent, "the page size is too large"),
    error_code(20404, ErrorCodeClass::Permanent, "the account or resource does not exist"),
    error_code(20429, ErrorCodeClass::Later, "too many requests at once"),
    error_code(20500, ErrorCodeClass::Ambiguous, "an internal error at Twilio"),
    error_code(20503, ErrorCodeClass::Ambiguous, "Twilio is temporarily unavailable"),
    error_code(21211, ErrorCodeClass::Permanent, "the number to text is not valid"),
    error_code(21212, ErrorCodeClass::Misconfigured, "the sending number is not valid"),
    error_code(21265, ErrorCodeClass::Permanent, "short codes cannot be texted"),
    error_code(21408, ErrorCodeClass::Misconfigured, "texting this region is disabled for the account"),
    error_code(21602, ErrorCodeClass::Permanent, "the text is empty"),
    error_code(21603, ErrorCodeClass::Misconfigured, "the sender is missing"),
    error_code(21604, ErrorCodeClass::Permanent, "the number to text is missing"),
    error_code(21606, ErrorCodeClass::Misconfigured, "the sending number cannot text this destination"),
    error_code(
        21608,
        ErrorCodeClass::Misconfigured,
        "only verified numbers can be texted until the account is approved",
    ),
    error_code(21609, ErrorCodeClass::Misconfigured, "the status callback URL is not valid"),
    error_code(21610, ErrorCodeClass::OptedOut, "the user has opted out"),
    error_code(21611, ErrorCodeClass::Later, "the sending number's queue is full"),
    error_code(21612, ErrorCodeClass::Permanent, "the number cannot be reached from this sender"),
    error_code(21614, ErrorCodeClass::Permanent, "the number is not a mobile number"),
    error_code(21617, ErrorCodeClass::Permanent, "the text is longer than 1,600 characters"),
    error_code(21619, ErrorCodeClass::Permanent, "the text is empty"),
    error_code(21620, ErrorCodeClass::Permanent, "a media URL is not valid"),
    error_code(21623, ErrorCodeClass::Permanent, "more than ten media files"),
    error_code(21635, ErrorCodeClass::Permanent, "the number is a landline"),
    error_code(21703, ErrorCodeClass::Misconfigured, "the messaging service has no usable number"),
    error_code(21705, ErrorCodeClass::Misconfigured, "the messaging service does not exist"),
    error_code(30001, ErrorCodeClass::Later, "the queue overflowed"),
    error_code(30002, ErrorCodeClass::Misconfigured, "the account is suspended"),
    error_code(30003, ErrorCodeClass::Once, "the phone is currently unreachable"),
    error_code(30004, ErrorCodeClass::Permanent, "the phone or its carrier blocks the text"),
    error_code(30005, ErrorCodeClass::Permanent, "the number is unknown to its carrier"),
    error_code(30006, ErrorCodeClass::Permanent, "the number is a landline or its carrier cannot be reached"),
    error_code(30007, ErrorCodeClass::Permanent, "the text was filtered as spam"),
    error_code(30008, ErrorCodeClass::Once, "the carrier gave no reason"),
    error_code(30009, ErrorCodeClass::Permanent, "a part of the received text is missing"),
    error_code(30010, ErrorCodeClass::Permanent, "the price is above the maximum"),
    error_code(30017, ErrorCodeClass::Later, "the carrier is congested"),
    error_code(30019, ErrorCodeClass::Permanent, "the media files are too large for the carrier"),
    error_code(30022, ErrorCodeClass::Later, "the carrier's rate limit for the number is reached"),
    error_code(30023, ErrorCodeClass::NextDay, "the carrier's daily limit is reached"),
    error_code(30024, ErrorCodeClass::Misconfigured, "the carrier does not know the sending number"),
    error_code(30027, ErrorCodeClass::NextDay, "T-Mobile's daily limit is reached"),
    error_code(30032, ErrorCodeClass::Misconfigured, "the toll-free number is not verified"),
    error_code(30033, ErrorCodeClass::Misconfigured, "the campaign of the number is suspended"),
    error_code(30034, ErrorCodeClass::Misconfigured, "the number is not registered for A2P 10DLC"),
    error_code(30035, ErrorCodeClass::Misconfigured, "the registration of the number is not finished"),
    error_code(30036, ErrorCodeClass::Permanent, "the text expired before it could be sent"),
    error_code(30044, ErrorCodeClass::Misconfigured, "the text is too long for a trial account"),
    error_code(30410, ErrorCodeClass::Later, "the carrier did not respond in time"),
    error_code(30450, ErrorCodeClass::Permanent, "blocked as suspected SMS pumping"),
    error_code(63003, ErrorCodeClass::Permanent, "the address does not exist on this channel"),
    error_code(63007, ErrorCodeClass::Misconfigured, "the sender does not exist on this channel"),
    error_code(63014, ErrorCodeClass::OptedOut, "the user has blocked the sender"),
    error_code(63016, ErrorCodeClass::Permanent, "WhatsApp's 24-hour window has passed"),
    error_code(63018, ErrorCodeClass::Later, "the channel's rate limit is reached"),
    error_code(63024, ErrorCodeClass::Permanent, "the recipient is not valid"),
    error_code(63036, ErrorCodeClass::Permanent, "the recipient cannot be reached by RCS"),
    error_code(63038, ErrorCodeClass::NextDay, "the account's daily limit is reached"),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::Value;

    use super::{ErrorCodeClass, TABLE, classify_status, look_up_error_code};

    const CODES: &str = include_str!("../../../tests/data/twilio/error_codes.json");

    fn parse_class(name: &str) -> ErrorCodeClass {
        match name {
            "retry" => ErrorCodeClass::Later,
            "retry_next_day" => ErrorCodeClass::NextDay,
            "retry_once" => ErrorCodeClass::Once,
            "retry_ambiguous" => ErrorCodeClass::Ambiguous,
            "permanent" => ErrorCodeClass::Permanent,
            "opt_out" => ErrorCodeClass::OptedOut,
            "config" => ErrorCodeClass::Misconfigured,
            "ours" => ErrorCodeClass::OurWebhook,
            other => panic!("{other}"),
        }
    }

    #[test]
    fn table_equals_the_recorded_codes() {
        let codes: Value = serde_json::from_str(CODES).unwrap();
        let recorded: BTreeMap<u32, ErrorCodeClass> = codes["codes"]
            .as_array()
            .unwrap()
            .iter()
            .map(|row| {
                let code = u32::try_from(row["code"].as_u64().unwrap()).unwrap();
                (code, parse_class(row["class"].as_str().unwrap()))
            })
            .collect();
        let ours: BTreeMap<u32, ErrorCodeClass> = TABLE.iter().map(|row| (row.code, row.class)).collect();
        assert_eq!(ours, recorded);
    }

    #[test]
    fn every_code_is_found() {
        for row in TABLE {
            assert_eq!(look_up_error_code(row.code), Some(row));
        }
        assert_eq!(look_up_error_code(99_999), None);
    }

    #[test]
    fn unknown_code_is_classified_by_its_status() {
        let classes = [301, 400, 401, 403, 404, 408, 429, 500, 503, 99].map(classify_status);
        let expected = [
            ErrorCodeClass::Misconfigured,
            ErrorCodeClass::Permanent,
            ErrorCodeClass::Misconfigured,
            ErrorCodeClass::Misconfigured,
            ErrorCodeClass::Permanent,
            ErrorCodeClass::Ambiguous,
            ErrorCodeClass::Later,
            ErrorCodeClass::Ambiguous,
            ErrorCodeClass::Ambiguous,
            ErrorCodeClass::Ambiguous,
        ];
        assert_eq!(classes, expected);
    }
}
