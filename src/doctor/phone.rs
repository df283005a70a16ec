//! Check of Dialarr's number at Twilio: incoming and outgoing messages, and the reasons for recent failures.

use std::time::Duration;

use bytes::Bytes;
use http::{Request, StatusCode};
use jiff::{SignedDuration, Timestamp};
use url::{Host, Url};

use super::Finding;
use crate::clock::Clock;
use crate::config::{self, Config};
use crate::conversation::delivery_status::DeliveryStatus;
use crate::engine::PicturePolicy;
use crate::http::HttpClient;
use crate::messaging::error_codes::{ErrorCodeClass, look_up};
use crate::messaging::message_log::ListedDelivery;
use crate::messaging::twilio::WEBHOOK_PATH;
use crate::messaging::twilio_account::{
    AccountError, IncomingPhoneNumber, MessagingService, NumberCapabilities,
};
use crate::outbound_clients::build_twilio;
use crate::setup::twilio_number::{WebhookAddresses, account_advice};

const TIMEOUT: Duration = Duration::from_secs(10);
/// Age limit of failures. Older failures are not evidence of a current problem.
const RECENT: SignedDuration = SignedDuration::from_hours(7 * 24);
const TWILIO_HOST: &str = "api.twilio.com";
/// Domain suffixes that resolve only in a home network.
const HOME: [&str; 5] = [".local", ".lan", ".home", ".internal", ".home.arpa"];
const SETUP: &str = "dialarr setup --apply";

pub(super) async fn check_phone(config: &Config, http: &HttpClient) -> Vec<Finding> {
    let (webhook, account) = tokio::join!(check_own_webhook(config, http), check_account(config, http));
    webhook.into_iter().chain(account).collect()
}

/// Checks the address to which Twilio delivers messages.
pub(super) async fn check_own_webhook(config: &Config, http: &HttpClient) -> Vec<Finding> {
    let Some(twilio) = &config.twilio else { return Vec::new() };
    let mut findings = Vec::new();
    // A stand-in for Twilio may run at any address.
    if twilio.api_url.host_str() == Some(TWILIO_HOST) {
        findings.extend(from_outside(&twilio.public_url));
    }
    findings.extend(unlisted_proxy(config));
    findings.push(request_own_webhook(twilio, http).await);
    findings
}

/// Returns a warning if requests come through a proxy whose clients are indistinguishable. Dialarr itself serves no
/// https.
fn unlisted_proxy(config: &Config) -> Option<Finding> {
    let has_proxy = config.public_url.as_ref().is_some_and(|url| url.scheme() == "https");
    (has_proxy && config.trusted_proxies.is_empty()).then(|| {
        Finding::warning(
            "webhook: TRUSTED_PROXIES is empty, so slow requests of strangers can delay texts",
            "set it to the address from which the proxy or tunnel reaches Dialarr, such as 127.0.0.1",
        )
    })
}

/// Checks the account, and the number in the account.
pub(super) async fn check_account(config: &Config, http: &HttpClient) -> Vec<Finding> {
    let Some(twilio) = &config.twilio else {
        return vec![Finding::warning(
            "Twilio: no account is configured, so nobody can text",
            "set TWILIO_ACCOUNT_SID, TWILIO_AUTH_TOKEN and TWILIO_PHONE_NUMBER; dialarr chat works with ADMIN_PHONE alone",
        )];
    };
    let client = build_twilio(twilio, http);
    let (number, service, deliveries) = tokio::join!(
        client.fetch_number(&twilio.phone_number),
        client.fetch_messaging_service(),
        client.fetch_recent_deliveries(&twilio.phone_number),
    );
    let addresses = WebhookAddresses::from_public_url(twilio.public_url.as_str());
    let masked = twilio.phone_number.masked();
    let mut findings = Vec::new();
    match number {
        Ok(Some(number)) => {
            findings.extend(of_number(&number, &addresses, &masked));
            findings.push(pictures_finding(number.capabilities, twilio.pictures));
        }
        Ok(None) => findings.push(Finding::failure(
            format!("Twilio: the account has no number {masked}"),
            "check TWILIO_PHONE_NUMBER and TWILIO_ACCOUNT_SID",
        )),
        Err(error) => {
            findings.push(account_finding(&error));
            // Any further request to Twilio failed for the same reason.
            return findings;
        }
    }
    findings.extend(of_service(service, &addresses));
    findings.push(match deliveries {
        Ok(deliveries) => deliveries_finding(&deliveries, Clock::System.now()),
        Err(error) => Finding::warning(
            format!("Twilio: failed to {error}"),
            "texts that could not be delivered are in the log of the console at Twilio",
        ),
    });
    findings
}

fn of_number(number: &IncomingPhoneNumber, addresses: &WebhookAddresses, masked: &str) -> Vec<Finding> {
    let able = if number.capabilities.sms {
        Finding::ok(format!("Twilio: the number {masked} is ours and can text"))
    } else {
        Finding::failure(
            format!("Twilio: the number {masked} cannot text"),
            "buy one that can: Capabilities, SMS",
        )
    };
    let changes = addresses.setting_diffs(number);
    let webhook = if changes.is_empty() {
        Finding::ok("Twilio: webhook and fallback of the number set")
    } else {
        let differ: Vec<String> = changes.iter().map(ToString::to_string).collect();
        Finding::failure(format!("Twilio: number: {}", differ.join("; ")), SETUP)
    };
    vec![able, webhook]
}

fn pictures_finding(able: NumberCapabilities, wanted: PicturePolicy) -> Finding {
    match (able.mms, wanted) {
        (true, PicturePolicy::Sent) => Finding::ok("Twilio: the number can send posters"),
        (false, PicturePolicy::Sent) => {
            Finding::warning("Twilio: the number cannot send posters", "set TWILIO_MMS=off")
        }
        (_, PicturePolicy::NotSent) => Finding::ok("Twilio: posters are not sent"),
    }
}

fn of_service(
    service: Result<Option<MessagingService>, AccountError>,
    addresses: &WebhookAddresses,
) -> Option<Finding> {
    let service = match service {
        Ok(service) => service?,
        Err(error) => return Some(account_finding(&error)),
    };
    let changes = addresses.service_changes(&service);
    Some(match changes.first() {
        None => Finding::ok("Twilio: the messaging service brings texts here"),
        Some(change) => Finding::failure(format!("Twilio: messaging service: {change}"), SETUP),
    })
}

/// Returns a finding on an address that Twilio cannot reach, or whose traffic other parties can read.
fn from_outside(public_url: &Url) -> Option<Finding> {
    let at_home = match public_url.host()? {
        Host::Ipv4(address) => address.is_private() || address.is_loopback() || address.is_link_local(),
        Host::Ipv6(address) => address.is_loopback() || address.is_unique_local(),
        Host::Domain(name) => !name.contains('.') || HOME.iter().any(|suffix| name.ends_with(suffix)),
    };
    if at_home {
        return Some(Finding::failure(
            format!("webhook: Twilio cannot reach {public_url}, an address at home"),
            "set PUBLIC_URL to the address of a proxy or tunnel; docs/OPERATIONS.md has examples",
        ));
    }
    (public_url.scheme() != "https").then(|| {
        Finding::warning(
            format!("webhook: {public_url} is not https, so whoever is on the way can read texts"),
            "put a proxy or tunnel with a certificate before it",
        )
    })
}

/// Requests Dialarr's own webhook. Dialarr rejects a request without a signature, and no other server rejects it in the
/// same way.
async fn request_own_webhook(twilio: &config::Twilio, http: &HttpClient) -> Finding {
    let url = format!("{}{WEBHOOK_PATH}", twilio.public_url.as_str().trim_end_matches('/'));
    let answer = match Request::post(&url).body(Bytes::new()) {
        Ok(request) => http.send(request, TIMEOUT).await.map(|response| response.status()),
        Err(error) => {
            let what = format!("webhook: {url} is no address ({error})");
            return Finding::failure(what, "set PUBLIC_URL");
        }
    };
    let seen_from_here = "start dialarr serve; if it runs, check the proxy or tunnel (some routers do not let their \
         own network in by its public name, then try from elsewhere)";
    match answer {
        Ok(StatusCode::FORBIDDEN) => Finding::ok(format!("webhook: {url} leads here")),
        Ok(status) => {
            Finding::warning(format!("webhook: {url} answers {}, not 403", status.as_u16()), seen_from_here)
        }
        Err(error) => Finding::warning(format!("webhook: failed to {error} at {url}"), seen_from_here),
    }
}

/// Returns the failures among the last messages that an operator has to fix. A later delivered message shows that the
/// problem is fixed.
fn deliveries_finding(deliveries: &[ListedDelivery], now: Timestamp) -> Finding {
    let recent =
        deliveries.iter().filter(|delivery| delivery.at.is_none_or(|at| now.duration_since(at) <= RECENT));
    let recent: Vec<&ListedDelivery> = recent.collect();
    let known = |delivery: &&&ListedDelivery| {
        let known = delivery.error_code.and_then(look_up);
        known.filter(|known| known.class == ErrorCodeClass::Misconfigured)
    };
    let Some(worst) = recent.iter().find_map(|delivery| known(&delivery)) else {
        return Finding::ok("Twilio: no text of the last week failed for want of a registration");
    };
    let failed = recent.iter().filter(|delivery| delivery.error_code == Some(worst.code)).count();
    let what = format!(
        "Twilio: {failed} of the last {} texts failed: {} ({})",
        recent.len(),
        worst.meaning,
        worst.code
    );
    let hint = "see \"When texts do not arrive\" in docs/OPERATIONS.md";
    let place =
        |wanted: &dyn Fn(&ListedDelivery) -> bool| recent.iter().position(|delivery| wanted(delivery));
    let delivered = place(&|delivery| delivery.status == Some(DeliveryStatus::Delivered));
    let broken = place(&|delivery| delivery.error_code == Some(worst.code));
    // The newest messages come first.
    match (delivered, broken) {
        (Some(delivered), Some(broken)) if delivered < broken => Finding::warning(what, hint),
        _ => Finding::failure(what, hint),
    }
}

fn account_finding(error: &AccountError) -> Finding {
    Finding::failure(format!("Twilio: failed to {error}"), account_advice(error))
}

#[cfg(test)]
mod tests {
    use super::super::FindingGrade;
    use super::*;

    fn now() -> Timestamp {
        "2026-11-21T12:00:00Z".parse().unwrap()
    }

    fn delivery(hours_ago: i64, status: &str, error_code: Option<u32>) -> ListedDelivery {
        let at = Some(now() - SignedDuration::from_hours(hours_ago));
        ListedDelivery { status: DeliveryStatus::from_carrier_status(status), error_code, at }
    }

    #[track_caller]
    fn check(deliveries: &[ListedDelivery], grade: FindingGrade, what: &str) {
        let finding = deliveries_finding(deliveries, now());
        assert_eq!((finding.grade, finding.what.as_str()), (grade, what));
    }

    #[test]
    fn unregistered_number_is_a_failure_until_a_delivery() {
        let blocked = delivery(2, "undelivered", Some(30034));
        let what = "Twilio: 1 of the last 2 texts failed: the number is not registered for A2P 10DLC (30034)";
        check(&[blocked.clone(), delivery(3, "delivered", None)], FindingGrade::Failure, what);
        check(&[delivery(1, "delivered", None), blocked], FindingGrade::Warning, what);
    }

    #[test]
    fn private_address_is_unreachable_for_twilio() {
        let grade = |url: &str| from_outside(&url.parse().unwrap()).map(|finding| finding.grade);
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
            let lookup = |name: &str| match name {
                "PUBLIC_URL" => Some(url.to_owned()),
                "TRUSTED_PROXIES" => Some(proxies.to_owned()),
                _ => None,
            };
            unlisted_proxy(&Config::from_lookup(lookup).unwrap()).map(|finding| finding.grade)
        };
        assert_eq!(grade("https://sms.example.org", ""), Some(FindingGrade::Warning));
        assert_eq!(grade("https://sms.example.org", "127.0.0.1"), None);
        assert_eq!(grade("http://127.0.0.1:3000", ""), None);
    }

    #[test]
    fn old_failures_and_those_of_one_recipient_are_ignored() {
        let fine = "Twilio: no text of the last week failed for want of a registration";
        check(
            &[delivery(1, "undelivered", Some(30005)), delivery(200, "failed", Some(30034))],
            FindingGrade::Ok,
            fine,
        );
    }
}
