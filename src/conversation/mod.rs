//! Pure decisions without side effects: the meaning of a message, the calls that may run, the next step, the contents
//! of the prompt. These modules use no clock, no network and no database; `now` is an argument.

pub mod call_failure;
pub mod catalog_ids;
pub mod channel;
pub mod channel_list;
pub mod deletion;
pub mod delivery_status;
pub mod grammar;
pub mod invitation;
pub mod library_sample;
pub mod lifecycle;
pub mod linking;
pub mod memory;
pub mod model_cost;
pub mod model_request;
pub mod mood;
pub mod next_season;
pub mod notifications;
pub mod offered_tools;
pub mod people;
pub mod prompt;
pub mod rate_limit;
pub mod rating_caps;
pub mod retry_policy;
pub mod routing;
pub mod seerr_requests;
pub mod stream_events;
pub mod text;
pub mod title_approvals;
pub mod title_requests;
pub mod tool_schema;
pub mod transcript;
pub mod turn;
pub mod user_address;
pub mod viewer_accounts;
pub mod votes;
