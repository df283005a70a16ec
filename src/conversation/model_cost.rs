//! Cost of model calls: prices, the estimated maximum of a call, and the daily budget.

use super::model_request::ModelRequest;

/// Tokens that a model call used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TokenUsage {
    /// Input tokens, including the cached ones.
    pub input: u64,
    /// Input tokens that the server had cached from an earlier call.
    pub cached: u64,
    pub output: u64,
}

impl TokenUsage {
    pub fn total(self) -> u64 {
        self.input.saturating_add(self.output)
    }

    pub fn plus(self, other: Self) -> Self {
        Self {
            input: self.input.saturating_add(other.input),
            cached: self.cached.saturating_add(other.cached),
            output: self.output.saturating_add(other.output),
        }
    }
}

/// Prices per million tokens, in millionths of the operator's currency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ModelPrices {
    pub input: u64,
    pub cached: u64,
    pub output: u64,
}

impl ModelPrices {
    /// Returns the cost in millionths of the currency, rounded up.
    pub fn cost(self, tokens: TokenUsage) -> u64 {
        let cached = tokens.cached.min(tokens.input);
        let charge = |count: u64, price: u64| u128::from(count) * u128::from(price);
        let sum = charge(tokens.input - cached, self.input)
            + charge(cached, self.cached)
            + charge(tokens.output, self.output);
        u64::try_from(sum.div_ceil(1_000_000)).unwrap_or(u64::MAX)
    }
}

/// Limit for all model calls of a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DailyBudget {
    pub tokens: Option<u64>,
    /// Limit in millionths of the currency.
    pub cost: Option<u64>,
}

/// Tokens and cost together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ModelSpending {
    pub tokens: u64,
    pub cost: u64,
}

impl ModelSpending {
    pub fn plus(self, other: Self) -> Self {
        Self { tokens: self.tokens.saturating_add(other.tokens), cost: self.cost.saturating_add(other.cost) }
    }

    pub fn minus(self, other: Self) -> Self {
        Self { tokens: self.tokens.saturating_sub(other.tokens), cost: self.cost.saturating_sub(other.cost) }
    }
}

/// Estimated maximum cost of a model call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CostEstimate {
    pub input: ModelSpending,
    /// Spending for the longest possible response.
    pub output: ModelSpending,
}

impl CostEstimate {
    pub fn from_request(request: &ModelRequest, prices: ModelPrices) -> Self {
        let spending =
            |tokens: TokenUsage| ModelSpending { tokens: tokens.total(), cost: prices.cost(tokens) };
        Self {
            input: spending(TokenUsage {
                input: estimate_tokens(request.byte_size()),
                ..TokenUsage::default()
            }),
            output: spending(TokenUsage {
                output: request.max_output_tokens.into(),
                ..TokenUsage::default()
            }),
        }
    }

    pub fn total(self) -> ModelSpending {
        self.input.plus(self.output)
    }
}

/// Estimates the tokens of a text from its length. Models count tokens differently; one token is about four bytes.
pub fn estimate_tokens(bytes: usize) -> u64 {
    u64::try_from(bytes.div_ceil(4)).unwrap_or(u64::MAX)
}

/// Actual charge of a model call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelCharge {
    /// The server rejected the request.
    Nothing,
    /// The server may have read the request; the length of its response is unknown.
    Input,
    Used {
        tokens: TokenUsage,
        cost: u64,
    },
}

impl DailyBudget {
    /// Default budget, for about 430 messages.
    pub const STANDARD: Self = Self { tokens: Some(3_000_000), cost: None };

    /// Returns whether the budget allows a call that spends up to `estimate` in addition to `spent`.
    pub fn has_room(self, spent: ModelSpending, estimate: ModelSpending) -> bool {
        let is_within = |limit: Option<u64>, spent: u64, estimate: u64| {
            limit.is_none_or(|limit| spent.saturating_add(estimate) <= limit)
        };
        is_within(self.tokens, spent.tokens, estimate.tokens)
            && is_within(self.cost, spent.cost, estimate.cost)
    }

    pub fn is_limited(self) -> bool {
        self.tokens.is_some() || self.cost.is_some()
    }

    /// Returns half of the budget, as the limit for background calls, so that the rest is left for replies to users.
    pub fn background_half(self) -> Self {
        self.fraction(2)
    }

    /// Returns the budget with each limit divided by `divisor`, which is not 0.
    pub fn fraction(self, divisor: u64) -> Self {
        Self {
            tokens: self.tokens.map(|limit| limit / divisor),
            cost: self.cost.map(|limit| limit / divisor),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::model_request::{ModelMessage, ToolChoice};
    use crate::conversation::offered_tools::OfferedTools;

    #[test]
    fn background_budget_is_half_of_each_limit() {
        let budget = DailyBudget { tokens: Some(1_001), cost: None };
        let spent = |tokens| ModelSpending { tokens, cost: 9 };
        assert!(
            budget.background_half().has_room(spent(400), spent(100))
                && !budget.background_half().has_room(spent(400), spent(101))
        );
        assert_eq!(DailyBudget::default().background_half(), DailyBudget::default());
    }

    #[test]
    fn cached_input_has_its_own_price_and_cost_is_rounded_up() {
        let prices = ModelPrices { input: 2_000_000, cached: 500_000, output: 8_000_000 };
        assert_eq!(prices.cost(TokenUsage { input: 1_000, cached: 0, output: 100 }), 2_800);
        assert_eq!(prices.cost(TokenUsage { input: 1_000, cached: 400, output: 100 }), 2_200);
        assert_eq!(prices.cost(TokenUsage { input: 0, cached: 1, output: 0 }), 0);
        assert_eq!(ModelPrices { input: 1, ..prices }.cost(TokenUsage { input: 1, cached: 0, output: 0 }), 1);
        assert_eq!(ModelPrices::default().cost(TokenUsage { input: 9, cached: 0, output: 9 }), 0);
    }

    #[test]
    fn maximum_cost_of_a_call_includes_its_longest_response() {
        let request = ModelRequest {
            system: "x".repeat(399),
            tools: OfferedTools::default(),
            tool_choice: ToolChoice::Auto,
            messages: vec![ModelMessage::User("hi".to_owned()).into()],
            max_output_tokens: 50,
            reply_schema: None,
        };
        let prices = ModelPrices { input: 1_000_000, cached: 0, output: 3_000_000 };
        let estimate = CostEstimate::from_request(&request, prices);
        let expected = CostEstimate {
            input: ModelSpending { tokens: 101, cost: 101 },
            output: ModelSpending { tokens: 50, cost: 150 },
        };
        assert_eq!(estimate, expected);
        assert_eq!(estimate.total(), ModelSpending { tokens: 151, cost: 251 });
    }

    #[test]
    fn budget_allows_a_call_only_within_both_limits() {
        let budget = DailyBudget { tokens: Some(100), cost: Some(50) };
        let spent = ModelSpending { tokens: 60, cost: 10 };
        assert!(budget.has_room(spent, ModelSpending { tokens: 40, cost: 40 }));
        assert!(!budget.has_room(spent, ModelSpending { tokens: 41, cost: 0 }));
        assert!(!budget.has_room(spent, ModelSpending { tokens: 0, cost: 41 }));
        assert!(DailyBudget::default().has_room(spent, ModelSpending { tokens: u64::MAX, cost: u64::MAX }));
    }
}
