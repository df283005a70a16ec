//! Who may run what. The only place that can build a [`Cleared`] call, and only a `Cleared` call runs.

use crate::conversation::transcript::{Arguments, FrozenItem};

/// A call that may run. Its field is private to this module: there is no other way to make one.
#[derive(Debug, Clone)]
pub struct Cleared(Input);

#[derive(Debug, Clone)]
enum Input {
    Arguments(Arguments),
    /// One item of a deletion that a yes has claimed.
    Item(FrozenItem),
}

impl Cleared {
    /// The arguments of a read or a write.
    pub fn arguments(&self) -> Option<&Arguments> {
        match &self.0 {
            Input::Arguments(arguments) => Some(arguments),
            Input::Item(_) => None,
        }
    }

    /// The frozen item of a destructive call.
    pub fn item(&self) -> Option<&FrozenItem> {
        match &self.0 {
            Input::Item(item) => Some(item),
            Input::Arguments(_) => None,
        }
    }
}
