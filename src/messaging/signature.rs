//! Verification that Twilio sent a request: compares `X-Twilio-Signature` with the URL that Twilio was given.

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
/// Header that is present when a shared key signed instead of the auth token.
pub const SETTINGS_HEADER: &str = "x-twilio-webhooks-signature-settings";

/// All secrets with which Twilio may sign.
#[derive(Debug)]
pub struct SignatureVerifier {
    /// Auth tokens, any of which is valid: two while one is being rotated.
    pub tokens: Vec<SecretString>,
    /// Secrets of webhook shared keys by key id.
    pub shared_keys: BTreeMap<String, SecretString>,
}

/// Signed content besides the URL.
#[derive(Debug, Clone, Copy)]
pub enum SignedBody<'a> {
    /// Content of a GET request: everything is in the URL.
    Absent,
    /// Decoded form: every field, including empty and unknown ones.
    Form(&'a [(String, String)]),
    /// Any other body, as received: its hash is in the URL.
    Raw(&'a [u8]),
}

/// Signature values that the request's headers claim.
#[derive(Debug, Clone, Copy)]
pub struct ClaimedSignature<'a> {
    pub signature: &'a str,
    pub settings: Option<&'a str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SignatureError {
    /// Request with another secret, another URL than ours or a changed field.
    #[error("match the signature of the request")]
    WrongSignature,
    /// Body whose hash is not the signed one.
    #[error("match the signed hash of the body")]
    WrongBody,
    /// Request that names a shared key or an algorithm that we do not have.
    #[error("find the key that the request names")]
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
        let tail = signed_fields(fields);
        let mut matches = Choice::from(0);
        for signed in url_spellings(url) {
            let message = signed + &tail;
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

    /// Returns the keys and the algorithm. A settings header decides alone: there is no fallback to the auth tokens.
    fn signing_keys(
        &self,
        settings: Option<&str>,
    ) -> Result<(Vec<&str>, SignatureAlgorithm), SignatureError> {
        let Some(settings) = settings else {
            return Ok((
                self.tokens.iter().filter_map(usable_secret).collect(),
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
        let key = value_of("key").and_then(|id| self.shared_keys.get(id)).and_then(usable_secret);
        Ok((vec![key.ok_or(SignatureError::UnknownKey)?], algorithm))
    }
}

/// Returns the URL that Twilio signed, from our own setting and the raw request target. Headers do not affect it.
pub fn signed_url(public_url: &str, request_target: &str) -> String {
    let base = public_url.split('#').next().unwrap_or(public_url).trim_end_matches('/');
    let target = match request_target.split_once("://") {
        // A proxy may pass the target in absolute form.
        Some((scheme, rest)) if !scheme.contains(['/', '?']) => {
            rest.find(['/', '?']).map_or("", |start| &rest[start..])
        }
        _ => request_target,
    };
    format!("{base}{target}")
}

/// Returns the signature that Twilio would put on a form.
pub fn sign_form(token: &SecretString, url: &str, form: &[(String, String)]) -> String {
    let [_, as_given] = url_spellings(url);
    compute_mac(SignatureAlgorithm::HmacSha1, token.expose_secret(), &(as_given + &signed_fields(form)))
}

#[derive(Debug, Clone, Copy)]
enum SignatureAlgorithm {
    HmacSha1,
    HmacSha256,
}

/// Returns the secret if it is not empty: anyone can sign with an empty secret.
fn usable_secret(secret: &SecretString) -> Option<&str> {
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

/// Returns names in byte order, each with its distinct values in byte order.
fn signed_fields(fields: &[(String, String)]) -> String {
    let distinct: BTreeSet<(&str, &str)> =
        fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    distinct.into_iter().flat_map(|(name, value)| [name, value]).collect()
}

/// Returns both spellings of a URL: Twilio signs some URLs without their port and some with it, so there is the other
/// spelling and the given one. Fragment and user info are never signed; nothing else changes.
fn url_spellings(url: &str) -> [String; 2] {
    let url = url.split('#').next().unwrap_or(url);
    let Some((scheme, rest)) = url.split_once("://") else {
        return [url.to_owned(), url.to_owned()];
    };
    let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    let host_and_port = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    // The colons inside the brackets of an IPv6 address do not separate a port.
    let host_end = host_and_port.find(']').unwrap_or(0);
    let given = format!("{scheme}://{host_and_port}{path}");
    let other = match host_and_port[host_end..].find(':') {
        Some(colon) => format!("{scheme}://{}{path}", &host_and_port[..host_end + colon]),
        None => {
            let port = if scheme.eq_ignore_ascii_case("https") { 443 } else { 80 };
            format!("{scheme}://{host_and_port}:{port}{path}")
        }
    };
    [other, given]
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

    const VECTORS: &str = include_str!("../../tests/data/twilio/signature_vectors.json");

    fn vectors() -> Value {
        serde_json::from_str(VECTORS).unwrap()
    }

    fn field<'a>(row: &'a Value, name: &str) -> &'a str {
        row[name].as_str().unwrap_or_default()
    }

    /// Returns the fields as a receiver decodes them from the request.
    fn decoded(row: &Value) -> Vec<(String, String)> {
        match row["tags"].as_array().unwrap().iter().any(|tag| tag == "negative") {
            // A negative row may describe a receiver that decoded wrongly.
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

    fn check(row: &Value) -> bool {
        let settings = row["signature_settings_header"].as_str();
        let secret = field(row, "auth_token");
        let verifier = match settings {
            Some(_) => verifier(&["some other token"], &[("webhooks_sharedkey_0123456789abcdef", secret)]),
            None => verifier(&["some other token", secret], &[]),
        };
        let form = decoded(row);
        let body = match field(row, "kind") {
            "form" => SignedBody::Form(&form),
            "json" => SignedBody::Raw(field(row, "body_raw").as_bytes()),
            _ => SignedBody::Absent,
        };
        let claim = ClaimedSignature { signature: field(row, "signature"), settings };
        verifier.verify(field(row, "url"), body, claim).is_ok()
    }

    #[test]
    fn every_recorded_signature_gets_the_official_verdict() {
        let vectors = vectors();
        let rows = vectors["vectors"].as_array().unwrap();
        let wrong: Vec<&str> = rows
            .iter()
            .filter(|row| check(row) != row["expect_valid"].as_bool().unwrap())
            .map(|row| field(row, "id"))
            .collect();
        assert_eq!((rows.len(), wrong), (52, vec![]));
    }

    /// Checks only the rows with a configured base URL: the other rows rebuild the URL from a Host or forwarded header,
    /// which is never trusted here.
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
    fn absolute_target_loses_its_host() {
        assert_eq!(
            signed_url("https://a.example/bot/", "http://b/x?u=http://c/"),
            "https://a.example/bot/x?u=http://c/"
        );
    }

    const URL: &str = "https://sms.example/webhook/twilio";

    fn form() -> Vec<(String, String)> {
        vec![("Body".to_owned(), "hi".to_owned())]
    }

    fn verdict(
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
        assert_eq!(verdict(&verifier, URL, &signature, None), Ok(()));
        for settings in ["", "key=absent,algorithm=HMAC_SHA1", "algorithm=HMAC_SHA1", "key=known"] {
            let verdict = verdict(&verifier, URL, &signature, Some(settings));
            assert_eq!(verdict, Err(SignatureError::UnknownKey), "{settings}");
        }
        let known = verdict(&verifier, URL, &signature, Some("key=known,algorithm=HMAC_SHA1"));
        assert_eq!(known, Err(SignatureError::WrongSignature));
    }

    #[test]
    fn empty_secret_signs_nothing() {
        let signature = sign_form(&"".into(), URL, &form());
        let verifier = verifier(&[""], &[("empty", "")]);
        assert_eq!(verdict(&verifier, URL, &signature, None), Err(SignatureError::WrongSignature));
        let shared = verdict(&verifier, URL, &signature, Some("key=empty,algorithm=HMAC_SHA1"));
        assert_eq!(shared, Err(SignatureError::UnknownKey));
    }

    #[test]
    fn port_is_optional_and_user_info_and_fragment_are_ignored() {
        let verifier = verifier(&["token"], &[]);
        let spellings = [
            ("https://[::1]:8443/a", "https://[::1]/a"),
            ("https://[::1]/a", "https://[::1]:443/a"),
            ("http://h/a", "http://h:80/a"),
            ("https://user:word@h:8443/a#rc=3", "https://h/a"),
        ];
        for (seen, signed) in spellings {
            let signature = sign_form(&"token".into(), signed, &form());
            assert_eq!(verdict(&verifier, seen, &signature, None), Ok(()), "{seen}");
        }
    }

    #[test]
    fn no_token_verifies_nothing() {
        let verifier = SignatureVerifier { tokens: vec![], shared_keys: BTreeMap::new() };
        assert_eq!(verdict(&verifier, URL, "", None), Err(SignatureError::WrongSignature));
    }

    proptest! {
        #[test]
        fn any_input_gets_a_verdict(url in any::<String>(), target in any::<String>(), signature: String, settings: Option<String>, name: String, value: String, raw: Vec<u8>) {
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
