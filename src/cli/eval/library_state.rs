//! Reads values of the fake servers by paths such as `movies.7.monitored`, `series.tvdb:371980.seasons` or
//! `sonarr.searches`. `docs/internals/EVALS.md` lists the paths.

use anyhow::Context;
use serde_json::{Value, json};

use super::scenario_servers::{MediaPath, ScenarioServers};
use crate::arr::fake::fake_server::FakeServer;
use crate::arr::fake::media_fixtures::{FakeSeries, FakeTitle};

impl ScenarioServers {
    pub(super) fn read_value(&self, path: &str) -> anyhow::Result<Value> {
        let unknown = || format!("read {path:?}: not known");
        match path.split('.').collect::<Vec<_>>()[..] {
            ["radarr", list] => action_record_value(&self.peers.radarr, list).with_context(unknown),
            ["sonarr", list] => action_record_value(&self.peers.sonarr, list).with_context(unknown),
            [library, key, field] => match self.media_path(library)? {
                MediaPath::Movies(radarr) => {
                    let movie = find_title(&radarr.titles(), key).with_context(unknown)?;
                    common_value(movie.as_ref(), field).with_context(unknown)
                }
                MediaPath::Series(sonarr) => {
                    let series = find_title(&sonarr.titles(), key).with_context(unknown)?;
                    series_value(series.as_ref(), field)
                        .or_else(|| common_value(series.as_ref(), field))
                        .with_context(unknown)
                }
            },
            _ => anyhow::bail!(unknown()),
        }
    }
}

/// Returns a list of the actions that were done through the API.
fn action_record_value<D: Clone>(fake: &FakeServer<D>, list: &str) -> Option<Value> {
    let record = fake.action_record();
    Some(match list {
        "searches" => json!(record.searches),
        "discarded" => json!(record.discarded),
        "blocklist" => json!(record.blocklist),
        "deleted_files" => json!(record.deleted_files),
        // Includes failed requests.
        "changes" => json!(fake.post_count()),
        _ => return None,
    })
}

/// Finds a title by library id, or by catalog id such as `tmdb:603`. Returns `None` if the key cannot be parsed.
fn find_title<D: Clone>(titles: &[FakeTitle<D>], key: &str) -> Option<Option<FakeTitle<D>>> {
    let found = match key.split_once(':') {
        Some((_, id)) => {
            let id: i64 = id.parse().ok()?;
            titles.iter().find(|title| title.catalog_id == id)
        }
        None => {
            let id: i64 = key.parse().ok()?;
            titles.iter().find(|title| title.id == id)
        }
    };
    Some(found.cloned())
}

/// Returns a field that movies and series share. The value is `null` if the title does not exist.
fn common_value<D>(title: Option<&FakeTitle<D>>, field: &str) -> Option<Value> {
    let value = |read: fn(&FakeTitle<D>) -> Value| title.map_or(Value::Null, read);
    Some(match field {
        "here" => json!(title.is_some()),
        "title" => value(|title| json!(title.title)),
        "quality" => value(|title| json!(title.profile)),
        "monitored" => value(|title| json!(title.monitored)),
        "size_gb" => value(|title| json!(title.size_bytes as f64 / 1e9)),
        _ => return None,
    })
}

/// Returns a field of a series: seasons by number, episodes as `S02E03`.
fn series_value(series: Option<&FakeSeries>, field: &str) -> Option<Value> {
    let value = |read: fn(&FakeSeries) -> Value| series.map_or(Value::Null, read);
    Some(match field {
        "seasons" => value(|series| {
            let monitored = series.details.seasons.iter().filter(|season| season.monitored);
            json!(monitored.map(|season| season.number).collect::<Vec<_>>())
        }),
        "wanted_episodes" => value(|series| episode_codes(&series.monitored_episodes())),
        "episodes_on_disk" => value(|series| episode_codes(&series.episodes_on_disk())),
        "new_seasons" => value(|series| json!(series.details.new_seasons)),
        "kind" => value(|series| json!(series.details.series_type)),
        _ => return None,
    })
}

fn episode_codes(episodes: &[(u32, u32)]) -> Value {
    let code = |(season, number): &(u32, u32)| format!("S{season:02}E{number:02}");
    json!(episodes.iter().map(code).collect::<Vec<_>>())
}
