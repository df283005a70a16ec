//! Check of the local clock against the `Date` header of HTTP responses.

use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http::header::DATE;
use jiff::fmt::rfc2822::DateTimeParser;
use jiff::{SignedDuration, Timestamp};

use super::Finding;
use crate::clock::Clock;
use crate::config::Config;
use crate::http::HttpClient;

const TIMEOUT: Duration = Duration::from_secs(5);
const MAX_DIFFERENCE: SignedDuration = SignedDuration::from_secs(30);

/// Compares the local clock with Twilio's, or else with that of the model's server or of Telegram.
pub(super) async fn check_clock(config: &Config, http: &HttpClient) -> Option<Finding> {
    let twilio = config.twilio.as_ref().map(|twilio| (twilio.api_url.as_str(), "Twilio"));
    let model = config.llm.as_ref().map(|llm| (llm.base_url.as_str(), "the model's server"));
    let telegram = config.telegram.as_ref().map(|bot| (bot.account.api_url.as_str(), "Telegram"));
    let (url, server) = twilio.or(model).or(telegram)?;
    Some(match fetch_server_time(url, http).await {
        Some(server_time) => clock_finding(Clock::System.now().duration_since(server_time), server),
        None => Finding::warning(
            format!("clock: not compared, {server} sent no time"),
            "run a time service such as systemd-timesyncd",
        ),
    })
}

/// Returns the time that a server reports. The rest of the response does not matter.
async fn fetch_server_time(url: &str, http: &HttpClient) -> Option<Timestamp> {
    let request = Request::get(url).body(Bytes::new()).ok()?;
    let response = http.send(request, TIMEOUT).await.ok()?;
    let date = response.headers().get(DATE)?.to_str().ok()?;
    DateTimeParser::new().parse_timestamp(date).ok()
}

fn clock_finding(ahead: SignedDuration, server: &str) -> Finding {
    let difference = ahead.abs();
    if difference <= MAX_DIFFERENCE {
        return Finding::ok(format!("clock: within {} s of the clock of {server}", MAX_DIFFERENCE.as_secs()));
    }
    let direction = if ahead.is_negative() { "behind" } else { "ahead of" };
    Finding::warning(
        format!("clock: {} s {direction} the clock of {server}", difference.as_secs()),
        "set it, and run a time service such as systemd-timesyncd: texts are ordered by time",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clock_difference_of_half_a_minute_is_accepted() {
        let findings = [30, -30, 31, -3600]
            .map(|seconds| clock_finding(SignedDuration::from_secs(seconds), "Twilio").summary);
        let expected = [
            "clock: within 30 s of the clock of Twilio",
            "clock: within 30 s of the clock of Twilio",
            "clock: 31 s ahead of the clock of Twilio",
            "clock: 3600 s behind the clock of Twilio",
        ];
        assert_eq!(findings, expected);
    }
}
