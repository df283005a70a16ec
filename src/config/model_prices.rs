//! Prices of the model, and the list of models to choose from, each with its own prices.

use super::reader::{VariableReader, VariableValue};
use super::variables;
use super::{ConfigSources, Variable};
use crate::conversation::model_cost::ModelPrices;

/// Model to choose from.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ListedModel {
    name: String,
    /// Prices of the model, if they are listed.
    prices: Option<ModelPrices>,
}

/// Reads the prices of the active model: those in the list of models, or else those of the price variables. The price
/// of cached input defaults to that of other input.
pub(super) fn read_prices(reader: &mut VariableReader<'_>) -> VariableValue<ModelPrices> {
    let active = reader.read_text(variables::LLM_MODEL).into_option();
    let listed = reader.read_list(variables::LLM_MODELS, parse_listed_model).unwrap_or(Vec::new());
    let input = reader.read_with(variables::LLM_PRICE_INPUT, parse_money);
    let cached = reader.read_with(variables::LLM_PRICE_CACHED, parse_money);
    let output = reader.read_with(variables::LLM_PRICE_OUTPUT, parse_money);
    let listed_prices = listed.into_iter().find(|model| Some(&model.name) == active.as_ref());
    if let Some(prices) = listed_prices.and_then(|model| model.prices) {
        return VariableValue::Valid(prices);
    }
    if input.is_missing() && cached.is_missing() && output.is_missing() {
        return VariableValue::Missing;
    }
    let input = input.unwrap_or(0);
    VariableValue::Valid(ModelPrices { input, cached: cached.unwrap_or(input), output: output.unwrap_or(0) })
}

/// Returns the values that a form offers for a setting.
pub fn suggest_values(sources: &ConfigSources, variable: Variable) -> Vec<String> {
    if variable != variables::LLM_MODEL {
        return Vec::new();
    }
    let list = sources.plain_text(variables::LLM_MODELS).unwrap_or_default();
    let entries = list.split(',').map(str::trim).filter(|entry| !entry.is_empty());
    entries.filter_map(|entry| Some(parse_listed_model(entry).ok()?.name)).collect()
}

/// Parses `NAME`, `NAME INPUT/OUTPUT` or `NAME INPUT/CACHED/OUTPUT`.
fn parse_listed_model(entry: &str) -> Result<ListedModel, String> {
    let Some((name, prices)) = entry.split_once(char::is_whitespace) else {
        return Ok(ListedModel { name: entry.to_owned(), prices: None });
    };
    let parsed: Option<Vec<u64>> = prices.trim().split('/').map(|price| parse_money(price).ok()).collect();
    let prices = match parsed.as_deref() {
        Some(&[input, output]) => ModelPrices { input, cached: input, output },
        Some(&[input, cached, output]) => ModelPrices { input, cached, output },
        Some(_) | None => return Err("not a name with prices such as 0.75/0.075/4.50".to_owned()),
    };
    Ok(ListedModel { name: name.to_owned(), prices: Some(prices) })
}

/// Parses an amount of money in millionths, such as the price of a million tokens.
pub(super) fn parse_money(text: &str) -> Result<u64, String> {
    let (integer, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let millionths = (is_digits(integer) && is_digits(fraction) && fraction.len() <= 6 && integer.len() <= 9)
        .then(|| format!("{integer}{fraction:0<6}").parse().ok())
        .flatten();
    millionths.ok_or_else(|| "not a price such as 0.75".to_owned())
}
