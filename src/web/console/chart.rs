//! Charts as SVG, with a table of their numbers: stacked bars per day, and one bar of shares.

use askama::Template;

use super::format::format_count;

/// Dimensions in SVG units; the chart is scaled to the available width.
const LEFT: u64 = 76;
const TOP: u64 = 20;
const HEIGHT: u64 = 200;
const WIDTH: u64 = 720;

/// Values per day, drawn as stacked bars with one part per series.
pub(super) struct DailySeries<'a> {
    pub(super) title: &'a str,
    pub(super) series: &'a [&'a str],
    /// Days, oldest first.
    pub(super) days: &'a [(String, Vec<u64>)],
}

#[derive(Template)]
#[template(path = "chart.html")]
pub(super) struct BarChart {
    title: String,
    /// Summary of the chart for screen readers.
    description: String,
    legend: Vec<LegendKey>,
    grid_lines: Vec<GridLine>,
    bars: Vec<ChartBar>,
    labels: Vec<AxisLabel>,
    rows: Vec<(String, Vec<String>)>,
}

/// Legend entry of a color.
struct LegendKey {
    class: String,
    name: String,
}

struct GridLine {
    y: u64,
    label: String,
}

struct ChartBar {
    x: u64,
    y: u64,
    width: u64,
    height: u64,
    class: String,
    description: String,
}

struct AxisLabel {
    x: u64,
    anchor: &'static str,
    text: String,
}

impl BarChart {
    pub(super) fn from_daily_series(data: &DailySeries<'_>) -> Self {
        let total = |(_, parts): &(String, Vec<u64>)| parts.iter().sum::<u64>();
        let highest = round_up(data.days.iter().map(total).max().unwrap_or(0));
        let slot = WIDTH / u64::try_from(data.days.len()).unwrap_or(1).max(1);
        let mut bars = Vec::new();
        for (index, (day, parts)) in (0_u64..).zip(data.days) {
            let mut y = TOP + HEIGHT;
            for ((number, value), name) in (1..).zip(parts).zip(data.series) {
                let height = value.saturating_mul(HEIGHT).div_ceil(highest.max(1));
                y = y.saturating_sub(height);
                if *value > 0 {
                    bars.push(ChartBar {
                        x: LEFT + index * slot + slot / 8,
                        y,
                        width: (slot - slot / 4).max(1),
                        height,
                        class: format!("fill-{number}"),
                        description: format!("{day}: {} {}", format_count(*value), name.to_lowercase()),
                    });
                }
            }
        }
        let grid_lines = [0, highest / 2, highest].map(|value| GridLine {
            y: TOP + HEIGHT - value * HEIGHT / highest.max(1),
            label: format_short(value),
        });
        let sums = data.series.iter().enumerate().map(|(index, name)| {
            let sum: u64 = data.days.iter().filter_map(|(_, parts)| parts.get(index)).sum();
            format!("{} {}", format_count(sum), name.to_lowercase())
        });
        let description = format!("{}: {}.", data.title, sums.collect::<Vec<_>>().join(", "));
        let row = |(day, parts): &(String, Vec<u64>)| {
            (day.clone(), parts.iter().copied().map(format_count).collect())
        };
        Self {
            title: data.title.to_owned(),
            description,
            legend: legend_keys(data.series),
            grid_lines: grid_lines.into_iter().collect(),
            bars,
            labels: day_labels(data.days),
            rows: data.days.iter().rev().map(row).collect(),
        }
    }
}

fn legend_keys(series: &[&str]) -> Vec<LegendKey> {
    let legend_key = |(index, name): (usize, &&str)| LegendKey {
        class: format!("fill-{}", index + 1),
        name: (*name).to_owned(),
    };
    series.iter().enumerate().map(legend_key).collect()
}

/// Labels of the first, the middle and the last day.
fn day_labels(days: &[(String, Vec<u64>)]) -> Vec<AxisLabel> {
    let day_name = |index: usize| days.get(index).map(|(day, _)| day.clone());
    let positions = [
        (0, LEFT, "start"),
        (days.len() / 2, LEFT + WIDTH / 2, "middle"),
        (days.len().saturating_sub(1), LEFT + WIDTH, "end"),
    ];
    positions
        .into_iter()
        .filter_map(|(index, x, anchor)| Some(AxisLabel { x, anchor, text: day_name(index)? }))
        .collect()
}

/// Returns the next larger of 4, 6, 8, 10, 20, 30, 40, 60 and so on, so that the grid lines are at round numbers.
fn round_up(value: u64) -> u64 {
    let mut step = 1_u64;
    loop {
        for factor in [4, 6, 8, 10, 20, 30] {
            if step.saturating_mul(factor) >= value {
                return step.saturating_mul(factor);
            }
        }
        step = step.saturating_mul(10);
    }
}

/// Formats a number in short form: `1.5M`, `20k`, `950`.
fn format_short(value: u64) -> String {
    let in_unit = |unit: u64, name: &str| {
        let tenths = value / (unit / 10);
        match tenths % 10 {
            0 => format!("{}{name}", tenths / 10),
            rest => format!("{}.{rest}{name}", tenths / 10),
        }
    };
    match value {
        0..1_000 => value.to_string(),
        1_000..1_000_000 => in_unit(1_000, "k"),
        _ => in_unit(1_000_000, "M"),
    }
}

/// Bar that shows the shares of a total.
#[derive(Template)]
#[template(path = "shares.html")]
pub(super) struct ShareChart {
    title: String,
    description: String,
    parts: Vec<SharePart>,
}

struct SharePart {
    name: String,
    class: String,
    count: String,
    percent: String,
    x: u64,
    width: u64,
}

impl ShareChart {
    pub(super) fn from_parts(title: &str, parts: &[(&str, u64)]) -> Self {
        let total: u64 = parts.iter().map(|(_, value)| value).sum();
        let mut x = 0;
        let mut shares = Vec::new();
        for (number, (name, value)) in (1..).zip(parts) {
            let width = value.saturating_mul(800) / total.max(1);
            shares.push(SharePart {
                name: (*name).to_owned(),
                class: format!("share-{number}"),
                count: format_count(*value),
                percent: format!("{} %", value.saturating_mul(100) / total.max(1)),
                x,
                width,
            });
            x += width;
        }
        let description =
            parts.iter().map(|(name, value)| format!("{} {}", format_count(*value), name.to_lowercase()));
        let description = format!("{title}: {}.", description.collect::<Vec<_>>().join(", "));
        Self { title: title.to_owned(), description, parts: shares }
    }
}

#[cfg(test)]
mod tests {
    use askama::Template;

    use super::*;

    #[test]
    fn axis_limits_and_labels_are_round_numbers() {
        assert_eq!(
            [0, 3, 4, 5, 17, 21, 41, 900, 1_500].map(round_up),
            [4, 4, 4, 6, 20, 30, 60, 1_000, 2_000]
        );
        assert_eq!([0, 950, 1_500, 20_000, 4_000_000].map(format_short), ["0", "950", "1.5k", "20k", "4M"]);
    }

    #[test]
    fn day_is_a_stacked_bar_and_a_table_row() {
        let days = [("Nov 19".to_owned(), vec![2, 2]), ("Nov 20".to_owned(), vec![0, 1])];
        let bars = BarChart::from_daily_series(&DailySeries {
            title: "Texts",
            series: &["Received", "Sent"],
            days: &days,
        });
        let segments: Vec<(u64, u64, &str)> =
            bars.bars.iter().map(|bar| (bar.y, bar.height, bar.description.as_str())).collect();
        assert_eq!(
            segments,
            [(120, 100, "Nov 19: 2 received"), (20, 100, "Nov 19: 2 sent"), (170, 50, "Nov 20: 1 sent")]
        );
        assert_eq!(bars.description, "Texts: 2 received, 3 sent.");
        assert_eq!(bars.rows[0], ("Nov 20".to_owned(), vec!["0".to_owned(), "1".to_owned()]));
    }

    #[test]
    fn chart_labels_are_escaped() {
        let shares = ShareChart::from_parts("<b>", &[("\"><script>", 1)]);
        assert!(!shares.render().unwrap().contains("<script>"));
    }
}
