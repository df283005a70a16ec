//! Simulated media servers with state, for tests and the demo.

mod household;
mod jellyfin;
mod library_mirror;
mod plex;
mod plex_items;
mod plex_xml;
mod tautulli;

pub use household::{FakeHousehold, FakeTitle};
pub use jellyfin::FakeJellyfin;
pub use library_mirror::LibraryMirror;
pub use plex::FakePlex;
pub use tautulli::FakeTautulli;
