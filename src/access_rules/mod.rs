//! Access rules of the listeners, as the operator configures them: sign-in and host names of the console, trusted
//! proxies of the webhooks. `web` applies these rules.

mod hosts;
mod password;
mod trusted_proxies;

pub use hosts::{AllowedHosts, parse_host};
pub use password::ConsolePassword;
pub(crate) use password::MAX_PASSWORD_BYTES;
pub use trusted_proxies::{ClientAddress, TrustedProxies, parse_network};

/// Configured rules for access to the console.
#[derive(Debug, Clone)]
pub struct AccessRules {
    pub sign_in: SignIn,
    pub hosts: AllowedHosts,
}

/// Sign-in method of the operator.
#[derive(Debug, Clone)]
pub enum SignIn {
    /// No sign-in: anyone who reaches the console is the operator.
    Open,
    /// Sign-in only by links from the shell.
    Links,
    /// Sign-in by password, or by a link.
    Password(ConsolePassword),
}
