//! Fan-out of a group of related arr events into notifications for each user, in the transaction that claims the
//! events.

use jiff::Timestamp;

use super::send_time::earliest_send_time;
use crate::arr::episodes::Episode;
use crate::arr::history::HistoryEntry;
use crate::arr::{Series, history};
use crate::conversation::notifications::arr_events::{
    self as words, ArrEvent, ArrTitle, EPISODE_NOTIFICATION_INTERVAL, EventGroup, ImportKind,
    NotificationText, NotificationTopic, PROBLEM_NOTIFICATION_INTERVAL,
};
use crate::conversation::transcript::{MediaKind, UserId, UserStatus};
use crate::engine::reply_address::ReplyAddress;
use crate::engine::settings::HouseholdSettings;
use crate::messaging::segments::SegmentCount;
use crate::store::library::arr_events::{self, EventClaimOutcome};
use crate::store::library::follows::{self, FollowedTitle};
use crate::store::memory::groups::{self, SharedMessage};
use crate::store::people::users;
use crate::store::queue::notifications::{self, NotificationSetting, RecordOutcome};
use crate::store::{Conn, QueryResult};

/// Outcome of notifying users about a group of arr events.
pub(super) enum FanoutOutcome {
    Done,
    /// Single episodes wait for further episodes until this time.
    NotBefore(Timestamp),
    /// The instance did not respond and has to be queried again. The same failure is expected for every other show.
    NoAnswer,
    /// The instance cannot return data about this one show.
    Unclear,
}

/// Flag for the notification of a real user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NotifyOutcome {
    Notified,
    NotNotified,
}

/// News about a show for its followers.
pub(super) struct SeriesNews {
    pub(super) instance: String,
    pub(super) show: ArrTitle,
    event_ids: Vec<i64>,
    /// New episodes by season and number, in order.
    pub(super) episodes: Vec<(u32, u32)>,
    /// Complete seasons among the seasons with new episodes.
    pub(super) complete: Vec<u32>,
    /// No further episodes of the show are expected.
    pub(super) is_over: bool,
}

impl SeriesNews {
    pub(super) fn from_group(group: &EventGroup) -> Self {
        let mut news = Self {
            instance: group.instance.clone(),
            show: ArrTitle { id: 0, catalog_id: 0, title: String::new(), year: 0 },
            event_ids: group.events.iter().map(|report| report.id).collect(),
            episodes: Vec::new(),
            complete: Vec::new(),
            is_over: false,
        };
        for one in &group.events {
            if let ArrEvent::EpisodeImported { show, season, number, copy } = &one.event {
                news.show.clone_from(show);
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

    /// Updates the news with Sonarr's data about the show and the episodes of its growing seasons.
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
        let show = ArrTitle {
            id: series.id.unwrap_or_default(),
            catalog_id: series.tvdb,
            title: series.title.clone(),
            year: series.year,
        };
        let (reports, episodes) = (Vec::new(), Vec::new());
        Self {
            instance: instance.to_owned(),
            show,
            event_ids: reports,
            episodes,
            complete,
            is_over: is_over(series),
        }
    }
}

/// Returns whether a show is over: no further episodes are expected, and all of them are on disk.
fn is_over(series: &Series) -> bool {
    series.ended && series.episodes_on_disk >= series.episodes
}

pub(super) fn followed_season(instance: &str, show: &ArrTitle, season: u32) -> FollowedTitle {
    FollowedTitle {
        instance: instance.to_owned(),
        kind: MediaKind::Series,
        catalog_id: show.catalog_id,
        season: Some(season),
    }
}

/// News about a show for one user.
pub(super) struct UserNews {
    pub(super) user: UserId,
    pub(super) complete: Vec<u32>,
    episodes: Vec<(u32, u32)>,
    /// Keys of the news, each with the time since which the user has waited for the news.
    pub(super) matters: Vec<(String, Timestamp)>,
}

impl UserNews {
    /// Returns the share of a user, and adds an empty one if there is none yet.
    pub(super) fn of(user: UserId, shares: &mut Vec<Self>) -> &mut Self {
        let known = shares.iter().position(|share| share.user == user);
        let position = known.unwrap_or_else(|| {
            shares.push(Self { user, complete: vec![], episodes: vec![], matters: vec![] });
            shares.len() - 1
        });
        &mut shares[position]
    }
}

/// Fan-out of notifications within one transaction.
pub(super) struct NotificationFanout<'a> {
    pub(super) conn: &'a mut Conn,
    pub(super) settings: &'a HouseholdSettings,
    pub(super) now: Timestamp,
}

impl NotificationFanout<'_> {
    fn claim_group(&mut self, group: &EventGroup) -> QueryResult<EventClaimOutcome> {
        let ids: Vec<i64> = group.events.iter().map(|report| report.id).collect();
        arr_events::claim_events(self.conn, &ids, self.now)
    }

    pub(super) fn notify_of_movie(&mut self, group: &EventGroup) -> QueryResult<()> {
        if self.claim_group(group)? == EventClaimOutcome::Lost {
            return Ok(());
        }
        let first = group.events.iter().find_map(|one| {
            let ArrEvent::MovieImported(movie, ImportKind::First) = &one.event else { return None };
            Some(movie)
        });
        let Some(movie) = first else { return Ok(()) };
        let (instance, catalog_id) = (group.instance.clone(), movie.catalog_id);
        let what = FollowedTitle { instance, kind: MediaKind::Movie, catalog_id, season: None };
        let matter = format!("movie:{}:{}", group.instance, movie.catalog_id);
        let (news, mut heard_by) = (words::format_movie_ready(movie), Vec::new());
        for user in follows::load_followers(self.conn, &what)? {
            let since = follows::load_follow_time(self.conn, user, &what)?.unwrap_or(self.now);
            if self.notify_user(user, NotificationTopic::Ready, &[(matter.clone(), since)], &news)?
                == NotifyOutcome::Notified
            {
                heard_by.push(user);
            }
        }
        self.store_shared_message(&matter, &heard_by, &news)?;
        follows::end_follows(self.conn, &what, self.now).map(drop)
    }

    pub(super) fn notify_of_show(&mut self, news: &SeriesNews) -> QueryResult<FanoutOutcome> {
        let shares = self.collect_user_news(news)?;
        if shares.iter().all(|share| share.complete.is_empty()) {
            let mut again: Option<Timestamp> = None;
            for share in &shares {
                let beginning = format!("episode:{}:{}:", news.instance, news.show.catalog_id);
                let last = notifications::load_last_notified(self.conn, share.user, &beginning)?;
                // A time in the future cannot be the time of the last notification: the clock was set back.
                let last = last.filter(|last| *last <= self.now);
                again = again.max(last.map(|last| last + EPISODE_NOTIFICATION_INTERVAL));
            }
            if let Some(at) = again.filter(|at| *at > self.now) {
                return Ok(FanoutOutcome::NotBefore(at));
            }
        }
        if arr_events::claim_events(self.conn, &news.event_ids, self.now)? == EventClaimOutcome::Lost {
            return Ok(FanoutOutcome::Done);
        }
        self.announce(news, shares)?;
        Ok(FanoutOutcome::Done)
    }

    /// Notifies each user of their share, and ends the follows of all complete seasons and shows.
    pub(super) fn announce(&mut self, news: &SeriesNews, shares: Vec<UserNews>) -> QueryResult<()> {
        let mut told: Vec<(NotificationText, Vec<UserId>)> = Vec::new();
        for share in shares {
            let words = words::format_series_ready(&news.show, &share.complete, &share.episodes);
            if self.notify_user(share.user, NotificationTopic::Ready, &share.matters, &words)?
                == NotifyOutcome::Notified
            {
                match told.iter_mut().find(|(known, _)| known.sentence == words.sentence) {
                    Some((_, heard_by)) => heard_by.push(share.user),
                    None => told.push((words, vec![share.user])),
                }
            }
        }
        for (place, (words, heard_by)) in told.iter().enumerate() {
            let matter = format!("show:{}:{}:{place}", news.instance, news.show.catalog_id);
            self.store_shared_message(&matter, heard_by, words)?;
        }
        for season in &news.complete {
            follows::end_follows(self.conn, &followed_season(&news.instance, &news.show, *season), self.now)?;
        }
        if news.is_over {
            let all = FollowedTitle { season: None, ..followed_season(&news.instance, &news.show, 0) };
            follows::end_follows(self.conn, &all, self.now)?;
        }
        Ok(())
    }

    /// Collects the news that each user has waited for and has not received yet.
    fn collect_user_news(&mut self, news: &SeriesNews) -> QueryResult<Vec<UserNews>> {
        let mut shares: Vec<UserNews> = Vec::new();
        for season in news.season_numbers() {
            let what = followed_season(&news.instance, &news.show, season);
            let of_show = format!("{}:{}:{season}", news.instance, news.show.catalog_id);
            for user in follows::load_followers(self.conn, &what)? {
                let since = follows::load_follow_time(self.conn, user, &what)?.unwrap_or(self.now);
                let share = UserNews::of(user, &mut shares);
                let whole = format!("season:{of_show}");
                let is_complete = news.complete.contains(&season)
                    && !notifications::was_notified(self.conn, user, &whole, since)?;
                if is_complete {
                    share.complete.push(season);
                    share.matters.push((whole, since));
                }
                for episode in news.episodes.iter().filter(|(of, _)| *of == season) {
                    let matter = format!("episode:{of_show}:{}", episode.1);
                    if !notifications::was_notified(self.conn, user, &matter, since)? {
                        share.matters.push((matter, since));
                        if !is_complete {
                            share.episodes.push(*episode);
                        }
                    }
                }
            }
        }
        shares.retain(|share| !share.matters.is_empty());
        Ok(shares)
    }

    /// Notifies the admins of trouble that needs their attention. A health problem that has passed causes no
    /// notification.
    pub(super) fn notify_of_trouble(&mut self, group: &EventGroup, service: &str) -> QueryResult<()> {
        if self.claim_group(group)? == EventClaimOutcome::Lost {
            return Ok(());
        }
        let Some(last) = group.events.last() else { return Ok(()) };
        let (what, words) = match &last.event {
            ArrEvent::ImportBlocked(of) => (of, words::format_import_blocked(of, service)),
            ArrEvent::DownloadFailed(of) => (of, words::format_download_failed(of)),
            ArrEvent::HealthIssue { check, message } => (check, words::format_health_issue(message, service)),
            ArrEvent::HealthRestored { .. }
            | ArrEvent::MovieImported(..)
            | ArrEvent::EpisodeImported { .. } => return Ok(()),
        };
        let matter = format!("trouble:{}:{what}", group.instance);
        let since = self.now - PROBLEM_NOTIFICATION_INTERVAL;
        let mut heard_by = Vec::new();
        for admin in users::load_admins(self.conn)? {
            if notifications::load_notification_setting(self.conn, admin.id)? == NotificationSetting::Off {
                continue;
            }
            if self.notify_user(admin.id, NotificationTopic::Problem, &[(matter.clone(), since)], &words)?
                == NotifyOutcome::Notified
            {
                heard_by.push(admin.id);
            }
        }
        self.store_shared_message(&matter, &heard_by, &words)
    }

    /// Stores a notification as a shared message that all of its recipients can find. The same news is stored again
    /// only at another time.
    fn store_shared_message(
        &mut self,
        matter: &str,
        heard_by: &[UserId],
        news: &NotificationText,
    ) -> QueryResult<()> {
        let source = format!("notice:{matter}:{}", self.now.as_millisecond());
        let heard = SharedMessage { text: &news.sentence, recipients: heard_by, author: None };
        groups::remember_shared_message(self.conn, &source, &heard, self.now)
    }

    /// Notifies one user once of each piece of news: now, in the morning, or together with notifications that already
    /// wait.
    fn notify_user(
        &mut self,
        user: UserId,
        topic: NotificationTopic,
        matters: &[(String, Timestamp)],
        news: &NotificationText,
    ) -> QueryResult<NotifyOutcome> {
        let person = users::load_user(self.conn, user)?;
        if person.status != UserStatus::Active || person.opted_out {
            return Ok(NotifyOutcome::NotNotified);
        }
        let mut ids = Vec::new();
        for (matter, since) in matters {
            if let RecordOutcome::New(id) =
                notifications::record_notification(self.conn, user, matter, *since, self.now)?
            {
                ids.push(id);
            }
        }
        let Some(first) = ids.first() else { return Ok(NotifyOutcome::NotNotified) };
        // A test user reads the notification in the console and shares no memory with real users.
        let hearing = if person.test { NotifyOutcome::NotNotified } else { NotifyOutcome::Notified };
        let way = ReplyAddress::load_for_user(self.conn, &person, self.settings.number.as_ref())?;
        let key = notifications::notification_key(topic, *first);
        let told = (ids.as_slice(), news.phrase.as_str());
        if let Some(mut held) = notifications::find_waiting_notification(self.conn, user, topic, self.now)? {
            held.phrases.push(news.phrase.clone());
            let text = way.notification_message(&key, &words::combine_phrases(topic, &held.phrases));
            let segments = u32::try_from(SegmentCount::from_text(&text.body).count).unwrap_or(u32::MAX);
            notifications::append_phrase(self.conn, held.id, (&text.body, segments), told, self.now)?;
            return Ok(hearing);
        }
        let at = earliest_send_time(self.conn, user, self.settings, self.now)?;
        notifications::queue_notification(
            self.conn,
            &way.notification_message(&key, &news.sentence),
            at,
            told,
            self.now,
        )?;
        Ok(hearing)
    }
}
