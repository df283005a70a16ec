//! Access to the listeners as the operator configures it: sign-in and names of the console, trusted proxies of the
//! webhooks. `web` applies these rules.

mod hosts;
mod password;
mod trusted_proxies;

pub use hosts::{AllowedHosts, parse_host};
pub use password::ConsolePassword;
pub(crate) use password::LONGEST_PASSWORD;
pub use trusted_proxies::{ClientAddress, TrustedProxies, parse_network};

/// Configured rules of access to the console.
#[derive(Debug, Clone)]
pub struct AccessRules {
    pub sign_in: SignIn,
    pub hosts: AllowedHosts,
}

/// How the operator signs in.
#[derive(Debug, Clone)]
pub enum SignIn {
    /// Not at all: whoever reaches the console is the operator.
    Open,
    /// By links from the shell alone.
    Links,
    /// By password, or by a link.
    Password(ConsolePassword),
}
