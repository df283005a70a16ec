//! By which way a text reaches its receiver.

/// Who brings a text to its receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// By phone, for money.
    Carrier,
    Terminal,
    /// Nobody: it is shown where it stands.
    Console,
}
