//! Users of the household: permissions, quotas, pauses and join requests.

pub mod join_requests;
pub mod pauses;
pub mod test_users;
pub mod user_admin;
pub mod users;
