//! What happens in conversations, as it happens: written by the [`recorder`], followed by [`reader`]s. There is one way
//! to read, the log in the database; what is woken or kept in memory only saves looking there.

mod feed;
pub mod hub;
pub mod reader;
pub(super) mod recorder;
mod ring;
