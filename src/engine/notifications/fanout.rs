//! Fan-out of related arr events into notifications for each user, in the transaction that claims the events.

use jiff::Timestamp;

use super::title_readers::TitleReaders;
use crate::arr::episodes::Episode;
use crate::arr::history::HistoryEntry;
use crate::arr::{Series, history};
use crate::conversation::notifications::arr_events::{
    self as event_messages, ArrEvent, ArrTitle, EPISODE_NOTIFICATION_INTERVAL, EventGroup, ImportKind,
    NotificationText, NotificationTopic, PROBLEM_NOTIFICATION_INTERVAL,
};
use crate::conversation::transcript::{MediaKind, UserId, UserStatus};
use crate::engine::reply_address::ReplyAddress;
use crate::engine::send_time::earliest_send_time;
use crate::engine::settings::HouseholdSettings;
use crate::store::library::arr_events::{self, EventClaimOutcome};
use crate::store::library::follows::{self, FollowedTitle};
use crate::store::memory::groups::{self, SharedMessage};
use crate::store::people::users;
use crate::store::queue::notifications::{self, NotificationSetting, RecordOutcome};
use crate::store::{Conn, QueryResult};

/// Outcome of notifying users about a group of arr events.
pub(super) enum FanoutOutcome {
    Done,
    /// Single episodes wait for more episodes until this time.
    NotBefore(Timestamp),
    /// The instance did not respond and has to be queried again. Its other series would fail in the same way.
    NoResponse,
    /// The instance cannot return details of this one series.
    UnreadableSeries,
}

/// Outcome of notifying one user. Test users count as not notified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NotifyOutcome {
    Notified,
    NotNotified,
}

/// News about a series for its followers.
pub(super) struct SeriesNews {
    pub(super) instance: String,
    pub(super) title: ArrTitle,
    event_ids: Vec<i64>,
    /// New episodes by season and number, in order.
    pub(super) episodes: Vec<(u32, u32)>,
    /// Complete seasons among the seasons with new episodes.
    pub(super) complete: Vec<u32>,
    /// The series has ended, and all of its episodes are on disk.
    pub(super) is_over: bool,
}

impl SeriesNews {
    pub(super) fn from_group(group: &EventGroup) -> Self {
        let mut news = Self {
            instance: group.instance.clone(),
            title: ArrTitle { id: 0, catalog_id: 0, title: String::new(), year: 0 },
            event_ids: group.events.iter().map(|event| event.id).collect(),
            episodes: Vec::new(),
            complete: Vec::new(),
            is_over: false,
        };
        for event in &group.events {
            if let ArrEvent::EpisodeImported { show, season, number, copy } = &event.event {
                news.title.clone_from(show);
                if *copy == ImportKind::First {
                    news.episodes.push((*season, *number));
                }
            }
        }
        news.episodes.sort_unstable();
        news.episodes.dedup();
        news
    }

    pub(super) fn season_numbers(&self) -> Vec<u32> {
        let mut seasons: Vec<u32> = self.episodes.iter().map(|(season, _)| *season).collect();
        seasons.dedup();
        seasons
    }

    /// Adds Sonarr's details of the series and of the episodes in its growing seasons.
    pub(super) fn add_series_details(
        &mut self,
        series: &Series,
        (entries, growing): (&[HistoryEntry], &[Episode]),
        now: Timestamp,
    ) {
        // The event of a complete import does not indicate whether an earlier file was replaced.
        self.episodes.retain(|episode| !history::was_upgraded(entries, *episode));
        let is_complete = |season: &u32| series.season_is_complete(*season, growing, now);
        self.complete = self.season_numbers().into_iter().filter(is_complete).collect();
        self.is_over = is_over(series);
    }

    /// Creates the news about seasons that are complete without a new import.
    pub(super) fn without_import(instance: &str, series: &Series, complete: Vec<u32>) -> Self {
        let title = ArrTitle {
            id: series.id.unwrap_or_default(),
            catalog_id: series.tvdb,
            title: series.title.clone(),
            year: series.year,
        };
        Self {
            instance: instance.to_owned(),
            title,
            event_ids: Vec::new(),
            episodes: Vec::new(),
            complete,
            is_over: is_over(series),
        }
    }
}

/// Returns whether a series has ended and all of its episodes are on disk.
fn is_over(series: &Series) -> bool {
    series.ended && series.episodes_on_disk >= series.episodes
}

pub(super) fn followed_season(instance: &str, title: &ArrTitle, season: u32) -> FollowedTitle {
    FollowedTitle {
        instance: instance.to_owned(),
        kind: MediaKind::Series,
        catalog_id: title.catalog_id,
        season: Some(season),
    }
}

/// News about a series for one user.
pub(super) struct UserNews {
    pub(super) user: UserId,
    pub(super) complete: Vec<u32>,
    episodes: Vec<(u32, u32)>,
    /// Notification keys of the news, each with the start of the user's follow.
    pub(super) keys: Vec<(String, Timestamp)>,
}

impl UserNews {
    /// Returns the news of a user, and adds an empty entry if there is none yet.
    pub(super) fn for_user(user: UserId, user_news: &mut Vec<Self>) -> &mut Self {
        let known = user_news.iter().position(|news| news.user == user);
        let index = known.unwrap_or_else(|| {
            user_news.push(Self { user, complete: vec![], episodes: vec![], keys: vec![] });
            user_news.len() - 1
        });
        &mut user_news[index]
    }
}

/// Fan-out of notifications within one transaction.
pub(super) struct NotificationFanout<'a> {
    pub(super) conn: &'a mut Conn,
    pub(super) settings: &'a HouseholdSettings,
    /// Users with caps who may learn about the title.
    pub(super) readers: &'a TitleReaders,
    pub(super) now: Timestamp,
}

impl NotificationFanout<'_> {
    pub(super) fn claim_group(&mut self, group: &EventGroup) -> QueryResult<EventClaimOutcome> {
        let ids: Vec<i64> = group.events.iter().map(|event| event.id).collect();
        arr_events::claim_events(self.conn, &ids, self.now)
    }

    pub(super) fn notify_of_movie(&mut self, group: &EventGroup) -> QueryResult<()> {
        if self.claim_group(group)? == EventClaimOutcome::Lost {
            return Ok(());
        }
        let first_import = group.events.iter().find_map(|event| {
            let ArrEvent::MovieImported(movie, ImportKind::First) = &event.event else { return None };
            Some(movie)
        });
        let Some(movie) = first_import else { return Ok(()) };
        let (instance, catalog_id) = (group.instance.clone(), movie.catalog_id);
        let title = FollowedTitle { instance, kind: MediaKind::Movie, catalog_id, season: None };
        let key = format!("movie:{}:{}", group.instance, movie.catalog_id);
        let (text, mut recipients) = (event_messages::format_movie_ready(movie), Vec::new());
        for user in follows::load_followers(self.conn, &title)? {
            let since = follows::load_follow_time(self.conn, user, &title)?.unwrap_or(self.now);
            if self.notify_user(user, NotificationTopic::Ready, &[(key.clone(), since)], &text)?
                == NotifyOutcome::Notified
            {
                recipients.push(user);
            }
        }
        self.store_shared_message(&key, &recipients, &text)?;
        follows::end_follows(self.conn, &title, self.now).map(drop)
    }

    pub(super) fn notify_of_series(&mut self, news: &SeriesNews) -> QueryResult<FanoutOutcome> {
        let user_news = self.collect_user_news(news)?;
        if user_news.iter().all(|news_of_user| news_of_user.complete.is_empty()) {
            let mut next_allowed: Option<Timestamp> = None;
            for news_of_user in &user_news {
                let key_prefix = format!("episode:{}:{}:", news.instance, news.title.catalog_id);
                let last = notifications::load_last_notified(self.conn, news_of_user.user, &key_prefix)?;
                // A time in the future cannot be the time of the last notification: the clock was set back.
                let last = last.filter(|last| *last <= self.now);
                next_allowed = next_allowed.max(last.map(|last| last + EPISODE_NOTIFICATION_INTERVAL));
            }
            if let Some(at) = next_allowed.filter(|at| *at > self.now) {
                return Ok(FanoutOutcome::NotBefore(at));
            }
        }
        if arr_events::claim_events(self.conn, &news.event_ids, self.now)? == EventClaimOutcome::Lost {
            return Ok(FanoutOutcome::Done);
        }
        self.announce(news, user_news)?;
        Ok(FanoutOutcome::Done)
    }

    /// Notifies each user, and ends the follows of complete seasons and ended series.
    pub(super) fn announce(&mut self, news: &SeriesNews, user_news: Vec<UserNews>) -> QueryResult<()> {
        let mut sent: Vec<(NotificationText, Vec<UserId>)> = Vec::new();
        for news_of_user in user_news {
            let text = event_messages::format_series_ready(
                &news.title,
                &news_of_user.complete,
                &news_of_user.episodes,
            );
            if self.notify_user(news_of_user.user, NotificationTopic::Ready, &news_of_user.keys, &text)?
                == NotifyOutcome::Notified
            {
                match sent.iter_mut().find(|(known, _)| known.sentence == text.sentence) {
                    Some((_, recipients)) => recipients.push(news_of_user.user),
                    None => sent.push((text, vec![news_of_user.user])),
                }
            }
        }
        for (index, (text, recipients)) in sent.iter().enumerate() {
            let key = format!("show:{}:{}:{index}", news.instance, news.title.catalog_id);
            self.store_shared_message(&key, recipients, text)?;
        }
        for season in &news.complete {
            follows::end_follows(
                self.conn,
                &followed_season(&news.instance, &news.title, *season),
                self.now,
            )?;
        }
        if news.is_over {
            let whole_series =
                FollowedTitle { season: None, ..followed_season(&news.instance, &news.title, 0) };
            follows::end_follows(self.conn, &whole_series, self.now)?;
        }
        Ok(())
    }

    /// Collects the news that each user has waited for and has not received yet.
    fn collect_user_news(&mut self, news: &SeriesNews) -> QueryResult<Vec<UserNews>> {
        let mut user_news: Vec<UserNews> = Vec::new();
        for season in news.season_numbers() {
            let season_follow = followed_season(&news.instance, &news.title, season);
            let season_id = format!("{}:{}:{season}", news.instance, news.title.catalog_id);
            for user in follows::load_followers(self.conn, &season_follow)? {
                let since = follows::load_follow_time(self.conn, user, &season_follow)?.unwrap_or(self.now);
                let news_of_user = UserNews::for_user(user, &mut user_news);
                let season_key = format!("season:{season_id}");
                let is_complete = news.complete.contains(&season)
                    && !notifications::was_notified(self.conn, user, &season_key, since)?;
                if is_complete {
                    news_of_user.complete.push(season);
                    news_of_user.keys.push((season_key, since));
                }
                for episode in news.episodes.iter().filter(|(number, _)| *number == season) {
                    let key = format!("episode:{season_id}:{}", episode.1);
                    if !notifications::was_notified(self.conn, user, &key, since)? {
                        news_of_user.keys.push((key, since));
                        if !is_complete {
                            news_of_user.episodes.push(*episode);
                        }
                    }
                }
            }
        }
        user_news.retain(|news_of_user| !news_of_user.keys.is_empty());
        Ok(user_news)
    }

    /// Notifies the admins of a problem that needs their attention. A problem that is already resolved causes no
    /// notification.
    pub(super) fn notify_of_problem(&mut self, group: &EventGroup, service: &str) -> QueryResult<()> {
        if self.claim_group(group)? == EventClaimOutcome::Lost {
            return Ok(());
        }
        let Some(last) = group.events.last() else { return Ok(()) };
        let (subject, text) = match &last.event {
            ArrEvent::ImportBlocked(name) => (name, event_messages::format_import_blocked(name, service)),
            ArrEvent::DownloadFailed(name) => (name, event_messages::format_download_failed(name)),
            ArrEvent::HealthIssue { check, message } => {
                (check, event_messages::format_health_issue(message, service))
            }
            ArrEvent::HealthRestored { .. }
            | ArrEvent::MovieImported(..)
            | ArrEvent::EpisodeImported { .. } => return Ok(()),
        };
        let key = format!("trouble:{}:{subject}", group.instance);
        let since = self.now - PROBLEM_NOTIFICATION_INTERVAL;
        let mut recipients = Vec::new();
        for admin in users::load_admins(self.conn)? {
            if notifications::load_notification_setting(self.conn, admin.id)? == NotificationSetting::Off {
                continue;
            }
            if self.notify_user(admin.id, NotificationTopic::Problem, &[(key.clone(), since)], &text)?
                == NotifyOutcome::Notified
            {
                recipients.push(admin.id);
            }
        }
        self.store_shared_message(&key, &recipients, &text)
    }

    /// Stores a notification as a shared message that all of its recipients can find. The key and the time identify the
    /// message.
    fn store_shared_message(
        &mut self,
        key: &str,
        recipients: &[UserId],
        text: &NotificationText,
    ) -> QueryResult<()> {
        let source = format!("notice:{key}:{}", self.now.as_millisecond());
        let message = SharedMessage { text: &text.sentence, recipients, author: None };
        groups::remember_shared_message(self.conn, &source, &message, self.now)
    }

    /// Notifies one user, once for each key: now, after the quiet hours, or together with a notification that already
    /// waits.
    pub(super) fn notify_user(
        &mut self,
        user: UserId,
        topic: NotificationTopic,
        keys: &[(String, Timestamp)],
        text: &NotificationText,
    ) -> QueryResult<NotifyOutcome> {
        let recipient = users::load_user(self.conn, user)?;
        if !self.readers.includes(&recipient) {
            return Ok(NotifyOutcome::NotNotified);
        }
        if recipient.status != UserStatus::Active || recipient.opted_out {
            return Ok(NotifyOutcome::NotNotified);
        }
        let mut ids = Vec::new();
        for (key, since) in keys {
            if let RecordOutcome::New(id) =
                notifications::record_notification(self.conn, user, key, *since, self.now)?
            {
                ids.push(id);
            }
        }
        let Some(first) = ids.first() else { return Ok(NotifyOutcome::NotNotified) };
        // A test user reads the notification in the console, and does not share memory with real users.
        let outcome = if recipient.test { NotifyOutcome::NotNotified } else { NotifyOutcome::Notified };
        let address = ReplyAddress::load_for_user(self.conn, &recipient, &self.settings.senders)?;
        let key = notifications::notification_key(topic, *first);
        let content = (ids.as_slice(), text.phrase.as_str());
        if let Some(mut waiting) = notifications::find_waiting_notification(self.conn, user, topic, self.now)?
        {
            waiting.phrases.push(text.phrase.clone());
            let combined = event_messages::combine_phrases(topic, &waiting.phrases);
            let message = address.notification_message(&key, &combined);
            notifications::append_phrase(
                self.conn,
                waiting.id,
                (&message.body, message.segments),
                content,
                self.now,
            )?;
            return Ok(outcome);
        }
        let at = earliest_send_time(self.conn, user, self.settings, self.now)?;
        notifications::queue_notification(
            self.conn,
            &address.notification_message(&key, &text.sentence),
            at,
            content,
            self.now,
        )?;
        Ok(outcome)
    }
}
