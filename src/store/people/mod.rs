//! Users with their addresses and accounts at media servers, rooms, test users, join requests, and pauses of the household.

pub mod addresses;
pub mod age_limits;
pub mod invitations;
pub mod join_requests;
pub mod link_codes;
pub mod merge;
pub mod operator_links;
pub mod pauses;
pub mod rooms;
pub mod test_users;
pub mod user_admin;
pub mod users;
pub mod viewer_accounts;
