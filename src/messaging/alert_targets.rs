//! Services that forward alerts to the operator, as configured.

use std::fmt;

use secrecy::SecretString;
use url::Url;

/// Services that forward alerts to the operator.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AlertTargets {
    pub ntfy: Option<Ntfy>,
    pub pushover: Option<Pushover>,
    pub webhook: Option<AlertWebhook>,
}

#[derive(Clone)]
pub struct Ntfy {
    /// URL of the topic, which may be all that gives access to it.
    pub url: Url,
    pub token: Option<SecretString>,
}

#[derive(Debug, Clone)]
pub struct Pushover {
    pub token: SecretString,
    pub user: SecretString,
}

#[derive(Clone)]
pub struct AlertWebhook {
    /// URL that may be all that gives access to the program behind it.
    pub url: Url,
    /// Secret that signs the requests.
    pub secret: Option<SecretString>,
}

impl fmt::Debug for Ntfy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ntfy").field("token", &self.token).finish_non_exhaustive()
    }
}

impl fmt::Debug for AlertWebhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AlertWebhook").field("secret", &self.secret).finish_non_exhaustive()
    }
}
