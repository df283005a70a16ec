//! Codes of confirmation prompts, codes with which admins answer open approvals, and codes that link addresses.

use crate::conversation::linking::LinkCode;
use crate::conversation::people::admin_commands::ApprovalCode;

/// Source of codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CodeSource {
    Random,
    /// Predictable codes, so that a scripted scenario can contain them.
    Fixed(u8),
}

impl CodeSource {
    /// Draws the code of a confirmation prompt: four random digits, or the two digits of the fixed code.
    pub(super) fn draw_confirmation_code(self) -> String {
        match self {
            Self::Random => format!("{:04}", rand::random_range(0..10_000_u16)),
            Self::Fixed(code) => format!("{code:02}"),
        }
    }

    /// Returns a generator of codes that link an address. The caller draws codes until one is unused.
    pub(crate) fn link_codes(self) -> impl FnMut() -> LinkCode {
        let mut drawn = 0;
        move || {
            let number = match self {
                Self::Random => rand::random_range(0..1_000_000),
                Self::Fixed(code) => (u32::from(code) * 10_101 + drawn) % 1_000_000,
            };
            drawn += 1;
            LinkCode::from_number(number).unwrap_or_else(|| unreachable!("the number is below 1,000,000"))
        }
    }

    /// Returns a generator of codes for approvals. The caller draws codes until one is unused.
    pub(super) fn approval_codes(self) -> ApprovalCodes {
        ApprovalCodes { source: self, drawn: 0 }
    }
}

/// Generator of four-digit approval codes.
pub(super) struct ApprovalCodes {
    source: CodeSource,
    /// Number of codes drawn so far.
    drawn: u16,
}

impl ApprovalCodes {
    pub(super) fn draw_code(&mut self) -> ApprovalCode {
        let number = match self.source {
            CodeSource::Random => rand::random_range(0..10_000_u16),
            CodeSource::Fixed(code) => (u16::from(code) * 101 + self.drawn) % 10_000,
        };
        self.drawn += 1;
        ApprovalCode::new(number).unwrap_or_else(|| unreachable!("the number is below 10,000"))
    }
}
