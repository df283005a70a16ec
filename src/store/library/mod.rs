//! Title requests, deferred additions, title attributions, quotas, follows and arr events.

pub mod arr_events;
pub mod follows;
pub mod kept_titles;
pub mod quotas;
pub mod request_groups;
pub mod seerr_requests;
pub mod space_answers;
pub mod space_proposals;
pub mod title_attributions;
pub mod title_requests;
