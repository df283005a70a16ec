//! Configured access rules: sign-in and allowed host names of the console, and trusted proxies of the webhooks. `web`
//! applies these rules.

mod hosts;
mod password;
mod private_networks;
mod trusted_proxies;

pub use hosts::{AllowedHosts, parse_host};
pub use password::ConsolePassword;
pub(crate) use password::{MAX_PASSWORD_BYTES, hash_password, matches_hash};
pub(crate) use private_networks::{is_loopback_host, is_private_host};
pub use trusted_proxies::{ClientAddress, TrustedProxies, parse_network};

/// Rules for access to the console.
#[derive(Debug, Clone, PartialEq)]
pub struct AccessRules {
    pub sign_in: SignIn,
    pub hosts: AllowedHosts,
}

/// Sign-in method of the operator.
#[derive(Debug, Clone, PartialEq)]
pub enum SignIn {
    /// No sign-in: everyone who can reach the console has full access.
    Open,
    /// Sign-in only by links that the CLI creates.
    Links,
    /// Sign-in by password or by a link.
    Password(ConsolePassword),
}
