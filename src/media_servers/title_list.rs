//! List of the titles of a server in memory, and its refresh: a full pass each night and after deletions, otherwise only
//! what changed.

use std::sync::{Arc, Mutex, PoisonError};

use jiff::{SignedDuration, Timestamp};

use super::{MediaServer, ServerError, ServerTitle, TitleIndex};

/// Age after which the whole list is read again. Changes of ids and files that were not saved anew show only then.
const FULL_PASS_INTERVAL: SignedDuration = SignedDuration::from_hours(24);
/// Overlap of two readings of the changes, since the clocks differ.
const OVERLAP: SignedDuration = SignedDuration::from_mins(10);
/// Maximum length of a title that is kept, which is needed only to recognize its name.
const MAX_TITLE_BYTES: usize = 200;
/// Maximum number of titles that are kept.
const MAX_TITLES: usize = 200_000;

/// List of the titles of one server.
#[derive(Debug, Default)]
pub struct TitleList {
    stored: Mutex<Option<StoredList>>,
    /// Held during a refresh, so that callers share it.
    refresh: tokio::sync::Mutex<()>,
}

#[derive(Debug, Clone)]
struct StoredList {
    index: Arc<TitleIndex>,
    /// Number of titles that the server counts, which may be more than those in the index.
    total: usize,
    /// Start of the last full pass.
    loaded_at: Timestamp,
    /// Start of the last refresh.
    refreshed_at: Timestamp,
}

impl StoredList {
    fn is_younger_than(&self, limit: SignedDuration, now: Timestamp) -> bool {
        is_age_within(self.refreshed_at, limit, now)
    }
}

/// Returns whether `at` is at most `limit` ago. After the clock was set back, everything is old.
pub(super) fn is_age_within(at: Timestamp, limit: SignedDuration, now: Timestamp) -> bool {
    let age = now.duration_since(at);
    !age.is_negative() && age <= limit
}

impl TitleList {
    /// Returns the titles, of which the oldest information is at most `max_age` old.
    pub async fn load(
        &self,
        server: &dyn MediaServer,
        max_age: SignedDuration,
        now: Timestamp,
    ) -> Result<Arc<TitleIndex>, ServerError> {
        if let Some(list) = self.stored().filter(|list| list.is_younger_than(max_age, now)) {
            return Ok(list.index);
        }
        let _refresh = self.refresh.lock().await;
        // Another caller may have refreshed the list meanwhile.
        let stored = self.stored();
        if let Some(list) = stored.as_ref().filter(|list| list.is_younger_than(max_age, now)) {
            return Ok(list.index.clone());
        }
        let recent = stored.filter(|list| is_age_within(list.loaded_at, FULL_PASS_INTERVAL, now));
        let updated = match recent {
            Some(list) => update(server, &list, now).await?,
            None => None,
        };
        let list = match updated {
            Some(list) => list,
            None => load_all(server, now).await?,
        };
        let index = list.index.clone();
        *self.stored.lock().unwrap_or_else(PoisonError::into_inner) = Some(list);
        Ok(index)
    }

    fn stored(&self) -> Option<StoredList> {
        self.stored.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Reads what changed since the last refresh. Returns `None` if the number of titles shows that some were deleted.
async fn update(
    server: &dyn MediaServer,
    list: &StoredList,
    now: Timestamp,
) -> Result<Option<StoredList>, ServerError> {
    let changed = read_pages(server, Some(list.refreshed_at - OVERLAP)).await?.titles;
    let is_new = |title: &&ServerTitle| list.index.find_item(&title.item).is_none();
    let expected = list.total + changed.iter().filter(is_new).count();
    let total = server.fetch_title_count().await?;
    if total != expected {
        return Ok(None);
    }
    let index = match changed.is_empty() {
        true => list.index.clone(),
        false => Arc::new(list.index.with_changes(changed)),
    };
    Ok(Some(StoredList { index, total, loaded_at: list.loaded_at, refreshed_at: now }))
}

async fn load_all(server: &dyn MediaServer, now: Timestamp) -> Result<StoredList, ServerError> {
    let read = read_pages(server, None).await?;
    let index = Arc::new(TitleIndex::new(read.titles));
    Ok(StoredList { index, total: read.total, loaded_at: now, refreshed_at: now })
}

fn clip_title(mut title: ServerTitle) -> ServerTitle {
    let end = title.title.floor_char_boundary(MAX_TITLE_BYTES.min(title.title.len()));
    title.title.truncate(end);
    title
}

struct ReadTitles {
    titles: Vec<ServerTitle>,
    total: usize,
}

async fn read_pages(
    server: &dyn MediaServer,
    changed_since: Option<Timestamp>,
) -> Result<ReadTitles, ServerError> {
    let (mut titles, mut start) = (Vec::new(), 0);
    loop {
        let page = server.fetch_titles(start, changed_since).await?;
        // A server that ignores the limit sends more.
        titles.extend(page.titles.into_iter().take(super::PAGE_TITLES).map(clip_title));
        start += super::PAGE_TITLES;
        if start >= page.total.min(MAX_TITLES) {
            return Ok(ReadTitles { titles, total: page.total });
        }
    }
}
