//! Check of what the operator entered about themselves, which shows whether it was understood.

use jiff::Timestamp;

use super::Finding;
use crate::config::Config;

/// Returns the operator's number, and the time in the household's zone.
pub(super) fn operator_finding(config: &Config, now: Timestamp) -> Finding {
    let local = now.to_zoned(config.time_zone.clone());
    let zone = config.time_zone.iana_name().unwrap_or("your time zone");
    let time = local.strftime("%-I:%M %p");
    match &config.people.admin {
        Some(phone) => {
            Finding::ok(format!("you: your number is {}, and it is {time} in {zone}", phone.format_grouped()))
        }
        None => Finding::warning(
            format!("you: no number is set, and it is {time} in {zone}"),
            "enter your number, or get a code on the page Users, so that you can approve other people",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ConfigSources;

    #[test]
    fn number_and_local_time_are_shown() {
        let finding = |phone: &str| {
            let values = [("ADMIN_PHONE", phone), ("TZ", "America/New_York")];
            let values = values.map(|(name, value)| (name.to_owned(), value.to_owned()));
            let config = Config::from_sources(&ConfigSources::from_environment(values)).unwrap();
            operator_finding(&config, "2026-11-26T20:05:00Z".parse().unwrap()).summary
        };
        assert_eq!(
            finding("+15550100123"),
            "you: your number is +1 555 010 0123, and it is 3:05 PM in America/New_York"
        );
        assert_eq!(finding(""), "you: no number is set, and it is 3:05 PM in America/New_York");
    }
}
