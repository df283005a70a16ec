//! Arguments of a tool: the schema that the model gets, and the parsing of the arguments that it sends.

pub mod parsing;
pub mod schema;
#[cfg(test)]
mod tests;
