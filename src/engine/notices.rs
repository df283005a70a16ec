//! Notifications about arr events: events that belong together become one message for each user, and only once. The
//! table is the queue; Sonarr is asked for the meaning of an event before anything is committed.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::Engine;
use super::telling::{ShowNews, Telling, Told, followed};
use crate::arr::ArrError;
use crate::conversation::notices::{Group, Subject, groups};
use crate::store::{arr_events, follows};
use crate::telemetry;
use crate::tools::library::Instance;

/// Interval at which arr events are checked in case a wake-up is lost.
const SWEEP: Duration = Duration::from_secs(300);
/// Maximum number of arr events that are processed together.
const AT_ONCE: i64 = 2_000;
/// Delay before a Sonarr that does not answer is asked again.
const ASK_AGAIN: SignedDuration = SignedDuration::from_secs(60);
/// Age of an arr event after which Sonarr is no longer asked about it.
const GIVE_UP: SignedDuration = SignedDuration::from_hours(24);

impl Engine {
    /// From here on, imports events that were not reported to us and sends notifications about all of them, until no
    /// turn begins any more. Dropping the task at any point loses nothing: sent notifications are committed.
    pub(crate) fn give_notice(&self) {
        let engine = self.clone();
        self.0.tasks.spawn(async move {
            let over = engine.0.draining.clone();
            let work = async {
                engine.0.open.cancelled().await;
                tokio::join!(engine.keep_telling(), engine.keep_reconciling());
            };
            tokio::select! {
                () = work => {}
                () = over.cancelled() => {}
            }
        });
    }

    async fn keep_telling(&self) {
        loop {
            let wait = match self.tell_due().await {
                Ok(None) => SWEEP,
                Ok(Some(at)) => {
                    Duration::try_from(at.duration_since(self.now())).unwrap_or_default().min(SWEEP)
                }
                Err(error) => {
                    tracing::error!(error = format!("{error:#}"), "reports could not be told of");
                    SWEEP
                }
            };
            tokio::select! {
                () = self.0.reported.notified() => {}
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    /// Sends the notifications of every event that is due, and returns the time at which the next one is due.
    pub(crate) async fn tell_due(&self) -> anyhow::Result<Option<Timestamp>> {
        // Taken before the read: events that arrive after it are not missing from a group that is due.
        let now = self.now();
        let untold = self.0.parts.db.read(|conn| arr_events::untold(conn, AT_ONCE)).await?;
        let groups = groups(untold);
        // Groups that need no request come first: a Sonarr that hangs delays no movie.
        let (shows, others): (Vec<_>, Vec<_>) =
            groups.into_iter().partition(|group| matches!(group.subject, Subject::Show(_)));
        let (mut next, mut silent): (Option<Timestamp>, Vec<String>) = (None, Vec::new());
        for group in others.into_iter().chain(shows) {
            let (ready_at, instance) = (group.ready_at(), group.instance.clone());
            let again = if ready_at > now {
                Some(ready_at)
            } else if silent.contains(&instance) {
                Some(now + ASK_AGAIN)
            } else {
                match self.tell(group).await? {
                    Told::Done => None,
                    Told::NotBefore(at) => Some(at),
                    Told::Unclear => Some(now + ASK_AGAIN),
                    Told::NoAnswer => {
                        silent.push(instance);
                        Some(now + ASK_AGAIN)
                    }
                }
            };
            next = next.into_iter().chain(again).min();
        }
        self.0.parts.outbox.ring();
        Ok(next)
    }

    async fn tell(&self, group: Group) -> anyhow::Result<Told> {
        let (settings, now) = (self.0.parts.settings.clone(), self.now());
        match &group.subject {
            Subject::Show(_) => {
                let news = match self.ask_about(&group).await? {
                    Asked::Answered(news) => news,
                    Asked::NoAnswer => return Ok(Told::NoAnswer),
                    Asked::Unclear => return Ok(Told::Unclear),
                };
                // The clock may have been set while Sonarr was asked.
                let now = self.now();
                let work = move |conn: &mut _| Telling { conn, settings: &settings, now }.of_show(&news);
                Ok(self.0.parts.db.write(work).await?)
            }
            Subject::Movie(_) => {
                let work = move |conn: &mut _| Telling { conn, settings: &settings, now }.of_movie(&group);
                self.0.parts.db.write(work).await?;
                Ok(Told::Done)
            }
            Subject::Download(_) | Subject::Check(_) => {
                let service = self.label(&group.instance);
                let work = move |conn: &mut _| {
                    Telling { conn, settings: &settings, now }.of_trouble(&group, &service)
                };
                self.0.parts.db.write(work).await?;
                Ok(Told::Done)
            }
        }
    }

    /// Instance name that users know.
    fn label(&self, instance: &str) -> String {
        let library = &self.0.parts.library;
        let movies = library.movies.iter().find(|one| one.name == instance).map(Instance::label);
        let series = || library.series.iter().find(|one| one.name == instance).map(Instance::label);
        movies.or_else(series).unwrap_or_else(|| instance.to_owned())
    }

    /// Asks Sonarr for the episodes that are new and the seasons that are complete. If no user follows the show, Sonarr
    /// is not asked.
    async fn ask_about(&self, group: &Group) -> anyhow::Result<Asked> {
        let mut news = ShowNews::of(group);
        let (instance, seasons, show) = (group.instance.clone(), news.seasons(), news.show.clone());
        let somebody_waits = move |conn: &mut _| {
            for season in seasons {
                if !follows::followers(conn, &followed(&instance, &show, season))?.is_empty() {
                    return Ok(true);
                }
            }
            Ok(false)
        };
        let sonarr = self.0.parts.library.series.iter().find(|one| one.name == group.instance);
        let (Some(sonarr), true) = (sonarr, self.0.parts.db.read(somebody_waits).await?) else {
            news.episodes.clear();
            return Ok(Asked::Answered(news));
        };
        let state = async {
            let (client, id) = (&sonarr.client, news.show.id);
            let Some(series) = client.series(id).await? else { return Ok(None) };
            let growing = client.growing_episodes(&series, Some(&news.seasons())).await?;
            Ok::<_, ArrError>(Some((series, client.history(id).await?, growing)))
        };
        match state.await {
            Ok(Some((series, history, growing))) => news.learn(&series, (&history, &growing), self.now()),
            Ok(None) => news.episodes.clear(),
            Err(error) => {
                let (instance, why) = (&group.instance, telemetry::chain(&error));
                tracing::warn!(instance, error = why, "a report could not be looked into");
                // All events must be that old: a show that continues always has a recent one.
                if group.reports.iter().all(|report| self.now() < report.received_at + GIVE_UP) {
                    return Ok(if error.is_of_the_server() { Asked::NoAnswer } else { Asked::Unclear });
                }
                news.episodes.clear();
            }
        }
        Ok(Asked::Answered(news))
    }
}

enum Asked {
    Answered(ShowNews),
    NoAnswer,
    Unclear,
}
