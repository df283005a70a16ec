//! Simulated media servers with state, for tests and the demo.

mod household;
mod jellyfin;

pub use household::{FakeHousehold, FakeTitle};
pub use jellyfin::FakeJellyfin;
