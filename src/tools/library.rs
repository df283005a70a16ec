//! Radarr and Sonarr instances that the tools use, concurrent queries of them, and the conversion of their errors into
//! failures for the model and the user.

use std::collections::HashMap;
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::json;

use super::ToolError;
use super::arguments::parsing::bad_argument;
use super::formatting::{clean_error_message, clean_title};
use super::library_cache::refresh::LibraryCache;
use crate::arr::common_api::CommonApi;
use crate::arr::radarr::Radarr;
use crate::arr::sonarr::Sonarr;
use crate::arr::{ArrError, Movie, QualityProfile, RootFolder, Series};
use crate::conversation::transcript::{CallFailure, FailureCode, MediaKind, MediaRef, UserRights};
use crate::discovery::Discovery;
use crate::http::HttpError;
use crate::media_servers::playability::MediaServers;
use crate::seerr::Seerr;
use crate::telemetry;

/// Time limit of a read from one instance. It is shorter than that of a tool, so that the responses of the other
/// instances are still reported.
pub const INSTANCE_READ_TIMEOUT: Duration = Duration::from_secs(8);
/// Time limit of a catalog lookup on one instance.
pub const INSTANCE_LOOKUP_TIMEOUT: Duration = Duration::from_secs(17);

/// All configured instances, the servers on which their titles are watched, and the sources of titles. There are at most two instances of each
/// kind: the regular one and the 4K one.
#[derive(Debug, Clone, Default)]
pub struct ArrInstances {
    pub movies: Vec<Instance<Radarr>>,
    pub series: Vec<Instance<Sonarr>>,
    pub media_servers: MediaServers,
    /// Sources in which titles are found that no instance suggests.
    pub discovery: Discovery,
    /// Seerr where titles are requested; `None` if they are added to the instances.
    pub requests: Option<Seerr>,
}

#[derive(Debug, Clone)]
pub struct Instance<Client> {
    /// Instance name in stored ids: `radarr`, `radarr-4k`, `sonarr` or `sonarr-4k`.
    pub name: &'static str,
    pub four_k: bool,
    pub client: Client,
    /// Contents of the library when it was last loaded.
    pub cache: LibraryCache,
}

impl<Client> Instance<Client> {
    /// Creates an instance whose library is not loaded yet.
    pub fn new(name: &'static str, four_k: bool, client: Client) -> Self {
        Self { name, four_k, client, cache: LibraryCache::default() }
    }
}

/// Responses of several instances, and the failures of the others.
#[derive(Debug)]
pub struct InstanceResults<T> {
    pub responses: Vec<T>,
    pub failures: Vec<CallFailure>,
}

impl ArrInstances {
    pub fn movie_instance(&self, name: Option<&str>) -> Result<&Instance<Radarr>, CallFailure> {
        select_instance(&self.movies, name, "Radarr")
    }

    pub fn series_instance(&self, name: Option<&str>) -> Result<&Instance<Sonarr>, CallFailure> {
        select_instance(&self.series, name, "Sonarr")
    }

    /// Returns the Radarr instances that a query for titles of `kind` covers. `None` is any kind.
    pub fn radarr_instances(&self, kind: Option<MediaKind>) -> &[Instance<Radarr>] {
        if kind == Some(MediaKind::Series) { &[] } else { &self.movies }
    }

    /// Returns the Sonarr instances that a query for titles of `kind` covers. `None` is any kind.
    pub fn sonarr_instances(&self, kind: Option<MediaKind>) -> &[Instance<Sonarr>] {
        if kind == Some(MediaKind::Movie) { &[] } else { &self.series }
    }

    /// Returns the names of all instances if there are two of a kind. Otherwise returns no names, because the kind of a
    /// title selects the instance.
    pub fn selectable_names(&self) -> Vec<&'static str> {
        let (movies, series) = (self.movie_names(), self.series_names());
        if movies.len() > 1 || series.len() > 1 { [movies, series].concat() } else { Vec::new() }
    }

    /// Returns the names of the quality profiles that are known and that a user with these rights may use, for titles of
    /// `kind`. A user with the 4K right may also say "4K".
    pub fn quality_names(&self, kind: Option<MediaKind>, rights: UserRights) -> Vec<String> {
        let movies = self.radarr_instances(kind).iter().map(|instance| instance.client.common_api());
        let series = self.sonarr_instances(kind).iter().map(|instance| instance.client.common_api());
        let profiles = movies.chain(series).flat_map(CommonApi::known_profiles);
        let mut names: Vec<String> = Vec::new();
        for profile in profiles.filter(|profile| !profile.four_k || rights.may_use_four_k()) {
            let four_k = profile.four_k.then(|| "4K".to_owned());
            for name in [Some(clean_title(&profile.name)), four_k].into_iter().flatten() {
                if !names.contains(&name) {
                    names.push(name);
                }
            }
        }
        names
    }

    /// Marks the cached library of the instance of this name as outdated, after a change was reported.
    pub fn mark_changed(&self, name: &str) {
        for instance in self.movies.iter().filter(|instance| instance.name == name) {
            instance.client.common_api().record_change();
        }
        for instance in self.series.iter().filter(|instance| instance.name == name) {
            instance.client.common_api().record_change();
        }
    }

    /// Returns the name and the server of each instance.
    pub fn identities(&self) -> Vec<(&'static str, String)> {
        let movies =
            self.movies.iter().map(|instance| (instance.name, instance.client.common_api().identity()));
        let series =
            self.series.iter().map(|instance| (instance.name, instance.client.common_api().identity()));
        movies.chain(series).collect()
    }

    pub fn movie_names(&self) -> Vec<&'static str> {
        self.movies.iter().map(|instance| instance.name).collect()
    }

    pub fn series_names(&self) -> Vec<&'static str> {
        self.series.iter().map(|instance| instance.name).collect()
    }
}

impl<Client> Instance<Client> {
    /// Returns the name that users know: `Radarr`, `Radarr 4K`.
    pub fn display_name(&self) -> String {
        let app = if self.is_radarr() { "Radarr" } else { "Sonarr" };
        if self.four_k { format!("{app} 4K") } else { app.to_owned() }
    }

    pub fn media_ref(&self, kind: MediaKind, id: i64) -> MediaRef {
        MediaRef::Item { instance: self.name.to_owned(), kind, id }
    }

    /// Converts the error of a request to a failure with texts for the model and the user.
    pub fn request_failure(&self, error: &ArrError) -> CallFailure {
        tracing::warn!(instance = self.name, error = telemetry::error_chain(error), "request failed");
        let label = self.display_name();
        let ([radarr, sonarr], sentence) = match error {
            // For the user, an instance that is starting or whose catalog is down is the same as an unreachable one.
            ArrError::Unreachable(_) | ArrError::NoResponse(_) | ArrError::Unavailable(_) => (
                [FailureCode::RadarrUnreachable, FailureCode::SonarrUnreachable],
                "can't be reached right now",
            ),
            ArrError::Unauthorized | ArrError::WrongUrl(_) => (
                [FailureCode::RadarrMisconfigured, FailureCode::SonarrMisconfigured],
                "is not set up correctly. An admin has to check it",
            ),
            ArrError::Refused(_) => {
                ([FailureCode::RadarrRefused, FailureCode::SonarrRefused], "did not accept that")
            }
            ArrError::NotFound => {
                ([FailureCode::RadarrNotFound, FailureCode::SonarrNotFound], "does not have that")
            }
            ArrError::Server { .. } => ([FailureCode::RadarrError, FailureCode::SonarrError], "had an error"),
            ArrError::Unreadable(_) => {
                ([FailureCode::RadarrUnreadable, FailureCode::SonarrUnreadable], "had an error")
            }
        };
        let mut fields = json!({ "service": label });
        if let ArrError::Refused(reasons) = error
            && let Some(reason) = reasons.first()
        {
            fields["hint"] = json!(clean_error_message(reason));
        }
        let code = if self.is_radarr() { radarr } else { sonarr };
        CallFailure::new(code, fields, Some(format!("{label} {sentence}.")))
    }

    /// Returns the error for a failed read, or for a write that did not happen.
    pub fn request_error(&self, error: &ArrError) -> ToolError {
        ToolError::CallFailed(self.request_failure(error))
    }

    /// Returns the error for a failed write. If the write may have happened, its outcome is unknown until it is
    /// checked.
    pub fn write_error(&self, error: &ArrError) -> ToolError {
        if error.outcome_unknown() {
            ToolError::Unknown(format!("{}: failed to {}", self.name, telemetry::error_chain(error)))
        } else {
            self.request_error(error)
        }
    }

    /// Returns the error for a write that was successful but could not be read back.
    pub fn unverified_write_error(&self, error: &ArrError) -> ToolError {
        ToolError::Unknown(format!(
            "{}: after a write, failed to {}",
            self.name,
            telemetry::error_chain(error)
        ))
    }

    /// Builds the failure for an instance to which no title can be added, because it has no quality profile or no
    /// accessible folder.
    pub fn not_ready(&self) -> CallFailure {
        let label = self.display_name();
        CallFailure::new(
            FailureCode::NotSetUp,
            json!({ "service": label, "hint": "it has no quality profile or no folder it can reach: an admin has to check it" }),
            Some(format!("{label} has no folder or quality profile for it. An admin has to check it.")),
        )
    }

    fn is_radarr(&self) -> bool {
        self.name.starts_with("radarr")
    }
}

impl Instance<Radarr> {
    /// Returns the ids of a movie in a result: its TMDB id, and its library id if it is in the library.
    pub fn shown_ids(&self, movie: &Movie) -> Vec<MediaRef> {
        let item = movie.id.map(|id| self.media_ref(MediaKind::Movie, id));
        [MediaRef::Tmdb(movie.tmdb)].into_iter().chain(item).collect()
    }
}

impl Instance<Sonarr> {
    /// Returns the ids of a series in a result: its TheTVDB id, and its library id if it is in the library.
    pub fn shown_ids(&self, series: &Series) -> Vec<MediaRef> {
        let item = series.id.map(|id| self.media_ref(MediaKind::Series, id));
        [MediaRef::Tvdb(series.tvdb)].into_iter().chain(item).collect()
    }
}

impl<T> InstanceResults<T> {
    pub fn map<U>(self, convert: impl FnMut(T) -> U) -> InstanceResults<U> {
        InstanceResults {
            responses: self.responses.into_iter().map(convert).collect(),
            failures: self.failures,
        }
    }

    pub fn merge(mut self, other: Self) -> Self {
        self.responses.extend(other.responses);
        self.failures.extend(other.failures);
        self
    }

    /// Returns the responses, and a sentence for each instance that failed. Returns an error if no instance responded
    /// or none is configured.
    pub fn or_failure(self) -> Result<(Vec<T>, Vec<String>), CallFailure> {
        let failed: Vec<String> =
            self.failures.iter().filter_map(|failure| failure.for_user.clone()).collect();
        match self.failures.into_iter().next() {
            Some(first) if self.responses.is_empty() => {
                Err(CallFailure { for_user: Some(failed.join(" ")), ..first })
            }
            None if self.responses.is_empty() => Err(no_library_configured()),
            Some(_) | None => Ok((self.responses, failed)),
        }
    }
}

/// Queries all instances of a kind concurrently. An instance that takes longer than `time_limit` counts as failed, so
/// that the responses of the others can still be used.
pub async fn query_all<'a, Client, Response, T>(
    instances: &'a [Instance<Client>],
    time_limit: Duration,
    request: impl Fn(&'a Client) -> Response,
) -> InstanceResults<(&'a Instance<Client>, T)>
where
    Response: Future<Output = Result<T, ArrError>>,
{
    let mut requests = Vec::new();
    for instance in instances {
        requests.push(tokio::time::timeout(time_limit, request(&instance.client)));
    }
    let mut results = InstanceResults { responses: Vec::new(), failures: Vec::new() };
    for (instance, response) in instances.iter().zip(join_all(requests).await) {
        match response.unwrap_or_else(|_| Err(ArrError::NoResponse(HttpError::TimedOut(time_limit)))) {
            Ok(response) => results.responses.push((instance, response)),
            Err(error) => results.failures.push(instance.request_failure(&error)),
        }
    }
    results
}

/// Returns the profile that most titles use, else the first one.
pub fn most_used_profile(
    profiles: &[QualityProfile],
    profiles_in_use: impl Iterator<Item = i64>,
) -> Option<&QualityProfile> {
    let mut counts: HashMap<i64, usize> = HashMap::new();
    for id in profiles_in_use {
        *counts.entry(id).or_default() += 1;
    }
    // Reversed to select the first of several equally frequent profiles, since `max_by_key` returns the last.
    profiles.iter().rev().max_by_key(|profile| counts.get(&profile.id).copied().unwrap_or(0))
}

/// Returns the accessible folder with the most free space.
pub fn folder_with_most_space(folders: &[RootFolder]) -> Option<&RootFolder> {
    folders.iter().filter(|folder| folder.free_bytes.is_some()).max_by_key(|folder| folder.free_bytes)
}

/// Builds the failure for an id that the library does not have.
pub fn unknown_title(id: i64) -> CallFailure {
    CallFailure::new(
        FailureCode::UnknownId,
        json!({ "id": id, "hint": "call find_in_library and use an id it gives" }),
        Some("I can't find that in the library.".to_owned()),
    )
}

fn no_library_configured() -> CallFailure {
    let sentence = "No library is set up for that. An admin has to check it.";
    CallFailure::new(
        FailureCode::NotSetUp,
        json!({ "hint": "no library of that kind is set up: an admin has to do that" }),
        Some(sentence.to_owned()),
    )
}

/// Returns the instance of this name. Without a name, returns the ordinary instance, which is the first one.
fn select_instance<'a, Client>(
    instances: &'a [Instance<Client>],
    name: Option<&str>,
    app: &str,
) -> Result<&'a Instance<Client>, CallFailure> {
    match (instances, name) {
        ([], _) => Err(CallFailure::new(
            FailureCode::NotSetUp,
            json!({ "service": app, "hint": "say that an admin has to set it up" }),
            Some(format!("{app} is not set up.")),
        )),
        ([ordinary, ..], None) => Ok(ordinary),
        (_, Some(name)) if let Some(instance) = instances.iter().find(|instance| instance.name == name) => {
            Ok(instance)
        }
        (several, Some(_)) => {
            let names: Vec<&str> = several.iter().map(|instance| instance.name).collect();
            Err(bad_argument("instance", &format!("one of {}", names.join(", ")), ""))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn radarr() -> Instance<()> {
        Instance { name: "radarr-4k", four_k: true, client: (), cache: LibraryCache::default() }
    }

    #[track_caller]
    fn check(error: &ArrError, expected: &str) {
        let message = match radarr().write_error(error) {
            ToolError::CallFailed(failure) => {
                format!("{} {}", failure.for_model, failure.for_user.unwrap_or_default())
            }
            ToolError::Unknown(reason) => format!("unknown: {reason}"),
            ToolError::Fatal(error) => format!("fatal: {error}"),
        };
        assert_eq!(message, expected);
    }

    #[test]
    fn outcome_of_a_write_with_a_possible_effect_is_unknown() {
        check(
            &ArrError::NoResponse(HttpError::TimedOut(INSTANCE_READ_TIMEOUT)),
            "unknown: radarr-4k: failed to get a response: get a response within 8 s",
        );
        check(
            &ArrError::Server { status: 500, message: "boom".to_owned() },
            "unknown: radarr-4k: failed to complete the request: status 500: boom",
        );
    }

    #[test]
    fn failure_names_the_service_without_paths() {
        check(
            &ArrError::Refused(vec!["Path '/data/movies' is wrong".to_owned()]),
            r#"{"error":"radarr_refused","hint":"Path is wrong","service":"Radarr 4K"} Radarr 4K did not accept that."#,
        );
        check(
            &ArrError::Unauthorized,
            r#"{"error":"radarr_misconfigured","service":"Radarr 4K"} Radarr 4K is not set up correctly. An admin has to check it."#,
        );
    }

    #[test]
    fn most_used_profile_is_found() {
        let profiles: Vec<QualityProfile> =
            [1, 2, 3].map(|id| QualityProfile { id, name: format!("profile {id}"), four_k: false }).to_vec();
        let most_used =
            |in_use: &[i64]| most_used_profile(&profiles, in_use.iter().copied()).map(|found| found.id);
        assert_eq!([most_used(&[3, 2, 3]), most_used(&[]), most_used(&[9])], [Some(3), Some(1), Some(1)]);
        assert_eq!(most_used_profile(&[], [1].into_iter()), None);
    }

    #[test]
    fn folder_with_most_space_is_accessible() {
        let folder = |path: &str, free_bytes| RootFolder { path: path.to_owned(), free_bytes };
        let folders = [folder("/lost", None), folder("/small", Some(1)), folder("/big", Some(2))];
        assert_eq!(folder_with_most_space(&folders), Some(&folders[2]));
        assert_eq!(folder_with_most_space(&folders[..1]), None);
    }
}
