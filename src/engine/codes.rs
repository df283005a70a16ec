//! Codes by which admins answer open approvals, drawn until one is free.

use super::Codes;
use crate::conversation::orders::FourDigits;

/// Generator of one four-digit code after another.
pub(super) struct FourDigitCodes {
    codes: Codes,
    drawn: u16,
}

impl FourDigitCodes {
    pub(super) fn new(codes: Codes) -> Self {
        Self { codes, drawn: 0 }
    }

    pub(super) fn draw(&mut self) -> FourDigits {
        let number = match self.codes {
            Codes::Random => rand::random_range(0..10_000_u16),
            Codes::Fixed(code) => (u16::from(code) * 101 + self.drawn) % 10_000,
        };
        self.drawn += 1;
        FourDigits::new(number).unwrap_or_else(|| unreachable!("the number is below 10,000"))
    }
}
