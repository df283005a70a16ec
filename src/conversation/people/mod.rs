//! Users: their names, the onboarding of newcomers, admin commands, and stored facts about users.

pub mod admin_commands;
pub mod age_ratings;
pub mod facts;
pub mod first_request;
pub mod naming;
pub mod onboarding;
