//! Posters of titles in the library. They are fetched from Sonarr and Radarr by the server, so that no browser gets a key
//! or a request to another site, and cached on disk. A poster remains in the cache after its title was deleted.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use axum::body::Bytes;
use axum::extract::{Path as UrlPath, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use tokio::sync::Semaphore;

use super::console_state::ConsoleState;
use crate::arr::ArrError;
use crate::telemetry;

/// Maximum size of all cached posters.
const MAX_CACHE_BYTES: u64 = 64 << 20;
/// Size to which the cache is reduced when it is full.
const REDUCED_CACHE_BYTES: u64 = 56 << 20;
/// Age from which a cached poster is fetched again.
const MAX_AGE: Duration = Duration::from_secs(7 * 24 * 3600);
/// Maximum number of posters that are fetched at the same time.
const MAX_FETCHES: usize = 4;
/// Image in place of a poster that does not exist.
const PLACEHOLDER: &str = r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 2 3"><rect width="2" height="3" fill="gray" opacity=".25"/></svg>"#;

/// Cache of posters in a folder. Clones share it.
#[derive(Clone)]
pub struct PosterCache {
    folder: Arc<PathBuf>,
    fetches: Arc<Semaphore>,
}

/// Type of an image, as its first bytes show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ImageType {
    Jpeg,
    Png,
    WebP,
}

impl ImageType {
    fn from_content(content: &[u8]) -> Option<Self> {
        match content {
            [0xff, 0xd8, 0xff, ..] => Some(Self::Jpeg),
            [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some(Self::Png),
            [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some(Self::WebP),
            _ => None,
        }
    }

    fn media_type(self) -> &'static str {
        match self {
            Self::Jpeg => "image/jpeg",
            Self::Png => "image/png",
            Self::WebP => "image/webp",
        }
    }
}

/// Poster in the cache.
struct CachedPoster {
    content: Vec<u8>,
    is_fresh: bool,
}

impl PosterCache {
    /// Creates a cache in a folder, which is created with the first poster.
    pub fn new(folder: PathBuf) -> Self {
        Self { folder: Arc::new(folder), fetches: Arc::new(Semaphore::new(MAX_FETCHES)) }
    }

    /// Returns the poster of a title from the cache, or else from its instance; `None` if it has none that is an image.
    async fn load(&self, console: &ConsoleState, instance: &str, id: i64) -> Option<(ImageType, Bytes)> {
        // After a move of the instance, an id belongs to another title.
        let server = console.engine.library.server_key(instance)?;
        let file = self.folder.join(format!("{instance}-{server}-{id}"));
        let cached = run_blocking({
            let file = file.clone();
            move || read_cached(&file)
        })
        .await;
        let cached = match cached {
            Some(CachedPoster { content, is_fresh: true }) => return identify(content.into()),
            stale_or_missing => stale_or_missing,
        };
        let fetched = match self.fetches.acquire().await {
            Ok(_permit) => console.engine.library.fetch_poster(instance, id).await,
            Err(_) => Ok(None),
        };
        match fetched {
            Ok(Some(content)) => {
                let (image_type, content) = identify(content)?;
                let (folder, stored) = (self.folder.clone(), content.clone());
                run_blocking(move || store_poster(&folder, &file, &stored)).await;
                Some((image_type, content))
            }
            Ok(None) => identify(cached?.content.into()),
            Err(error) => {
                log_failure(instance, &error);
                identify(cached?.content.into())
            }
        }
    }
}

/// Runs file operations outside of the async tasks. A panic counts as no result.
async fn run_blocking<R: Default + Send + 'static>(work: impl FnOnce() -> R + Send + 'static) -> R {
    tokio::task::spawn_blocking(work).await.unwrap_or_default()
}

fn identify(content: Bytes) -> Option<(ImageType, Bytes)> {
    ImageType::from_content(&content).map(|image_type| (image_type, content))
}

fn log_failure(instance: &str, error: &ArrError) {
    tracing::debug!(instance, error = telemetry::error_chain(error), "failed to fetch a poster");
}

fn read_cached(file: &Path) -> Option<CachedPoster> {
    let content = fs::read(file).ok()?;
    let age = fs::metadata(file).and_then(|data| data.modified()).ok()?.elapsed().unwrap_or_default();
    Some(CachedPoster { content, is_fresh: age < MAX_AGE })
}

/// Stores a poster. A failure is only logged, because the poster can be fetched again.
fn store_poster(folder: &Path, file: &Path, content: &[u8]) {
    let store = || -> io::Result<()> {
        fs::create_dir_all(folder)?;
        // No reader sees an incomplete file.
        let mut incomplete = tempfile::NamedTempFile::new_in(folder)?;
        io::Write::write_all(&mut incomplete, content)?;
        incomplete.persist(file)?;
        reduce_cache(folder)
    };
    if let Err(error) = store() {
        tracing::warn!(%error, "failed to cache a poster");
    }
}

/// Deletes the oldest posters if the cache is too large.
fn reduce_cache(folder: &Path) -> io::Result<()> {
    let mut files: Vec<(SystemTime, u64, PathBuf)> = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let data = entry.metadata()?;
        files.push((data.modified()?, data.len(), entry.path()));
    }
    let mut total: u64 = files.iter().map(|(_, size, _)| size).sum();
    if total <= MAX_CACHE_BYTES {
        return Ok(());
    }
    files.sort();
    for (_, size, path) in files {
        if total <= REDUCED_CACHE_BYTES {
            break;
        }
        fs::remove_file(path)?;
        total -= size;
    }
    Ok(())
}

/// Serves the poster of a title, or an empty image if there is none.
pub(super) async fn show_poster(
    State(console): State<ConsoleState>,
    UrlPath((instance, id)): UrlPath<(String, i64)>,
) -> Response {
    match console.posters.load(&console, &instance, id).await {
        Some((image_type, content)) => {
            let headers =
                [(CONTENT_TYPE, image_type.media_type()), (CACHE_CONTROL, "private, max-age=86400")];
            (headers, content).into_response()
        }
        None => {
            let headers = [(CONTENT_TYPE, "image/svg+xml"), (CACHE_CONTROL, "private, max-age=300")];
            (headers, PLACEHOLDER).into_response()
        }
    }
}

/// Returns the path of the poster of a title.
pub(super) fn poster_path(instance: &str, id: i64) -> String {
    format!("/posters/{instance}/{id}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_raster_images_are_posters() {
        let check = |content: &[u8], expected| assert_eq!(ImageType::from_content(content), expected);
        check(b"\xff\xd8\xff\xe0", Some(ImageType::Jpeg));
        check(b"\x89PNG\r\n\x1a\n", Some(ImageType::Png));
        check(b"RIFF\0\0\0\0WEBPVP8 ", Some(ImageType::WebP));
        check(b"<svg onload=\"alert(1)\"/>", None);
        check(b"GIF89a", None);
        check(b"", None);
    }

    #[test]
    fn oldest_posters_are_deleted_when_the_cache_is_full() {
        let folder = tempfile::tempdir().unwrap();
        let now = SystemTime::now();
        for (index, name) in ["oldest", "older", "newest"].iter().enumerate() {
            let file = fs::File::create(folder.path().join(name)).unwrap();
            file.set_len(30 << 20).unwrap();
            file.set_modified(now - Duration::from_secs(100 - index as u64)).unwrap();
        }
        reduce_cache(folder.path()).unwrap();
        assert!(!folder.path().join("oldest").exists() && !folder.path().join("older").exists());
        assert!(folder.path().join("newest").exists());
    }
}
