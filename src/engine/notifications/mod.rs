//! Notifications about arr events: intake of reported events, reconciliation of missed ones, and fan-out to users; and
//! offers of next seasons.

pub mod arr_event_intake;
mod delay_notices;
mod fanout;
pub mod next_season_checker;
pub mod notifier;
mod playability_check;
pub mod reconciler;
pub mod season_checker;
mod season_offers;
pub(super) mod title_readers;
