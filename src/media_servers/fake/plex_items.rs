//! JSON of the items of a simulated Plex: sections, titles, episodes, sessions and plays.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::household::{FakeEpisode, FakePlay, FakeTitle, HouseholdState};
use crate::conversation::transcript::MediaKind;

/// Percentage from which a play is finished, unless the server is set otherwise.
const WATCHED_PERCENT: u8 = 90;
/// Start of the ids that plex.tv assigns.
const FIRST_PLEX_TV_ID: u64 = 1_000_000;

/// Library of a simulated Plex.
pub(super) struct FakeSection {
    pub(super) key: String,
    /// Kind of its titles; `None` for music.
    pub(super) kind: Option<MediaKind>,
    title: String,
    paths: Vec<String>,
}

impl FakeSection {
    pub(super) fn section_json(&self) -> Value {
        let section_type = match self.kind {
            Some(MediaKind::Movie) => "movie",
            Some(MediaKind::Series) => "show",
            None => "artist",
        };
        let locations: Vec<Value> =
            (1..).zip(&self.paths).map(|(id, path)| json!({ "id": id, "path": path })).collect();
        json!({
            "key": self.key, "type": section_type, "title": self.title, "Location": locations,
            "uuid": format!("section-{}", self.key), "language": "en-US", "refreshing": false,
        })
    }
}

impl HouseholdState {
    /// Returns the libraries: one for each name of a folder, and one with music.
    pub(super) fn sections(&self) -> Vec<FakeSection> {
        let mut sections: Vec<FakeSection> = Vec::new();
        for (name, path) in &self.folders {
            if let Some(section) = sections.iter_mut().find(|section| section.title == *name) {
                section.paths.push(path.clone());
                continue;
            }
            let is_show = name.to_lowercase().contains("show");
            let kind = Some(if is_show { MediaKind::Series } else { MediaKind::Movie });
            let key = (sections.len() + 1).to_string();
            sections.push(FakeSection { key, kind, title: name.clone(), paths: vec![path.clone()] });
        }
        let music = vec!["/media/music".to_owned()];
        sections.push(FakeSection { key: "99".into(), kind: None, title: "Music".into(), paths: music });
        sections
    }

    /// Returns the titles of a library. Titles are spread over the libraries of their kind.
    pub(super) fn section_titles(&self, key: &str, now: Timestamp) -> Option<Vec<&FakeTitle>> {
        let sections = self.sections();
        let kind = sections.iter().find(|section| section.key == key)?.kind;
        let same_kind: Vec<&FakeSection> = sections.iter().filter(|section| section.kind == kind).collect();
        let of_kind = self.visible_titles(now).filter(|title| Some(title.kind) == kind);
        let is_here = |(position, _): &(usize, &FakeTitle)| same_kind[position % same_kind.len()].key == key;
        Some(of_kind.enumerate().filter(is_here).map(|(_, title)| title).collect())
    }

    /// Returns a movie or show. Counts of plays are those of the owner.
    pub(super) fn title_json(&self, title: &FakeTitle, has_guids: bool) -> Value {
        let mut item = json!({
            "ratingKey": title.id.to_string(), "key": format!("/library/metadata/{}", title.id),
            "type": type_name(title.kind), "title": title.title, "year": title.year,
            "guid": self.title_guid(title), "addedAt": title.visible_from.as_second(),
            "updatedAt": title.visible_from.as_second(),
        });
        if has_guids && !self.has_old_agents {
            item["Guid"] = catalog_guids(title).into_iter().map(|id| json!({ "id": id })).collect();
        }
        let owner = self.users.first().map(|user| user.id);
        let is_viewed = |id: u64| owner.is_some_and(|owner| self.views.contains_key(&(owner, id)));
        match title.kind {
            MediaKind::Movie => {
                item["Media"] = media_json(title.id);
                if is_viewed(title.id) {
                    item["viewCount"] = 1.into();
                }
            }
            MediaKind::Series => {
                item["leafCount"] = title.episodes.len().into();
                let viewed = title.episodes.iter().filter(|(id, _)| is_viewed(*id)).count();
                item["viewedLeafCount"] = viewed.into();
            }
        }
        item
    }

    fn title_guid(&self, title: &FakeTitle) -> String {
        if !self.has_old_agents {
            return plex_guid(title, None);
        }
        let agent = |name: &str, id: String| format!("com.plexapp.agents.{name}://{id}?lang=en");
        match (title.kind, title.ids.imdb, title.ids.tvdb, title.ids.tmdb) {
            (MediaKind::Movie, Some(id), _, _) => agent("imdb", format!("tt{id:07}")),
            (MediaKind::Series, _, Some(id), _) => agent("thetvdb", id.to_string()),
            (_, _, _, Some(id)) => agent("themoviedb", id.to_string()),
            _ => format!("local://{}", title.id),
        }
    }

    /// Returns what each user plays. Sessions have no catalog ids.
    pub(super) fn plex_sessions_json(&self) -> Vec<Value> {
        let session = |(user, item): &(u64, u64)| {
            let known = self.users.iter().find(|known| known.id == *user)?;
            let (title, episode) = self.find_item(*item)?;
            let mut session = match episode {
                Some(episode) => episode_json(title, episode),
                None => self.title_json(title, false),
            };
            session["User"] = json!({ "id": self.account_id(*user).to_string(), "title": known.name });
            session["Player"] = json!({ "state": "playing", "product": "Plex Web" });
            session["viewOffset"] = 4_200_000.into();
            Some(session)
        };
        let music = json!({ "ratingKey": "9000", "type": "track", "title": "Song", "User": { "id": "1" } });
        self.sessions.iter().filter_map(session).chain([music]).collect()
    }

    /// Returns the finished plays, newest first.
    pub(super) fn history_json(&self) -> Vec<Value> {
        let plays = (1_u64..).zip(&self.plays).filter(|(_, play)| play.percent >= WATCHED_PERCENT);
        let rows = plays.map(|(row, play)| self.play_json(row, play));
        rows.collect::<Vec<_>>().into_iter().rev().collect()
    }

    fn play_json(&self, row: u64, play: &FakePlay) -> Value {
        let item = play.episode.map_or(play.title.id, |(id, _)| id);
        let mut json = json!({
            "historyKey": format!("/status/sessions/history/{row}"), "ratingKey": item.to_string(),
            "key": format!("/library/metadata/{item}"), "librarySectionID": "1", "title": play.title.title,
            "type": "movie", "viewedAt": play.at.as_second(), "accountID": self.account_id(play.user),
            "deviceID": 3,
        });
        if let Some((_, (season, number))) = play.episode {
            json["type"] = "episode".into();
            json["title"] = format!("Episode {number}").into();
            json["grandparentTitle"] = play.title.title.as_str().into();
            json["grandparentKey"] = format!("/library/metadata/{}", play.title.id).into();
            (json["parentIndex"], json["index"]) = (season.into(), number.into());
        }
        json
    }

    /// Returns the id of a user on the server. The first user is the owner, who has id 1.
    pub(super) fn account_id(&self, user: u64) -> u64 {
        let is_owner = self.users.first().is_some_and(|owner| owner.id == user);
        if is_owner { 1 } else { plex_tv_id(user) }
    }
}

/// Returns the id of a user at plex.tv.
pub(super) fn plex_tv_id(user: u64) -> u64 {
    FIRST_PLEX_TV_ID + user
}

/// Returns the id of a title or its episode that stays the same when its file is added again.
pub(super) fn plex_guid(title: &FakeTitle, episode: Option<(u32, u32)>) -> String {
    let ids = title.ids;
    let Some(id) = ids.tmdb.or(ids.tvdb).or(ids.imdb) else { return format!("local://{}", title.id) };
    match episode {
        Some((season, number)) => format!("plex://episode/{id:016x}{season:04x}{number:04x}"),
        None => format!("plex://{}/{id:024x}", type_name(title.kind)),
    }
}

pub(super) fn episode_json(show: &FakeTitle, (id, (season, number)): FakeEpisode) -> Value {
    json!({
        "ratingKey": id.to_string(), "key": format!("/library/metadata/{id}"), "type": "episode",
        "title": format!("Episode {number}"), "guid": plex_guid(show, Some((season, number))),
        "grandparentRatingKey": show.id.to_string(),
        "grandparentKey": format!("/library/metadata/{}", show.id), "grandparentTitle": show.title,
        "parentIndex": season, "index": number, "Media": media_json(id),
    })
}

fn media_json(id: u64) -> Value {
    json!([{ "id": id, "container": "mkv", "Part": [{ "id": id, "file": format!("/media/{id}.mkv") }] }])
}

fn type_name(kind: MediaKind) -> &'static str {
    match kind {
        MediaKind::Movie => "movie",
        MediaKind::Series => "show",
    }
}

fn catalog_guids(title: &FakeTitle) -> Vec<String> {
    let ids = title.ids;
    let imdb = ids.imdb.map(|id| format!("imdb://tt{id:07}"));
    let tmdb = ids.tmdb.map(|id| format!("tmdb://{id}"));
    let tvdb = ids.tvdb.map(|id| format!("tvdb://{id}"));
    [imdb, tmdb, tvdb].into_iter().flatten().collect()
}
