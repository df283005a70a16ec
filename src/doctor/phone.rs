//! Check of Dialarr's number at Twilio: webhook, settings, and recent delivery failures.

use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, StatusCode};
use jiff::{SignedDuration, Timestamp};
use url::Url;

use super::{Finding, FindingGrade, INSTALL_WEBHOOKS};
use crate::access_rules::is_private_host;
use crate::clock::Clock;
use crate::config::{self, Config};
use crate::conversation::delivery_status::DeliveryStatus;
use crate::engine::PicturePolicy;
use crate::http::HttpClient;
use crate::messaging::twilio::account::{
    AccountError, IncomingPhoneNumber, MessagingService, NumberCapabilities,
};
use crate::messaging::twilio::error_codes::{ErrorCodeClass, look_up_error_code};
use crate::messaging::twilio::message_log::ListedDelivery;
use crate::messaging::twilio::{Twilio, WEBHOOK_PATH};
use crate::outbound_clients::build_twilio;
use crate::setup::twilio_number::{WebhookUrls, account_advice};

const TIMEOUT: Duration = Duration::from_secs(10);
/// Age limit of delivery failures that are reported.
const MAX_FAILURE_AGE: SignedDuration = SignedDuration::from_hours(7 * 24);
const TWILIO_HOST: &str = "api.twilio.com";

pub(super) async fn check_phone(config: &Config, http: &HttpClient) -> Vec<Finding> {
    let account = async {
        match &config.twilio {
            Some(twilio) => check_account(twilio, &build_twilio(twilio, http)).await,
            None => vec![no_account_finding()],
        }
    };
    let (webhook, account) = tokio::join!(check_own_webhook(config, http), account);
    webhook.into_iter().chain(account).collect()
}

/// Checks the URL to which Twilio delivers messages.
pub(super) async fn check_own_webhook(config: &Config, http: &HttpClient) -> Vec<Finding> {
    let Some(twilio) = &config.twilio else { return Vec::new() };
    let mut findings = Vec::new();
    // A simulated Twilio may run at any address.
    if twilio.api_url.host_str() == Some(TWILIO_HOST) {
        findings.extend(public_url_finding(&twilio.public_url));
    }
    findings.extend(untrusted_proxy_finding(config));
    let public_url = twilio.public_url.as_str();
    findings.push(request_own_webhook((public_url, http), (Method::POST, StatusCode::FORBIDDEN)).await);
    findings
}

/// Public address of the webhooks, and the client that requests it.
#[derive(Clone)]
pub struct PublicAddress {
    pub url: String,
    pub http: HttpClient,
}

/// Checks whether the public address reaches Dialarr, by a request that the service neither logs nor counts as refused.
pub(super) async fn check_public_address(address: &PublicAddress) -> Finding {
    let expected = (Method::GET, StatusCode::METHOD_NOT_ALLOWED);
    request_own_webhook((&address.url, &address.http), expected).await
}

/// Returns a finding on the last request to the carrier.
pub(super) fn last_request_finding(outcome: Option<Result<(), String>>) -> Finding {
    match outcome {
        None => Finding::ok("Twilio: no request was made yet"),
        Some(Ok(())) => Finding::ok("Twilio: responds and accepts the credentials"),
        Some(Err(problem)) => Finding::failure(
            format!("Twilio: failed to {problem}"),
            "check TWILIO_ACCOUNT_SID and TWILIO_AUTH_TOKEN, and the connection to the internet",
        ),
    }
}

/// Returns a warning if no proxy is trusted although the URL is https, which Dialarr does not serve itself. Clients of
/// an untrusted proxy cannot be distinguished.
fn untrusted_proxy_finding(config: &Config) -> Option<Finding> {
    let has_proxy = config.public_url.as_ref().is_some_and(|url| url.scheme() == "https");
    (has_proxy && config.trusted_proxies.is_empty()).then(|| {
        Finding::warning(
            "webhook: TRUSTED_PROXIES is empty, so slow requests from other clients can delay texts",
            "set it to the address from which the proxy or tunnel reaches Dialarr, such as 127.0.0.1",
        )
    })
}

/// Checks the account and its number.
pub(super) async fn check_account(twilio: &config::Twilio, client: &Twilio) -> Vec<Finding> {
    let (number, service, deliveries) = tokio::join!(
        client.fetch_number(&twilio.phone_number),
        client.fetch_messaging_service(),
        client.fetch_recent_deliveries(&twilio.phone_number),
    );
    let urls = WebhookUrls::from_public_url(twilio.public_url.as_str());
    let mut findings = Vec::new();
    match number {
        Ok(Some(number)) => {
            findings.push(sms_finding(&number, twilio));
            findings.push(number_webhook_finding(&number, &urls));
            findings.push(pictures_finding(number.capabilities, twilio.pictures));
        }
        Ok(None) => findings.push(missing_number(twilio)),
        Err(error) => {
            findings.push(account_finding(&error));
            // The other requests failed for the same reason.
            return findings;
        }
    }
    findings.extend(service_finding(service, &urls));
    findings.push(match deliveries {
        Ok(deliveries) => deliveries_finding(&deliveries, Clock::System.now()),
        Err(error) => Finding::warning(
            format!("Twilio: failed to {error}"),
            "the log of the Twilio Console lists undelivered texts",
        ),
    });
    findings
}

/// Checks the account and the capabilities of its number, without the webhook.
pub(super) async fn check_number(twilio: &config::Twilio, client: &Twilio) -> Vec<Finding> {
    match client.fetch_number(&twilio.phone_number).await {
        Ok(Some(number)) => {
            vec![sms_finding(&number, twilio), pictures_finding(number.capabilities, twilio.pictures)]
        }
        Ok(None) => vec![missing_number(twilio)],
        Err(error) => vec![account_finding(&error)],
    }
}

pub(super) fn no_account_finding() -> Finding {
    Finding::warning(
        "Twilio: no account is configured, so texting is off",
        "set the TWILIO_ or SMSGATE_ values, or TELEGRAM_BOT_TOKEN; dialarr chat works with ADMIN_PHONE alone",
    )
}

/// Returns the failure of an address that Twilio cannot reach.
pub(super) fn private_address_finding(config: &Config) -> Option<Finding> {
    let twilio = config.twilio.as_ref().filter(|twilio| twilio.api_url.host_str() == Some(TWILIO_HOST))?;
    public_url_finding(&twilio.public_url).filter(|finding| finding.grade == FindingGrade::Failure)
}

fn missing_number(twilio: &config::Twilio) -> Finding {
    Finding::failure(
        format!("Twilio: the account has no number {}", twilio.phone_number.masked()),
        "check TWILIO_PHONE_NUMBER and TWILIO_ACCOUNT_SID",
    )
}

fn sms_finding(number: &IncomingPhoneNumber, twilio: &config::Twilio) -> Finding {
    let masked = twilio.phone_number.masked();
    if number.capabilities.sms {
        Finding::ok(format!("Twilio: the number {masked} belongs to the account and can send texts"))
    } else {
        Finding::failure(
            format!("Twilio: the number {masked} cannot send texts"),
            "buy a number with the SMS capability",
        )
    }
}

fn number_webhook_finding(number: &IncomingPhoneNumber, urls: &WebhookUrls) -> Finding {
    let changes = urls.setting_diffs(number);
    if changes.is_empty() {
        return Finding::ok("Twilio: webhook and fallback of the number set");
    }
    let diffs: Vec<String> = changes.iter().map(ToString::to_string).collect();
    Finding::failure(format!("Twilio: number: {}", diffs.join("; ")), INSTALL_WEBHOOKS)
}

fn pictures_finding(capabilities: NumberCapabilities, policy: PicturePolicy) -> Finding {
    match (capabilities.mms, policy) {
        (true, PicturePolicy::Sent) => Finding::ok("Twilio: the number can send posters"),
        (false, PicturePolicy::Sent) => {
            Finding::warning("Twilio: the number cannot send posters", "set TWILIO_MMS=off")
        }
        (_, PicturePolicy::NotSent) => Finding::ok("Twilio: posters are not sent"),
    }
}

fn service_finding(
    service: Result<Option<MessagingService>, AccountError>,
    urls: &WebhookUrls,
) -> Option<Finding> {
    let service = match service {
        Ok(service) => service?,
        Err(error) => return Some(account_finding(&error)),
    };
    let changes = urls.service_diffs(&service);
    Some(match changes.first() {
        None => Finding::ok("Twilio: the messaging service forwards texts here"),
        Some(change) => Finding::failure(format!("Twilio: messaging service: {change}"), INSTALL_WEBHOOKS),
    })
}

/// Returns a finding if Twilio cannot reach the URL, or if its traffic is not encrypted.
fn public_url_finding(public_url: &Url) -> Option<Finding> {
    if is_private_host(&public_url.host()?) {
        return Some(Finding::failure(
            format!("webhook: Twilio cannot reach {public_url}, a private address"),
            "set PUBLIC_URL to the address of a proxy or tunnel; docs/REVERSE_PROXY.md has examples",
        ));
    }
    (public_url.scheme() != "https").then(|| {
        Finding::warning(
            format!("webhook: {public_url} is not https, so third parties can read texts"),
            "put a proxy or tunnel with a certificate in front of it",
        )
    })
}

/// Requests Dialarr's own webhook without a signature. Dialarr rejects a POST request with status 403, and a GET request
/// with 405.
async fn request_own_webhook(
    (public_url, http): (&str, &HttpClient),
    (method, expected): (Method, StatusCode),
) -> Finding {
    let url = format!("{}{WEBHOOK_PATH}", public_url.trim_end_matches('/'));
    let response = match Request::builder().method(method).uri(&url).body(Bytes::new()) {
        Ok(request) => http.send(request, TIMEOUT).await.map(|response| response.status()),
        Err(error) => {
            let summary = format!("webhook: {url} is not a valid URL ({error})");
            return Finding::failure(summary, "set PUBLIC_URL");
        }
    };
    let hint = "start dialarr serve; if it is running, check the proxy or tunnel, and try from another network, since \
         some routers block access to their own public address";
    match response {
        Ok(status) if status == expected => Finding::ok(format!("webhook: {url} reaches Dialarr")),
        Ok(status) => {
            let (status, expected) = (status.as_u16(), expected.as_u16());
            Finding::warning(format!("webhook: {url} returns {status} instead of {expected}"), hint)
        }
        Err(error) => Finding::warning(format!("webhook: failed to {error} at {url}"), hint),
    }
}

/// Returns a finding on recent failures that the operator has to fix. A later delivery shows that the problem may be
/// fixed.
fn deliveries_finding(deliveries: &[ListedDelivery], now: Timestamp) -> Finding {
    let recent = deliveries
        .iter()
        .filter(|delivery| delivery.at.is_none_or(|at| now.duration_since(at) <= MAX_FAILURE_AGE));
    let recent: Vec<&ListedDelivery> = recent.collect();
    let misconfiguration = |delivery: &&&ListedDelivery| {
        let code = delivery.error_code.and_then(look_up_error_code);
        code.filter(|code| code.class == ErrorCodeClass::Misconfigured)
    };
    let Some(problem) = recent.iter().find_map(|delivery| misconfiguration(&delivery)) else {
        return Finding::ok("Twilio: no text failed in the last week because of a missing registration");
    };
    let failed = recent.iter().filter(|delivery| delivery.error_code == Some(problem.code)).count();
    let summary = format!(
        "Twilio: {failed} of the last {} texts failed: {} ({})",
        recent.len(),
        problem.meaning,
        problem.code
    );
    let hint = "see \"When texts do not arrive\" in docs/TROUBLESHOOTING.md";
    let find =
        |matches: &dyn Fn(&ListedDelivery) -> bool| recent.iter().position(|delivery| matches(delivery));
    let delivered_index = find(&|delivery| delivery.status == Some(DeliveryStatus::Delivered));
    let failed_index = find(&|delivery| delivery.error_code == Some(problem.code));
    // The newest messages come first.
    match (delivered_index, failed_index) {
        (Some(delivered), Some(broken)) if delivered < broken => Finding::warning(summary, hint),
        _ => Finding::failure(summary, hint),
    }
}

fn account_finding(error: &AccountError) -> Finding {
    Finding::failure(format!("Twilio: failed to {error}"), account_advice(error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ConfigSources;

    fn now() -> Timestamp {
        "2026-11-21T12:00:00Z".parse().unwrap()
    }

    fn delivery(hours_ago: i64, status: &str, error_code: Option<u32>) -> ListedDelivery {
        let at = Some(now() - SignedDuration::from_hours(hours_ago));
        ListedDelivery { status: DeliveryStatus::from_carrier_status(status), error_code, at }
    }

    #[track_caller]
    fn check(deliveries: &[ListedDelivery], grade: FindingGrade, summary: &str) {
        let finding = deliveries_finding(deliveries, now());
        assert_eq!((finding.grade, finding.summary.as_str()), (grade, summary));
    }

    #[test]
    fn unregistered_number_is_a_failure_until_a_later_delivery() {
        let blocked = delivery(2, "undelivered", Some(30034));
        let summary =
            "Twilio: 1 of the last 2 texts failed: the number is not registered for A2P 10DLC (30034)";
        check(&[blocked.clone(), delivery(3, "delivered", None)], FindingGrade::Failure, summary);
        check(&[delivery(1, "delivered", None), blocked], FindingGrade::Warning, summary);
    }

    #[test]
    fn private_address_is_unreachable_for_twilio() {
        let grade = |url: &str| public_url_finding(&url.parse().unwrap()).map(|finding| finding.grade);
        for url in [
            "https://localhost:3000",
            "https://192.168.1.4",
            "http://nas",
            "https://nas.lan",
            "https://[::1]",
        ] {
            assert_eq!(grade(url), Some(FindingGrade::Failure), "{url}");
        }
        assert_eq!(grade("http://sms.example.org"), Some(FindingGrade::Warning));
        assert_eq!(grade("https://sms.example.org/dialarr"), None);
    }

    #[test]
    fn https_address_without_listed_proxies_is_a_warning() {
        let grade = |url: &str, proxies: &str| {
            let values = [("PUBLIC_URL", url), ("TRUSTED_PROXIES", proxies)];
            let values = values.map(|(name, value)| (name.to_owned(), value.to_owned()));
            let config = Config::from_sources(&ConfigSources::from_environment(values)).unwrap();
            untrusted_proxy_finding(&config).map(|finding| finding.grade)
        };
        assert_eq!(grade("https://sms.example.org", ""), Some(FindingGrade::Warning));
        assert_eq!(grade("https://sms.example.org", "127.0.0.1"), None);
        assert_eq!(grade("http://127.0.0.1:3000", ""), None);
    }

    #[test]
    fn old_failures_and_recipient_failures_are_ignored() {
        let summary = "Twilio: no text failed in the last week because of a missing registration";
        check(
            &[delivery(1, "undelivered", Some(30005)), delivery(200, "failed", Some(30034))],
            FindingGrade::Ok,
            summary,
        );
    }
}
