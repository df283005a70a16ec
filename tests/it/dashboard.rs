//! Names of the metrics, and the dashboard and alerts that use them.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::documents::{is_metric, is_of_a_name, metrics_text, read, samples, words};

const DASHBOARD: &str = "docs/grafana.json";
/// Endings of names in units that Prometheus does not use as base units.
const OTHER_UNITS: [&str; 8] =
    ["_ms", "_millis", "_milliseconds", "_minutes", "_hours", "_days", "_kb", "_percent"];

fn dashboard() -> Value {
    serde_json::from_str(&read(DASHBOARD)).unwrap()
}

/// Returns the queries of every panel.
fn queries(dashboard: &Value) -> Vec<String> {
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().into_iter().flatten());
    targets.map(|target| target["expr"].as_str().unwrap().to_owned()).collect()
}

fn metrics_in(text: &str) -> BTreeSet<String> {
    words(text, is_of_a_name).filter(is_metric).map(str::to_owned).collect()
}

#[test]
fn dashboard_and_alerts_use_only_exported_metrics() {
    let samples = samples();
    let used = metrics_in(&(queries(&dashboard()).join("\n") + &read("docs/alerts.yml")));
    let unknown: Vec<&String> = used.iter().filter(|name| !samples.contains_key(*name)).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}

#[test]
fn every_exported_metric_is_on_the_dashboard() {
    let used = metrics_in(&queries(&dashboard()).join("\n"));
    let missing: Vec<String> = samples().into_keys().filter(|name| !used.contains(name)).collect();
    assert_eq!(missing, Vec::<String>::new());
}

#[test]
fn every_label_on_the_dashboard_exists() {
    let samples = samples();
    for query in queries(&dashboard()) {
        let labels: BTreeSet<String> =
            metrics_in(&query).iter().flat_map(|name| samples[name].iter().cloned()).collect();
        for group in query.split("by (").skip(1) {
            for label in group.split(')').next().unwrap().split(", ") {
                assert!(labels.contains(label), "{label} in {query}");
            }
        }
    }
}

/// A dashboard with the id of a data source works only in the Grafana that exported it.
#[test]
fn dashboard_can_be_imported_with_any_data_source() {
    let dashboard = dashboard();
    assert_eq!((&dashboard["id"], &dashboard["uid"]), (&Value::Null, &Value::Null));
    assert_eq!(dashboard["templating"]["list"][0]["type"], "datasource");
    let mut ids = BTreeSet::new();
    for panel in dashboard["panels"].as_array().unwrap() {
        assert!(ids.insert(panel["id"].as_i64().unwrap()), "{panel}");
        if panel["type"] != "row" {
            assert_eq!(panel["datasource"]["uid"], "${datasource}", "{panel}");
            assert!(panel["targets"].as_array().unwrap().iter().all(|target| {
                target["datasource"]["uid"] == "${datasource}"
                    && target["expr"].as_str().unwrap().contains("$job")
            }));
        }
    }
}

#[test]
fn metric_names_follow_the_practices_of_prometheus() {
    let text = metrics_text();
    let line = |kind: &str, name: &str| {
        let lines = text.lines().filter_map(|line| line.strip_prefix(kind)?.trim().split_once(' '));
        lines.filter(|(other, _)| *other == name).map(|(_, value)| value.to_owned()).next()
    };
    let mut checked = 0;
    for (name, kind) in text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' ')) {
        assert!(name.starts_with("dialarr_") || name == "process_start_time_seconds", "{name}");
        assert!(!OTHER_UNITS.iter().any(|unit| name.ends_with(unit)), "{name}");
        let expected: &[&str] = match kind {
            "counter" => &["_total"],
            "info" => &["_info"],
            "histogram" => &["_sum", "_count", "_bucket"],
            _ => &[""],
        };
        let is_sample = |line: &str, suffix: &str| {
            let rest = line.strip_prefix(name).and_then(|rest| rest.strip_prefix(suffix));
            rest.is_some_and(|rest| rest.starts_with(['{', ' ']))
        };
        let has_sample = |suffix: &&str| text.lines().any(|line| is_sample(line, suffix));
        assert!(expected.iter().all(has_sample), "{name} has the type {kind}");
        assert!(!name.ends_with("_total") && !name.ends_with("_info"), "{name}");
        let unit = name.ends_with("_seconds").then_some("seconds".to_owned());
        assert_eq!(line("# UNIT ", name), unit, "{name}");
        assert!(kind != "histogram" || unit.is_some(), "{name} has no unit");
        checked += 1;
    }
    assert!(checked > 15, "{checked} metrics were checked");
}
