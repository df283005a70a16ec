//! Codes with which admins answer open approvals. Codes are drawn until one is free.

use super::CodeSource;
use crate::conversation::people::admin_commands::ApprovalCode;

/// Generator of four-digit codes.
pub(super) struct ApprovalCodes {
    codes: CodeSource,
    drawn: u16,
}

impl ApprovalCodes {
    pub(super) fn new(codes: CodeSource) -> Self {
        Self { codes, drawn: 0 }
    }

    pub(super) fn draw(&mut self) -> ApprovalCode {
        let number = match self.codes {
            CodeSource::Random => rand::random_range(0..10_000_u16),
            CodeSource::Fixed(code) => (u16::from(code) * 101 + self.drawn) % 10_000,
        };
        self.drawn += 1;
        ApprovalCode::new(number).unwrap_or_else(|| unreachable!("the number is below 10,000"))
    }
}
