//! Users, test users, join requests, and pauses of the household.

pub mod join_requests;
pub mod pauses;
pub mod test_users;
pub mod user_admin;
pub mod users;
