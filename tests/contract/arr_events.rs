//! Recorded events of Connect, as the webhook parses them.

use anyhow::{Context, Result, ensure};
use dialarr::arr::connect_events;
use dialarr::conversation::notifications::arr_events::{ArrEvent, ImportKind};
use jiff::Timestamp;
use serde_json::Value;

use crate::arr::recordings;

#[test]
fn every_recorded_event_is_parsed() -> Result<()> {
    for server in ["sonarr", "radarr"] {
        for (name, text) in recordings(server, &["webhook_"])? {
            let reported = connect_events::parse_events(text.as_bytes(), Timestamp::UNIX_EPOCH);
            let reports: Vec<ArrEvent> = reported?.into_iter().map(|one| one.event).collect();
            let event: Value = serde_json::from_str(&text).with_context(|| name.clone())?;
            check(&event, &reports).with_context(|| format!("{server} {name}: {reports:?}"))?;
        }
    }
    Ok(())
}

/// Checks that the raw event and the parsed arr events agree.
fn check(event: &Value, reports: &[ArrEvent]) -> Result<()> {
    let episodes = event["episodes"].as_array().map_or(0, Vec::len);
    let upgrade = event["isUpgrade"].as_bool().unwrap_or_default();
    let copy = if upgrade { ImportKind::Upgrade } else { ImportKind::First };
    let titled = |title: &str, event: &Value| event["title"].as_str() == Some(title);
    match event["eventType"].as_str().unwrap_or_default() {
        "Download" if event["movie"].is_object() => {
            let [ArrEvent::MovieImported(movie, found)] = reports else { anyhow::bail!("not one movie") };
            ensure!(titled(&movie.title, &event["movie"]) && *found == copy);
        }
        "Download" => {
            ensure!(episodes > 0 && reports.len() == episodes, "not {episodes} episodes");
            for report in reports {
                let ArrEvent::EpisodeImported { show, copy: found, .. } = report else {
                    anyhow::bail!("no episode")
                };
                ensure!(titled(&show.title, &event["series"]) && *found == copy);
            }
        }
        "ManualInteractionRequired" => ensure!(matches!(reports, [ArrEvent::ImportBlocked(_)]), "not one"),
        "Health" => ensure!(matches!(reports, [ArrEvent::HealthIssue { .. }]), "not one illness"),
        "HealthRestored" => ensure!(matches!(reports, [ArrEvent::HealthRestored { .. }]), "not one recovery"),
        _ => ensure!(reports.is_empty(), "it concerns nobody"),
    }
    Ok(())
}
