//! Verification of `X-Twilio-Signature`, with which Twilio signs the URL and the form of its requests.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::digest::KeyInit;
use hmac::{Hmac, Mac};
use secrecy::{ExposeSecret, SecretString};
use sha1::Sha1;
use sha2::{Digest, Sha256};
use subtle::{Choice, ConstantTimeEq};

pub const SIGNATURE_HEADER: &str = "x-twilio-signature";
/// Header of requests that are signed with a shared key instead of the auth token.
pub const SETTINGS_HEADER: &str = "x-twilio-webhooks-signature-settings";

/// Verifier with all secrets that Twilio may sign with.
#[derive(Debug)]
pub struct SignatureVerifier {
    /// Valid auth tokens: two during a rotation.
    pub tokens: Vec<SecretString>,
    /// Secrets of webhook shared keys by key id.
    pub shared_keys: BTreeMap<String, SecretString>,
}

/// Signed content besides the URL.
#[derive(Debug, Clone, Copy)]
pub enum SignedBody<'a> {
    /// No body: a GET request has all of its content in the URL.
    Absent,
    /// All fields of the decoded form, including empty and unknown ones.
    Form(&'a [(String, String)]),
    /// Any other body as received, whose hash is in the signed URL.
    Raw(&'a [u8]),
}

/// Signature headers of a request.
#[derive(Debug, Clone, Copy)]
pub struct ClaimedSignature<'a> {
    pub signature: &'a str,
    pub settings: Option<&'a str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SignatureError {
    /// The request was signed with another secret, for another URL, or with other fields.
    #[error("verify the signature of the request")]
    WrongSignature,
    /// The hash of the body differs from the signed hash.
    #[error("verify the signed hash of the body")]
    WrongBody,
    /// The request names an unknown shared key or algorithm.
    #[error("find the signing key of the request")]
    UnknownKey,
}

impl SignatureVerifier {
    pub fn verify(
        &self,
        url: &str,
        body: SignedBody<'_>,
        claim: ClaimedSignature<'_>,
    ) -> Result<(), SignatureError> {
        let (keys, algorithm) = self.signing_keys(claim.settings)?;
        let fields: &[(String, String)] = match body {
            SignedBody::Form(fields) => fields,
            SignedBody::Absent | SignedBody::Raw(_) => &[],
        };
        let form_suffix = signed_fields(fields);
        let mut matches = Choice::from(0);
        for url in url_variants(url) {
            let message = url + &form_suffix;
            for key in &keys {
                let expected = compute_mac(algorithm, key, &message);
                matches |= expected.as_bytes().ct_eq(claim.signature.as_bytes());
            }
        }
        if !bool::from(matches) {
            return Err(SignatureError::WrongSignature);
        }
        match body {
            SignedBody::Absent | SignedBody::Form(_) => Ok(()),
            SignedBody::Raw(bytes) => check_hash(url, bytes),
        }
    }

    /// Returns the keys and the algorithm. A request with a settings header is never verified with the auth tokens.
    fn signing_keys(
        &self,
        settings: Option<&str>,
    ) -> Result<(Vec<&str>, SignatureAlgorithm), SignatureError> {
        let Some(settings) = settings else {
            return Ok((
                self.tokens.iter().filter_map(nonempty_secret).collect(),
                SignatureAlgorithm::HmacSha1,
            ));
        };
        let value_of = |name: &str| {
            settings.split(',').find_map(|part| {
                part.trim().split_once('=').filter(|(key, _)| *key == name).map(|(_, value)| value)
            })
        };
        let algorithm = match value_of("algorithm") {
            Some("HMAC_SHA1") => SignatureAlgorithm::HmacSha1,
            Some("HMAC_SHA256") => SignatureAlgorithm::HmacSha256,
            _ => return Err(SignatureError::UnknownKey),
        };
        let key = value_of("key").and_then(|id| self.shared_keys.get(id)).and_then(nonempty_secret);
        Ok((vec![key.ok_or(SignatureError::UnknownKey)?], algorithm))
    }
}

/// Returns the URL that Twilio signed, from the configured public URL and the raw request target. `Host` and forwarded
/// headers are not trusted.
pub fn signed_url(public_url: &str, request_target: &str) -> String {
    let base = public_url.split('#').next().unwrap_or(public_url).trim_end_matches('/');
    let target = match request_target.split_once("://") {
        // A proxy may send the request target in absolute form.
        Some((scheme, rest)) if !scheme.contains(['/', '?']) => {
            rest.find(['/', '?']).map_or("", |start| &rest[start..])
        }
        _ => request_target,
    };
    format!("{base}{target}")
}

/// Signs a form like Twilio, for the fake carrier and tests.
pub fn sign_form(token: &SecretString, url: &str, form: &[(String, String)]) -> String {
    let [_, given] = url_variants(url);
    compute_mac(SignatureAlgorithm::HmacSha1, token.expose_secret(), &(given + &signed_fields(form)))
}

#[derive(Debug, Clone, Copy)]
enum SignatureAlgorithm {
    HmacSha1,
    HmacSha256,
}

/// Returns the secret unless it is empty, because anyone could sign with an empty secret.
fn nonempty_secret(secret: &SecretString) -> Option<&str> {
    Some(secret.expose_secret()).filter(|secret| !secret.is_empty())
}

#[expect(clippy::expect_used, reason = "an HMAC takes a key of any length")]
fn compute_mac(algorithm: SignatureAlgorithm, key: &str, message: &str) -> String {
    const ANY_LENGTH: &str = "an HMAC takes a key of any length";
    match algorithm {
        SignatureAlgorithm::HmacSha1 => {
            let mac = Hmac::<Sha1>::new_from_slice(key.as_bytes()).expect(ANY_LENGTH);
            STANDARD.encode(mac.chain_update(message).finalize().into_bytes())
        }
        SignatureAlgorithm::HmacSha256 => {
            let mac = Hmac::<Sha256>::new_from_slice(key.as_bytes()).expect(ANY_LENGTH);
            STANDARD.encode(mac.chain_update(message).finalize().into_bytes())
        }
    }
}

/// Concatenates the names and values in byte order, without duplicates.
fn signed_fields(fields: &[(String, String)]) -> String {
    let distinct: BTreeSet<(&str, &str)> =
        fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    distinct.into_iter().flat_map(|(name, value)| [name, value]).collect()
}

/// Returns two variants of a URL, because Twilio signs some URLs with their port and some without: first the variant
/// whose port is added or removed, then the given one. Both are without fragment and user info, which are not signed.
fn url_variants(url: &str) -> [String; 2] {
    let url = url.split('#').next().unwrap_or(url);
    let Some((scheme, rest)) = url.split_once("://") else {
        return [url.to_owned(), url.to_owned()];
    };
    let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    let host_and_port = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    // The colons inside the brackets of an IPv6 address do not separate a port.
    let host_end = host_and_port.find(']').unwrap_or(0);
    let given = format!("{scheme}://{host_and_port}{path}");
    let toggled_port = match host_and_port[host_end..].find(':') {
        Some(colon) => format!("{scheme}://{}{path}", &host_and_port[..host_end + colon]),
        None => {
            let port = if scheme.eq_ignore_ascii_case("https") { 443 } else { 80 };
            format!("{scheme}://{host_and_port}:{port}{path}")
        }
    };
    [toggled_port, given]
}

fn check_hash(url: &str, body: &[u8]) -> Result<(), SignatureError> {
    let url = url.split('#').next().unwrap_or(url);
    let query = url.split_once('?').map_or("", |(_, query)| query);
    let signed = query.split('&').find_map(|pair| pair.strip_prefix("bodySHA256="));
    let actual: String = Sha256::digest(body).iter().map(|byte| format!("{byte:02x}")).collect();
    match signed {
        Some(signed) if bool::from(actual.as_bytes().ct_eq(signed.as_bytes())) => Ok(()),
        _ => Err(SignatureError::WrongBody),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::{any, proptest};
    use serde_json::Value;

    use super::{ClaimedSignature, SignatureError, SignatureVerifier, SignedBody, sign_form, signed_url};

    const VECTORS: &str = include_str!("../../../tests/data/twilio/signature_vectors.json");

    fn vectors() -> Value {
        serde_json::from_str(VECTORS).unwrap()
    }

    fn field<'a>(row: &'a Value, name: &str) -> &'a str {
        row[name].as_str().unwrap_or_default()
    }

    /// Returns the fields of the decoded form.
    fn decoded_form(row: &Value) -> Vec<(String, String)> {
        match row["tags"].as_array().unwrap().iter().any(|tag| tag == "negative") {
            // A negative row may contain a wrongly decoded form.
            true => serde_json::from_value(row["params"].clone()).unwrap(),
            false => serde_urlencoded::from_str(field(row, "body_raw")).unwrap(),
        }
    }

    fn verifier(tokens: &[&str], shared_keys: &[(&str, &str)]) -> SignatureVerifier {
        SignatureVerifier {
            tokens: tokens.iter().map(|token| (*token).into()).collect(),
            shared_keys: shared_keys.iter().map(|(id, key)| ((*id).to_owned(), (*key).into())).collect(),
        }
    }

    fn is_valid(row: &Value) -> bool {
        let settings = row["signature_settings_header"].as_str();
        let secret = field(row, "auth_token");
        let verifier = match settings {
            Some(_) => verifier(&["some other token"], &[("webhooks_sharedkey_0123456789abcdef", secret)]),
            None => verifier(&["some other token", secret], &[]),
        };
        let form = decoded_form(row);
        let body = match field(row, "kind") {
            "form" => SignedBody::Form(&form),
            "json" => SignedBody::Raw(field(row, "body_raw").as_bytes()),
            _ => SignedBody::Absent,
        };
        let claim = ClaimedSignature { signature: field(row, "signature"), settings };
        verifier.verify(field(row, "url"), body, claim).is_ok()
    }

    #[test]
    fn recorded_signatures_match_the_official_results() {
        let vectors = vectors();
        let rows = vectors["vectors"].as_array().unwrap();
        let mismatches: Vec<&str> = rows
            .iter()
            .filter(|row| is_valid(row) != row["expect_valid"].as_bool().unwrap())
            .map(|row| field(row, "id"))
            .collect();
        assert_eq!((rows.len(), mismatches), (52, vec![]));
    }

    /// Checks only the rows with a configured base URL. The other rows take the URL from a `Host` or forwarded header, which
    /// we never trust.
    #[test]
    fn signed_url_is_the_public_url_with_the_raw_target() {
        let vectors = vectors();
        let rows = vectors["url_reconstruction"]["vectors"].as_array().unwrap();
        let configured: Vec<_> = rows.iter().filter(|row| row["public_base_url"].is_string()).collect();
        for row in &configured {
            let url = signed_url(field(row, "public_base_url"), field(row, "request_target"));
            assert_eq!(url, field(row, "expect_url"), "{}", field(row, "id"));
        }
        assert_eq!(configured.len(), 3);
    }

    #[test]
    fn host_of_an_absolute_target_is_ignored() {
        assert_eq!(
            signed_url("https://a.example/bot/", "http://b/x?u=http://c/"),
            "https://a.example/bot/x?u=http://c/"
        );
    }

    const URL: &str = "https://sms.example/webhook/twilio";

    fn form() -> Vec<(String, String)> {
        vec![("Body".to_owned(), "hi".to_owned())]
    }

    fn verify_form(
        verifier: &SignatureVerifier,
        url: &str,
        signature: &str,
        settings: Option<&str>,
    ) -> Result<(), SignatureError> {
        verifier.verify(url, SignedBody::Form(&form()), ClaimedSignature { signature, settings })
    }

    #[test]
    fn settings_header_never_falls_back_to_the_auth_token() {
        let signature = sign_form(&"token".into(), URL, &form());
        let verifier = verifier(&["token"], &[("known", "secret")]);
        assert_eq!(verify_form(&verifier, URL, &signature, None), Ok(()));
        for settings in ["", "key=absent,algorithm=HMAC_SHA1", "algorithm=HMAC_SHA1", "key=known"] {
            let result = verify_form(&verifier, URL, &signature, Some(settings));
            assert_eq!(result, Err(SignatureError::UnknownKey), "{settings}");
        }
        let known = verify_form(&verifier, URL, &signature, Some("key=known,algorithm=HMAC_SHA1"));
        assert_eq!(known, Err(SignatureError::WrongSignature));
    }

    #[test]
    fn empty_secret_verifies_nothing() {
        let signature = sign_form(&"".into(), URL, &form());
        let verifier = verifier(&[""], &[("empty", "")]);
        assert_eq!(verify_form(&verifier, URL, &signature, None), Err(SignatureError::WrongSignature));
        let shared = verify_form(&verifier, URL, &signature, Some("key=empty,algorithm=HMAC_SHA1"));
        assert_eq!(shared, Err(SignatureError::UnknownKey));
    }

    #[test]
    fn port_is_optional_and_user_info_and_fragment_are_ignored() {
        let verifier = verifier(&["token"], &[]);
        let variants = [
            ("https://[::1]:8443/a", "https://[::1]/a"),
            ("https://[::1]/a", "https://[::1]:443/a"),
            ("http://h/a", "http://h:80/a"),
            ("https://user:word@h:8443/a#rc=3", "https://h/a"),
        ];
        for (requested, signed) in variants {
            let signature = sign_form(&"token".into(), signed, &form());
            assert_eq!(verify_form(&verifier, requested, &signature, None), Ok(()), "{requested}");
        }
    }

    #[test]
    fn no_token_verifies_nothing() {
        let verifier = SignatureVerifier { tokens: vec![], shared_keys: BTreeMap::new() };
        assert_eq!(verify_form(&verifier, URL, "", None), Err(SignatureError::WrongSignature));
    }

    proptest! {
        #[test]
        fn unsigned_input_is_rejected_without_panic(url in any::<String>(), target in any::<String>(), signature: String, settings: Option<String>, name: String, value: String, raw: Vec<u8>) {
            let verifier = verifier(&["token"], &[("known", "secret")]);
            let form = [(name, value)];
            let claim = ClaimedSignature { signature: &signature, settings: settings.as_deref() };
            for body in [SignedBody::Absent, SignedBody::Form(&form), SignedBody::Raw(&raw)] {
                assert!(verifier.verify(&signed_url(&url, &target), body, claim).is_err());
            }
        }

        #[test]
        fn signed_request_is_verified(url in "https?://[a-z@:\\[\\]é0-9]{0,12}[/?#][ -~]{0,20}", name: String, value: String) {
            let form = [(name, value)];
            let signature = sign_form(&"token".into(), &url, &form);
            let claim = ClaimedSignature { signature: &signature, settings: None };
            assert_eq!(verifier(&["token"], &[]).verify(&url, SignedBody::Form(&form), claim), Ok(()));
        }
    }
}
