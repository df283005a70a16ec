//! Values at paths of the servers after a message: `movies.7.monitored`, `series.tvdb:371980.seasons` or
//! `sonarr.searches`. `docs/EVALS.md` lists the paths.

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
            [shelf, key, field] => match self.media_path(shelf)? {
                MediaPath::Movies(radarr) => {
                    let film = find_title(&radarr.titles(), key).with_context(unknown)?;
                    common_value(film.as_ref(), field).with_context(unknown)
                }
                MediaPath::Series(sonarr) => {
                    let show = find_title(&sonarr.titles(), key).with_context(unknown)?;
                    of_show(show.as_ref(), field)
                        .or_else(|| common_value(show.as_ref(), field))
                        .with_context(unknown)
                }
            },
            _ => anyhow::bail!(unknown()),
        }
    }
}

/// Returns the actions done through the API since the start.
fn action_record_value<D: Clone>(fake: &FakeServer<D>, list: &str) -> Option<Value> {
    let record = fake.action_record();
    Some(match list {
        "searches" => json!(record.searches),
        "discarded" => json!(record.discarded),
        "blocklist" => json!(record.blocklist),
        "deleted_files" => json!(record.deleted_files),
        // Counts every change request, whatever its outcome.
        "changes" => json!(fake.post_count()),
        _ => return None,
    })
}

/// Finds a title by the library's id, or by `tmdb:603` and `tvdb:371980`; `None` where the key cannot be parsed.
fn find_title<D: Clone>(items: &[FakeTitle<D>], key: &str) -> Option<Option<FakeTitle<D>>> {
    let found = match key.split_once(':') {
        Some((_, id)) => {
            let id: i64 = id.parse().ok()?;
            items.iter().find(|item| item.catalog_id == id)
        }
        None => {
            let id: i64 = key.parse().ok()?;
            items.iter().find(|item| item.id == id)
        }
    };
    Some(found.cloned())
}

/// Returns a field that movies and series share; `null` where the title does not exist.
fn common_value<D>(item: Option<&FakeTitle<D>>, field: &str) -> Option<Value> {
    let of = |read: fn(&FakeTitle<D>) -> Value| item.map_or(Value::Null, read);
    Some(match field {
        "here" => json!(item.is_some()),
        "title" => of(|item| json!(item.title)),
        "quality" => of(|item| json!(item.profile)),
        "monitored" => of(|item| json!(item.monitored)),
        "size_gb" => of(|item| json!(item.size_bytes as f64 / 1e9)),
        _ => return None,
    })
}

/// Returns a field of a series: seasons by their numbers, episodes as `S02E03`.
fn of_show(show: Option<&FakeSeries>, field: &str) -> Option<Value> {
    let of = |read: fn(&FakeSeries) -> Value| show.map_or(Value::Null, read);
    Some(match field {
        "seasons" => of(|show| {
            let monitored = show.details.seasons.iter().filter(|season| season.monitored);
            json!(monitored.map(|season| season.number).collect::<Vec<_>>())
        }),
        "wanted_episodes" => of(|show| episode_codes(&show.monitored_episodes())),
        "episodes_on_disk" => of(|show| episode_codes(&show.episodes_on_disk())),
        "new_seasons" => of(|show| json!(show.details.new_seasons)),
        "kind" => of(|show| json!(show.details.series_type)),
        _ => return None,
    })
}

fn episode_codes(episodes: &[(u32, u32)]) -> Value {
    let code = |(season, number): &(u32, u32)| format!("S{season:02}E{number:02}");
    json!(episodes.iter().map(code).collect::<Vec<_>>())
}
