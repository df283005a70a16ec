//! Phone number of a sender as the phone shows it, which may lack the country.

use crate::conversation::transcript::PhoneNumber;

/// Calling codes of two digits. Those of the zones 1 and 7 have one digit, and all others have three.
const TWO_DIGIT_CODES: [&str; 44] = [
    "20", "27", "30", "31", "32", "33", "34", "36", "39", "40", "41", "43", "44", "45", "46", "47", "48",
    "49", "51", "52", "53", "54", "55", "56", "57", "58", "60", "61", "62", "63", "64", "65", "66", "81",
    "82", "84", "86", "90", "91", "92", "93", "94", "95", "98",
];
/// Length of a number in North America without its calling code.
const NORTH_AMERICAN_LENGTH: usize = 10;

/// Parses the number of a sender, which may be in the national form of our own number. Returns `None` for a short code
/// or a name, to which no reply is possible.
pub(super) fn parse_sender(sender: &str, own: &PhoneNumber) -> Option<PhoneNumber> {
    let is_separator = |character: char| matches!(character, ' ' | '-' | '.' | '(' | ')' | '/');
    let compact: String = sender.chars().filter(|character| !is_separator(*character)).collect();
    if compact.starts_with('+') {
        return PhoneNumber::parse(&compact).ok();
    }
    if compact.is_empty() || !compact.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let code = calling_code(own);
    let international = match compact.strip_prefix("00") {
        Some(rest) => format!("+{rest}"),
        None if code == "1" => match compact.strip_prefix('1') {
            Some(rest) if rest.len() == NORTH_AMERICAN_LENGTH => format!("+{compact}"),
            _ if compact.len() == NORTH_AMERICAN_LENGTH => format!("+1{compact}"),
            _ => return None,
        },
        // In Italy, the zero is a part of the number.
        None if code == "39" && compact.starts_with('0') => format!("+39{compact}"),
        None => format!("+{code}{}", compact.strip_prefix('0')?),
    };
    PhoneNumber::parse(&international).ok()
}

fn calling_code(number: &PhoneNumber) -> &str {
    let digits = &number.as_str()[1..];
    let length = match digits.as_bytes()[0] {
        b'1' | b'7' => 1,
        _ if TWO_DIGIT_CODES.contains(&&digits[..2]) => 2,
        _ => 3,
    };
    &digits[..length]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(own: &str, sender: &str, expected: Option<&str>) {
        let parsed = parse_sender(sender, &PhoneNumber::parse(own).unwrap());
        assert_eq!(parsed.as_ref().map(PhoneNumber::as_str), expected, "{sender}");
    }

    #[test]
    fn national_number_gets_the_country_of_our_number() {
        check("+15550100000", "+49 151 2345678", Some("+491512345678"));
        check("+15550100000", "(555) 010-0001", Some("+15550100001"));
        check("+15550100000", "15550100001", Some("+15550100001"));
        check("+491510000000", "0151 2345678", Some("+491512345678"));
        check("+491510000000", "0043 664 1234567", Some("+436641234567"));
        check("+390600000000", "06 1234 5678", Some("+390612345678"));
        check("+353851234567", "085 765 4321", Some("+353857654321"));
    }

    #[test]
    fn short_codes_and_names_are_no_senders() {
        check("+15550100000", "72404", None);
        check("+15550100000", "NETFLIX", None);
        check("+491510000000", "3311", None);
        check("+491510000000", "", None);
        check("+15550100000", "+1", None);
    }
}
