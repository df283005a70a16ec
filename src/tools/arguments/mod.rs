//! Arguments of a tool: the schema that the model gets, and the parsing of what the model writes.

pub mod parsing;
pub mod schema;
#[cfg(test)]
mod tests;
