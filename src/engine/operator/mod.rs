//! Actions of the operator, in the console and the API.

pub mod answers;
