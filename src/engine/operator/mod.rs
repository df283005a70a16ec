//! Actions of the operator, in the console and the API.

pub mod addresses;
pub mod answers;
pub mod conversations;
pub mod decisions;
pub mod library;
pub mod rooms;
pub mod test_text;
pub mod turns;
pub mod viewer_accounts;
